"""A process takes turns as the real loop does, and dies between any two of their steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skuld_py.config import Parameters
from skuld_py.errors import Corrupt
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import Effect, Event, Received, Send, Settled, Ticked
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.life.identity import Start
from skuld_py.node.life.start import prepare
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.simulation.world.clock import Clock
from skuld_py.simulation.world.process import TICKS_MAX, CrashPoint, Process
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper.sessions import Connection

COMMIT_MS = 5
EARLY, LATE = Send("peer", m.Gossip((), ())), Send("peer", m.Kept(1, b""))


class Toy:
    """Writes what it hears; says something early and something late about it. Counts its ticks."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.batches: list[list[Event]] = [[]]
        self.due_ms: int | None = None
        self.spins = False
        self.is_told_out = False

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        if isinstance(event, Settled):
            self.batches.append([])
            return []
        self.batches[-1].append(event)
        if isinstance(event, Ticked):
            self.due_ms = self.due_ms if self.spins else None
            return []
        self.store.put_many("log", [(b"heard", b"yes")])
        return [LATE, EARLY]

    def deadline(self) -> int | None:
        return self.due_ms

    def depart(self, now_ms: int) -> list[Effect]:
        self.due_ms = now_ms + 50
        return [LATE]

    @property
    def is_out(self) -> bool:
        return self.is_told_out


class Stage:
    """The world of one process."""

    partitions = 1

    def __init__(self) -> None:
        self.scheduler = Scheduler(1)
        self.said: list[tuple[int, Effect]] = []
        self.toys: list[Toy] = []
        self.process = Process("n1", self, Clock(), MemoryStore())
        self.process.start()
        self.scheduler.run(0)

    def prepare(self, process: Process) -> Start:
        return prepare(process.store, None, "fresh", Parameters("toys", "id", self.partitions, 1))[0]

    def build(self, process: Process, member: Member) -> Toy:
        self.toys.append(Toy(process.store))
        return self.toys[-1]

    def connect(self, process: Process, member: Member) -> Connection:
        return Connection(member, process.receive)

    def disconnect(self, connection: Connection) -> None:
        connection.is_closed = True

    def before_turn(self, process: Process, events: Sequence[Event]) -> None:
        pass

    def commit_ms(self, process: Process) -> int:
        return COMMIT_MS

    def before_commit(self, process: Process) -> None:
        pass

    def let_out(self, process: Process, effects: list[Effect]) -> None:
        self.said += [(self.scheduler.now_ms, effect) for effect in effects]

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        pass

    def hear(self, at_ms: int) -> None:
        self.scheduler.at(at_ms, self.process.receive, Received("peer", m.Gossip((), ())))


def test_what_promises_nothing_leaves_before_the_commit_and_the_rest_after_it() -> None:
    stage = Stage()
    stage.hear(10)
    stage.scheduler.run(100)

    assert stage.said == [(10, EARLY), (10 + COMMIT_MS, LATE)]
    assert stage.process.store.committed("log", b"heard") == b"yes"


def test_what_arrives_during_a_commit_is_the_next_batch() -> None:
    stage = Stage()
    for at_ms in (10, 11, 12):
        stage.hear(at_ms)
    stage.scheduler.run(100)

    assert [len(batch) for batch in stage.toys[0].batches] == [1, 2, 0]
    assert stage.said[1:3] == [(15, LATE), (15, EARLY)]


def test_a_process_that_is_stopped_goes_on_until_its_machine_is_out() -> None:
    stage = Stage()
    stage.hear(10)
    stage.scheduler.at(12, stage.process.stop, 1_000)
    stage.scheduler.run(40)
    assert stage.process.is_up
    late = (10 + COMMIT_MS, LATE)
    assert stage.said == [(10, EARLY), late, late], "it departs between two turns"
    stage.toys[0].is_told_out = True
    stage.scheduler.run(100)

    assert not stage.process.is_up
    assert stage.process.store.committed("log", b"heard") == b"yes"


def test_a_process_that_is_stopped_does_not_live_beyond_the_limit() -> None:
    stage = Stage()
    stage.scheduler.at(10, stage.process.stop, 500)
    stage.scheduler.run(509)
    assert stage.process.is_up
    stage.scheduler.run(510)

    assert not stage.process.is_up


def test_a_crash_during_the_commit_loses_it_with_all_promises() -> None:
    stage = Stage()
    stage.hear(10)
    stage.scheduler.at(12, stage.process.crash)
    stage.scheduler.run(100)

    assert stage.said == [(10, EARLY)]
    assert stage.process.store.get("log", b"heard") is None


