"""The machine of one member: it joins, keeps its place, notices who is gone, and loses nothing over a break."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    AddSlot,
    Command,
    ForgetNode,
    Gc,
    JoinDirect,
    Joining,
    Leave,
    LeaveSlot,
    NotifyJoin,
    PrepareJoin,
    RetireNode,
    SetReplicas,
    SetRules,
)
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import UnknownRules, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.chores import SWEEP_MS
from skuld_py.cluster.member.membership import Effect, Event, Membership
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.cluster.placement import place
from skuld_py.cluster.scale.decisions import computed
from skuld_py.cluster.scale.derivation import scheme_of
from skuld_py.config import RULES
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.model.coordination import (
    Announce,
    Append,
    Appended,
    AppendUncertain,
    DropPulse,
    EntriesRead,
    OriginRead,
    OriginWritten,
    PulseGone,
    PulseStands,
    ReadEntries,
    ReadOrigin,
    SetPulse,
    SweepEntries,
    WatchPulses,
    WriteOrigin,
)
from skuld_py.model.document import Member
from skuld_py.model.events import Compute, MembersChanged, NodesChanged, Session, SessionChanged, Ticked

CONNECTED, SUSPENDED, LOST = map(SessionChanged, (Session.CONNECTED, Session.SUSPENDED, Session.LOST))
ANSWERED = ReadOrigin | ReadEntries | Append | SetPulse


def member(name: str) -> Member:
    return Member(name, "127.0.0.1", 1, "boot")


class Log:
    """Entries that others write, and what they make."""

    def __init__(self, replica: Replica | None = None) -> None:
        self.base = self.replica = replica or Replica()
        self.entries: dict[int, bytes] = {}
        self._seqs = count()

    @property
    def end(self) -> int:
        return self.replica.version + 1

    def put(self, raw: bytes) -> int:
        position = self.end
        self.entries[position] = raw
        self.replica = play(self.replica, position, raw).replica
        return position

    def write(self, writer: str, *commands: Command) -> None:
        for command in commands:
            self.put(Entry(writer, next(self._seqs), command).encode())

    def join(self, name: str) -> None:
        self.write(name, PrepareJoin(name, member(name)))
        if observer := self.replica.joins.observers.get(name):
            self.write(observer, NotifyJoin(name))
            self.write(name, AcceptJoin(observer, name))


class Desk:
    """One machine, a shell that does what it asks when told to, and everything it asked for."""

    def __init__(self, log: Log | None = None, scaling: Scaling = PLAIN, **settings: Any) -> None:
        ids = (f"me~{number}" for number in count())
        self.log = log or Log()
        self.origin = (-1, "")
        self.now_ms = 0
        self.machine = Membership(member("me"), lambda: next(ids), lambda most_ms: most_ms // 2,
                                  LogSettings(**settings), self.log.base, "c1", scaling, scheme_of(scaling, 8))
        self.asked: list[Effect] = []
        self.waiting: list[Effect] = []
        """What is to be answered."""

    def tell(self, event: Event) -> list[Effect]:
        return self.take(self.machine.step(self.now_ms, event))

    def take(self, effects: list[Effect]) -> list[Effect]:
        self.asked += effects
        self.waiting += [each for each in effects if isinstance(each, ANSWERED)]
        return effects

    def run(self) -> None:
        """Answer all that can be answered."""
        for _ in range(1_000):
            if not any(self.answer(effect) for effect in [*self.waiting]):
                return
        raise AssertionError("it asks for ever")

    def answer(self, effect: Effect) -> bool:
        match effect:
            case SetPulse(me, _):
                event: Event = PulseStands(me)
            case ReadOrigin():
                event = OriginRead(*self.origin)
            case Append(seq, raw):
                event = Appended(seq, self.log.put(raw))
            case ReadEntries(start, limit, is_waiting, _):
                if is_waiting and start == self.log.end:
                    return False
                event = self.read(start, limit)
            case _:
                raise AssertionError(effect)
        self.waiting.remove(effect)
        self.tell(event)
        return True

    def read(self, start: int, limit: int) -> EntriesRead:
        found = [each for each in sorted(self.log.entries.items()) if each[0] >= start][:limit]
        is_end = not found or found[-1][0] == self.log.end - 1
        return EntriesRead(start, tuple(found), is_end, bool(found) and found[0][0] > start)

    def pass_time(self, ms: int) -> None:
        """Let time pass, with every tick that is asked for."""
        until_ms = self.now_ms + ms
        while (due_ms := self.machine.deadline()) is not None and due_ms <= until_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.tell(Ticked())
            self.run()
            again_ms = self.machine.deadline()
            assert again_ms is None or again_ms > self.now_ms, "it wants the same tick again"
        self.now_ms = until_ms

    def start(self) -> Desk:
        self.tell(CONNECTED)
        self.run()
        return self

    def all(self, *kinds: type) -> list[Any]:
        return [each for each in self.asked if isinstance(each, kinds)]

    def appended(self) -> list[Command]:
        return [decode(each.raw).command for each in self.all(Append)]

    def told(self, kind: type = SessionChanged) -> list[Any]:
        return [each.event for each in self.all(Announce) if isinstance(each.event, kind)]


@pytest.fixture
def joined() -> Iterator[Desk]:
    """A member of a ring of four."""
    log = Log()
    for name in "abc":
        log.join(name)
    desk = Desk(log).start()
    observer = log.replica.joins.observers["me~0"]
    log.write(observer, NotifyJoin("me~0"))
    desk.run()
    assert desk.machine.is_in
    yield desk


# -- joining -----------------------------------------------------------------------------------------


def test_it_asks_for_its_pulse_before_all_else_and_for_the_origin_before_the_entries() -> None:
    desk = Desk()

    assert desk.tell(CONNECTED) == [SetPulse("me~0", member("me"))]
    assert desk.tell(PulseStands("me~0")) == [ReadOrigin()]
    assert desk.tell(OriginRead(-1, "")) == [ReadEntries(0, 256, is_waiting=False)]
    effects = desk.tell(EntriesRead(0, (), is_end=True))

    prepare = Entry("me~0", 0, PrepareJoin("me~0", member("me"))).encode()
    assert Append(0, prepare) in effects and ReadEntries(0, 256) in effects


def test_the_first_one_is_a_member_at_once_and_only_then_the_node_is_told_so() -> None:
    desk = Desk()
    desk.tell(CONNECTED)
    assert desk.told() == []
    desk.run()

    assert desk.told() == [CONNECTED]
    assert desk.told(MembersChanged)[-1] == MembersChanged((member("me"),))
    assert desk.told(NodesChanged)[-1] == NodesChanged(("me",), replicas=desk.machine.replica.replicas)


def test_a_joiner_goes_through_three_phases_and_watches_whom_the_ring_says(joined: Desk) -> None:
    machine = joined.machine

    assert [type(each) for each in joined.appended()] == [PrepareJoin, AcceptJoin]
    assert joined.all(WatchPulses)[-1] == WatchPulses((machine.replica.ring.after("me~0"),))
    assert joined.told() == [CONNECTED]


def test_nothing_is_told_of_the_past() -> None:
    log = Log()
    for name in "abc":
        log.join(name)
    desk = Desk(log, batch=1)
    desk.start()

    assert [len(each.members) for each in desk.told(MembersChanged)] == [3]


def test_a_reading_that_nobody_answered_says_nothing_of_the_end() -> None:
    log = Log()
    for name in "ab":
        log.join(name)
    desk = Desk(log)
    desk.origin = (log.replica.version, log.replica.text())
    desk.tell(CONNECTED)
    for _ in range(2):
        desk.answer(desk.waiting[0])
    reading = desk.waiting.pop()
    desk.tell(EntriesRead(reading.start, ()))

    assert desk.told(NodesChanged) == desk.appended() == []
    assert desk.waiting == [ReadEntries(reading.start, reading.limit, is_waiting=False)]


def test_who_finds_no_observer_comes_back_after_a_pause() -> None:
    log = Log()
    log.join("a")
    log.write("b", PrepareJoin("b", member("b")))
    desk = Desk(log).start()

    assert desk.appended() == [PrepareJoin("me~0", member("me")), AbortJoin("me~0")]
    assert desk.all(WatchPulses)[-1] == WatchPulses(("a",))
    assert desk.machine.deadline() == desk.now_ms + 500
    assert desk.told() == []
    desk.pass_time(600)

    assert desk.appended()[2] == PrepareJoin("me~0", member("me"))


def test_a_joiner_whose_observer_is_dead_says_so_and_tries_again(joined: Desk) -> None:
    log = Log()
    log.join("a")
    desk = Desk(log).start()
    assert desk.all(WatchPulses)[-1] == WatchPulses(("a",))

    desk.tell(PulseGone("a"))
    desk.run()
    desk.pass_time(1_000)

    assert [type(each) for each in desk.appended()] == [PrepareJoin, Leave, AbortJoin, PrepareJoin]
    assert desk.machine.is_in


def test_an_observer_notifies_whoever_was_prepared_under_it() -> None:
    desk = Desk().start()
    desk.log.write("b", PrepareJoin("b", member("b")))
    desk.run()

    assert desk.appended()[-1] == NotifyJoin("b")
    assert desk.all(WatchPulses)[-1] == WatchPulses(("b",))


def test_an_observer_that_jumped_over_the_entry_notifies_all_the_same() -> None:
    desk = Desk().start()
    desk.log.write("b", PrepareJoin("b", member("b")))
    desk.take(desk.machine.adopt(0, desk.log.end - 1, desk.log.replica.text()))
    desk.run()

    assert desk.appended()[-1] == NotifyJoin("b")


def test_a_joiner_that_jumped_over_its_rejection_asks_again() -> None:
    log = Log()
    for name in "abc":
        log.join(name)
    desk = Desk(log).start()
    observer = log.replica.joins.observers["me~0"]
    log.write("x", Leave(observer))
    desk.take(desk.machine.adopt(0, log.end - 1, log.replica.text()))
    desk.run()
    desk.pass_time(1_000)

    assert [type(each) for each in desk.appended()] == [PrepareJoin, PrepareJoin]


# -- leaving -----------------------------------------------------------------------------------------


def test_a_pulse_that_is_gone_is_reported_once_and_again_if_nothing_comes_of_it(joined: Desk) -> None:
    following = joined.machine.replica.ring.after("me~0")
    joined.tell(PulseGone(following))
    joined.tell(PulseGone(following))
    assert joined.appended().count(Leave(following)) == 1
    append = next(each for each in joined.waiting if isinstance(each, Append))
    joined.waiting.remove(append)
    joined.tell(Appended(append.seq, joined.log.put(b"{")))  # as if it had been spoilt on its way
    joined.run()
    assert joined.appended().count(Leave(following)) == 1

    joined.pass_time(6_000)

    assert joined.appended().count(Leave(following)) == 2
    assert following in joined.machine.replica.left
    joined.pass_time(60_000)
    assert joined.appended().count(Leave(following)) == 2


def test_a_pulse_that_is_not_watched_concerns_others(joined: Desk) -> None:
    watching = joined.all(WatchPulses)[-1].members
    other = next(each for each in "abc" if each not in watching)

    joined.tell(PulseGone(other))

    assert Leave(other) not in joined.appended()


def test_its_own_leave_begins_a_new_life(joined: Desk) -> None:
    joined.log.write("operator", Leave("me~0"))
    joined.run()

    assert joined.machine.me == "me~1"
    assert joined.told() == [CONNECTED, LOST]
    assert joined.all(SetPulse)[-1] == SetPulse("me~1", member("me"))
    assert joined.appended()[-1] == PrepareJoin("me~1", member("me"))
    assert joined.all(ReadOrigin) == [ReadOrigin()]


def test_a_member_whose_place_is_another_lifes_begins_a_new_life(joined: Desk) -> None:
    after = joined.log.replica.ring.after("a")
    joined.log.write("a", JoinDirect("a", after, (Joining("me~z", member("me")),)))
    joined.run()

    assert "me~0" in joined.log.replica.members
    assert joined.machine.me == "me~1"
    assert joined.told() == [CONNECTED, LOST]
    assert joined.all(SetPulse)[-1] == SetPulse("me~1", member("me"))


def test_its_own_leave_behind_the_horizon_begins_a_new_life(joined: Desk) -> None:
    joined.log.write("operator", Leave("me~0"), Gc(), Gc())
    assert "me~0" not in joined.log.replica.left
    joined.take(joined.machine.adopt(0, joined.log.end - 1, joined.log.replica.text()))

    assert joined.machine.me == "me~1"


def test_a_pulse_of_its_own_that_is_gone_begins_a_new_life(joined: Desk) -> None:
    joined.tell(PulseGone("me~0"))

    assert joined.machine.me == "me~1"
    assert joined.told()[-1] == LOST


def test_departing_ends_in_the_log_and_takes_the_pulse_along(joined: Desk) -> None:
    joined.take(joined.machine.depart(joined.now_ms))
    assert not joined.machine.is_out
    joined.run()

    assert joined.machine.is_out and joined.log.replica.left.keys() == {"me~0"}
    assert joined.asked[-1] == DropPulse()
    assert joined.tell(CONNECTED) == []


def test_departing_asks_for_no_tick_that_it_does_not_use(joined: Desk) -> None:
    joined.take(joined.machine.depart(joined.now_ms))
    joined.waiting = [each for each in joined.waiting if not isinstance(each, Append)]

    joined.pass_time(60_000)

    assert joined.appended().count(Leave("me~0")) == 1


def test_departing_without_a_place_is_over_at_once() -> None:
    desk = Desk()
    desk.tell(CONNECTED)

    assert DropPulse() in desk.machine.depart(0) and desk.machine.is_out


# -- sessions ----------------------------------------------------------------------------------------


def test_a_suspended_session_is_told_at_once_and_connected_only_with_its_pulse(joined: Desk) -> None:
    joined.tell(SUSPENDED)
    assert joined.told() == [CONNECTED, SUSPENDED]
    assert joined.machine.deadline() is None
    joined.tell(CONNECTED)
    assert joined.told() == [CONNECTED, SUSPENDED]
    joined.tell(PulseStands("me~0"))

    assert joined.told() == [CONNECTED, SUSPENDED, CONNECTED]
    assert joined.machine.me == "me~0"


def test_nothing_is_appended_while_the_pulse_is_in_doubt(joined: Desk) -> None:
    joined.tell(SUSPENDED)
    joined.tell(PulseGone(joined.machine.replica.ring.after("me~0")))
    joined.tell(CONNECTED)
    before = len(joined.appended())
    joined.tell(PulseStands("me~0"))

    assert [type(each) for each in joined.appended()[before:]] == [Leave]


def test_an_append_in_doubt_waits_for_the_pulse(joined: Desk) -> None:
    joined.take(joined.machine.set_slots(0, {"s1": ()}))
    append = joined.all(Append)[-1]
    joined.tell(SUSPENDED)
    joined.tell(CONNECTED)
    joined.tell(AppendUncertain(append.seq))
    assert joined.all(Append).count(append) == 1
    joined.tell(PulseStands("me~0"))

    assert joined.all(Append).count(append) == 2


def test_a_lost_session_ends_the_life_and_the_next_one_reads_on(joined: Desk) -> None:
    version = joined.machine.replica.version
    joined.waiting.clear()
    joined.tell(LOST)
    assert joined.told() == [CONNECTED, LOST]
    assert SetPulse("me~1", member("me")) in joined.tell(CONNECTED)
    joined.log.write("x", Leave("me~0"))
    joined.run()

    assert joined.all(ReadOrigin) == [ReadOrigin()]
    assert joined.all(ReadEntries)[-1].start > version
    assert joined.appended()[-1] == PrepareJoin("me~1", member("me"))


def test_an_append_in_doubt_is_made_again_under_its_number() -> None:
    desk = Desk()
    desk.tell(CONNECTED)
    while not desk.all(Append):
        desk.answer(desk.waiting[0])
    first = desk.waiting.pop(0)
    assert isinstance(first, Append)

    desk.tell(AppendUncertain(first.seq))
    assert desk.all(Append) == [first, first]
    desk.log.put(first.raw)
    desk.run()

    assert desk.machine.is_in
    assert list(desk.log.entries.values()) == [first.raw, first.raw]


def test_an_append_in_doubt_that_was_read_is_not_made_again() -> None:
    desk = Desk().start()
    desk.log.write("b", PrepareJoin("b", member("b")))
    reading = next(each for each in desk.waiting if isinstance(each, ReadEntries))
    desk.answer(reading)
    append = desk.all(Append)[-1]
    desk.log.put(append.raw)
    desk.answer(next(each for each in desk.waiting if isinstance(each, ReadEntries)))

    desk.tell(AppendUncertain(append.seq))

    assert desk.all(Append)[-1] == append and desk.all(Append).count(append) == 1


# -- reading -----------------------------------------------------------------------------------------


def test_a_reader_behind_the_origin_jumps_there() -> None:
    desk = Desk().start()
    for name in "bcd":
        desk.log.join(name)
    desk.origin = (desk.log.end - 1, desk.log.replica.text())
    at = desk.log.end
    desk.log.write("b", PrepareJoin("b", member("b")))
    desk.log.entries = {at: desk.log.entries[at]}
    desk.run()

    assert desk.machine.replica == desk.log.replica
    assert len(desk.all(ReadOrigin)) == 2


def test_a_gap_that_no_origin_explains_is_passed() -> None:
    desk = Desk().start()
    start = desk.log.end
    raw = Entry("x", 0, PrepareJoin("x", member("x"))).encode()
    desk.tell(EntriesRead(start, ((start + 3, raw),), True, True))
    assert desk.asked[-1] == ReadOrigin()
    desk.tell(OriginRead(-1, ""))

    assert desk.asked[-1] == ReadEntries(start + 3, 256, is_waiting=False)


def test_a_gap_within_a_batch_is_not_played_over() -> None:
    desk = Desk().start()
    start = desk.log.end
    raw = [Entry("x", seq, RetireNode("me", bool(seq))).encode() for seq in range(2)]
    desk.tell(EntriesRead(start, ((start, raw[0]), (start + 2, raw[1])), True))

    assert desk.machine.replica.version == start
    assert desk.asked[-1] == ReadOrigin()


def test_entries_offered_from_elsewhere_are_played_once_and_in_order(joined: Desk) -> None:
    log, at = joined.log, joined.log.end
    log.join("d")
    entries = sorted(each for each in log.entries.items() if each[0] >= at)
    joined.take(joined.machine.offer(0, entries[1:]))
    assert joined.machine.replica.version == at - 1
    joined.take(joined.machine.offer(0, entries[:2]))
    joined.take(joined.machine.offer(0, entries))

    assert joined.machine.replica == log.replica


def test_rules_that_it_does_not_know_stop_it_with_the_reason() -> None:
    desk = Desk().start()
    desk.log.entries[1] = Entry("operator", 0, SetRules(RULES + 1)).encode()
    reading = next(each for each in desk.waiting if isinstance(each, ReadEntries))
    desk.tell(EntriesRead(reading.start, ((1, desk.log.entries[1]),), True))

    assert isinstance(desk.machine.stopped_by, UnknownRules)
    assert "upgrade" in str(desk.machine.stopped_by)
    assert desk.told()[-1] == LOST and desk.asked[-1] == DropPulse()
    assert desk.tell(CONNECTED) == [] and desk.machine.deadline() is None


@pytest.mark.parametrize("text", ["{", Replica(rules=RULES + 1, version=7).text()])
def test_an_origin_that_it_cannot_play_from_stops_it(text: str) -> None:
    desk = Desk()
    desk.origin = (7, text)
    desk.start()

    assert desk.machine.stopped_by is not None


# -- duties ------------------------------------------------------------------------------------------


def test_the_elected_member_collects_a_long_log_and_writes_the_origin() -> None:
    desk = Desk(length_max=10, grace=4).start()
    desk.log.write("x", *(RetireNode("me", bool(number % 2)) for number in range(10)))
    desk.run()

    assert desk.appended()[-1] == Gc(-1)
    origin, = desk.all(WriteOrigin)
    assert origin == WriteOrigin(desk.log.end - 1, desk.log.replica.text(), desk.log.end - 5)


def test_two_that_collect_at_once_collect_once() -> None:
    log = Log()
    log.join("a")
    log.write("a", Gc(-1))
    first = log.replica.collected
    log.write("b", Gc(-1))
    assert log.replica.collected == first
    log.write("b", Gc(first[-1]))
    assert log.replica.collected == (*first, log.replica.version)


def test_the_origin_is_written_again_in_a_new_session() -> None:
    desk = Desk(length_max=10).start()
    desk.log.write("x", *(RetireNode("me", bool(number % 2)) for number in range(10)))
    desk.run()
    desk.waiting.clear()
    desk.tell(LOST)
    desk.start()
    first, second = desk.all(WriteOrigin)
    desk.tell(OriginWritten(first.position, is_newest=True))
    desk.tell(LOST)
    desk.start()

    assert first == second and len(desk.all(WriteOrigin)) == 2


def test_the_next_in_line_collects_when_the_elected_one_does_not(joined: Desk) -> None:
    log, machine = joined.log, joined.machine
    turn = machine.replica.roster.index("me~0")
    assert turn == 3
    object.__setattr__(machine.settings, "length_max", log.end + 2)
    log.write("x", *(RetireNode("none") for _ in range(4)))
    joined.run()
    assert Gc(-1) not in joined.appended()
    joined.pass_time(turn * machine.settings.takeover_ms - 1)
    assert Gc(-1) not in joined.appended()
    joined.pass_time(2)

    assert Gc(-1) in joined.appended()


def test_a_node_that_stays_down_is_forgotten_unless_copies_need_its_place() -> None:
    log = Log(Replica(replicas=2))
    desk = Desk(log, forget_ms=60_000).start()
    for name in "bc":
        log.write(name, PrepareJoin(name, member(name)))
        desk.run()
        observer = log.replica.joins.observers[name]
        if observer != "me~0":
            log.write(observer, NotifyJoin(name))
        log.write(name, AcceptJoin(observer, name))
        desk.run()
    log.write("x", Leave("b"), Leave("c"))
    desk.run()
    desk.pass_time(50_000)
    assert not [each for each in desk.appended() if isinstance(each, ForgetNode)]
    desk.pass_time(200_000)

    assert len([each for each in desk.appended() if isinstance(each, ForgetNode)]) == 1
    assert len(log.replica.nodes) == 2


def test_a_member_sweeps_now_and_then() -> None:
    desk = Desk().start()
    desk.pass_time(2 * SWEEP_MS)
    assert desk.all(SweepEntries) == [SweepEntries(("me",))] * 2


def test_slots_are_brought_taken_back_and_brought_again_by_the_next_life() -> None:
    desk = Desk().start()
    desk.take(desk.machine.set_slots(0, {"s1": ("gpu",), "s2": ()}))
    desk.run()
    assert sorted(desk.log.replica.slots) == ["s1", "s2"]
    desk.take(desk.machine.set_slots(0, {"s1": ()}))
    desk.run()
    assert {name: slot.tags for name, slot in desk.log.replica.slots.items()} == {"s1": ()}
    assert LeaveSlot("s2") in desk.appended()
    desk.log.write("operator", Leave("me~0"))
    desk.run()
    desk.pass_time(1_000)

    assert desk.appended()[-1] == AddSlot("s1", "me~1")


def test_slots_parked_for_an_earlier_life_that_never_came_in_are_taken_over() -> None:
    log = Log()
    log.write("me~old", AddSlot("s1", "me~old"))
    desk = Desk(log).start()
    desk.take(desk.machine.set_slots(0, {"s1": ()}))
    desk.run()

    assert [(slot, each.member) for slot, each in log.replica.slots.items()] == [("s1", "me~0")]
    assert not log.replica.parked


# -- the placement, decided aside ----------------------------------------------------------------------


def news(log: Log) -> NodesChanged:
    names = placed(log.replica)
    return NodesChanged(tuple(names), (), place(names, 8, log.replica.replicas), log.replica.replicas)


def versioned(**settings: Any) -> Desk:
    """A member of three that plays the log in versions, and whose node knows the placement of all."""
    log = Log()
    for name in "ab":
        log.join(name)
    desk = Desk(log, Scaling(versions=True), **settings).start()
    log.write(log.replica.joins.observers["me~0"], NotifyJoin("me~0"))
    desk.run()
    desk.tell(computed(desk.all(Compute)[-1]))
    assert desk.machine.is_in and desk.told(NodesChanged) == [news(log)]
    return desk


def test_the_log_goes_on_while_a_placement_is_pending_and_the_node_is_told_of_both_together() -> None:
    desk = versioned()
    log, before = desk.log, len(desk.told(NodesChanged))
    asked = len(desk.all(Compute))
    log.join("c")
    desk.run()
    log.write("c", AddSlot("s", "c"))
    desk.run()

    assert len(desk.all(Compute)) == asked + 1
    assert "s" in desk.machine.replica.slots and desk.machine.replica == log.replica
    assert [each.name for each in desk.told(MembersChanged)[-1].members] == ["a", "b", "c", "me"]
    assert len(desk.told(NodesChanged)) == before
    desk.tell(computed(desk.all(Compute)[-1]))
    assert desk.told(NodesChanged)[before:] == [news(log)]
    assert desk.machine.placement == (log.end - 1, news(log).placement)


@pytest.mark.parametrize("versions", [False, True])
def test_a_node_is_told_how_many_copies_are_kept_when_that_changes(versions: bool) -> None:
    desk = versioned() if versions else Desk().start()
    before = len(desk.told(NodesChanged))
    desk.log.write("op", SetReplicas(1))
    desk.run()
    if versions:
        assert len(desk.told(NodesChanged)) == before
        desk.tell(computed(desk.all(Compute)[-1]))

    told, = desk.told(NodesChanged)[before:]
    assert told.replicas == 1 and told.nodes == tuple(placed(desk.log.replica))
    if versions:
        assert told == news(desk.log)


def test_nodes_that_are_overtaken_are_never_told() -> None:
    desk = versioned()
    before = len(desk.told(NodesChanged))
    for name in "cd":
        desk.log.join(name)
        desk.run()
    older, newer = desk.all(Compute)[-2:]
    desk.tell(computed(older))
    assert len(desk.told(NodesChanged)) == before

    desk.tell(computed(newer))

    assert desk.told(NodesChanged)[before:] == [news(desk.log)]


def test_nothing_is_derived_of_the_past_and_over_a_jump_everything_anew() -> None:
    log = Log()
    for name in "abcd":
        log.join(name)
    desk = Desk(log, Scaling(versions=True), batch=1).start()
    asked, = desk.all(Compute)
    desk.tell(computed(asked))
    assert desk.told(NodesChanged) == [news(log)]

    desk.log.join("e")
    desk.take(desk.machine.adopt(0, log.end - 1, log.replica.text()))
    desk.tell(computed(desk.all(Compute)[-1]))

    assert desk.told(NodesChanged)[1:] == [news(log)]
    assert [type(each) for each in desk.appended()].count(PrepareJoin) == 1


def test_what_was_asked_goes_on_without_a_connection() -> None:
    log = Log()
    for name in "abcd":
        log.join(name)
    desk = Desk(log, Scaling(schedulers=("a", "b"))).start()
    assert not desk.told(NodesChanged)
    desk.tell(SUSPENDED)
    assert desk.machine.deadline() == 500
    desk.pass_time(3_000)  # neither answers

    desk.tell(computed(desk.all(Compute)[-1]))

    assert desk.told(NodesChanged) == [news(log)]


def test_who_has_left_asks_for_nothing_any_more() -> None:
    log = Log()
    for name in "abcd":
        log.join(name)
    desk = Desk(log, Scaling(schedulers=("a", "b"))).start()
    assert desk.machine.deadline() is not None
    desk.take(desk.machine.depart(0))
    desk.run()

    assert desk.machine.is_out and desk.machine.deadline() is None
