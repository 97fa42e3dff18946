"""Transfer of a whole replica from a member to a joiner, which then follows the log from there.

It replaces the origin and the replay of all that came since. The joiner fetches the canonical text part by part,
so that a lost part costs a question and a member keeps no state for a joiner: only the few texts it made last,
which all that join at the same time share. The member it asks is the one that greeted it, if any.

The joiner takes over a replica only when all parts are of one text of the position named, the text has the
digest named, is canonical, is of rules that this program plays and of a cluster with the parameters it knows,
and shows the joiner as a member if it was welcomed. On any doubt, refusal or silence it reads the origin and
the log instead. If entries right behind the position have been collected meanwhile, reading shows that, and it
jumps to the origin as every reader does.

The digest guards against parts mixed up or damaged, not against a member that lies: members are trusted, as
they are with copies of tasks. What two members would not agree on comes out afterwards (``divergence``).

Rejected: pushing all parts (a joiner that is slow or gone would be flooded); agreement of two members on the
digest before it is taken over (they stand at different positions most of the time).
Source: "Full Replica Transfer" of Onyx's proposals for scale.
"""

from __future__ import annotations

from hashlib import blake2b

import attrs

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.commands.set_replicas import REPLICAS_SINCE
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import REPLICAS_MAX, RULES
from skuld_py.config.scaling import Scaling
from skuld_py.errors import Malformed
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import (
    DIGEST_BYTES,
    PART_BYTES,
    PARTS_MAX,
    FetchReplica,
    NotNow,
    ReplicaPart,
)


@attrs.frozen
class Snapshot:
    """A replica's text, as it was made at ``made_ms``."""

    version: int
    text: bytes
    digest: bytes
    made_ms: int

    @property
    def count(self) -> int:
        """How many parts it has."""
        return max(1, -(-len(self.text) // PART_BYTES))


class Lending:
    """A member's side: the last few texts of its replica, for joiners that fetch them."""

    def __init__(self, cluster_id: str, scaling: Scaling) -> None:
        self._cluster_id = cluster_id
        self._scaling = scaling
        self._snapshots: dict[int, Snapshot] = {}
        """By version, the newest last."""

    def on_fetch(self, now_ms: int, peer: str, message: FetchReplica, replica: Replica) -> list[Send]:
        """Answer with the part asked for, or that it cannot be had here."""
        if message.cluster_id != self._cluster_id:
            return []
        snapshot = self._snapshot(now_ms, message, replica)
        if snapshot is None or message.index >= snapshot.count or snapshot.count > PARTS_MAX:
            return [Send(peer, NotNow(self._cluster_id, message.joiner, "gone"))]
        start = message.index * PART_BYTES
        return [Send(peer, ReplicaPart(
            self._cluster_id, message.joiner, snapshot.version, message.index, snapshot.count, snapshot.digest,
            snapshot.text[start : start + PART_BYTES]))]

    def _snapshot(self, now_ms: int, message: FetchReplica, replica: Replica) -> Snapshot | None:
        if message.version >= 0:
            return self._snapshots.get(message.version)
        newest = next(reversed(self._snapshots.values()), None)
        if newest is not None and newest.version >= message.at_least:
            if now_ms - newest.made_ms < self._scaling.snapshot_ms or newest.version == replica.version:
                return newest
        if replica.version < max(0, message.at_least):
            return None
        text = replica.text().encode()
        made = Snapshot(replica.version, text, digest_of(text), now_ms)
        self._snapshots.pop(made.version, None)
        self._snapshots[made.version] = made
        if len(self._snapshots) > self._scaling.snapshots:
            del self._snapshots[next(iter(self._snapshots))]
        return made


class Fetching:
    """A joiner's side: one replica from one member.

    It ends with ``replica`` set, or with ``is_failed``. ``at_least`` is the position as of which it was welcomed,
    -1 when it was not.
    """

    def __init__(self, question: FetchReplica, peer: str, replicas: int, scaling: Scaling) -> None:
        self.replica: Replica | None = None
        self.is_failed = False
        self._question = question
        self._peer = peer
        self._replicas = replicas
        self._scaling = scaling
        self._first: ReplicaPart | None = None
        self._parts: list[bytes] = []
        self._tries = 0
        self._next_ms: int | None = None

    def start(self, now_ms: int) -> list[Send]:
        """Ask for the first part."""
        return self._ask(now_ms)

    def _ask(self, now_ms: int) -> list[Send]:
        self._tries += 1
        if self._tries > self._scaling.part_tries:
            self._fail()
            return []
        self._next_ms = now_ms + self._scaling.part_ms
        return [Send(self._peer, self._question)]

    def _fail(self) -> None:
        self.is_failed, self._next_ms = True, None
        self._parts.clear()

    def on_tick(self, now_ms: int) -> list[Send]:
        """Ask again for what has not come in time."""
        return [] if self._next_ms is None or now_ms < self._next_ms else self._ask(now_ms)

    def on_not_now(self, peer: str, message: NotNow) -> None:
        """It cannot be had there."""
        if self._is_expected(peer, message):
            self._fail()

    def on_part(self, now_ms: int, peer: str, part: ReplicaPart) -> list[Send]:
        """A part; those that were not asked for now are passed over."""
        if not self._is_expected(peer, part) or part.index != len(self._parts):
            return []
        first = self._first = self._first or part
        if (part.version, part.count, part.digest) != (first.version, first.count, first.digest):
            self._fail()
            return []
        self._parts.append(part.data)
        if len(self._parts) == first.count:
            self._finish(first)
            return []
        self._tries = 0
        self._question = attrs.evolve(self._question, version=first.version, index=len(self._parts))
        return self._ask(now_ms)

    def _is_expected(self, peer: str, message: ReplicaPart | NotNow) -> bool:
        return (self._next_ms is not None and peer == self._peer and message.joiner == self._question.joiner
                and message.cluster_id == self._question.cluster_id)

    def _finish(self, first: ReplicaPart) -> None:
        text = b"".join(self._parts)
        self._fail()
        replica = self._verified(text, first)
        if replica is not None:
            self.replica, self.is_failed = replica, False

    def _verified(self, text: bytes, first: ReplicaPart) -> Replica | None:
        question = self._question
        if digest_of(text) != first.digest or first.version < question.at_least:
            return None
        try:
            replica = from_text(Replica, text)
        except Malformed:
            return None
        is_whole = replica.version == first.version and replica.text().encode() == text
        may_differ = replica.rules >= REPLICAS_SINCE and 1 <= replica.replicas <= REPLICAS_MAX
        is_ours = (replica.replicas == self._replicas or may_differ) and replica.rules <= RULES
        is_in = question.at_least < 0 or question.joiner in replica.members
        return replica if is_whole and is_ours and is_in else None

    def deadline(self) -> int | None:
        """When to call ``on_tick``."""
        return self._next_ms


def digest_of(text: bytes) -> bytes:
    """The digest of a replica's text."""
    return blake2b(text, digest_size=DIGEST_BYTES).digest()
