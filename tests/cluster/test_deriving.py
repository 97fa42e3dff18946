"""The placement is decided aside: entries apply at once, and it follows under a version of its own."""

from __future__ import annotations

from collections import deque

import attrs
import pytest

from cluster.random_log import member
from skuld_py.cluster.log.commands import (
    COMMANDS,
    AddSlot,
    Command,
    JoinDirect,
    Joining,
    Leave,
    PrepareJoin,
    RetireNode,
)
from skuld_py.cluster.log.commands.footprints import FOOTPRINTS, footprint
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.placement import Placement, place
from skuld_py.cluster.scale.decisions import ask_placement, computed
from skuld_py.cluster.scale.derivation import Derivation, DerivingEvent, scheme_of
from skuld_py.cluster.scale.versions import placing
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.model.columns import Column
from skuld_py.model.events import Compute, Received, Send, Ticked
from skuld_py.model.messages.decisions import DECLINED, Decide, Undecided

NAMES = tuple(f"n{number}:1" for number in range(8))
FIRST = f"{NAMES[0]}~a"
PARTITIONS = 16


def right(replica: Replica) -> Placement:
    return place(placed(replica), PARTITIONS, replica.replicas)


def came(*names: str) -> JoinDirect:
    """Nodes that stand next to the first, which stands alone."""
    return JoinDirect(FIRST, FIRST, tuple(Joining(f"{name}~a", member(f"{name}~a")) for name in names))


class Cluster:
    """Processes that play one log, of which some are schedulers, too; messages arrive in order, computations end
    when told to."""

    def __init__(self, schedulers: tuple[str, ...] = (), names: tuple[str, ...] = NAMES) -> None:
        self.machines = {name: Derivation(name, schedulers, placing(PARTITIONS), play) for name in names}
        self.replicas = dict.fromkeys(names, Replica(replicas=3))
        self.log: list[Replica] = []
        """What playing in order makes."""
        self.computing: list[tuple[str, Compute]] = []
        self.count = 0
        """How often something was computed, once the first one is there."""
        self.write(PrepareJoin(FIRST, member(FIRST)))
        self.compute()
        self.count = 0

    @property
    def newest(self) -> Replica:
        return self.log[-1] if self.log else Replica(replicas=3)

    def write(self, *commands: Command) -> None:
        """Entries, which all play in one step."""
        for command in commands:
            raw = Entry("operator", len(self.log), command).encode()
            position = len(self.log)
            self.log.append(play(self.newest, position, raw).replica)
            for name, machine in self.machines.items():
                played = machine.play(self.replicas[name], position, raw)
                assert played.replica == self.newest
                self.replicas[name] = played.replica
        for name in self.machines:
            self.settle(name)

    def settle(self, name: str) -> None:
        self.carry(name, self.machines[name].settle(0, self.replicas[name]))

    def give(self, name: str, event: DerivingEvent) -> None:
        self.carry(name, self.machines[name].step(0, event))
        self.settle(name)

    def carry(self, name: str, effects: list[Send | Compute]) -> None:
        queue = deque((name, effect) for effect in effects)
        while queue:
            by, effect = queue.popleft()
            if isinstance(effect, Compute):
                self.computing.append((by, effect))
            else:
                more = self.machines[effect.peer].step(0, Received(by, effect.message))
                queue.extend((effect.peer, each) for each in more)

    def compute(self) -> None:
        while self.computing:
            self.count += 1
            name, asked = self.computing.pop(0)
            self.give(name, computed(asked))

    def check(self, name: str, version: int) -> None:
        """As of which version it knows the placement."""
        assert self.machines[name].placement == (version, right(self.log[version]))
        assert self.machines[name].is_lagging is (version < len(self.log) - 1)


def alone() -> Cluster:
    return Cluster(names=NAMES[:1])


def test_entries_apply_while_the_placement_stands_as_of_its_own_version() -> None:
    cluster, me = alone(), NAMES[0]
    cluster.write(came(*NAMES[1:4]))
    cluster.check(me, 0)
    cluster.write(AddSlot("s", FIRST), Leave("n7:1~a"))
    assert cluster.replicas[me].slots and cluster.replicas[me].version == 3
    cluster.check(me, 0)

    cluster.compute()

    cluster.check(me, 3)
    assert cluster.machines[me].lists == place(NAMES[:4], PARTITIONS, 3)


def test_what_is_overtaken_within_a_step_is_never_asked() -> None:
    cluster = alone()
    cluster.write(came(*NAMES[1:5]), RetireNode(NAMES[1]), RetireNode(NAMES[2]))
    assert len(cluster.computing) == 1

    cluster.compute()

    cluster.check(NAMES[0], 3)


def test_a_placement_that_is_overtaken_is_not_taken() -> None:
    cluster, me = alone(), NAMES[0]
    cluster.write(came(*NAMES[1:4]))
    cluster.write(RetireNode(NAMES[1]))
    (_, older), (_, newer) = cluster.computing
    cluster.give(me, computed(older))
    cluster.check(me, 0)

    cluster.give(me, computed(newer))

    cluster.check(me, 2)


