"""What feeds a workflow: it draws, follows roots to their end whatever is lost, and then says so, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.calls.payloads import call
from skuld_py.errors import Refused
from skuld_py.worker.endings import Ending, Failed, Returned
from skuld_py.worker.registry import lookup
from skuld_py.worker.workflows.children import packed, unpacked
from skuld_py.worker.workflows.drawing import Place, source_of
from skuld_py.worker.workflows.feeding import FEED, ClientHands, feed
from skuld_py.worker.workflows.partitions import Adapted
from skuld_py.worker.workflows.sequences import Sequential
from skuld_py.workflow.acking.events import Repair
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.sources import Files, Page
from skuld_py.workflow.segments import Emission, ack_queue, feeder_id
from worker.flows import Home

VALUES: list[Any] = []


class Died(BaseException):
    """The process ended."""


def values() -> Iterator[Any]:
    yield from VALUES


def found(name: str) -> Any:
    return values if name == "feeds.values" else lookup(name)


@skuld_py.task(name="feeds.split")
def split(text: str) -> list[str]:
    return text.split()


@skuld_py.task(name="feeds.count")
def count(word: str) -> int:
    if word == "bad":
        raise ValueError("bad")
    return len(word)


class Status:
    """A workflow, all of whose inputs are exhausted, or not."""

    def __init__(self, is_sealing: bool, *sealed: str) -> None:
        self.is_sealing = is_sealing
        self.sealed = sealed


class Farm(Home):
    """A workflow with its feeder. Whenever that waits for acks, workers run what there is. ``losing`` says which
    of those messages are lost."""

    def __init__(self, *given: Any, attempts: int = 5, **entry: Any) -> None:
        VALUES[:] = given
        super().__init__({"id": "w", "edges": [["texts", "words"], ["words", "sizes"]], "catalog": {
            "texts": {"kind": "input", "function": "feeds.values", "max_pending": 8, "root_timeout_s": 2, **entry},
            "words": {"kind": "function", "function": "feeds.split"},
            "sizes": {"kind": "function", "function": "feeds.count", "attempts": attempts}}}, found)
        self.exhausted: list[str] = []
        self.sealed: list[str] = []
        self.losing = False
        self.dies_at = 0
        self._looks = 0
        claim = self.client.claim

        def worked(queue: str, **options: Any) -> Any:
            if queue == ack_queue("w", "texts"):
                self._looks += 1
                if self._looks == self.dies_at:
                    raise Died
                if self.losing and self._looks % 2:
                    self.client.complete_many(claim(queue, n=100))
                for step in ("texts", "words", "sizes"):
                    self.client.claim = claim
                    self.work(step, 3)
                    self.client.claim = worked
            return claim(queue, **options)
        self.client.claim = worked
        self.client.enqueue_many(self.queue("feed"), [call(FEED, workflow="w", step="texts")],
                                 ids=[feeder_id("w", "texts", self.life)])

    def exhaust_input(self, workflow: str, step: str, *, strand: int = 0, life: int = 0) -> Status:
        self.exhausted.append(step)
        return Status(True, *self.sealed)

    @property
    def refusing(self) -> Any:
        """``client.enqueue_many`` in a cluster for which all ids of this workflow are too old."""
        enqueue_many = self.client.enqueue_many

        def refusing(queue: str, payloads: Any, **options: Any) -> Any:
            if "ids" in options:
                raise Refused("too_old", "the ids are older than what is kept")
            return enqueue_many(queue, payloads, **options)
        return refusing

    def feed(self) -> Ending:
        ending, = self.work("feed")
        return ending

    def die(self) -> None:
        """The feeder's process ends in the middle, and its lease lapses."""
        run, = self.claimed("feed")
        self.flow.begin([run])
        with pytest.raises(Died):
            feed(run.context, "w", "texts")
        self.client.advance(120)

    def sizes(self) -> list[Any]:
        return sorted(self.get(task.id).result for task in self.client.list(self.queue("sizes")))


