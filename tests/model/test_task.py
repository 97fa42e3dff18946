"""A task for readers: its log as far as it is whole."""

from __future__ import annotations

from skuld_py.model.task import LogEntry, contiguous


def test_a_log_is_shown_up_to_its_first_gap() -> None:
    entries = [LogEntry(5, seq, b"%d" % seq) for seq in (2, 0, 1, 4, 5)]
    entries += [LogEntry(6, 1, b"x"), LogEntry(7, 0, b"y")]

    assert contiguous(entries) == {5: (b"0", b"1", b"2"), 6: (), 7: (b"y",)}