def test_what_was_just_decided_is_known() -> None:
    cluster = alone()
    cluster.write(came(*NAMES[1:5]))
    cluster.compute()
    cluster.write(RetireNode(NAMES[1]))
    cluster.compute()
    cluster.write(RetireNode(NAMES[1], False))

    assert not cluster.computing
    cluster.check(NAMES[0], 3)


def test_a_node_that_goes_down_changes_no_placement() -> None:
    cluster = alone()
    cluster.write(came(*NAMES[1:5]))
    cluster.compute()
    cluster.write(Leave(f"{NAMES[2]}~a"))

    assert not cluster.computing
    cluster.check(NAMES[0], 2)


def test_over_a_jump_the_placement_stands_until_the_next_one_is_decided() -> None:
    cluster, me = alone(), NAMES[0]
    cluster.write(came(*NAMES[1:4]))
    before = cluster.computing[:]
    other = Cluster(names=NAMES[:1])
    other.write(came(*NAMES[1:6]), AddSlot("s", FIRST))
    cluster.log += other.log[2:]
    cluster.replicas[me] = attrs.evolve(other.newest)
    cluster.computing.clear()
    cluster.settle(me)
    cluster.check(me, 0)

    cluster.give(me, computed(before[0][1]))
    cluster.check(me, 0)
    cluster.compute()
    cluster.check(me, 2)
    cluster.write(RetireNode(NAMES[1]))
    cluster.check(me, 2)
    cluster.compute()
    cluster.check(me, 3)


def test_schedulers_work_it_out_for_all() -> None:
    cluster = Cluster(NAMES[:2])
    assert cluster.computing == []
    cluster.write(came(*NAMES[1:5]))
    assert {name for name, _ in cluster.computing} == {*NAMES[:2]}
    cluster.compute()

    for name in NAMES:
        cluster.check(name, 1)
    assert cluster.count == 2
    assert cluster.machines[NAMES[7]].decider.agreed == 2


def test_without_schedulers_each_works_it_out_and_who_is_none_declines() -> None:
    cluster = Cluster()
    cluster.write(came(*NAMES[1:5]))
    assert len(cluster.computing) == len(NAMES)
    cluster.compute()
    for name in NAMES:
        cluster.check(name, 1)

    question = Decide("placement-1", 1, bytes(16), False, Column())
    for asked in (cluster.machines[NAMES[0]], Derivation(NAMES[0], (), None, play)):
        assert asked.step(0, Received(NAMES[1], question)) == [Send(NAMES[1], Undecided(bytes(16), DECLINED))]


def test_it_wants_a_tick_when_it_asks_or_is_asked() -> None:
    cluster = Cluster(NAMES[:2])
    machine = cluster.machines[NAMES[7]]
    assert machine.deadline() is None
    replica = play(cluster.newest, 1, Entry("x", 0, came(*NAMES[1:5])).encode()).replica
    asked = machine.settle(-1_000, replica)
    assert machine.deadline() == -500

    scheduler = cluster.machines[NAMES[0]]
    for each in asked:
        assert isinstance(each, Send)
        scheduler.step(0, Received(NAMES[7], each.message))
    assert scheduler.deadline() == 10_000
    scheduler.step(10_000, Ticked())
    assert scheduler.deadline() is None


def test_with_nothing_to_derive_entries_are_played_plainly_and_nothing_is_asked() -> None:
    machine = Derivation(NAMES[0], (), scheme_of(PLAIN, PARTITIONS), play)
    replica = machine.play(Replica(), 0, Entry("x", 0, PrepareJoin(FIRST, member(FIRST))).encode()).replica

    assert machine.settle(0, replica) == []
    assert (machine.is_lagging, machine.placement, machine.lists, machine.deadline()) == (False, None, None, None)


@pytest.mark.parametrize("scaling", [Scaling(versions=True), Scaling(schedulers=NAMES[:2])])
def test_the_placement_is_derived_by_option_and_whenever_others_work_it_out(scaling: Scaling) -> None:
    scheme = scheme_of(scaling, PARTITIONS)

    assert scheme is not None and [each.name for each in scheme.derived] == ["placement"]


def test_no_command_reads_what_is_derived_so_the_replica_is_always_whole() -> None:
    assert all("placement" not in each.reads for each in FOOTPRINTS.values())
    assert FOOTPRINTS.keys() == COMMANDS.keys()
    greedy = attrs.evolve(placing(PARTITIONS), footprints={**FOOTPRINTS, "gc": footprint("placement", "left")})
    with pytest.raises(AssertionError):
        Derivation(NAMES[0], (), greedy, play)


def test_a_placement_that_cannot_be_decided_is_left_to_the_node() -> None:
    cluster, me = alone(), NAMES[0]
    cluster.write(came(*NAMES[1:4]))
    (_, asked), = cluster.computing
    cluster.give(me, attrs.evolve(computed(asked), text=""))

    assert not cluster.machines[me].is_lagging and cluster.machines[me].lists is None
    assert ask_placement(NAMES[:4], PARTITIONS, 3).hash == asked.hash
