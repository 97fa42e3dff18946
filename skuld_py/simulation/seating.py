"""What a node must never do of seats, seen in what passes between it and the world.

A node that knows that the seats of a workflow are others than those a claim shows **begins no try for it**, here
or by another node, neither at once nor after a wait. What it asked another node for before it knew may still come.
And **no node has more seats than the log gives it slots**, as of the position that its seats are of; nor seats of
a workflow that does not live there.

Claims of seats are made under names that say their fence (``clients.worker``), so a message that asks for tasks
says for which seats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import live
from skuld_py.model import messages as m
from skuld_py.model.events import Asked, Received, SeatsChanged
from skuld_py.model.seats import CLAIMS, SEATED, Seats
from skuld_py.node.process import Told
from skuld_py.simulation.monitor import Monitor
from skuld_py.simulation.world.zookeeper.reference import Reference
from skuld_py.workflow.definition.names import QUEUES, RESERVED_STEPS, step_of

NO_TRY_FOR_STALE_SEATS = "C22 no node tries to claim for seats that it knows to be no more"
SEATS_ARE_SLOTS = "C23 a node has no more seats than the log gives it slots, and of live workflows only"
DIGEST_BITS = 24
DIGEST = (1 << DIGEST_BITS) - 1
"""Of a fence: what tells seats from others; above it stands where they became known."""


class SeatGuards:
    """``monitor`` takes what is wrong, and how often each rule was put to the test; ``hit`` counts a situation."""

    def __init__(self, reference: Reference, monitor: Monitor, hit: Callable[[str, object], None]) -> None:
        self._reference = reference
        self._counts, self._blame = monitor.counts, monitor.blame
        self._hit = hit
        self._known: dict[str, Seats] = {}
        self._asked: dict[tuple[str, str, str], int] = {}
        """The fence of each claim that a client asked a node for, by node, holder and queue, until another node
        asks it for the same: that one is answered for by the other."""
        self._tried: dict[tuple[str, str, int, int], None] = {}
        """Grants that were asked for before: what is not answered is sent again."""

    def on_start(self, name: str) -> None:
        """A new life knows no seats."""
        self._known.pop(name, None)

    def on_turn(self, name: str, events: Iterable[Told]) -> None:
        """A node is about to take these events."""
        for event in events:
            message = event.message if isinstance(event, Asked | Received) else None
            if isinstance(message, m.Claim) and message.fence:
                self._asked[name, message.holder, message.queue] = message.fence
            elif isinstance(message, m.Delegate):
                self._asked.pop((name, message.holder, message.queue), None)

    def on_told(self, name: str, event: SeatsChanged) -> None:
        """A node is told seats."""
        seats, before = event.seats, self._known.get(name, Seats())
        self._known[name] = seats
        replica = self._reference.at(seats.position)
        slots, living = slots_of(replica, name), live(replica.workflows)
        self._counts[SEATS_ARE_SLOTS] += 1
        for tags, rows in seats.here:
            if (count := sum(row.count for row in rows)) > slots.get(tags, 0):
                self._blame(SEATS_ARE_SLOTS, f"{name}: {count} seats for {slots.get(tags, 0)} slots: {seats}")
        if seats.fences.keys() != living.keys() or not seats.starved.keys() <= living.keys():
            self._blame(SEATS_ARE_SLOTS, f"{name} knows seats of {[*seats.fences]}, of {[*living]} that live:"
                                         f" {seats}")
        self._hit("workflow starved", seats.starved)
        self._hit("seats change", before.here and before.here != seats.here)

    def on_send(self, name: str, message: m.Message) -> None:
        """A message leaves a node."""
        if isinstance(message, m.Grant):
            key = name, message.holder, message.partition, message.first_token
            if key not in self._tried:
                self._tried[key] = None
                self._judge(name, message.queue, message)
        elif isinstance(message, m.Delegate):
            self._judge(name, message.queue, message)

    def _judge(self, name: str, queue: str, message: m.Grant | m.Delegate) -> None:
        fence = self._asked.get((name, message.holder, queue), 0)
        found = step_of(queue) if queue.startswith(QUEUES) else None
        if found is None or not fence:
            return
        workflow, step = found
        seats = self._known.get(name, Seats())
        known = seats.fences.get(workflow)
        shown, position = fence >> DIGEST_BITS, (known or 0) >> DIGEST_BITS
        is_gone = known is None and seats.position + 1 > shown
        is_other = known is not None and position > shown and (known ^ fence) & DIGEST
        self._counts[NO_TRY_FOR_STALE_SEATS] += 1
        if is_gone or is_other:
            self._blame(NO_TRY_FOR_STALE_SEATS, f"{name} knows {known} of {workflow}, by {fence} {message}")
        self._hit("claim by a seat", step not in RESERVED_STEPS)

def slots_of(replica: Replica, node: str) -> dict[tuple[str, ...], int]:
    """How many slots of workers that take seats the log has of a node, by tags; the most, while a number
    changes."""
    found: dict[tuple[str, ...], int] = {}
    for slot in replica.slots.values():
        member = replica.members.get(slot.member)
        if member is not None and member.name == node and SEATED in slot.tags:
            tags = tuple(sorted(tag for tag in slot.tags if tag != SEATED and not tag.startswith(CLAIMS)))
            count = next(int(tag.removeprefix(CLAIMS)) for tag in slot.tags if tag.startswith(CLAIMS))
            found[tags] = max(count, found.get(tags, 0))
    return found
