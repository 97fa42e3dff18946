"""What must not outlive its time: wishes of a life, how long a node was down, a replica that is built anew."""

from __future__ import annotations

import attrs
import pytest

from cluster.test_membership import Log, member
from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    ForgetNode,
    Gc,
    Leave,
    NotifyJoin,
    PrepareJoin,
    RetireNode,
)
from skuld_py.cluster.log.entries import decode
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.chores import SETTLE_MS, SWEEP_MS, Forgetter, Sweeper
from skuld_py.cluster.member.outbox import Outbox
from skuld_py.cluster.member.reader import Reader
from skuld_py.cluster.member.settings import DAY_MS, LogSettings
from skuld_py.model.coordination import EntriesRead, OriginRead, ReadOrigin, SweepEntries


def test_the_next_life_writes_none_of_the_last_ones_wishes() -> None:
    outbox = Outbox()
    outbox.begin("me~1")
    outbox.add(PrepareJoin("me~1", member("me")))
    outbox.add(AbortJoin("me~1"))
    outbox.begin("me~2")
    assert outbox.next(lambda _: True) == []
    outbox.add(PrepareJoin("me~2", member("me")))

    append, = outbox.next(lambda _: True)
    assert decode(append.raw).command == PrepareJoin("me~2", member("me"))


def test_a_node_that_is_down_again_is_forgotten_by_the_second_time() -> None:
    log, forgetter = Log(Replica(replicas=1)), Forgetter(LogSettings(forget_ms=100_000, takeover_ms=0))
    for name in "abc":
        log.join(name)
    log.write("a", Leave("c"))
    assert forgetter.wish(0, log.replica, "a") == []
    log.write("c~2", PrepareJoin("c~2", member("c")))
    log.write("a", Leave("c~2"))
    back = attrs.evolve(log.replica, nodes={**log.replica.nodes, "c": attrs.evolve(
        log.replica.nodes["c"], since=log.replica.version)})  # it was in, and went down there

    assert forgetter.wish(99_000, back, "a") == []
    assert forgetter.wish(101_000, back, "a") == []
    assert forgetter.wish(200_000, back, "a") == [ForgetNode("c")]


class Watcher:
    """A member's forgetter, and what it has seen of a log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.forgetter = Forgetter(LogSettings(
            forget_ms=DAY_MS, takeover_ms=0, brief_ms=600_000, return_ms=60_000))
        self._seen = self.log.base

    def see(self, now_ms: int, is_current: bool = True) -> None:
        for position, raw in sorted(self.log.entries.items()):
            if position > self._seen.version:
                played = play(self._seen, position, raw)
                self._seen = played.replica
                self.forgetter.on_played(now_ms, played, is_current)


def visited(stay_ms: int, is_current: bool = True, writer: str = "c") -> tuple[Log, Watcher]:
    """c comes for the first time, and leaves after a while, by its own word or another's."""
    log = Log(Replica(replicas=1))
    for name in "ab":
        log.join(name)
    watcher = Watcher(log)
    watcher.see(0)
    log.join("c")
    watcher.see(0, is_current)
    log.write(writer, Leave("c"))
    watcher.see(stay_ms)
    assert watcher.forgetter.wish(stay_ms, log.replica, "a") == []
    return log, watcher


def test_a_visitor_that_stopped_cleanly_is_forgotten_soon() -> None:
    log, watcher = visited(12_000)

    assert watcher.forgetter.deadline() <= 13_000
    assert watcher.forgetter.wish(12_000 + 59_000, log.replica, "a") == []
    assert watcher.forgetter.wish(12_000 + 61_000, log.replica, "a") == [ForgetNode("c")]


@pytest.mark.parametrize("visit", [(600_000, True, "c"), (12_000, False, "c"), (12_000, True, "a")],
                         ids=["it stayed", "nobody saw it come", "it died"])
def test_no_other_node_is(visit: tuple[int, bool, str]) -> None:
    log, watcher = visited(*visit)

    assert watcher.forgetter.wish(visit[0] + 1_000_000, log.replica, "a") == []


def test_a_visitor_that_returns_and_goes_again_has_its_time_anew() -> None:
    log, watcher = visited(12_000)
    log.write("c~2", PrepareJoin("c~2", member("c")))
    log.write("a", NotifyJoin("c~2"))
    log.write("c~2", AcceptJoin("a", "c~2"))
    watcher.see(20_000)

    assert watcher.forgetter.wish(100_000, log.replica, "a") == []


def test_no_node_is_forgotten_that_partitions_need() -> None:
    log, watcher = visited(12_000)

    assert watcher.forgetter.wish(90_000, log.replica, "a", lambda name: name == "c") == []
    assert watcher.forgetter.wish(99_000, log.replica, "a", lambda name: False) == [ForgetNode("c")]


def test_what_a_forgotten_node_leaves_is_swept_up_by_one_member_a_while_after() -> None:
    log = Log(Replica(replicas=1))
    for name in "abc":
        log.join(name)
    sweepers = {name: Sweeper() for name in "ab"}

    def sweeping(now_ms: int) -> dict[str, list[SweepEntries]]:
        made = {name: sweeper.wish(now_ms, log.replica, name) for name, sweeper in sweepers.items()}
        assert all(sweeper.deadline() > now_ms for sweeper in sweepers.values())
        return {name: wishes for name, wishes in made.items() if wishes}
    assert sweeping(0) == {}
    log.write("a", Leave("c"))
    assert sweeping(1_000) == {}
    log.write("a", ForgetNode("c"))
    assert sweeping(2_000) == sweeping(2_000 + SETTLE_MS - 1) == {}
    assert sweeping(2_000 + SETTLE_MS) == {"a": [SweepEntries(("a", "b"))]}
    assert sweeping(2_000 + SETTLE_MS + SWEEP_MS - 1) == {}
    log.write("a", *[RetireNode("x")] * (log.replica.version % 2), Gc(-1))  # the next in the roster has the duty

    assert sweeping(2_000 + SETTLE_MS + SWEEP_MS) == {"b": [SweepEntries(("a", "b"))]}


def test_a_replica_built_anew_takes_the_place_of_the_other_only_once_it_has_come_as_far() -> None:
    log = Log()
    for number in range(6):
        log.write("operator", RetireNode(f"n{number}"))
    entries = sorted(log.entries.items())
    reader = Reader(LogSettings(), log.base)
    assert reader.ask(0) == [ReadOrigin()]
    reader.on_origin(OriginRead(-1, ""))
    assert len([*reader.offer(entries)]) == 6
    kept = reader.replica
    reader.build_anew()
    reader.ask(0)
    reader.on_origin(OriginRead(-1, ""))
    reader.ask(0)
    assert [*reader.on_entries(0, EntriesRead(0, tuple(entries[:4]), is_end=True))] == []  # a server that lags
    assert reader.replica is kept and reader.position == 5

    reader.ask(0)
    assert [*reader.on_entries(0, EntriesRead(4, tuple(entries[4:]), is_end=True))] == []
    assert reader.replica is not kept and reader.replica == kept
