"""A task for readers: its log as far as it is whole."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model.body import DEFAULT_RETRY, Body, Header, Retry
from skuld_py.model.history import (
    EMPTY_HISTORY,
    EXPIRED,
    FAILED,
    SNOOZED,
    ClaimRecord,
    History,
    death_of,
    ending_of,
    revival_of,
)
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


# -- where it stands -----------------------------------------------------------------------------

TIMES = st.integers(1, 12)
TOKENS = [(1 << 32) + number for number in range(4)]
ENDINGS = st.just(Max()) | st.builds(ending_of, st.integers(1, FAILED), st.just(0) | TIMES)
CLAIMS = st.dictionaries(st.sampled_from(TOKENS), st.builds(
    ClaimRecord, st.just(1), st.builds(Max, TIMES), ENDINGS, st.just("h:1")))
HISTORIES = st.builds(
    History, st.just(Min()) | st.builds(Min, st.tuples(TIMES, st.sampled_from(TOKENS))),
    CLAIMS.map(LatticeMap), st.just(Min()) | st.builds(Min, st.tuples(TIMES, st.just(0))),
    st.just(Max()) | st.builds(revival_of, st.just(1), st.sampled_from(TOKENS)),
    st.just(Max()) | st.builds(death_of, st.integers(0, 1), st.just(EXPIRED)))


@given(HISTORIES, st.just(0) | TIMES, st.integers(1, 4), TIMES)
@example(History(claims=LatticeMap({TOKENS[0]: ClaimRecord(1, Max(5), Max(), "h:1")})), 0, 1, 5)
@example(History(claims=LatticeMap({TOKENS[0]: ClaimRecord(1, Max(5), ending_of(SNOOZED, 9), "h:1")})), 0, 1, 7)
def test_why_a_task_does_not_wait_agrees_with_its_state(history: History, wake_ms: int, attempts: int,
                                                        now_ms: int) -> None:
    body = Body(Header("q", retry=Retry(attempts)), wake_ms)

    task = view(bytes(20), body.encode(), history, [], now_ms)

    if task.state in ("dead", "scheduled", "waiting"):
        assert (task.state == "dead") == bool(task.death)
    if task.state in ("scheduled", "waiting"):
        assert (task.state == "scheduled") == (task.due_ms > now_ms)
