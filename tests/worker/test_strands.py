"""An input with several feeders: each draws its strand, whoever dies, and the last of them exhausts the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import skuld_py
from skuld_py.calls.payloads import call
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.seats import FUNCTION, INPUT, OUTPUT, Seat
from skuld_py.worker.directives import Snooze
from skuld_py.worker.endings import Failed, Returned, Snoozed
from skuld_py.worker.registry import lookup
from skuld_py.worker.seats import queues_of
from skuld_py.worker.workflows.children import unpacked
from skuld_py.worker.workflows.drawing import Place, source_of
from skuld_py.worker.workflows.feeding import FEED, LOOK_S, ClientHands, Turn
from skuld_py.worker.workflows.partitions import Adapted
from skuld_py.worker.workflows.sealing import seal_call
from skuld_py.worker.workflows.strands import Strand
from skuld_py.workflow.acking.turns import TURN_MS
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.names import is_feeder
from skuld_py.workflow.definition.sources import Files, Jdbc, Page
from skuld_py.workflow.segments import feeder_id, feeder_queue
from worker.flows import Home

SEEN: list[Any] = []
TABLE = Jdbc("jdbc:h2:mem", "sales", column="id", lower=0, upper=100, partitions=7)


class Died(BaseException):
    """The process ended."""


class Topic:
    """Partitions with numbers; who asked for which."""

    def __init__(self, count: int = 4, rows: int = 9) -> None:
        self.rows = {f"p{part}": [100 * part + number for number in range(rows)] for part in range(count)}
        self.asked: dict[str, int] = {}
        self.committed: dict[str, int] = {}

    def partitions(self) -> Sequence[str]:
        return [*self.rows]

    def begin(self, partition: str) -> int:
        return 0

    def read(self, partition: str, offset: int, most: int) -> Page:
        self.asked[partition] = self.asked.get(partition, 0) + 1
        found = self.rows[partition][offset : offset + min(most, 4)]
        return Page(found, offset + len(found), offset + len(found) == len(self.rows[partition]))

    def commit(self, offsets: Mapping[str, int]) -> None:
        self.committed |= offsets

    @property
    def values(self) -> list[int]:
        return sorted(value for rows in self.rows.values() for value in rows)


@skuld_py.task(name="strands.seen")
def seen(value: int) -> int:
    SEEN.append(value)
    return value


class Farm(Home):
    """``numbers`` are drawn by three feeders. Whenever one waits for acks, workers run what there is."""

    def __init__(self, topic: Topic, most: int = 3) -> None:
        SEEN.clear()
        super().__init__({"id": "w", "edges": [["numbers", "seen"]], "catalog": {
            "numbers": {"kind": "input", "offsets": "strands.topic", "most": most, "max_pending": 12,
                        "root_timeout_s": 2},
            "seen": {"kind": "function", "function": "strands.seen"}}},
            lambda name: (lambda: topic) if name == "strands.topic" else lookup(name))
        self.told: list[tuple[str, int, int]] = []
        self.dies_at = self.looks = 0
        claim = self.client.claim

        def worked(queue: str, **options: Any) -> Any:
            if "._acks" in queue:
                self.looks += 1
                if self.looks == self.dies_at:
                    raise Died
                self.client.claim = claim
                for step in ("numbers", "seen"):
                    self.work(step, 3)
                self.client.claim = worked
            return claim(queue, **options)
        self.client.claim = worked
        sources = self.definition.sources
        self.client.enqueue_many(feeder_queue("w", "numbers"),
                                 [call(FEED, workflow="w", step=each) for each in sources],
                                 ids=[feeder_id("w", each, self.life) for each in sources])

    def exhaust_input(self, workflow: str, step: str, *, strand: int = 0, life: int = 0) -> Any:
        self.told.append((step, strand, life))
        is_sealing = len({*self.told}) == len(self.definition.sources)
        return type("Status", (), {"is_sealing": is_sealing, "sealed": ()})

    def feed(self) -> Any:
        """One feeder, until it ends."""
        ending, = self.work("_feeds-numbers", 1)
        return ending

    def seals(self) -> int:
        return len([*self.client.list(self.queue("seal"))])


def test_each_draws_its_own_strand_and_the_last_one_has_the_leaves_sealed() -> None:
    topic = Topic()
    farm = Farm(topic)
    ended = []
    for number in range(3):
        ending = farm.feed()
        assert isinstance(ending, Returned)
        ended.append(len(SEEN))
        assert farm.seals() == (number == 2)
    assert sorted(SEEN) == topic.values
    assert sorted([ended[0], ended[1] - ended[0], ended[2] - ended[1]]) == [9, 9, 18]
    assert sorted(farm.told) == [("numbers", strand, farm.life) for strand in range(3)]
    assert topic.committed == dict.fromkeys(topic.rows, 9)


@pytest.mark.parametrize("dies_at", [1, 3, 6, 9])
def test_the_strand_of_a_feeder_that_dies_is_gone_on_with_by_whoever_claims_it(dies_at: int) -> None:
    topic = Topic()
    farm = Farm(topic)
    farm.dies_at = dies_at
    endings = [farm.feed() for _ in range(3)]
    farm.client.advance(120)
    endings.append(farm.feed())
    assert [isinstance(each, Returned) for each in endings].count(False) == 1
    assert sorted(SEEN) == topic.values
    assert sorted(farm.told) == [("numbers", strand, farm.life) for strand in range(3)]


def test_a_strand_without_parts_is_exhausted_at_once() -> None:
    topic = Topic(count=1)
    farm = Farm(topic)
    assert all(isinstance(farm.feed(), Returned) for _ in range(3))
    assert sorted(SEEN) == topic.values and len(farm.told) == 3


def test_what_is_no_strand_of_it_is_fed_by_nobody() -> None:
    farm = Farm(Topic())
    farm.client.enqueue(farm.queue("feed"), call(FEED, workflow="w", step="numbers:3"))
    farm.client.complete_many(farm.client.claim(feeder_queue("w", "numbers"), n=9))
    farm.client.enqueue_many(farm.queue("feed"), [call(FEED, workflow="w", step="numbers:3")],
                             ids=[feeder_id("w", "numbers:3", farm.life)])
    endings = farm.work("feed")
    assert all(isinstance(each, Failed) and each.is_final for each in endings) and farm.told == []


# -- who draws what ----------------------------------------------------------------------------------


def drawn(entry: Entry, strand: Strand) -> list[Any]:
    source = source_of(entry, lookup, Place(None, "w", "in", int, strand))
    return [unpacked(value) for value in source.draw(b"", 1_000).values]


@pytest.mark.parametrize("of", [1, 2, 3, 8])
def test_each_file_and_each_range_of_a_table_is_of_one_strand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: int
) -> None:
    """The paths are relative: whose a file is depends on its path, and in which directory this runs is chance."""
    monkeypatch.chdir(tmp_path)
    for number in range(40):
        Path(f"{number}.txt").touch()
    files = Entry("in", Kind.INPUT, source=Files(("*.txt", "1*")))
    before = [drawn(files, Strand(number, of)) for number in range(of)]
    assert sorted(path for some in before for path in some) == sorted(map(str, Path().iterdir()))
    assert all(before) and all(some == sorted(some) for some in before)
    Path("00.txt").touch()
    Path("5.txt").unlink()
    after = [drawn(files, Strand(number, of)) for number in range(of)]
    moved = [{*earlier} ^ {*later} for earlier, later in zip(before, after, strict=True)]
    assert sorted(Path(path).name for some in moved for path in some) == ["00.txt", "5.txt"]

    table = Entry("in", Kind.INPUT, source=TABLE)
    parts = [[part["part"] for part in drawn(table, Strand(number, of))] for number in range(of)]
    assert parts == [[*range(number, 7, of)] for number in range(of)]


@pytest.mark.parametrize("of", [1, 2, 3, 8])
def test_a_partition_is_of_one_strand_whoever_saw_others_before_it(of: int) -> None:
    """So the feeders that began before it came, and those that began after, draw each once."""
    def owned(topic: Topic, number: int) -> set[str]:
        asked = Adapted(topic, Strand(number, of))
        cursor, is_over = b"", False
        while not is_over:
            haul = asked.draw(cursor, 9)
            cursor, is_over = haul.cursor, haul.is_last
        return {*topic.asked}

    before, after = ["p1", "p2", "odd", "9", "p10"], ["new", "p0", "p1", "p2", "odd", "9", "p10", "p99"]
    for number in range(of):
        topics = []
        for names in (before, after):
            topics.append(Topic(count=0))
            topics[-1].rows = {name: [1] for name in names}
        early, late = (owned(topic, number) for topic in topics)
        assert early == late & {*before}
    assert all(sum(Strand(number, of).has(name) for number in range(of)) == 1 for name in after)
    numbered = [next(number for number in range(of) if Strand(number, of).has(f"orders-{part}"))
                for part in range(9)]
    assert [(number - numbered[0]) % of for number in numbered] == [part % of for part in range(9)]


def test_partitions_in_another_order_than_before_are_refused() -> None:
    topic = Topic(count=4)
    cursor = Adapted(topic, Strand(1, 2)).draw(b"", 4).cursor
    topic.rows = dict([*topic.rows.items()][1:] + [*topic.rows.items()][:1])
    with pytest.raises(Refused, match="had another order"):
        Adapted(topic, Strand(1, 2)).draw(cursor, 4)


def test_a_strand_asks_for_commits_and_ends_with_its_own_partitions_alone() -> None:
    topic = Topic(count=5)
    source = Adapted(topic, Strand(1, 2))
    haul, values, cursor = None, list[int](), b""
    while haul is None or not haul.is_last:
        haul = source.draw(cursor, 4)
        cursor = haul.cursor
        values += [unpacked(value) for value in haul.values]
    own = [name for name in topic.rows if Strand(1, 2).has(name)]
    assert own in (["p0", "p2", "p4"], ["p1", "p3"])
    assert sorted(values) == sorted(value for name in own for value in topic.rows[name])
    assert {*topic.asked} == {*own}
    source.settle(cursor, {[*topic.rows].index(own[-1]): 8})
    assert topic.committed == {**dict.fromkeys(own, 9), own[-1]: 8}

    topic.rows["p5"] = [1]
    with pytest.raises(Refused, match="there were 5, and are 6 now"):
        Adapted(topic, Strand(1, 2)).draw(cursor, 4)


def test_leaves_that_need_several_kinds_of_workers_are_sealed_by_those_alone() -> None:
    leaves = {"x": ["nfs"], "y": ["big"], "z": ["nfs"]}
    home = Home({"id": "w", "edges": [["numbers", step] for step in leaves], "catalog": {
        "numbers": {"kind": "input", "function": "strands.numbers"},
        **{step: {"kind": "function", "function": "strands.seen", "tags": tags}
           for step, tags in leaves.items()}}})
    home.client.enqueue_many(home.queue("feed"), [call(FEED, "w", "numbers")],
                             ids=[feeder_id("w", "numbers", home.life)])
    claim, = home.client.claim(home.queue("feed"))
    home.exhaust_input = lambda *_, **named: type(  # type: ignore[attr-defined]
        "Status", (), {"is_sealing": True, "sealed": ("z",)})
    for _ in range(2):
        ClientHands(home, claim, home.definition, "numbers").exhaust()
    found = {step: [task.payload for queue in queues_of([Seat("w", step, OUTPUT, 1, 7)])
                    for task in home.client.list(queue)] for step in leaves}
    assert found == {"x": [seal_call("w", "x", home.life)], "y": [seal_call("w", "y", home.life)], "z": []}


# -- slots -------------------------------------------------------------------------------------------


def test_of_a_seat_in_an_input_its_own_feeders_are_claimed_and_of_others_none() -> None:
    places = queues_of([Seat("w", "in", INPUT, 2, 7), Seat("w", "f", FUNCTION, 1, 7),
                        Seat("w", "out", OUTPUT, 1, 7)])
    assert {queue: place.cap for queue, place in places.items()} == {
        "wf.w.in": 2, "wf.w.feed": 2, "wf.w._feeds-in": 2, "wf.w.f": 1, "wf.w.out": 1, "wf.w.seal": 1,
        "wf.w._seals-out": 1}
    assert [is_feeder(queue) for queue in ("wf.w.feed", "wf.w._feeds-in", "wf.w._acks-in", "w.feed")] == [
        True, True, False, False]


class Counting:
    """A cluster in which so many feeders wait, or that does not answer."""

    def __init__(self, *waiting: int | None) -> None:
        self._waiting: Iterator[int | None] = iter(waiting)

    def count(self, queue: str, *, states: Sequence[str]) -> int:
        assert (queue, states) == ("wf.w._feeds-in", ("waiting",))
        found = next(self._waiting)
        if found is None:
            raise Uncertain("unreachable", "no answer")
        return found


def test_a_feeder_gives_way_when_its_turn_is_over_and_others_wait() -> None:
    now = [0.0]
    turn = Turn(Counting(0, None, 2), feeder_queue("w", "in"), 3, lambda: now[0])
    for now_s in (TURN_MS / 1000 - 1, TURN_MS / 1000, TURN_MS / 1000 + 1, TURN_MS / 1000 + LOOK_S):
        now[0] = now_s
        turn.check()
    now[0] += LOOK_S
    with pytest.raises(Snooze) as raised:
        turn.check()
    assert raised.value.delay_ms == 2 * TURN_MS


def test_the_only_feeder_of_an_input_never_gives_way() -> None:
    now = [0.0]
    turn = Turn(Counting(), feeder_queue("w", "in"), 1, lambda: now[0])
    now[0] = 10 * TURN_MS
    turn.check()


def test_one_that_gave_way_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    farm = Farm(topic)
    monkeypatch.setattr("skuld_py.worker.workflows.feeding.TURN_MS", 0)
    monkeypatch.setattr("skuld_py.worker.workflows.feeding.rest_ms", lambda held_ms, waiting: 60_000 * waiting)
    monkeypatch.setattr("skuld_py.worker.workflows.feeding.LOOK_S", 0.0)
    endings = []
    while len(farm.told) < 3:
        endings.append(farm.feed())
        farm.client.advance(61)
        if len(endings) == 2:
            monkeypatch.setattr("skuld_py.worker.workflows.feeding.rest_ms", lambda held_ms, waiting: 0)
    assert [isinstance(each, Snoozed) for each in endings[:2]] == [True, True]
    assert sorted(SEEN) == topic.values
