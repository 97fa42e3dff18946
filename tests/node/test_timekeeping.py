"""Clocks are judged by round trips: right ones are left alone, wrong ones are found, whatever is late or lost."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import count

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.node.leadership.clocks import DRIFT, JUDGE_MS, Span, Timekeeper, Verdict, agree, span_of
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.leadership.quorum import majority

SKEW_MS = 1_000
NAMES = ("a", "b", "c", "d", "e", "f", "g")
RATE = 1e-3
EPOCH_MS = 1_700_000_000_000


def exact(offsets: Mapping[str, int]) -> dict[str, Span]:
    """Clocks measured without error."""
    return {name: Span(offset, offset) for name, offset in offsets.items()}


def verdicts(*offsets_ms: int, size: int = 0) -> str:
    """The first letter of each clock's verdict."""
    spans = exact(dict(zip(NAMES, offsets_ms, strict=False)))
    agreement = agree(spans, size or len(spans), SKEW_MS)
    return "".join(agreement.verdict(name).value[0] for name in spans)


# -- the judgement, from exact offsets ---------------------------------------------------------------


@pytest.mark.parametrize(("offsets_ms", "found"), [
    ((0,), "a"), ((0, 1_000), "aa"), ((0, 1_001), "ff"), ((0, -90_000), "ff"),
    ((0, 500, 1_000), "aaa"), ((0, 0, 1_001), "aaf"), ((-1_001, 0, 0), "faa"), ((0, 900, 1_800), "oao"),
    ((0, 1_100, 2_200), "fff"), ((9_000, 0, 9_000), "afa"),
    ((0, 0, 0, 1_500), "aaaf"), ((0, 1_000, 1_000, 1_500), "oaao"), ((0, 0, 5_000, 5_000), "ffff"),
    ((0, 0, 0, 5_000, 5_000), "aaaff"), ((0, 400, 800, 1_200, 1_600), "ooaoo")])
def test_verdicts_when_all_are_heard(offsets_ms: tuple[int, ...], found: str) -> None:
    """a: agreed, o: outside, f: far. Two alone are both right or both wrong; of four it takes three."""
    assert verdicts(*offsets_ms) == found


@pytest.mark.parametrize(("offsets_ms", "size", "found"), [
    ((0,), 3, "u"), ((0, 0), 3, "aa"), ((0, 0), 5, "uu"), ((0, 5_000), 3, "dd"), ((0, 0, 5_000), 5, "ddd"),
    ((0, 5_000, 5_000), 5, "ddd"), ((0, 0, 0, 5_000), 5, "aaaf"), ((0, 2_000, 4_000, 6_000), 5, "ffff")])
def test_who_is_not_heard_may_be_right(offsets_ms: tuple[int, ...], size: int, found: str) -> None:
    """u: unheard, d: disagreed. With one node of three down, two that disagree both stop granting."""
    assert verdicts(*offsets_ms, size=size) == found


@given(st.lists(st.integers(0, SKEW_MS), min_size=1, max_size=7), st.integers(-10**6, 10**6))
def test_clocks_within_the_bound_of_each_other_are_never_suspected(offsets_ms: list[int], base_ms: int) -> None:
    assert verdicts(*(base_ms + offset for offset in offsets_ms)) == "a" * len(offsets_ms)


@given(st.lists(st.integers(-3 * SKEW_MS, 3 * SKEW_MS), min_size=2, max_size=7))
def test_those_who_may_grant_are_within_the_bound_of_each_other(offsets_ms: list[int]) -> None:
    granting = [offset for offset, found in zip(offsets_ms, verdicts(*offsets_ms), strict=True) if found == "a"]

    assert not granting or max(granting) - min(granting) <= SKEW_MS