def test_all_that_is_drawn_goes_through_and_then_the_input_is_exhausted_and_the_leaves_sealed() -> None:
    farm = Farm(*(f"{'a' * number} b" for number in range(1, 13)))
    ending = farm.feed()
    assert isinstance(ending, Returned)
    assert farm.sizes() == sorted([*range(1, 13), *[1] * 12])
    assert farm.exhausted == ["texts"]
    seal, = farm.client.list(farm.queue("seal"))
    assert seal.payload == call("skuld:seal", "w", "sizes", farm.life)


def fed_telling(farm: Farm) -> list[tuple[float, float, str]]:
    """What a feeder tells from its beginning to its end."""
    run, = farm.claimed("feed")
    farm.flow.begin([run])
    told: list[tuple[float, float, str]] = []
    run.context.progress = lambda *words: told.append(words)  # type: ignore[method-assign]
    feed(run.context, "w", "texts")
    return told


def test_a_feeder_tells_how_far_it_is(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level("INFO")
    told = fed_telling(Farm(*(f"a{number}" for number in range(12))))

    assert [done for done, *_ in told] == sorted(done for done, *_ in told)
    assert told[-1] == (12, 12, "12 roots drawn, 12 complete, 0 under way, and the source has no more")
    assert any(0 < done < total <= 12 for done, total, _ in told)
    assert caplog.messages[-1].endswith("workflow w, input texts: " + told[-1][2])

    monkeypatch.setattr("skuld_py.worker.workflows.driving.LISTEN_S", float("inf"))
    assert fed_telling(Farm())[-1] == (0, 0, "no roots: the source is empty")


def test_leaves_are_sealed_once_though_their_feeder_says_so_again_when_its_ids_are_too_old(
        monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm()
    run, = farm.claimed("feed")
    farm.flow.begin([run])
    hands = ClientHands(farm, run.claim, farm.definition, "texts")
    farm.sealed = ["sizes"]
    hands.exhaust()
    assert not [*farm.client.list(farm.queue("seal"))], "it was sealed, and what did so was collected"

    farm.sealed = []
    hands.exhaust()
    monkeypatch.setattr(farm.client, "enqueue_many", farm.refusing)
    hands.exhaust()
    assert len([*farm.client.list(farm.queue("seal"))]) == 1, "it is under way"


def test_leaves_whose_feeder_is_older_than_what_is_kept_are_sealed_by_name(
        monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm()
    run, = farm.claimed("feed")
    farm.flow.begin([run])
    hands = ClientHands(farm, run.claim, farm.definition, "texts")
    monkeypatch.setattr(farm.client, "enqueue_many", farm.refusing)
    hands.exhaust()
    hands.exhaust()
    assert len([*farm.client.list(farm.queue("seal"))]) == 1


def test_nothing_is_to_be_drawn() -> None:
    farm = Farm()
    assert isinstance(farm.feed(), Returned)
    assert farm.exhausted == ["texts"]


def test_acks_may_be_lost() -> None:
    farm = Farm(*["one two three"] * 10)
    farm.losing = True
    assert isinstance(farm.feed(), Returned)
    assert farm.sizes() == sorted([3, 3, 5] * 10)


def test_children_that_a_worker_left_out_are_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(*["one two three"] * 6)
    store, lost = farm.client.enqueue_many, list[str]()

    def losing(queue: str, payloads: Sequence[bytes], **options: Any) -> Any:
        if queue == farm.queue("words") and not lost:
            lost.append(queue)
            raise Refused("too_large", "lost")
        return store(queue, payloads, **options)
    farm.client.enqueue_many = losing  # type: ignore[method-assign]
    assert isinstance(farm.feed(), Returned)
    assert lost
    assert farm.sizes() == sorted([3, 3, 5] * 6)


@pytest.mark.parametrize("dies_at", [1, 4, 8])
def test_a_feeder_that_dies_is_gone_on_with_by_the_next_claim(dies_at: int) -> None:
    farm = Farm(*(f"{'a' * number} b" for number in range(1, 13)))
    farm.dies_at = dies_at
    farm.die()
    assert isinstance(farm.feed(), Returned)
    assert farm.sizes() == sorted([*range(1, 13), *[1] * 12])


def test_of_two_completions_the_one_whose_children_are_there_counts_though_the_other_stands() -> None:
    farm = Farm()
    root, = farm.draw("one two", step="texts")
    farm.work("texts")
    word, = farm.client.claim(farm.queue("words"))
    hands = ClientHands(farm, word, farm.definition, "texts")
    farm.client.advance(120)
    again, = farm.client.claim(farm.queue("words"))
    for claim, rows in ((again, ("later",)), (word, ("first", "rows"))):
        emission = Emission(tuple(("sizes", packed(row)) for row in rows))
        farm.client.complete_many([claim], [emission.encode()])
        farm.client.advance(1)
    sight, = hands.look([again.id])
    assert [(each.token, each.emitted) for each in sight.tries] == [(again.token, 1), (word.token, 2)]
    assert [each.start_ms for each in sight.tries] == [again.end_ms - 60_000, word.end_ms - 60_000]
    assert hands.repair([Repair(root, again.id, word.token)]) == [True]
    assert farm.waiting("sizes") == ["first", "rows"]


def test_a_segment_that_is_dead_kills_the_workflow_and_the_reason_names_it() -> None:
    farm = Farm("good", "bad", attempts=1)
    ending = farm.feed()
    assert isinstance(ending, Failed)
    assert farm.killed
    assert not farm.exhausted


def test_a_source_that_gives_other_values_than_before_is_found_out() -> None:
    farm = Farm(*["one"] * 20)
    farm.dies_at = 6
    farm.die()
    VALUES[:] = ["two"] * 20
    ending = farm.feed()
    assert isinstance(ending, Failed) and ending.is_final
    assert "other values than before" in farm.killed["w"]


def test_the_feeder_of_a_workflow_that_has_ended_ends() -> None:
    farm = Farm("one")
    farm.standings["w"] = attrs.evolve(farm.standings["w"], state="killed")
    ending = farm.feed()
    assert isinstance(ending, Failed) and ending.is_final


# -- sources -----------------------------------------------------------------------------------------


def test_values_are_drawn_in_order_and_again() -> None:
    source = Sequential(lambda: iter(range(10)))
    first = source.draw(b"", 4)
    second = source.draw(first.cursor, 10)
    assert [*first.values, *second.values] == [bytes([number]) for number in range(10)]
    assert (first.is_last, second.is_last, second.offset) == (False, True, 4)
    assert source.again(0, 2, 3) == [b"\2", b"\3", b"\4"]
    assert source.draw(first.cursor, 2).values == second.values[:2]
    assert source.draw((99).to_bytes(8, "big"), 2).values == []


def test_files_are_drawn_by_their_paths(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).touch()
    source = source_of(Entry("in", Kind.INPUT, source=Files((str(tmp_path / "*.txt"), str(tmp_path / "a*")))), id,
                       Place(None, "w", "in", int))
    assert [unpacked(value)[-5:] for value in source.draw(b"", 9).values] == ["a.txt", "b.txt"]


class Topic:
    """Two partitions; what comes later is appended."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {"a": [1, 2, 3], "b": [11]}
        self.committed: dict[str, int] = {}
        self.is_closed = False

    def partitions(self) -> Sequence[str]:
        return ["a", "b"]

    def begin(self, partition: str) -> int:
        return 0

    def read(self, partition: str, offset: int, most: int) -> Page:
        found = self.rows[partition][offset : offset + most]
        end = offset + len(found)
        return Page(found, end, self.is_closed and end == len(self.rows[partition]))

    def commit(self, offsets: Mapping[str, int]) -> None:
        self.committed = dict(offsets)


def test_partitions_are_drawn_in_turn_gone_on_with_and_committed() -> None:
    topic = Topic()
    source = Adapted(topic)
    hauls = [source.draw(b"", 2)]
    for _ in range(3):
        hauls.append(source.draw(hauls[-1].cursor, 2))
    drawn = [(haul.part, haul.offset, len(haul.values)) for haul in hauls]
    assert drawn == [(0, 0, 2), (1, 0, 1), (0, 2, 1), (0, 0, 0)]
    assert not any(haul.is_last for haul in hauls)
    source.settle(hauls[-1].cursor, {0: 2})
    assert topic.committed == {"a": 2, "b": 1}
    topic.is_closed = True
    assert Adapted(topic).draw(hauls[-1].cursor, 2).is_last
    assert source.again(0, 1, 2) == [b"\2", b"\3"]
