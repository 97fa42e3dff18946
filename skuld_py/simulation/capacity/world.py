"""Nodes in virtual time whose turns take as long as ``costs`` says, and a registry that is always well.

A turn takes all that has come, as the real loop's does; what promises nothing leaves when its processor time is
over, the rest when the commit is through, and only then the next turn begins. So commits are shared by what came
meanwhile, and a node that has too much to do shows as one that is busy without end.

Placement is the real one. While a cluster starts nothing costs anything (``is_free``): elections are not what is
counted here, and nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.cluster.placement import place
from skuld_py.config import Parameters
from skuld_py.model import messages as m
from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.events import (
    Answer,
    Asked,
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    Received,
    Send,
    Session,
    SessionChanged,
    SwapDocument,
    Ticked,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.node import Node
from skuld_py.node.turn import take_turn
from skuld_py.simulation.capacity.costs import Costs, Counts
from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.world.scheduler import stream
from skuld_py.wire.codec import Envelope, encode

CLUSTER, KEY = "capacity", "5c" * 32
START_MS = 1_700_000_000_000
LEADS_EACH = 4
"""At least so many partitions for each node, and a power of two in all."""
SETTLE_S_MAX = 120


class Unsettled(Exception):
    """The cluster did not come to be led."""


def partitions_of(nodes: int) -> int:
    """How many partitions a cluster of this size is given."""
    return 1 << (LEADS_EACH * nodes - 1).bit_length()


@attrs.define(eq=False)
class Seat:
    """One node: its machine, what has come, and what it did."""

    member: Member
    node: Node
    store: MemoryStore
    inbox: list[tuple[Event, int]] = attrs.field(factory=list)
    """Events, and the bytes that they came in."""
    counts: Counts = attrs.field(factory=Counts)
    busy_ms: float = 0.0
    """Processor time."""
    is_busy: bool = False
    is_due: bool = False
    """Whether its next turn is planned."""
    rings_ms: int | None = None
    """When it is woken for its own deadline."""


class World:
    """A cluster. ``hear`` gets what clients are answered, with the node that answered."""

    def __init__(self, nodes: int, costs: Costs, seed: int = 1, replicas: int = 3) -> None:
        self.parameters = Parameters(CLUSTER, f"{CLUSTER}-1", partitions_of(nodes), replicas, claim_key=KEY)
        self.costs, self.is_free = costs, True
        self.agenda = Agenda()
        self.hear: Callable[[bytes, str, m.Message], None] = lambda client, node, message: None
        self.documents: dict[int, tuple[int, Document]] = {}
        names = tuple(f"10.0.{number // 250}.{number % 250 + 1}:13000" for number in range(nodes))
        self._owners = place(names, self.parameters.partitions, self.parameters.replicas)
        self.seats = {name: self._seat(number, name, seed) for number, name in enumerate(names)}
        members = tuple(seat.member for seat in self.seats.values())
        for seat in self.seats.values():
            for event in (SessionChanged(Session.CONNECTED), NodesChanged(names, (), self._owners),
                          MembersChanged(members)):
                self._arrive(seat, event, 0)

    def _seat(self, number: int, name: str, seed: int) -> Seat:
        member = Member(name, name.partition(":")[0], 13_000, f"boot-{number}", f"data-{number}")
        store, jitter = MemoryStore(), stream(seed, f"jitter {number}")
        return Seat(member, Node(member, self.parameters, store, lambda most: jitter.randint(0, most), number),
                    store)

    @property
    def now_ms(self) -> int:
        """The clock of all nodes."""
        return START_MS + int(self.agenda.now)

    # -- time ----------------------------------------------------------------------------------

    def run(self, is_enough: Callable[[], bool]) -> None:
        """Let time pass until it is enough; nodes without end have always something to do."""
        self.agenda.run(is_enough)

    def pass_ms(self, span_ms: float) -> None:
        """Let so much time pass."""
        end = self.agenda.now + span_ms
        self.run(lambda: self.agenda.now >= end)

    def settle(self) -> None:
        """Run until each partition is led by its first owner; from then on things cost."""
        for _ in range(SETTLE_S_MAX):
            if self._is_settled():
                self.pass_ms(2_000)
                self.is_free = False
                return
            self.pass_ms(1_000)
        raise Unsettled(f"{len(self.seats)} nodes: not all partitions were led after {SETTLE_S_MAX} s")

    def _is_settled(self) -> bool:
        return len(self.documents) == self.parameters.partitions and all(
            document.leader == owners[0] and self.seats[owners[0]].node.view.vnodes[partition].is_leading
            for partition, owners in enumerate(self._owners) for _, document in [self.documents[partition]])

    # -- turns ---------------------------------------------------------------------------------

    def _arrive(self, seat: Seat, event: Event, size: int) -> None:
        seat.inbox.append((event, size))
        self._plan(seat)

    def _plan(self, seat: Seat) -> None:
        if not (seat.is_busy or seat.is_due):
            seat.is_due = True
            self.agenda.at(self.agenda.now, self._turn, seat)

    def _ring(self, seat: Seat, at_ms: int) -> None:
        if seat.rings_ms == at_ms:
            seat.rings_ms = None
            self._plan(seat)

    def _turn(self, seat: Seat) -> None:
        """One turn; the next begins when this one's commit is through."""
        seat.is_due = False
        inbox, seat.inbox = seat.inbox, []
        events, before = [event for event, _ in inbox], attrs.evolve(seat.counts)
        deadline_ms = seat.node.deadline()
        if deadline_ms <= self.now_ms:
            events.append(Ticked())
        if not events:
            self._arm(seat)
            return
        seat.counts.turns += 1
        for event in events:
            if isinstance(event, Received | Asked):
                seat.counts.note(event.message)
        seat.counts.bytes += sum(size for _, size in inbox)
        turn = take_turn(seat.node, self.now_ms, events)
        early, late = self._packed(seat, turn.early), self._packed(seat, turn.late)
        is_staged = seat.store.is_staged
        seat.counts.commits += is_staged
        seat.store.commit()
        if self.is_free:
            busy_ms = disk_ms = 0.0
        else:
            busy_ms = seat.counts.since(before).busy_ms(self.costs)
            disk_ms = self.costs.disk_ms if is_staged else 0.0
        seat.busy_ms += busy_ms
        seat.is_busy = True
        self.agenda.after(busy_ms, self._let_out, early)
        self.agenda.after(busy_ms + disk_ms, self._end, seat, late)

    def _end(self, seat: Seat, late: Sequence[Callable[[], None]]) -> None:
        seat.is_busy = False
        self._let_out(late)
        if seat.inbox:
            self._plan(seat)
        self._arm(seat)

    def _arm(self, seat: Seat) -> None:
        deadline_ms = seat.node.deadline()
        if seat.rings_ms is None or deadline_ms < seat.rings_ms:
            seat.rings_ms = max(deadline_ms, self.now_ms)
            self.agenda.at(seat.rings_ms - START_MS, self._ring, seat, seat.rings_ms)

    # -- what leaves ---------------------------------------------------------------------------

    def _packed(self, seat: Seat, effects: Sequence[Effect]) -> list[Callable[[], None]]:
        """How each effect leaves; all that is sent is counted now."""
        return [leave for effect in effects if (leave := self._leaving(seat, effect)) is not None]

    def _leaving(self, seat: Seat, effect: Effect) -> Callable[[], None] | None:
        name = seat.member.name
        if isinstance(effect, Send):
            size, peer = self._sent(seat, effect.message), self.seats[effect.peer]
            event = Received(name, effect.message)
            return lambda: self.agenda.after(self.costs.wire_ms, self._arrive, peer, event, size)
        if isinstance(effect, Answer):
            self._sent(seat, effect.message)
            client, message = effect.client, effect.message
            return lambda: self.agenda.after(self.costs.wire_ms, self.hear, client, name, message)
        if isinstance(effect, ReadDocument):
            return lambda: self.agenda.after(self.costs.registry_ms, self._read, seat, effect.partition)
        if isinstance(effect, SwapDocument):
            return lambda: self.agenda.after(self.costs.registry_ms, self._swap, seat, effect)
        return None

    def _sent(self, seat: Seat, message: m.Message) -> int:
        size = sum(map(len, encode(Envelope(seat.member.name, CLUSTER, (message,)))))
        seat.counts.note(message)
        seat.counts.bytes += size
        return size

    def _let_out(self, leaving: Sequence[Callable[[], None]]) -> None:
        for leave in leaving:
            leave()

    def _read(self, seat: Seat, partition: int) -> None:
        version, document = self.documents.get(partition, (-1, NOBODY))
        self._arrive(seat, DocumentRead(partition, version, document), 0)

    def _swap(self, seat: Seat, effect: SwapDocument) -> None:
        version, _ = self.documents.get(effect.partition, (-1, NOBODY))
        is_won = version == effect.version
        if is_won:
            version += 1
            self.documents[effect.partition] = version, effect.document
            for name in self._owners[effect.partition]:  # its writer has a watch, too
                self.agenda.after(self.costs.wire_ms, self._arrive, self.seats[name],
                                  DocumentChanged(effect.partition), 0)
        self._arrive(seat, DocumentSwapped(effect.partition, effect.document.write_id,
                                           Outcome.WON if is_won else Outcome.LOST, version), 0)

    # -- clients -------------------------------------------------------------------------------

    def ask(self, client: bytes, node: str, message: m.Message) -> None:
        """A client's request, on its way."""
        size = sum(map(len, encode(Envelope("", CLUSTER, (message,)))))
        self.agenda.after(self.costs.wire_ms, self._arrive, self.seats[node], Asked(client, message), size)