@pytest.mark.parametrize(("point", "kept"),
                         [(CrashPoint.BEFORE_COMMIT, None), (CrashPoint.AFTER_COMMIT, b"yes")])
def test_a_crash_point_is_met_in_the_next_turn_that_writes(point: CrashPoint, kept: bytes | None) -> None:
    stage, crashes = Stage(), list[int]()
    stage.process.crash_point = point
    stage.process.on_crash = lambda: crashes.append(stage.scheduler.now_ms)
    stage.hear(10)
    stage.scheduler.run(100)

    assert len(crashes) == 1
    assert stage.said == [(10, EARLY)]
    assert stage.process.store.get("log", b"heard") == kept
    assert not stage.process.is_up


def test_a_restart_is_a_new_machine_over_the_old_store_that_hears_nothing_of_before() -> None:
    stage = Stage()
    stage.hear(10)
    stage.hear(12)
    stage.scheduler.at(16, stage.process.crash)
    stage.scheduler.at(17, stage.process.receive, Ticked())
    stage.scheduler.at(20, stage.process.start)
    stage.scheduler.run(100)

    assert len(stage.toys) == 2
    assert stage.toys[1].batches == [[]]
    assert stage.toys[1].store.get("log", b"heard") == b"yes"
    assert stage.process.boots == 2


def test_a_paused_process_gathers_its_mail_and_finishes_its_commit_later() -> None:
    stage = Stage()
    stage.hear(10)
    stage.scheduler.at(11, stage.process.pause)
    stage.hear(20)
    stage.scheduler.at(50, stage.process.resume)
    stage.scheduler.run(100)

    assert stage.said == [(10, EARLY), (50, LATE), (50, EARLY), (50 + COMMIT_MS, LATE)]


def test_a_deadline_rings_on_time_by_its_own_clock_and_after_a_pause_late() -> None:
    for pauses, rung_ms in ((False, 30), (True, 60)):
        stage = Stage()
        stage.process.clock = Clock(offset_ms=-5.0)
        stage.toys[0].due_ms = stage.process.clock.read(30)
        if pauses:
            stage.scheduler.at(20, stage.process.pause)
            stage.scheduler.at(60, stage.process.resume)
        stage.scheduler.at(1, stage.process._settle_in)
        stage.scheduler.run(rung_ms - 1)
        assert stage.toys[0].batches == [[]]
        stage.scheduler.run(rung_ms)

        assert stage.toys[0].batches == [[Ticked()], []]


def test_a_machine_that_asks_for_ticks_without_end_is_found_out() -> None:
    stage = Stage()
    stage.toys[0].spins, stage.toys[0].due_ms = True, 0
    stage.scheduler.at(1, stage.process._settle_in)

    with pytest.raises(AssertionError, match="over and over"):
        stage.scheduler.run(2)
    assert len(stage.toys[0].batches) == TICKS_MAX + 1


def test_a_record_that_cannot_be_read_costs_the_turn_and_the_boot_but_not_the_node() -> None:
    stage = Stage()
    stage.process.store.put_many("body", [(b"\0\0key", b"value")])
    stage.process.store.commit()
    stage.process.store.damage("body", b"\0\0key")
    toy = stage.toys[0]
    toy.step = lambda now_ms, event: [toy.store.get("body", b"\0\0key")]  # type: ignore[method-assign,list-item]
    stage.hear(10)
    stage.hear(20)
    stage.scheduler.run(100)

    assert [effect for _, effect in stage.said] == [EARLY, LATE]
    assert stage.process.is_up and stage.process.boots == 2
    assert list(suspects(stage.process.store, 1)) == [0]
    assert stage.process.store.get("body", b"\0\0key") is None


def test_a_machine_that_cannot_be_made_for_a_bad_record_is_made_after_the_scrub() -> None:
    stage = Stage()
    stage.process.crash()
    stage.process.store.put_many("body", [(b"\0\0key", b"value")])
    stage.process.store.commit()
    stage.process.store.damage("body", b"\0\0key")
    build = stage.build
    stage.build = lambda process, member: (  # type: ignore[method-assign]
        process.store.get("body", b"\0\0key"), build(process, member))[1]

    stage.process.start()

    assert stage.process.is_up and stage.process.boots == 3


def test_a_store_that_stays_bad_is_found_out() -> None:
    stage = Stage()

    def build(process: Process, member: Member) -> Toy:
        raise Corrupt("body", b"\0\0key")
    stage.build = build  # type: ignore[method-assign]
    stage.process.crash()

    with pytest.raises(AssertionError, match="again and again"):
        stage.process.start()
