"""An archiver is given whole tasks, and names exactly what it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from skuld_py.client.archiving import Page
from skuld_py.client.asking import Answered, Ask, Blocking, Step
from skuld_py.client.verbs import Verbs
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import HISTORY_HEAD, encode_claim
from skuld_py.model.ids import IdMint

TASK, OTHER = IdMint(1).mint(1_000, 2, 0)
TOKENS = (1 << 32, 2 << 32)
LINES = {TOKENS[0]: [b"%d" % number for number in range(2_500)], TOKENS[1]: [b"last"]}
BODY = encode_body(Header("q").encode(), b"payload")
HISTORY = HISTORY_HEAD.pack(50, TOKENS[1], 99) + b"".join(encode_claim(token, 10, 99, b"w") for token in TOKENS)


class Line(Blocking, Verbs):
    """A client whose node is a function."""

    def __init__(self, answer: Callable[[m.Message], m.Message]) -> None:
        super().__init__("c")
        self.asked: list[m.Message] = []
        self._answer = answer

    def _perform(self, step: Step) -> Answered[m.Message]:
        assert isinstance(step, Ask)
        self.asked.append(step.message)
        return Answered(self._answer(step.message), 0.0)


def answer(message: m.Message) -> m.Message:
    """One page of two ids, of one of which nothing but a note is left; the log of the other one is cut."""
    if isinstance(message, m.ReadLog):
        lines = LINES[message.token][message.after : message.after + message.limit]
        return m.Logged(0, columns.pack(lines), 0, True)
    if isinstance(message, m.Discard):
        return m.Discarded(0, True, 1)
    shown = LINES[TOKENS[0]][:700]
    rows = (m.TaskRow(TASK, columns.pack([BODY]), HISTORY, columns.pack_u64([TOKENS[0]] * len(shown)),
                      columns.pack_u64(range(len(shown))), columns.pack(shown)),
            m.TaskRow(OTHER, columns.pack([]), b"", columns.pack_u64([1]), columns.pack_u64([0]),
                      columns.pack([b""])))
    return m.Offered(0, 3, True, (), TASK + OTHER, columns.pack_u64([5, 6]), TASK, rows)


def test_a_page_shows_whole_tasks_and_their_whole_logs() -> None:
    page = Line(answer).collectable(7)

    task, = page.tasks
    assert (task.id, task.payload, task.state) == (TASK, b"payload", "completed")
    assert [list(claim.log) for claim in task.claims] == list(LINES.values())
    assert (page.partition, page.is_under_way, page.awaited) == (7, True, ())


def test_a_log_that_is_not_cut_is_not_read_again() -> None:
    def whole(message: m.Message) -> m.Message:
        offered = answer(message)
        assert isinstance(offered, m.Offered)
        return attrs.evolve(offered, cut=b"")
    line = Line(whole)

    task, = line.collectable(7).tasks

    assert list(task.claims[0].log) == LINES[TOKENS[0]][:700]
    assert line.asked == [m.Offer(0, 7)]


def test_what_is_archived_is_all_that_was_offered() -> None:
    line = Line(answer)

    assert line.archived(line.collectable(7)) == 1
    assert line.asked[-1] == m.Discard(0, 7, 3, TASK + OTHER, columns.pack_u64([5, 6]))


def test_nothing_is_archived_without_a_question() -> None:
    line = Line(lambda message: m.Offered(0, 3, False, ("n3",), b"", b"", b"", ()))
    page = line.collectable(0)

    assert page == Page(0, (), False, ("n3",))
    assert line.archived(page) == 0
    assert line.asked == [m.Offer(0, 0)]


@pytest.mark.parametrize("partition", [-1, 1 << 63, True, "0"])
def test_a_partition_is_a_number(partition: Any) -> None:
    with pytest.raises(Refused) as caught:
        Line(answer).collectable(partition)
    assert caught.value.code == "bad_partition"


# -- as records -----------------------------------------------------------------------------------------------


def in_columns(message: m.Message) -> m.Message:
    """The same page of a node of this release."""
    offered = answer(message)
    if not isinstance(offered, m.Offered):
        return offered
    row = offered.tasks[0]
    return attrs.evolve(offered, tasks=(), number=5, due_ms=70, upto_ms=60, ended=9,
                        bodies=columns.pack([BODY, b""]), histories=columns.pack([HISTORY, b""]),
                        counts=columns.pack_u64([len(row.entries), 1]), tokens=row.tokens + columns.pack_u64([1]),
                        seqs=row.seqs + columns.pack_u64([0]),
                        entries=columns.pack([*row.entries.unpack(), b""]))


@pytest.mark.parametrize("node", [answer, in_columns], ids=["rows", "columns"])
def test_a_page_of_records_is_whole_whichever_release_gives_it(node: Callable[[m.Message], m.Message]) -> None:
    line = Line(node)
    page = line.offered(7, epoch=3, after=4, wanted_ms=50)

    record, nothing = page.records
    assert nothing is None and record is not None
    assert record[:3] == (TASK, BODY, HISTORY)
    assert list(record[3]) == [(token, seq, data) for token in TOKENS for seq, data in enumerate(LINES[token])]
    assert (page.ids, page.digests, page.epoch) == (TASK + OTHER, columns.pack_u64([5, 6]), 3)
    assert (page.number, page.due_ms, page.upto_ms, page.ended) == (
        (5, 70, 60, 9) if node is in_columns else (0, 0, 0, 0))
    assert line.asked[0] == m.Offer(0, 7, True, 3, 4, 50)
    assert line.archived(page) == 1
