"""Checkpoints of a task: the newest is written once a second and at the end, and the next claim is given it."""

from __future__ import annotations

import queue
from types import SimpleNamespace

import pytest

import skuld_py
from skuld_py import Refused, TaskContext
from skuld_py.client.claims import ClaimName
from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError, Uncertain
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.ids import TaskId
from skuld_py.model.task import Task
from skuld_py.testing import MemoryClient
from skuld_py.worker.journal import FLUSH_S, Batch, Journal
from skuld_py.worker.scribe import Scribe

ID = TaskId(bytes(range(20)))
TOKEN = 9 << 32


def context(known: Checkpoint | None = None) -> TaskContext:
    reads = []

    def read(task_id: TaskId) -> Task:
        assert not reads, "the task is read once"
        reads.append(task_id)
        return Task(task_id, "q", 0, b"", checkpoint=known)

    return TaskContext(ID, TOKEN, "q", 60.0, read, lambda *_, **__: [], clock=lambda: 0.0)


def written(journal: Journal, now_s: float) -> list[Batch]:
    """All that is due now, confirmed at once."""
    batches: list[Batch] = []
    while (batch := journal.take(now_s, 0)) is not None:
        batches.append(batch)
        journal.confirm()
    return batches


# -- the journal ---------------------------------------------------------------------------------


def test_only_the_newest_is_written_and_once_in_a_flush_with_the_entries() -> None:
    journal = Journal(0.0)
    for value in (b"1", b"2", b"3"):
        journal.checkpoint(value)
    journal.say("so far", 0)
    one, = written(journal, 1.0)
    assert (one.checkpoint, one.number, len(one.entries)) == (b"3", 0, 1)

    journal.checkpoint(b"4")
    assert written(journal, 1.0) == []
    two, = written(journal, 1.0 + 0.99 * FLUSH_S)
    assert (two.checkpoint, two.number, two.entries) == (b"4", 1, ())
    assert written(journal, 9.0) == []


def test_the_last_one_is_written_when_the_log_is_closed_and_none_behind_it() -> None:
    journal = Journal(0.0)
    journal.checkpoint(b"1")
    written(journal, 1.0)
    journal.checkpoint(b"2")
    journal.close(0, "the worker stops")
    journal.checkpoint(b"late")
    last, = written(journal, 1.0)
    assert (last.checkpoint, last.number, len(last.entries)) == (b"2", 1, 1)


def test_what_may_be_written_is_written_again_unchanged() -> None:
    journal = Journal(0.0)
    journal.checkpoint(b"1")
    batch = journal.take(1.0, 0)
    journal.checkpoint(b"2")
    assert journal.take(5.0, 0) is batch


def test_one_that_is_refused_leaves_the_log_and_none_follows() -> None:
    journal = Journal(0.0)
    journal.say("so far", 0)
    journal.checkpoint(b"1")
    assert journal.take(1.0, 0) is not None
    journal.forgo_checkpoint()
    journal.checkpoint(b"2")
    rest, = written(journal, 9.0)
    assert rest.checkpoint is None and len(rest.entries) == 1
    journal.close(0)
    assert written(journal, 9.0) == []


def test_what_is_none_is_refused_where_it_is_said() -> None:
    journal = Journal(0.0)
    with pytest.raises(Refused, match="65536 bytes; write the data to a file") as large:
        journal.checkpoint(bytes(65_537))
    assert large.value.code == "checkpoint_too_large"
    with pytest.raises(Refused, match="value: is no value") as odd:
        journal.checkpoint(object())
    assert odd.value.code == "bad_checkpoint"
    assert written(journal, 9.0) == []


# -- the context ---------------------------------------------------------------------------------


def test_the_next_claim_is_given_what_the_one_before_said_and_nothing_of_its_own() -> None:
    assert context().resumed is None
    assert context(Checkpoint(TOKEN - 1, 0, 0, b"", (1, "x"))).resumed == (1, "x")
    assert context(Checkpoint(TOKEN, 0, 0, b"", "mine")).resumed is None


def test_it_is_asked_for_before_its_place_is_taken() -> None:
    here = context(Checkpoint(TOKEN - 1, 0, 0, b"", 5))
    assert here.resumed == 5
    here.checkpoint(6)
    assert here.resumed == 5
    there = context(Checkpoint(TOKEN - 1, 0, 0, b"", 5))
    there.checkpoint(6)
    with pytest.raises(Refused, match="before the first checkpoint") as late:
        _ = there.resumed
    assert late.value.code == "resumed_late"


