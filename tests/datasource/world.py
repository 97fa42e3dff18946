"""A write of Spark's without Spark: attempts that store tasks behind their gates, in a cluster in memory."""

from __future__ import annotations

from typing import Any, cast

from skuld_py.client.reading import Depth
from skuld_py.datasource.gates import Commit, Write, open_attempt
from skuld_py.model.ids import TaskId
from skuld_py.testing import MemoryClient

NOW = 1_900_000_000.0
TTL_S = 3_600.0
NONE = Depth(0, 0, 0)


class World:
    """One client, and the write that it makes."""

    def __init__(self, name: str = "a" * 32) -> None:
        self.client = MemoryClient(now=NOW)
        self.write = Write(name, 7, NOW, TTL_S)

    @property
    def any(self) -> Any:
        return cast(Any, self.client)

    def wall(self) -> float:
        return self.client.cluster.steady_s()

    def attempt(self, *payloads: bytes, write: Write | None = None) -> TaskId:
        gate = open_attempt(self.any, write or self.write, self.wall())
        self.store(gate, *payloads)
        return gate

    def store(self, gate: TaskId, *payloads: bytes) -> None:
        self.client.enqueue_many("q", payloads, deps=[gate], on_dep_failure="fail", dep_wait_s=TTL_S)

    def end(self, *gates: TaskId, write: Write | None = None) -> Commit:
        return Commit(self.any, write or self.write, gates, self.wall, self.client.advance)

    def depth(self, queue: str = "q") -> Depth:
        self.client.advance(1)
        return self.client.depths().get(queue, NONE)

    def claimable(self) -> list[bytes]:
        self.client.advance(1)
        return sorted(claim.payload for claim in self.client.claim("q", n=1_000))
