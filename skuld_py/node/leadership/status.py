"""The cluster as one node sees it, for people and their tools.

Rows of data on its way may be more than a message has room for: a partition may be under way at each of its nodes.
Then each node and kind keeps a share of rows, and the reason in its first row says how many more there are.
``skuld status`` shows that reason, so programs of the release before show it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import attrs

from skuld_py.cluster.log.replica import Replica
from skuld_py.config import PARTITIONS_MAX, RULES
from skuld_py.model import messages as m
from skuld_py.model.messages.descriptions import AWAITED_MAX, PAUSED_MAX, STARVED_MAX
from skuld_py.model.state import State
from skuld_py.node.knowledge.view import View
from skuld_py.node.leadership.clocks import Agreement
from skuld_py.node.retention.slices import Slices

Program = tuple[str, int]
"""The release that a node runs, and the newest rules that it knows."""
UNSAID: Program = ("", 0)
NOBODY: Mapping[str, str] = {}


def own_program(view: View) -> Program:
    """What this node runs."""
    return view.release, RULES


def described(view: View, request: int, clocks: Agreement, moves: tuple[m.MoveRow, ...],
              collections: tuple[m.CollectionRow, ...], programs: Mapping[str, Program],
              silent: Collection[str], workers: Mapping[str, tuple[int, int]],
              held: tuple[m.HeldRow, ...] = (), watches: Mapping[str, str] = NOBODY) -> m.Described:
    """Nodes, partitions, moves, paused queues, and collections. A leader is one that grants, as others say it of
    themselves: without ZooKeeper this node names itself as little. ``programs``: what other nodes said they run.
    ``silent``: live nodes of which nothing is heard. ``workers``: how many report to other nodes, and their
    slots. ``watches``: the node that each watches."""
    workers = {**workers, view.me.name: (len(view.attendance), view.attendance.slots)}
    programs = {**programs, view.me.name: own_program(view)}
    owners = [vnode.owners for vnode in view.vnodes]
    known = [view.leader_of(vnode.partition) for vnode in view.vnodes]
    leaders = [leader if leader != view.me.name or view.may_grant else "" for leader in known]
    nodes = tuple(m.NodeRow(name, name in view.live, leaders.count(name),
                            sum(1 for placed in owners if name in placed), clocks.verdict(name).value,
                            clocks.offset_ms(name), clocks.error_ms(name), *programs.get(name, UNSAID),
                            name in silent, *workers.get(name, (0, 0)), name in view.leaving,
                            watches.get(name, ""))
                  for name in sorted({*view.nodes, *view.live}))
    partitions = tuple(m.PartitionRow(vnode.partition, max(vnode.leader_epoch, vnode.promise.epoch),
                                      leaders[vnode.partition], owners[vnode.partition], vnode.standing.cohort)
                       for vnode in view.vnodes)
    starved = view.seating.seats.starved
    return m.Described(request, view.me.name, view.session.value, nodes, partitions, within(moves, PARTITIONS_MAX),
                       tuple(sorted(view.settings.paused)[:PAUSED_MAX]), collections,
                       starved=tuple(m.StarvedRow(*each) for each in [*starved.items()][:STARVED_MAX]),
                       starved_count=len(starved), held=held)


def watches_of(replica: Replica) -> dict[str, str]:
    """Which node watches which, by the ring of the coordination log."""
    members = replica.members
    return {members[watcher].name: members[watched].name for watcher, watched in replica.ring.pairs.items()
            if watcher in members and watched in members}


def within(moves: Sequence[m.MoveRow], most: int) -> tuple[m.MoveRow, ...]:
    """At most ``most`` of the rows: of each node and kind a share."""
    if len(moves) <= most:
        return tuple(moves)
    kinds = Counter((row.node, row.role) for row in moves)
    share = max(1, most // len(kinds))
    kept: Counter[tuple[str, str]] = Counter()
    told: list[m.MoveRow] = []
    for row in moves:
        kind = row.node, row.role
        left_out = kinds[kind] - share
        if not kept[kind] and left_out > 0:
            words = f"{left_out:,} more of its partitions are not listed"
            row = attrs.evolve(row, reason=f"{row.reason[:100]}; {words}" if row.reason else words)
        if kept[kind] < share:
            told.append(row)
        kept[kind] += 1
    return tuple(told[:most])


def collection(view: View, slices: Slices) -> tuple[m.CollectionRow, ...]:
    """A row of what this node collects; none if it keeps everything. It counts led partitions only: all replicas
    delete the same tasks, and would count them again. Where nothing comes any more the seal rises no more: there
    counts up to when nothing is left."""
    if not view.retention.keep_ms:
        return ()
    led = [vnode for vnode in view.vnodes if vnode.is_leading]
    watermarks = [vnode.replica.watermark for vnode in led]
    seals = [max(vnode.replica.watermark.sealed_ms, slices.collected_ms(vnode)) for vnode in led
             if vnode.replica.watermark.sealed_ms]
    names = sorted({name for vnode in led for name in slices.awaited(vnode.partition)})
    unarchived, since = 0, [0]
    if view.retention.archives:
        unarchived = sum(row[state] for vnode in led for _, row in vnode.replica.filing.tally.rows()
                         for state in ENDS)
        since = [at_ms for vnode in led if (at_ms := slices.unarchived_since_ms(vnode.partition))]
    return (m.CollectionRow(view.me.name, sum(watermark.collected for watermark in watermarks),
                            min(seals, default=0), tuple(names[:AWAITED_MAX]), unarchived, min(since, default=0),
                            slices.pace.rate()),)


ENDS = (State.COMPLETED, State.CANCELLED, State.DEAD)
