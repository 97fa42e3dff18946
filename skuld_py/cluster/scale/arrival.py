"""How a process that has just started gets its first replica from a member instead of origin and log.

It reads which pulses stand, since an id holds a node's name, which is its address. If members let others in
directly, it asks to be let in. Then it fetches the replica of the member that welcomed it, or of any. When an
answer does not come in time the arrival is over, and the origin and the log are read as without it. So it may fail
at any step, and costs a bounded time.

A life that ends meanwhile ends it, too. It is tried once in the life of a process: later the replica is at
hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.scale.chance import Draw
from skuld_py.cluster.scale.direct_join import Knocking
from skuld_py.cluster.scale.transfer import Fetching
from skuld_py.config.scaling import Scaling
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import FetchReplica, JoinMe, NotNow, ReplicaPart, Welcomed

LENDERS = 3
"""Members that a process which was not welcomed asks for a replica, one after the other."""


@attrs.define
class Arrival:
    """``question`` is what this life asks to be let in. ``replicas``: how many copies the cluster keeps of a
    task."""

    question: JoinMe
    replicas: int
    scaling: Scaling
    draw: Draw
    is_over: bool = False
    replica: Replica | None = None
    _contacts: tuple[str, ...] = ()
    _knocking: Knocking | None = None
    _fetching: Fetching | None = None
    _fetches: int = 0

    def on_pulses(self, now_ms: int, ids: Sequence[str]) -> list[Send]:
        """Note which lives have a pulse: their nodes may be members."""
        if self.is_over or self._contacts:
            return []
        me = self.question.name
        names = dict.fromkeys(name for name in (each.rpartition("~")[0] for each in ids) if name not in ("", me))
        self._contacts = tuple(sorted(names))
        if not names:
            self.is_over = True
        elif self.scaling.direct_join:
            self._knocking = Knocking(self.question.cluster_id, self.question, self.scaling, self.draw, now_ms)
        return self.go_on(now_ms)

    def go_on(self, now_ms: int) -> list[Send]:
        """What is due."""
        if self.is_over or not self._contacts:
            return []
        if self._knocking is not None:
            return self._knock(now_ms, self._knocking)
        if self._fetching is None:
            return self._fetch(now_ms, self._contacts[self.draw(len(self._contacts) - 1)], -1)
        sends = self._fetching.on_tick(now_ms)
        return sends + self._look(now_ms, self._fetching)

    def _knock(self, now_ms: int, knocking: Knocking) -> list[Send]:
        sends = knocking.knock(now_ms, self._contacts)
        if knocking.welcome is not None:
            self._knocking = None
            return sends + self._fetch(now_ms, *knocking.welcome)
        self.is_over = knocking.is_given_up
        return sends

    def _fetch(self, now_ms: int, peer: str, at_least: int) -> list[Send]:
        self._fetches += 1
        question = FetchReplica(self.question.cluster_id, self.question.joiner, -1, at_least, 0)
        self._fetching = Fetching(question, peer, self.replicas, self.scaling)
        return self._fetching.start(now_ms)

    def _look(self, now_ms: int, fetching: Fetching) -> list[Send]:
        """Whether the fetching is over."""
        if fetching.replica is not None:
            self.replica, self.is_over = fetching.replica, True
        elif fetching.is_failed and (self.scaling.direct_join or self._fetches >= LENDERS):
            self.is_over = True
        elif fetching.is_failed:
            self._fetching = None
            return self.go_on(now_ms)
        return []

    def received(self, now_ms: int, peer: str, message: Welcomed | NotNow | ReplicaPart) -> list[Send]:
        """Take the answer of a member."""
        sends: list[Send] = []
        if self._knocking is not None and isinstance(message, Welcomed):
            self._knocking.on_welcomed(peer, message)
        elif self._knocking is not None and isinstance(message, NotNow):
            self._knocking.on_not_now(now_ms, peer, message)
        elif self._fetching is not None and isinstance(message, NotNow):
            self._fetching.on_not_now(peer, message)
        elif self._fetching is not None and isinstance(message, ReplicaPart):
            sends = self._fetching.on_part(now_ms, peer, message)
        return sends + self.go_on(now_ms)

    def deadline(self) -> int | None:
        """When to call ``go_on``."""
        if self.is_over:
            return None
        waiting = self._knocking or self._fetching
        return waiting.deadline() if waiting is not None else None