# -- through a cluster in memory -----------------------------------------------------------------


@skuld_py.task(queue="q")
def checkpointed(context: TaskContext, fails: bool) -> object:
    before = context.resumed
    context.checkpoint((before or 0) + 1)
    context.checkpoint((before or 0) + 2)
    if fails:
        raise ValueError("half way")
    return before


def test_a_task_goes_on_from_where_it_failed_though_it_was_dead_between() -> None:
    client = MemoryClient()
    task_id = checkpointed.send_with(client=client, retry=skuld_py.Retry(max_attempts=1))(fails=True)
    assert client.run_until_empty("q", raises=False)[0].error is not None
    client.retry(task_id)
    client.run_until_empty("q", raises=False)
    read = client.get(task_id)
    assert read.checkpoint is not None
    assert (read.checkpoint.value, read.checkpoint.token) == (4, read.claims[-1].token)


def test_a_zombie_sets_none_and_a_claim_counts_by_itself() -> None:
    client = MemoryClient()
    task_id = client.enqueue("q", b"")
    claim = client.claim_one("q", lease_s=10)
    assert claim is not None
    assert client.update(claim, "first", checkpoint={"row": 1}) == 1
    assert client.update(claim, checkpoint=None, w=1) == 1
    assert client.get(task_id).checkpoint == Checkpoint(claim.token, 1, client.cluster.wall_ms(), b"")
    client.update(claim, checkpoint={"row": 2})

    client.advance(13)
    with pytest.raises(Uncertain):
        client.update(claim, checkpoint="late")
    newer = client.claim_one("q", lease_s=10)
    assert newer is not None
    with pytest.raises(Refused, match=r"the claim of .* is over") as fenced:
        client.update(claim, "not a word", checkpoint="late")
    assert fenced.value.code == "fenced"
    read = client.get(task_id)
    assert read.checkpoint is not None and read.checkpoint.value == {"row": 2}
    assert [len(each.log) for each in read.claims] == [1, 0]


def test_who_is_no_claim_numbers_checkpoints_itself() -> None:
    client = MemoryClient()
    task_id = client.enqueue("q", b"")
    claim = client.claim_one("q")
    assert claim is not None
    name = ClaimName(claim.id, claim.token, claim.proof)
    with pytest.raises(Refused, match="number: number the checkpoints") as refused:
        client.update(name, checkpoint=5)
    assert refused.value.code == "bad_number"
    for value, number in ((5, 5), (4, 4)):
        client.update(name, checkpoint=value, number=number)
    with pytest.raises(Refused, match="other content under this number"):
        client.update(name, checkpoint=6, number=5)
    with pytest.raises(Refused, match="number: 4294967296"):
        client.update(name, checkpoint=6, number=1 << 32)
    with pytest.raises(Refused, match="number: is that of a checkpoint"):
        client.update(name, "x", seq=0, number=3)
    read = client.get(task_id)
    assert read.checkpoint is not None and read.checkpoint.value == 5


# -- the scribe ----------------------------------------------------------------------------------


class Refusing:
    """A client of a cluster that takes no checkpoints."""

    def __init__(self, error: SkuldError) -> None:
        self.error = error
        self.said: list[tuple[str, object]] = []

    def update(self, claim: ClaimName, entries: object, **said: object) -> int:
        self.said.append(("update", said.get("checkpoint")))
        if "checkpoint" in said:
            raise self.error
        return 0

    def complete_many(self, claims: list[ClaimName], results: list[bytes]) -> None:
        self.said.append(("complete", results))

    def __enter__(self) -> Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("error", [Refused("unsupported", "no such thing"), Uncertain("fenced", "overtaken")])
def test_a_task_whose_checkpoint_is_refused_is_completed_all_the_same(error: SkuldError) -> None:
    client, ended, here = Refusing(error), queue.SimpleQueue[str](), context()
    here.extend(steady_s() + 60)
    run = SimpleNamespace(key=(ID, TOKEN, b""), context=here, claim=SimpleNamespace(id=ID))
    scribe = Scribe(client, lambda _, what: ended.put(what))  # type: ignore[arg-type]
    here.log("so far")
    here.checkpoint(5)
    scribe.start()
    scribe.complete(run, b"done")  # type: ignore[arg-type]
    assert ended.get(timeout=60) == "completed"
    assert scribe.close(30)
    assert [what for what, _ in client.said] == ["update", "update", "complete"]
