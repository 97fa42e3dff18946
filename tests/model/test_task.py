"""A task for readers: its log as far as it is whole."""

from __future__ import annotations

from skuld_py.model.body import DEFAULT_RETRY, Body, Header, Retry
from skuld_py.model.history import EMPTY_HISTORY
from skuld_py.model.task import LogEntry, contiguous, view


def test_a_log_is_shown_up_to_its_first_gap() -> None:
    entries = [LogEntry(5, seq, b"%d" % seq) for seq in (2, 0, 1, 4, 5)]
    entries += [LogEntry(6, 1, b"x"), LogEntry(7, 0, b"y")]

    assert contiguous(entries) == {5: (b"0", b"1", b"2"), 6: (), 7: (b"y",)}


def test_a_reader_sees_what_the_producer_asked_for() -> None:
    header = Header("q", 3, Retry(2), (("trace", "7"),))

    task = view(bytes(20), Body(header, 1_000, 2_000, b"data").encode(), EMPTY_HISTORY, [])

    assert (task.queue, task.priority, task.payload) == ("q", 3, b"data")
    assert (task.not_before_ms, task.expires_ms, task.retry) == (1_000, 2_000, Retry(2))
    assert task.headers == {"trace": "7"}


def test_a_reader_of_a_plain_task_sees_no_options() -> None:
    task = view(bytes(20), Body(Header("q"), payload=b"data").encode(), EMPTY_HISTORY, [])

    assert (task.not_before_ms, task.expires_ms, task.retry, task.headers) == (None, None, DEFAULT_RETRY, {})
