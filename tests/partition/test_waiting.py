"""What copies know of dependencies travels with the rest, and is told of in few words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.model.body import ON_FAILURE_WAIT, Body, Header, split_body
from skuld_py.model.columns import pack_u64, unpack_u64
from skuld_py.model.history import DEP_FAILED, DIED, REVIVED
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.notes import (
    MET,
    SUB,
    TOLD,
    End,
    alike,
    check_note,
    met_seq,
    split_met,
    split_told,
    told_seq,
)
from skuld_py.model.state import State
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows, read_rows

FIRST, SECOND, THEN, LATER = IdMint(1).mint(1_000, 4, 0)
BODY = Body(Header("q", policy=ON_FAILURE_WAIT, dep_wait_ms=9), deps=(FIRST, SECOND))
DONE = [(THEN, MET, met_seq(index, End.DONE)) for index in (0, 1)]


def noted(replica: Replica, now_ms: int, *notes: tuple[bytes, int, int]) -> Replica:
    for task_id, token, seq in notes:
        replica.note(now_ms, token, seq, [task_id])
    return replica


def made(*notes: tuple[bytes, int, int]) -> Replica:
    """A copy with a task that needs two, and these notes."""
    replica = Replica(0, MemoryStore(), 10)
    header, rest = split_body(BODY.encode())
    replica.store_tasks(1, header, [THEN], [rest])
    return noted(replica, 2, *notes)


def counts(replica: Replica) -> tuple[int, ...]:
    return replica.filing.tally.row(b"q")


def test_a_copy_that_missed_a_note_gets_it_with_the_rest() -> None:
    here, there = made(DONE[0]), made(DONE[1])
    assert counts(here)[State.BLOCKED] == 1

    merge_rows(here, 3, 1, read_rows(there, [THEN]))

    assert counts(here)[State.WAITING] == 1 and counts(here)[State.BLOCKED] == 0
    assert len(here.entries(THEN)[0]) == 2


def test_a_note_may_come_before_its_task() -> None:
    replica = Replica(0, MemoryStore(), 10)
    noted(replica, 1, *DONE)
    header, rest = split_body(BODY.encode())

    replica.store_tasks(2, header, [THEN, LATER], [rest, rest])

    assert (counts(replica)[State.WAITING], counts(replica)[State.BLOCKED]) == (1, 1)


def test_a_bare_row_tells_what_is_met() -> None:
    replica = made(*DONE, (THEN, SUB, 3))
    replica.append(THEN, 1 << 32, 0, [b"entry"])

    row, = read_rows(replica, [THEN], is_bare=True)

    assert unpack_u64(row.tokens) == (MET, MET) and unpack_u64(row.seqs) == tuple(seq for _, _, seq in DONE)


def test_dependents_and_dependencies_are_read_in_pages() -> None:
    replica = Replica(0, MemoryStore(), 10)
    header, rest = split_body(BODY.encode())
    ids = IdMint(2).mint(1_000, 5, 0)
    replica.store_tasks(1, header, ids, [rest] * 5)
    waiting = replica.filing.waiting

    assert waiting.dependencies(b"", 3) == ([FIRST], FIRST), "who waits for one is met all together"
    assert waiting.dependencies(FIRST, 6) == ([SECOND], b"")
    assert waiting.dependents(SECOND, b"", 3) == [(task_id, 1) for task_id in ids[:3]]
    assert waiting.dependents(SECOND, ids[2], 3) == [(task_id, 1) for task_id in ids[3:]]


def test_ends_are_told_in_pages() -> None:
    replica = Replica(0, MemoryStore(), 10)
    noted(replica, 1, *[(FIRST, SUB, partition) for partition in (1, 700, 4_095)])
    replica.finish(2, [FIRST], [1 << 32], 2)
    waiting = replica.filing.waiting

    page, after = waiting.news(b"", 2)
    assert page == [(FIRST, 1, End.DONE), (FIRST, 700, End.DONE)]
    assert waiting.news(after, 2) == ([(FIRST, 4_095, End.DONE)], b"")
    replica.note(3, TOLD, told_seq(700, End.DONE, 0), [FIRST])
    assert [row[1] for row in waiting.news(b"", 9)[0]] == [1, 4_095]
    assert waiting.is_told(FIRST, End.DONE, 0) and not waiting.is_told(FIRST, End.FAILED, 0)


def test_a_second_death_is_told_again() -> None:
    replica = made((THEN, SUB, 3))
    waiting = replica.filing.waiting
    replica.mark(3, [Mark(THEN, DIED, 1, DEP_FAILED)])
    assert waiting.news(b"", 9)[0] == [(THEN, 3, End.FAILED)]
    replica.note(4, TOLD, told_seq(3, End.FAILED, 0), [THEN])
    assert waiting.news(b"", 9)[0] == []

    replica.mark(5, [Mark(THEN, REVIVED, 1, 0)])
    assert waiting.news(b"", 9)[0] == []
    replica.mark(6, [Mark(THEN, DIED, 2, DEP_FAILED)])

    assert waiting.news(b"", 9)[0] == [(THEN, 3, End.FAILED)]


@given(st.integers(0, 999), st.integers(0, 4_095), st.sampled_from([End.DONE, End.FAILED]),
       st.integers(0, 1 << 40))
def test_numbers_of_notes_are_taken_apart_again(index: int, partition: int, end: End, round_number: int) -> None:
    assert split_met(met_seq(index, end)) == (index, end)
    assert split_told(told_seq(partition, end, round_number)) == (partition, end)
    check_note(MET, met_seq(index, end))
    check_note(TOLD, told_seq(partition, end, round_number))
    check_note(SUB, partition)


@pytest.mark.parametrize(("token", "seq"), [
    (0, 1), (4, 1), (MET, 0), (MET, 4), (MET, 4_001), (SUB, 4_096), (TOLD, 4), (TOLD, (1 << 32) - 255)])
def test_what_is_no_note_is_refused(token: int, seq: int) -> None:
    with pytest.raises(ValueError, match="is none"):
        check_note(token, seq)


@given(st.lists(st.tuples(st.sampled_from([FIRST, SECOND, THEN, LATER]), st.integers(0, 3), st.integers(0, 2)),
                max_size=12))
def test_notes_are_sorted_by_what_they_say(notes: list[tuple[bytes, int, int]]) -> None:
    task_ids, tokens, seqs = ([note[at] for note in notes] for at in range(3))

    found = alike(b"".join(task_ids), pack_u64(tokens), pack_u64(seqs))

    assert found == {kind: [note[0] for note in notes if note[1:] == kind]
                     for kind in zip(tokens, seqs, strict=True)}
