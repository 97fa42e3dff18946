"""A running node under forged peer messages: typed, as a peer, as a stranger, as a client, as the node itself.

One node of three runs in the real ``Loop``, behind a wire and a registry of paper: every forged envelope is
encoded, decoded and heard by it as it would be from a socket. The other two run beside it and answer what it
sends, in part; so its elections, exchanges and operations are under way while answers to them are forged.

What is claimed, at each commit (``Watch``) and for each envelope:

* the node stays up: no exception leaves the loop, whoever sent what;
* what comes under its own name, under a name that nobody registered, or from a client as a node's word, changes
  nothing at all: no row is written, no effect leaves;
* a promise never falls, lies at most ``EPOCHS_AHEAD`` above the newest epoch that a document has had, and is given
  to registered nodes only;
* the newest leadership, its era and its cohort (``Standing``) are those of a document that stood in the registry;
  cohorts that may come to be are of registered nodes, and wait for no epoch that is beyond reach;
* histories only grow, and their claims have tokens of epochs within that reach;
* bodies stay as they are, log entries too (of two outcomes the smaller stands); nothing is deleted above the
  watermarks, which do not lie in the future; every record is of its key's partition, and what is filed of a queue
  that may be;
* the floor of ids lies no further ahead than clocks may differ.

What is not claimed: that a *plausible* lie of a registered peer changes nothing. Whoever may speak in a peer's
name can still say that a task was completed, cancelled, claimed for however long under an epoch within reach,
stored, or, below the watermarks, collected; a correct peer could have said each of it. Who may speak in whose name
is for keys to say. Settings are not looked at (any client may write them), nor is what is only in memory beyond
what shows in the claims above: hints of who leads, clocks, gossip. The membership stands idle: it is heard, and
has no log.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random, SystemRandom
from typing import Any, cast

import attrs

from node.machines import Machines
from skuld_py.cluster.member.membership import Membership
from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body
from skuld_py.model.coordination import Announce
from skuld_py.model.document import NOBODY, Document
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    Received,
    SwapDocument,
)
from skuld_py.model.history import History, decode_history, epoch_of
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE
from skuld_py.model.names import NAME
from skuld_py.model.outcomes import LOG_SEQS
from skuld_py.node.process import Process, Wish
from skuld_py.node.turn import Machine
from skuld_py.partition.data import tables
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.loop import Loop
from skuld_py.wire.codec import Envelope, decode, encode
from wire.forging import Forger, Known

ROUND = 5_000
"""Messages against one world."""
ENVELOPE_MAX = 6
"""Messages of one envelope."""
FLOOR_AHEAD_MS = 20_000
OF_NODES = tuple(of for of in m.MESSAGES if of.roles & ROLE_NODE)
NOT_OF_THE_LOG = tuple(of for of in OF_NODES if of not in m.COORDINATION_MESSAGES)
OF_CLIENTS = tuple(of for of in m.MESSAGES if of.roles & ROLE_CLIENT)
GUISES = ("peer", "peer", "peer", "peer", "peer", "peer", "itself", "stranger", "client")


class Forbidden(AssertionError):
    """A change of state that no correct peer could have made."""


@attrs.define
class Watch:
    """Looks at what a commit is about to change. ``seen``: the leaderships that documents have had."""

    names: Sequence[str]
    partitions: int
    skew_ms: int
    seen: dict[int, dict[tuple[int, int, tuple[str, ...]], None]] = attrs.field(factory=dict)
    told: dict[int, int] = attrs.field(factory=dict)
    now_ms: int = 0

    def see(self, partition: int, document: Document) -> None:
        """A document stands, or stood, in the registry."""
        row = (document.epoch, document.era, document.cohort)
        self.seen.setdefault(partition, {(0, 0, ()): None})[row] = None
        self.told[partition] = max(self.told.get(partition, 0), document.told_epoch)

    def reach(self, partition: int) -> int:
        """The highest epoch that may be promised."""
        return self.told.get(partition, 0) + EPOCHS_AHEAD

    def look(self, store: MemoryStore) -> None:
        """Raises ``Forbidden``."""
        for table in ("body", "history", "log", "meta", "counts"):
            for key, old in store.undo[table].items():
                new = store.tables[table].get(key)
                if new == old:
                    continue
                if new is None and table in ("body", "history", "log"):
                    self._deleted(store, key)
                else:
                    getattr(self, "_" + table)(key, old, new)

    def _deleted(self, store: MemoryStore, key: bytes) -> None:
        watermark = store.get("meta", tables.watermark_key(int.from_bytes(key[:2], "big"))) or bytes(8)
        if ids.time_of(key[2:22]) > int.from_bytes(watermark[:8], "big"):
            raise Forbidden(f"{key.hex()} was deleted")

    def _place(self, key: bytes) -> None:
        if ids.partition_of(key[2:22], self.partitions) != int.from_bytes(key[:2], "big"):
            raise Forbidden(f"{key.hex()} is of another partition")

    def _body(self, key: bytes, old: bytes | None, new: bytes) -> None:
        if old is not None:
            raise Forbidden(f"body {key.hex()} was replaced")
        self._place(key)
        Body.decode(new)

    def _history(self, key: bytes, old: bytes | None, new: bytes) -> None:
        self._place(key)
        before, after = decode_history(old), History.decode(new)
        if before.merge(after) != after:
            raise Forbidden(f"history {key.hex()} forgot something")
        partition = int.from_bytes(key[:2], "big")
        for token in after.claims.entries:
            if token not in before.claims.entries and not 0 < epoch_of(token) <= self.reach(partition):
                raise Forbidden(f"history {key.hex()} has a claim of epoch {epoch_of(token)}")

    def _log(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        if old is not None and (new is None or tables.split_log_key(key)[2] < LOG_SEQS or new > old):
            raise Forbidden(f"log entry {key.hex()} was changed")

    def _counts(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        if not NAME.fullmatch(key[2:].decode("latin-1")):
            raise Forbidden(f"tasks of a queue named {key[2:]!r} are counted")

    def _meta(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        if key == b"floor":
            if int.from_bytes(new or b"", "big") > self.now_ms + FLOOR_AHEAD_MS:
                raise Forbidden("the floor of ids lies in the future")
        elif key[:-2] == b"promise":
            self._promise(tables.partition_of_meta(key) or 0, old, cast(bytes, new))
        elif key[:-2] == b"watermark":
            if max(struct.unpack(">QQ", cast(bytes, new)[:16])) > self.now_ms + self.skew_ms:
                raise Forbidden("a watermark lies in the future")
        elif key[:-2] == b"standing":
            self._standing(tables.partition_of_meta(key) or 0, cast(bytes, new))

    def _promise(self, partition: int, old: bytes | None, new: bytes) -> None:
        epoch, candidate = int.from_bytes(new[:8], "big"), new[8:].decode()
        if epoch < int.from_bytes((old or b"")[:8], "big") or epoch > self.reach(partition):
            raise Forbidden(f"epoch {epoch} of partition {partition} was promised")
        if candidate not in self.names:
            raise Forbidden(f"{candidate!r} was promised an epoch of partition {partition}")

    def _standing(self, partition: int, new: bytes) -> None:
        epoch, era, cohort, pending = json.loads(new)
        if (epoch, era, tuple(cohort)) not in self.seen[partition]:
            raise Forbidden(f"epoch {epoch}, era {era}, cohort {cohort} of partition {partition} was believed")
        for at, names in pending:
            if at > self.reach(partition) or not {*names} <= {*self.names}:
                raise Forbidden(f"cohort {names} may come to be at {at} on partition {partition}")


class Wire:
    """Transport, registry, clock and store of the node, in one. Every second message to a peer arrives there."""

    cluster = "test"

    def __init__(self, machines: Machines, name: str, random: Random, limits: Limits) -> None:
        self.limits = limits
        self.arrived: list[tuple[bytes, list[bytes]]] = []
        self.effects = 0
        self.requests: list[int] = [0]
        self.turns: list[int] = [0]
        parameters = machines.parameters
        self.watch = Watch(machines.names, parameters.partitions, parameters.skew_ms)
        self.changes = 0
        self._machines = machines
        self._name = name
        self._random = random
        self._store = machines.stores[name]
        self.loop: Loop | None = None
        for partition in range(machines.parameters.partitions):
            self.watch.see(partition, NOBODY)
        for partition, (_, document) in machines.documents.items():
            self.watch.see(partition, document)

    def now_ms(self) -> int:
        return self._machines.now_ms

    def receive(self, limit: int) -> list[Arrival]:
        taken, self.arrived = self.arrived[:limit], self.arrived[limit:]
        return [Arrival(*each) for each in taken]

    def send(self, peer: str, messages: Sequence[m.Message]) -> None:
        self.effects += len(messages)
        for message in messages:
            if (number := getattr(message, "request", 0)):
                self.requests = [*self.requests[-30:], number]
            if (turn := getattr(message, "turn", 0)):
                self.turns = [*self.turns[-8:], turn]
            if peer in self._machines.names and self._random.random() < 0.5:
                self._machines.flying.append((peer, Received(self._name, message)))

    def answer(self, client: bytes, messages: Sequence[m.Message]) -> None:
        self.effects += sum(type(message) is not m.Failed for message in messages)

    def note_protocol(self, client: bytes, protocol: int) -> None:
        pass

    def mark_peer(self, client: bytes, name: str) -> None:
        pass

    def commit(self) -> None:
        self.watch.now_ms = self.now_ms()
        self.changes += sum(rows.get(key) != old for table, rows in self._store.tables.items()
                            for key, old in self._store.undo[table].items())
        self.watch.look(self._store)
        self._store.commit()

    def perform(self, effect: Wish) -> None:
        documents, loop = self._machines.documents, cast(Loop, self.loop)
        self.effects += 1
        if isinstance(effect, ReadDocument):
            version, document = documents.get(effect.partition, (-1, NOBODY))
            loop.post(DocumentRead(effect.partition, version, document))
        elif isinstance(effect, SwapDocument):
            version, _ = documents.get(effect.partition, (-1, NOBODY))
            outcome = Outcome.WON if version == effect.version else Outcome.LOST
            if outcome is Outcome.WON:
                version += 1
                documents[effect.partition] = (version, effect.document)
                self.watch.see(effect.partition, effect.document)
            loop.post(DocumentSwapped(effect.partition, effect.document.write_id, outcome, version))

    def set_peers(self, peers: dict[str, tuple[str, int]]) -> None:
        pass

    def wake(self) -> None:
        pass


class Siege:
    """One world, and the node in it that is lied to."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.machines = machines = Machines(partitions=4)
        machines.pass_time(2_000)
        self.name = self.random.choice(machines.names)
        self.others = [name for name in machines.names if name != self.name]
        known = Known(machines.names, machines.parameters.partitions, queues=["q", "deep", "nobody"])
        self._work(known)
        limits = attrs.evolve(DEFAULT_LIMITS, partitions=machines.parameters.partitions)
        self.wire = Wire(machines, self.name, self.random, limits)
        self.forger = Forger(self.random, known)
        wire = cast(Any, self.wire)
        me = next(member for member in machines.members if member.name == self.name)
        membership = Membership(me, lambda: f"{self.name}~1", lambda most_ms: most_ms, cluster_id="id")
        process = Process(cast(Machine[Any, Any], machines.nodes[self.name]), membership)
        self.loop = Loop(process, wire, wire, wire, wire, me=self.name)
        self.wire.loop = self.loop
        for event in (NodesChanged(tuple(machines.names)), MembersChanged(machines.members)):
            self.loop._heed([Announce(event)])
        self._learn()

    def _work(self, known: Known) -> None:
        """Tasks that wait, are held, are done, are snoozed; each partition has some."""
        machines = self.machines
        for number in range(12):
            batch = machines.batch(known.queues[number % 2], 3)
            known.headers.append(batch.header)
            machines.ask(machines.names[number % 3], m.Enqueue(number, 0, (batch,)))
        machines.pass_time(100)
        for number, name in enumerate(machines.names * 2):
            machines.ask(name, m.Claim(100 + number, known.queues[number % 2], 3, 60_000, 0, "w:1"), b"worker")
        machines.pass_time(100)
        held = [(task_id, batch.first_token + at) for answer in machines.answers_to(b"worker")
                if isinstance(answer, m.Claimed) for batch in answer.batches
                for at, task_id in enumerate(ids.split(batch.ids))]
        for at, (task_id, token) in enumerate(held[::2]):
            verb: m.Message = m.Append(200 + at, 0, task_id, token, 0, columns.pack([b"log"]))
            if at % 3 == 0:
                verb = m.Complete(200 + at, 0, 0, task_id, columns.pack_u64([token]), results=columns.pack([b"r"]))
            elif at % 3 == 1:
                verb = m.Conclude(200 + at, 2, 5_000, task_id, columns.pack_u64([token]))
            machines.ask(machines.names[0], verb)
        machines.pass_time(200)

    def _learn(self) -> None:
        """What forgeries are made of, by the node's own store."""
        known, store, node = self.forger.known, self.machines.stores[self.name], self.machines.nodes[self.name]
        known.now_ms = self.machines.now_ms
        bodies, histories = store.tables["body"], store.tables["history"]
        known.ids = [key[2:] for key in bodies] or [bytes(20)]
        known.ids_of = ids.by_partition(known.ids, known.partitions)
        known.bodies = [*bodies.values()] or [b"x"]
        known.histories = [*histories.values()] or [bytes(24)]
        known.tokens = [token for record in known.histories[:50]
                        for token in decode_history(record).claims.entries] or [1 << 32]
        known.epochs = [max(vnode.promise.epoch, 1) for vnode in node.view.vnodes]
        known.epochs += [max(vnode.standing.epoch, 1) for vnode in node.view.vnodes]
        known.places = [b"", *(key[2:-20] for key in [*store.tables["ready"]][:20])]
        known.cursors = [b"", *(key[2:] for key in [*store.tables["lease"]][:10]), *known.ids[:10]]
        known.requests = self.wire.requests

    # -- an attack ---------------------------------------------------------------------------------

    def attack(self, messages: int) -> Counter[str]:
        """Send so many; raises what must not be."""
        outcomes: Counter[str] = Counter()
        sent, last = 0, 0
        while sent < messages:
            if sent - last >= 200:
                last = sent
                self._learn()
            self._live()
            sent += self._strike(outcomes, min(ENVELOPE_MAX, messages - sent))
        return outcomes

    def _live(self) -> None:
        """Time passes, and the others speak."""
        machines, random = self.machines, self.random
        machines.now_ms += random.choice((0, 0, 0, 1, 5, 20, 100)) if random.random() < 0.99 else 4_000
        self.forger.known.now_ms = machines.now_ms
        self.forger.known.requests, self.forger.known.turns = self.wire.requests, self.wire.turns
        for _ in range(len(machines.flying)):
            name, event = machines.flying.popleft()
            if name == self.name:
                self._hear(event)
            elif name in self.others:
                machines.give(name, event)
        for partition, (_, document) in machines.documents.items():
            self.wire.watch.see(partition, document)
        if random.random() < 0.1:
            self._ask()
        self._rest()

    def _ask(self) -> None:
        """A client comes by, which meets what was left behind."""
        of = self.random.choice(OF_CLIENTS)
        frames = encode(Envelope("", "test", (self.forger.message(of),)))
        self.wire.arrived.append((b"client", frames))

    def _rest(self) -> None:
        """Until the node has nothing to do at this moment."""
        for _ in range(50):
            self.loop.turn()
            if not self.loop._inbox and not self.wire.arrived and (self.loop._due_ms or 0) > self.machines.now_ms:
                return
        raise AssertionError("the node never comes to rest")

    def _hear(self, event: Any) -> None:
        if isinstance(event, Received):
            self._arrive(event.peer, [event.message])
        else:
            self.loop.post(event)

    def _strike(self, outcomes: Counter[str], most: int) -> int:
        random = self.random
        guise = random.choice(GUISES)
        classes = random.choices(OF_NODES if guise == "peer" else NOT_OF_THE_LOG, k=random.randint(1, most))
        if guise == "client":
            classes = [of for of in classes if not of.roles & ROLE_CLIENT] or [m.Grant]
        forged = [self.forger.message(of) for of in classes]
        sender = {"peer": random.choice(self.others), "itself": self.name, "client": ""}.get(guise, "evil:1")
        for message in forged:
            outcomes[guise + (" heard" if self._arrive(sender, [message]) else " malformed")] += 1
        self._settle(guise, forged)
        return len(forged)

    def _arrive(self, sender: str, messages: Iterable[m.Message]) -> bool:
        try:
            frames = encode(Envelope(sender, "test", tuple(messages)))
        except Exception:
            return False
        self.wire.arrived.append((b"origin", frames))
        try:
            decode(frames, self.wire.limits)
        except Malformed:
            return False
        return True

    def _settle(self, guise: str, forged: Sequence[m.Message]) -> None:
        before = self.wire.effects, self.wire.changes
        self.loop.turn()
        if guise != "peer" and (self.wire.effects, self.wire.changes) != before:
            raise Forbidden(f"as {guise}, these did something: {forged}")


def run(seed: str, messages: int) -> Counter[str]:
    """A round; what is raised says how to replay it."""
    siege = Siege(seed)
    try:
        return siege.attack(messages)
    except BaseException as problem:
        problem.add_note(f"seed {seed!r}, against {siege.name}")
        raise


def main() -> int:
    """The long run."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz_peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many in all (default: %(default)s)")
    parser.add_argument("--seed", default=str(SystemRandom().getrandbits(48)), help="replays a run")
    options = parser.parse_args()
    began, done, outcomes = time.monotonic(), 0, Counter[str]()
    while done < options.messages:
        count = min(ROUND, options.messages - done)
        outcomes += run(f"{options.seed} {done}", count)
        done += count
        if done % (20 * ROUND) == 0:
            sys.stdout.write(f"{done:>10,} messages\n")
            sys.stdout.flush()
    for name, times in sorted(outcomes.items()):
        sys.stdout.write(f"{times:>10,} {name}\n")
    sys.stdout.write(f"{done:,} messages in {time.monotonic() - began:.0f} s; the node stayed up, and believed"
                     f" nothing that it must not; seed {options.seed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
