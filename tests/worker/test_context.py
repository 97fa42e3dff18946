"""A task's view of its claim, and the log it writes: coalesced, bounded, numbered once."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from skuld_py import Claim, Retry
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.model.task import ClaimView, Task
from skuld_py.testing import MemoryClient
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.journal import ENTRIES_MAX, Journal, decode_entry, encode_entry, pause_s

ID = TaskId(bytes(range(20)))


def context(*earlier: ClaimView, token: int = 9, deadline_s: float = 60.0) -> TaskContext:
    reads = []

    def read(task_id: TaskId) -> Task:
        assert not reads, "the task is read once"
        reads.append(task_id)
        own = ClaimView(token, "me", 3, 4, is_released=False, completed_ms=None)
        return Task(task_id, "q", 0, b"", (*earlier, own))

    def results_of(task_id: TaskId, *, missing_ok: bool) -> list[bytes | None]:
        return [b"1", None] if missing_ok else [b"1", b"2"]

    return TaskContext(ID, token, "q", time.monotonic() + deadline_s, read, results_of)


def claim(token: int, *log: bytes) -> ClaimView:
    return ClaimView(token, f"w{token}", token, token + 1, is_released=False, completed_ms=None, log=log)


def written(journal: Journal, now_s: float) -> list[dict[str, Any]]:
    """All that is due now, confirmed at once."""
    entries: list[dict[str, Any]] = []
    while batch := journal.take(now_s, at_ms=int(now_s * 1000)):
        entries += map(decode_entry, batch.entries)
        journal.confirm()
    return entries


def test_a_context_names_its_claim() -> None:
    here = context()
    assert here.name == f"{ID}:9"
    assert here.claim_path("/data/") == f"/data/{ID}/9"
    assert not here.is_lost
    here.check()


def test_a_context_reads_what_the_tasks_before_gave() -> None:
    assert context().results() == [b"1", b"2"]
    assert context().results(missing_ok=True) == [b"1", None]


def test_a_line_of_the_log_counts_attempts_not_claims() -> None:
    with MemoryClient() as client:
        task_id = client.enqueue("q", b"", retry=Retry(3, backoff_s=0))

        def said() -> str:
            claim = client.claim_one("q", wait_s=60)
            assert claim is not None
            here = TaskContext(claim.id, claim.token, "q", claim.deadline, client.get, client.results_of,
                               claim.clock)
            assert here.attempt_said(True) == "attempt 1", "nothing is read for a line"
            assert here.attempt_said(False) == "claimed before"
            here.know(client.get(task_id))
            ends.append(claim)
            return here.attempt_said(False)

        ends: list[Claim] = []
        assert said() == "attempt 1/3"
        client.fail(ends[-1])
        assert said() == "attempt 2/3"
        client.release(ends[-1])
        assert said() == "attempt 2/3"
        client.fail(ends[-1], final=True)
        client.retry(task_id)
        assert said() == "attempt 1/3", "it began anew"


def test_a_task_is_not_over_before_what_it_spawned() -> None:
    here = context()
    gate = threading.Event()
    spawned = here.spawn(lambda word: gate.wait() and word, "done")
    assert not here.is_joined

    gate.set()
    here.join()

    assert here.is_joined and spawned.result(0) == "done"


def test_what_fails_in_a_spawned_thread_fails_the_task() -> None:
    here = context()
    here.spawn(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        here.join()


def test_a_spawned_function_is_made_the_tasks_by_the_engine() -> None:
    here = context()
    here.inherit = lambda function: lambda *args: ("as the task", function(*args))
    assert here.spawn(int, "7").result() == ("as the task", 7)


def test_a_lost_claim_raises_what_except_exception_does_not_catch() -> None:
    here = context()
    here.lose("it was claimed again")
    here.lose("a later reason")

    with pytest.raises(ClaimLost, match="it was claimed again") as lost:
        here.check()
    assert not isinstance(lost.value, Exception)


def test_a_claim_is_lost_at_its_deadline_whatever_the_worker_says() -> None:
    here = context(deadline_s=-0.001)
    assert here.is_lost
    here.extend(time.monotonic() + 60)
    assert not here.is_lost


def test_before_a_deadline_is_believed_it_is_asked_whether_the_lease_was_renewed() -> None:
    asked: list[float] = []
    nobody: Any = None

    def renewed() -> float:
        asked.append(time.monotonic() + 60 if len(asked) == 1 else 0.0)
        return asked[-1]

    here = TaskContext(ID, 9, "q", time.monotonic() + 60, nobody, nobody, renewed=renewed)
    assert not here.is_lost and not asked
    here._deadline = 0.0
    assert here.is_past and here.is_past is False
    here.check()
    assert here.deadline == asked[1] and len(asked) == 2


def test_a_deadline_never_moves_back() -> None:
    here = context()
    before = here.deadline
    here.extend(before - 5)
    assert here.deadline == before


def test_the_first_attempt_has_no_history() -> None:
    here = context()
    assert here.attempt == 1
    assert here.history == ()


def test_history_is_what_earlier_claims_wrote() -> None:
    mark = encode_entry("log", 5, checkpoint=17)
    here = context(claim(3, mark), claim(6, b"\xff"))

    assert here.attempt == 3
    assert [(past.token, past.holder) for past in here.history] == [(3, "w3"), (6, "w6")]
    assert here.history[0].entries == ({"kind": "log", "at_ms": 5, "checkpoint": 17},)
    assert here.history[1].entries == ({"kind": "unknown"},)


def test_progress_is_coalesced_and_a_second_apart() -> None:
    journal = Journal(100.0)
    for done in range(5):
        journal.progress(done, 5, "reading")
    assert written(journal, 100.0) == [
        {"kind": "progress", "at_ms": 100_000, "done": 4, "total": 5, "note": "reading"}]

    journal.progress(5, 5)
    assert written(journal, 100.9) == []
    assert [entry["done"] for entry in written(journal, 101.0)] == [5]


def test_progress_that_does_not_change_is_written_once() -> None:
    journal = Journal(0.0)
    journal.progress(1, 2)
    assert len(written(journal, 0.0)) == 1
    journal.progress(1, 2)
    assert written(journal, 5.0) == []


def test_sparks_numbers_stand_beside_the_tasks_own() -> None:
    journal = Journal(0.0)
    journal.spark({"jobs": 1, "stages": [0, 2], "tasks": [3, 8]})
    assert written(journal, 1.0)[0]["spark"]["tasks"] == [3, 8]
    journal.progress(1, 4, "half")
    entry = written(journal, 3.0)[0]
    assert (entry["done"], entry["spark"]["jobs"]) == (1, 1)


def test_a_log_grows_with_the_logarithm_of_the_time() -> None:
    journal = Journal(0.0)
    entries = 0
    for second in range(36_000):
        journal.progress(second, 36_000)
        entries += len(written(journal, float(second)))
    assert entries < 300
    assert pause_s(10.0) == 1.0
    assert pause_s(3_600.0) == 120.0


def test_what_a_task_says_is_kept_in_order_and_bounded_and_the_newest_is_there() -> None:
    journal = Journal(0.0)
    for number in range(ENTRIES_MAX + 7):
        journal.say({"number": number}, at_ms=1)
    journal.close(2, "the worker stops")

    entries = written(journal, 0.0)

    assert [entry["number"] for entry in entries[:-2]] == [*range(ENTRIES_MAX), ENTRIES_MAX + 6]
    assert entries[-2]["text"].startswith("6 entries were overtaken")
    assert entries[-1] == {"kind": "released", "at_ms": 2, "reason": "the worker stops"}


def test_beyond_the_bound_the_newest_is_written_at_the_pace_of_progress() -> None:
    journal = Journal(0.0)
    numbers: list[int] = []
    for second in range(10_000):
        journal.say({"number": second}, at_ms=1)
        entries = written(journal, float(second))
        assert not entries or entries[-1]["number"] == second
        numbers += [entry["number"] for entry in entries]

    journal.say({"number": 10_000}, at_ms=1)
    journal.close(2)

    assert [entry["number"] for entry in written(journal, 10_000.0) if "number" in entry] == [10_000]
    assert numbers[:ENTRIES_MAX] == list(range(ENTRIES_MAX)) and numbers == sorted(numbers)


def test_a_log_that_is_full_goes_on_to_grow_with_the_logarithm_of_the_time() -> None:
    journal = Journal(0.0)
    count = 0
    for second in range(36_000):
        journal.say("still here", at_ms=1)
        count += len(written(journal, float(second)))
    assert ENTRIES_MAX < count < ENTRIES_MAX + 300


def test_why_a_claim_is_given_back_is_last_even_when_more_is_said() -> None:
    journal = Journal(0.0)
    journal.progress(1, 2)
    journal.say("almost", at_ms=1)
    journal.close(2, "the worker stops")
    journal.say("too late", at_ms=3)
    journal.spark({"jobs": 2})

    assert [entry["kind"] for entry in written(journal, 60.0)] == ["log", "progress", "released"]


def test_entries_that_may_be_written_are_written_again_unchanged() -> None:
    journal = Journal(0.0)
    journal.say("one", at_ms=1)
    first = journal.take(0.0, at_ms=1)
    journal.say("two", at_ms=2)
    journal.progress(1, 2)

    assert journal.take(9.0, at_ms=9_000) == first
    journal.confirm()
    following = journal.take(9.0, at_ms=9_000)
    assert first is not None and following is not None
    assert (first.seq, following.seq) == (0, 1)


@pytest.mark.parametrize("words", [{"day": object()}, {"much": "x" * 40_000}, {"nan": float("nan")}])
def test_what_is_no_entry_is_refused_where_it_is_said(words: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        context().log(words)


def test_progress_takes_numbers() -> None:
    with pytest.raises(Refused):
        context().progress(object(), 1)  # type: ignore[arg-type]
    for done, total in (([1], 2), (1, "2"), (None, 2)):  # a list may hold anything by the time it is written
        with pytest.raises(Refused, match="two numbers"):
            context().progress(done, total)  # type: ignore[arg-type]


def test_a_long_text_is_cut() -> None:
    here = context()
    here.log("x" * 10_000)
    assert len(written(here.journal, 1e9)[0]["text"]) == 4_096


def test_a_log_without_a_reason_ends_with_what_was_said() -> None:
    journal = Journal(0.0)
    journal.say("done", at_ms=1)
    journal.close(2)
    journal.say("too late", at_ms=3)

    assert [entry["text"] for entry in written(journal, 60.0)] == ["done"]
