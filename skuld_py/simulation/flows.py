"""Workflows in a run: who has them run and who works for them, and what must come of it once all is healed.

Then every node knows the same seats of the same workflows, and with them, in bounded time, each segment of a
workflow that has seats is done. One that has none has a reason, which every node gives; and where slots lie idle
that would do for it, none is true. After that all of them end: those with seats by being sealed, output by output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import INPUT, StepRow, Workflow, live
from skuld_py.model.body import header_of
from skuld_py.model.history import decode_history
from skuld_py.model.seats import Seats
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.seated import Seated, tags_of
from skuld_py.simulation.clients.submitter import Submitter
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.flow_options import FlowOptions
from skuld_py.simulation.healing import Healer, is_over
from skuld_py.simulation.seating import DIGEST, slots_of
from skuld_py.workflow.definition.names import QUEUES, RESERVED_STEPS, step_of
from skuld_py.workflow.scheduling.demand import Sharing, Spreading

WORKERS = 3
MakeClient = Callable[[str, int], Client]


class Flows:
    """``make_client``: of a name and a patience."""

    def __init__(self, cluster: Cluster, healer: Healer, make_client: MakeClient, options: FlowOptions) -> None:
        self._cluster = cluster
        self._healer = healer
        self._options = options
        patience_ms = cluster.options.workload.patience_ms
        self._clients = [make_client(f"s{number}", patience_ms) for number in range(1 + WORKERS)]
        self._submitter = Submitter(self._clients[0], cluster.options, cluster.registry)
        self._are_drained = False

    def begin(self) -> None:
        """Have workflows run."""
        self._submitter.begin(self._options.every_ms)
        for number, client in enumerate(self._clients[1:]):
            Seated(client, self._cluster.options, self._submitter, tags_of(number)).begin()

    def use(self, nodes: Sequence[str]) -> None:
        """From now on ask these nodes."""
        for client in self._clients:
            client.nodes = nodes

    # -- what is lacking -------------------------------------------------------------------------

    def lacks(self, nodes: Collection[str]) -> list[str]:
        """What these nodes, which are well, still have to do for workflows; and what they say that is not so."""
        replica = self._cluster.registry.replica
        living = live(replica.workflows)
        known = {name: process.node.view.seating.seats for name in nodes
                 if (process := self._cluster.processes[name]).node is not None}
        unlike = [*_unlike(known, living)]
        if unlike or not known:
            return unlike or ["no node is up that could know seats"]
        seats = next(iter(known.values()))
        if not living:
            self._drain()
            return []
        if {*nodes} == {*self._cluster.options.nodes} and (wrong := [*wrongs_of(replica, living, known)]):
            return wrong
        undone = [*self._undone(nodes, {*living} - {*seats.starved})]
        if undone:
            return undone
        self._submitter.finish(seats.starved)
        return [f"workflow {name} has not ended: {each.state}, exhausted {each.exhausted}, sealed {each.sealed}"
                for name, each in living.items()]

    def _undone(self, nodes: Collection[str], workflows: Collection[str]) -> Iterator[str]:
        for name in nodes:
            store = self._cluster.processes[name].store
            for key, body in store.rows("body").items():
                queue = header_of(body).queue
                found = step_of(queue) if queue.startswith(QUEUES) else None
                if found is not None and found[0] in workflows and found[1] not in RESERVED_STEPS and not is_over(
                        decode_history(store.committed("history", key)), body):
                    yield f"{name} still has {key.hex()} of {queue} undone, a step that has seats"

    def _drain(self) -> None:
        """What is left of workflows that have ended anybody may claim."""
        if not self._are_drained:
            self._are_drained = True
            self._healer.drain_queues(self._submitter.queues)


def _unlike(known: Mapping[str, Seats], living: Mapping[str, Workflow]) -> Iterator[str]:
    first: tuple[str, object] | None = None
    for name, seats in known.items():
        if seats.fences.keys() != living.keys():
            yield f"{name} knows seats of {[*seats.fences]}, of {[*living]} that live"
            continue
        said = {workflow: fence & DIGEST for workflow, fence in seats.fences.items()}, seats.starved
        if first is None:
            first = name, said
        elif said != first[1]:
            yield f"{name} knows seats {said}, and {first[0]} {first[1]}"


def wrongs_of(replica: Replica, living: Mapping[str, Workflow], known: Mapping[str, Seats]) -> Iterator[str]:
    """What is wrong with seats that all nodes know alike, by a count of our own."""
    given: dict[tuple[str, str], int] = {}
    slots = {name: slots_of(replica, name) for name in known}
    for name, seats in known.items():
        for tags, rows in seats.here:
            for seat in rows:
                given[seat.workflow, seat.step] = given.get((seat.workflow, seat.step), 0) + seat.count
            if (count := sum(seat.count for seat in rows)) > slots[name].get(tags, 0):
                yield f"{name} has {count} seats for {slots[name].get(tags, 0)} slots of {tags}"
    idle = sum(map(sum, (each.values() for each in slots.values()))) - sum(given.values())
    starved = next(iter(known.values())).starved
    for name, workflow in living.items():
        steps = [step for step in workflow.steps if step.kind != INPUT or step.name not in workflow.exhausted]
        counts = [given.get((name, step.name), 0) for step in steps]
        is_seated = all(step.least <= count <= step.most for step, count in zip(steps, counts, strict=True))
        if name not in starved and not is_seated:
            yield f"workflow {name} has seats {counts} for {[each.name for each in steps]}, and nobody says why"
        elif name in starved and (any(counts) or not starved[name]):
            yield f"workflow {name} is said to have no seats, {starved[name]!r}, and has {counts}"
        elif name in starved and _is_plain(replica, workflow, steps) and sum(step.least for step in steps) <= idle:
            yield f"workflow {name} starves beside {idle} idle slots: {starved[name]}"


def _is_plain(replica: Replica, workflow: Workflow, steps: Sequence[StepRow]) -> bool:
    """Whether any idle slot would do for it: no part of all slots is set aside, no site or tag is asked for."""
    return (replica.sharing != Sharing.PERCENTAGE.value and workflow.spreading != Spreading.COLOCATED.value
            and not any(step.tags for step in steps))