@given(st.data())
def test_a_good_clock_is_never_far_whatever_is_not_heard(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 7))
    good = data.draw(st.lists(st.integers(-SKEW_MS // 2, SKEW_MS // 2), min_size=majority(size), max_size=size))
    bad = data.draw(st.lists(st.integers(-10**5, 10**5), min_size=size - len(good), max_size=size - len(good)))
    offsets = dict(zip(NAMES, [*good, *bad], strict=False))
    heard = {"a": offsets["a"], **{name: offset for name, offset in offsets.items() if data.draw(st.booleans())}}

    assert agree(exact(heard), size, SKEW_MS).verdict("a") is not Verdict.FAR


# -- round trips -------------------------------------------------------------------------------------


@given(st.data())
def test_a_span_holds_the_true_offset_however_late_the_answer(data: st.DataObject) -> None:
    """Any clocks within their rates, any delays each way, any age: a stopped process included."""
    rates = [1 + data.draw(st.floats(-RATE, RATE)) for _ in range(2)]
    offsets = [data.draw(st.floats(-10**6, 10**6)) for _ in range(2)]
    times = [data.draw(st.floats(0, 10**7))]
    for _ in range(3):
        times.append(times[-1] + data.draw(st.floats(0, 10**6)))

    def read(clock: int, true_ms: float) -> float:
        return EPOCH_MS + offsets[clock] + rates[clock] * true_ms
    asked, told, heard = int(read(0, times[0])), int(read(1, times[1])), int(read(0, times[2]))
    span = span_of(asked, told, heard).widened(int(read(0, times[3])) - asked)

    assert span.low <= read(1, times[3]) - read(0, times[3]) <= span.high
    assert 1 / DRIFT > 2 * RATE / (1 - RATE)


# -- the machine, among clocks of which all is known --------------------------------------------------


@attrs.define
class World:
    """Timekeepers alone, with true time, clocks, delays and losses all drawn."""

    offsets: dict[str, int]
    rates: dict[str, float]
    data: st.DataObject
    delay_ms_max: int
    now_ms: int = 0
    flying: list[tuple[int, int, str, str, m.Message]] = attrs.field(factory=list)
    sent: int = 0
    keepers: dict[str, Timekeeper] = attrs.field(factory=dict)
    is_lossy: bool = True

    def read(self, name: str) -> int:
        return int(EPOCH_MS + self.offsets[name] + self.rates[name] * self.now_ms)

    def send(self, sender: str, peer: str, message: m.Message) -> None:
        if self.is_lossy and self.data.draw(st.integers(0, 9)) == 0:
            return
        self.sent += 1
        delay_ms = self.data.draw(st.integers(0, self.delay_ms_max))
        heapq.heappush(self.flying, (self.now_ms + delay_ms, self.sent, sender, peer, message))

    def run(self, end_ms: int, step_ms: int = 100) -> None:
        while self.now_ms < end_ms:
            while self.flying and self.flying[0][0] <= self.now_ms:
                _, _, sender, peer, message = heapq.heappop(self.flying)
                assert isinstance(message, m.AskTime | m.ToldTime)
                self.keepers[peer].on_message(self.read(peer), sender, message)
            for name, keeper in self.keepers.items():
                if self.read(name) >= keeper.due_ms:
                    keeper.look(self.read(name))
            self.now_ms = min([self.now_ms + step_ms, *(row[0] for row in self.flying[:1])])


@attrs.define(eq=False)
class FakeOperations:
    """As much of a node as the timekeeper uses."""

    world: World
    me: Member
    parameters: Parameters
    live: dict[str, Member]
    timing = DEFAULT_TIMING
    limits = DEFAULT_LIMITS
    numbers: Iterator[int] = attrs.field(factory=lambda: count(1))
    bulletin: Bulletin = attrs.field(factory=Bulletin)

    @property
    def view(self) -> FakeOperations:
        return self

    @property
    def outbox(self) -> FakeOperations:
        return self

    def send(self, peer: str, message: m.Message) -> None:
        self.world.send(self.me.name, peer, message)


def a_world(data: st.DataObject, offsets_ms: list[int], delay_ms_max: int) -> World:
    names = NAMES[: len(offsets_ms)]
    rates = {name: 1 + data.draw(st.floats(-RATE, RATE)) / 10 for name in names}
    world = World(dict(zip(names, offsets_ms, strict=True)), rates, data, delay_ms_max)
    members = {name: Member(name, "127.0.0.1", 1, name) for name in names}
    for name in names:
        operations = FakeOperations(world, members[name], Parameters("c", "i", 2, 1, SKEW_MS), members)
        world.keepers[name] = Timekeeper(operations)  # type: ignore[arg-type]
        world.keepers[name].on_nodes(len(names))
    return world


@settings(deadline=None)
@given(st.data())
def test_right_clocks_keep_their_leaderships_and_wrong_ones_are_found(data: st.DataObject) -> None:
    """Delays up to a second, losses, drift; then three quiet rounds in which every answer comes at once."""
    size = data.draw(st.integers(3, 5))
    bad_count = size - majority(size)
    good = data.draw(st.lists(st.integers(-400, 400), min_size=majority(size), max_size=majority(size)))
    bad = data.draw(st.lists(st.integers(-20_000, 20_000), min_size=bad_count, max_size=bad_count))
    assume(all(abs(offset) > SKEW_MS + 500 for offset in bad))
    world = a_world(data, [*good, *bad], delay_ms_max=1_000)
    for _ in range(10):
        world.run(world.now_ms + 500)
        assert all(world.keepers[name].may_lead for name in NAMES[: len(good)])

    world.delay_ms_max, world.is_lossy = 0, False
    world.run(world.now_ms + 3 * DEFAULT_TIMING.clock_ms)

    assert all(world.keepers[name].may_lead for name in NAMES[: len(good)])
    assert not any(world.keepers[name].may_grant for name in NAMES[len(good) : size])
    if all(abs(offset) > 2 * SKEW_MS for offset in bad):
        assert not any(world.keepers[name].may_lead for name in NAMES[len(good) : size])


# -- the node ----------------------------------------------------------------------------------------


def set_clock(machines: Machines, wrong: str, ahead_ms: int) -> None:
    """Make a node's clock wrong from now on."""
    machines.ahead_ms[wrong] = ahead_ms


def test_a_node_whose_clock_is_wrong_leads_nothing_and_says_so() -> None:
    machines = Machines()
    machines.pass_time(3_000)
    wrong, *others = machines.names
    assert machines.nodes[wrong].view.led()

    set_clock(machines, wrong, 5_000)
    machines.pass_time(9_000)

    assert not machines.nodes[wrong].view.led()
    assert not any(vnode.is_leading for vnode in machines.nodes[wrong].view.vnodes)
    assert sum(len(machines.nodes[name].view.led()) for name in others) == 8
    machines.ask(others[0], m.Describe(1))
    described = machines.answers[-1][1]
    assert isinstance(described, m.Described)
    row = next(row for row in described.nodes if row.name == wrong)
    assert (row.clock, round(row.offset_ms, -2)) == ("far", 5_000)
    assert [row.clock for row in described.nodes if row.name != wrong] == ["agreed", "agreed"]


def test_it_leads_again_once_its_clock_is_right() -> None:
    machines = Machines()
    machines.pass_time(3_000)
    wrong = machines.names[0]
    set_clock(machines, wrong, -5_000)
    machines.pass_time(9_000)
    assert not machines.nodes[wrong].view.may_grant

    set_clock(machines, wrong, 0)
    machines.pass_time(15_000)

    assert machines.nodes[wrong].view.may_grant


def test_of_two_nodes_that_disagree_neither_grants_and_both_agree_again() -> None:
    machines = Machines(2, replicas=2)
    machines.pass_time(3_000)
    assert sum(len(node.view.led()) for node in machines.nodes.values()) == 8

    set_clock(machines, machines.names[0], 900)
    machines.pass_time(5_000)
    assert [node.timekeeper.verdict for node in machines.nodes.values()] == [Verdict.FAR, Verdict.FAR]
    assert not any(node.view.led() for node in machines.nodes.values())

    set_clock(machines, machines.names[0], 0)
    machines.pass_time(10_000)
    assert sum(len(node.view.led()) for node in machines.nodes.values()) == 8


def test_a_single_node_is_right() -> None:
    machines = Machines(1, replicas=1)
    machines.pass_time(1_000)

    assert len(machines.nodes[machines.names[0]].view.led()) == 8


def test_a_node_grants_nothing_before_it_has_heard_a_majority_or_waited() -> None:
    machines = Machines()
    machines.is_lost = lambda message: isinstance(message, m.ToldTime)

    machines.pass_time(2_900)
    assert not any(node.view.may_grant for node in machines.nodes.values())
    assert not machines.documents

    machines.pass_time(2_000)
    assert sum(len(node.view.led()) for node in machines.nodes.values()) == 8


def test_news_of_clocks_is_judged_soon_and_not_in_the_next_round() -> None:
    machines = Machines()
    machines.pass_time(3_000)
    keeper = machines.nodes[machines.names[0]].timekeeper
    assert keeper.due_ms > machines.now_ms + JUDGE_MS

    keeper.on_nodes(9)

    assert keeper.due_ms <= machines.now_ms + JUDGE_MS
