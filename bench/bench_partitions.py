"""What many partitions cost a node that has little to do: idle, in a turn, at a claim, at a count, at a join.

The real node machines of three nodes on LMDB, every message through the codec, in one process and in virtual time,
so that gossip, exchanges, elections and timers come as often as they do in a cluster. Charged to a node is the
processor time of its turns, commits and codec; ZeroMQ and ZooKeeper are not in it, and waiting is not, nor the
collector of cycles, which would charge one node with what the objects of all of them cost it. Idle is a
mean over whole rounds of exchanges. Of a join, which ends when the newcomer has all that is placed on it and every
partition is led by its first owner, the busiest second of the busiest node counts. Claims are made on a queue that
is empty everywhere, at a node that leads a third of the partitions, and counts of a queue with a task in each.

    scripts/bench partitions [--partitions N ...] [--idle S] [--join S]
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import heapq
import pstats
import random
import statistics
import tempfile
import time
from collections import defaultdict
from itertools import count
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from skuld_py.cluster.placement import place
from skuld_py.config import Parameters
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.events import (
    Answer,
    Asked,
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
from skuld_py.model.ids import IdMint
from skuld_py.node.node import Node
from skuld_py.node.turn import take_turn
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.wire.codec import Envelope, decode, encode

SIZES = (8, 512, 4_096)
WIRE_MS, REGISTRY_MS = 1, 3
"""One way between two nodes; to ZooKeeper and back."""
SETTLE_MS = 20_000
START_MS = 1_700_000_000_000
CLAIMS = 20
TURNS = 50
IDLE_MAX, JOIN_MAX, COUNT_MAX_MS, CLAIM_RATIO_MAX = 0.05, 0.20, 50.0, 2.0
MEMORY = Path("/dev/shm")
"""Where a sync costs nothing: it would be waited for, and not be in the figures."""
console = Console()


@attrs.define
class Seat:
    """One node: its machine, its store, what has arrived, and the processor seconds it took, by second."""

    member: Member
    node: Node
    store: LmdbStore
    inbox: list[Event | list[bytes]] = attrs.field(factory=list)
    spent: dict[int, float] = attrs.field(factory=dict)
    total: float = 0.0


class World:
    """The nodes of one cluster, in virtual time."""

    def __init__(self, directory: Path, partitions: int) -> None:
        self.parameters = Parameters("bench", "bench-1", partitions, 3)
        self.directory = directory
        self.random = random.Random(1)
        self.now_ms = START_MS
        self.seats: dict[str, Seat] = {}
        self.documents: dict[int, tuple[int, Document]] = {}
        self.answers: list[m.Message] = []
        self.profile: cProfile.Profile | None = None
        self._flying: list[tuple[int, int, str, Event | list[bytes]]] = []
        self._numbers = count()
        self._owners: tuple[tuple[str, ...], ...] = ()

    def join(self, names: list[str]) -> None:
        """More nodes, with disks that hold nothing."""
        for name in names:
            number = len(self.seats)
            member = Member(name, "127.0.0.1", 13_000 + number, f"boot-{number}", f"data-{number}")
            store = LmdbStore(self.directory / str(number))
            node = Node(member, self.parameters, store, lambda most: self.random.randint(0, most), number)
            self.seats[name] = Seat(member, node, store)
            self._arrive(0, name, SessionChanged(Session.CONNECTED))
        nodes = tuple(self.seats)
        self._owners = place(nodes, self.parameters.partitions, self.parameters.replicas)
        for name in self.seats:
            self._arrive(0, name, NodesChanged(nodes, (), self._owners))
            self._arrive(0, name, MembersChanged(tuple(seat.member for seat in self.seats.values())))

    def _arrive(self, after_ms: int, name: str, what: Event | list[bytes]) -> None:
        heapq.heappush(self._flying, (self.now_ms + after_ms, next(self._numbers), name, what))

    def run(self, span_ms: int) -> None:
        """Let so much time pass."""
        end_ms = self.now_ms + span_ms
        while True:
            due_ms = min(max(self.now_ms, seat.node.deadline()) for seat in self.seats.values())
            if self._flying:
                due_ms = min(due_ms, self._flying[0][0])
            if due_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, due_ms)
            while self._flying and self._flying[0][0] <= self.now_ms:
                _, _, name, what = heapq.heappop(self._flying)
                self.seats[name].inbox.append(what)
            for seat in self.seats.values():
                if seat.inbox or seat.node.deadline() <= self.now_ms:
                    self.turn(seat)

    def turn(self, seat: Seat) -> float:
        """One turn of one node, on its account; seconds."""
        inbox, seat.inbox = seat.inbox, []
        if self.profile is not None:
            self.profile.enable()
        start = time.process_time()
        events: list[Event] = []
        for what in inbox:
            if isinstance(what, list):
                envelope = decode(what)
                events += [Received(envelope.sender, message) for message in envelope.messages]
            else:
                events.append(what)
        turn = take_turn(seat.node, self.now_ms, events or [Ticked()])
        seat.node.deadline()
        self._let_out(seat, turn.early)
        seat.store.commit()
        self._let_out(seat, turn.late)
        took = time.process_time() - start
        if self.profile is not None:
            self.profile.disable()
        second = self.now_ms // 1_000
        seat.spent[second] = seat.spent.get(second, 0.0) + took
        seat.total += took
        return took

    def _let_out(self, seat: Seat, effects: list[Send] | list[Effect]) -> None:
        letters: dict[str, list[m.Message]] = defaultdict(list)
        for effect in effects:
            if isinstance(effect, Send):
                letters[effect.peer].append(effect.message)
            elif isinstance(effect, Answer):
                self.answers.append(effect.message)
            elif isinstance(effect, ReadDocument):
                version, document = self.documents.get(effect.partition, (-1, NOBODY))
                self._arrive(REGISTRY_MS, seat.member.name, DocumentRead(effect.partition, version, document))
            elif isinstance(effect, SwapDocument):
                self._swap(seat.member.name, effect)
        for peer, letter in letters.items():
            self._arrive(WIRE_MS, peer, encode(Envelope(seat.member.name, "bench", tuple(letter))))

    def _swap(self, name: str, effect: SwapDocument) -> None:
        version, _ = self.documents.get(effect.partition, (-1, NOBODY))
        is_won = version == effect.version
        if is_won:
            version += 1
            self.documents[effect.partition] = version, effect.document
        outcome = Outcome.WON if is_won else Outcome.LOST
        self._arrive(REGISTRY_MS, name, DocumentSwapped(effect.partition, effect.document.write_id, outcome,
                                                        version))

    # -- what is measured ----------------------------------------------------------------------

    def is_settled(self) -> bool:
        """Whether each partition is led by its first owner, over its owners, and all data is where it belongs."""
        return len(self.documents) == self.parameters.partitions and all(
            document.leader == owners[0] and sorted(document.cohort) == sorted(owners)
            and self.seats[owners[0]].node.view.vnodes[partition].is_leading
            for partition, owners in enumerate(self._owners)
            for _, document in [self.documents[partition]])

    def settle(self, limit_s: int) -> int:
        """Run until that is so; virtual seconds that it took."""
        for second in range(limit_s):
            if self.is_settled():
                return second
            self.run(1_000)
        raise SystemExit(f"{self.parameters.partitions} partitions had not settled after {limit_s} s")

    def idle(self, span_s: int) -> float:
        """The busiest node's share of a core."""
        before = {name: seat.total for name, seat in self.seats.items()}
        self.run(span_s * 1_000)
        return max(seat.total - before[name] for name, seat in self.seats.items()) / span_s

    def busiest_second(self, since_ms: int) -> float:
        """The most that one node took in one second since then."""
        return max(took for seat in self.seats.values() for second, took in seat.spent.items()
                   if second >= since_ms // 1_000)

    def ask(self, message: m.Message) -> float:
        """Processor seconds of a request, of all nodes together; asked at the first of them."""
        name = next(iter(self.seats))
        before = sum(seat.total for seat in self.seats.values())
        answered = len(self.answers)
        self._arrive(0, name, Asked(b"bench", message))
        while len(self.answers) == answered:
            self.run(1)
        return sum(seat.total for seat in self.seats.values()) - before

    def fill(self, queue: str) -> None:
        """A task in each partition."""
        mint = IdMint(7)
        for partition in range(self.parameters.partitions):
            task_ids = mint.mint(self.now_ms, 1, partition)
            batch = m.TaskBatch(Header(queue).encode(), b"".join(task_ids), columns.pack([b"x"]))
            self._arrive(0, next(iter(self.seats)), Asked(b"bench", m.Enqueue(partition + 1, 0, (batch,))))
            self.run(1)
        self.run(2_000)


class Figures(dict[str, float]):
    """What was measured; each is shown at once, since all take minutes."""

    def __setitem__(self, name: str, value: float) -> None:
        console.print(f"  {name} {value:.4f}")
        super().__setitem__(name, value)


def measure(partitions: int, options: argparse.Namespace) -> dict[str, float]:
    """All figures of one size."""
    found = Figures()
    with tempfile.TemporaryDirectory(prefix="skuld-bench-", dir=MEMORY if MEMORY.exists() else None) as name:
        world = World(Path(name), partitions)
        world.join([f"127.0.0.1:{13_000 + number}" for number in range(3)])
        found["start_s"] = world.settle(options.join)
        found["start"] = world.busiest_second(START_MS)
        world.run(SETTLE_MS)
        if options.profile == "idle":
            world.profile = cProfile.Profile()
        found["idle"] = world.idle(options.idle)
        report(world)
        seat = next(iter(world.seats.values()))
        found["turn_ms"] = statistics.median(world.turn(seat) for _ in range(TURNS)) * 1_000
        claim = m.Claim(1, "empty", 1, 30_000, 0, "bench")
        if options.profile == "claim":
            world.profile = cProfile.Profile()
        found["claim_ms"] = statistics.median(world.ask(claim) for _ in range(CLAIMS)) * 1_000
        report(world)
        world.fill("tasks")
        if options.profile == "count":
            world.profile = cProfile.Profile()
        found["count_ms"] = statistics.median(world.ask(m.Count(1, "tasks")) for _ in range(5)) * 1_000
        report(world)
        answer = world.answers[-1]
        if not isinstance(answer, m.Counted) or sum(sum(row.counts) for row in answer.rows) != partitions:
            raise SystemExit(f"the count of {partitions} tasks is wrong: {answer}")
        if options.profile == "join":
            world.profile = cProfile.Profile()
        world.run(2_000)  # what was asked before falls into an earlier second
        began_ms = world.now_ms
        world.join(["127.0.0.1:13003"])
        found["join_s"] = world.settle(options.join)
        report(world)
        found["join"] = world.busiest_second(began_ms)
        for seat in world.seats.values():
            seat.store.close()
    return found


def report(world: World) -> None:
    """What the profiled part went to, if it was."""
    if world.profile is not None:
        pstats.Stats(world.profile).sort_stats("tottime").print_stats(35)
        world.profile = None


def main() -> None:
    """Measure each size, print one table and what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--idle", type=int, default=40, help="virtual seconds measured idle")
    parser.add_argument("--join", type=int, default=600, help="virtual seconds that a join may take")
    parser.add_argument("--profile", choices=("idle", "claim", "count", "join"), help="print where that time goes")
    options = parser.parse_args()
    table = Table("partitions", "idle, of a core", "a turn", "claim on an empty queue", "count",
                  "a join, busiest second", "until it is over")
    results = {}
    gc.disable()
    for partitions in options.partitions:
        found = results[partitions] = measure(partitions, options)
        table.add_row(f"{partitions:,}", f"{found['idle']:.1%}", f"{found['turn_ms']:.2f} ms",
                      f"{found['claim_ms']:.2f} ms", f"{found['count_ms']:.1f} ms", f"{found['join']:.0%}",
                      f"{found['join_s']:.0f} s")
    console.print(table)
    first, last = (results[size] for size in (min(results), max(results)))
    console.print(f"wanted at {max(results):,}: idle at most {IDLE_MAX:.0%}, a join {JOIN_MAX:.0%}, a count"
                  f" {COUNT_MAX_MS:.0f} ms, a claim {CLAIM_RATIO_MAX:.0f} times that at {min(results)}:"
                  f" {last['claim_ms'] / first['claim_ms']:.1f}")


if __name__ == "__main__":
    main()
