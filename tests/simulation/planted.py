"""Bugs planted on purpose: a simulation that does not catch them is worth nothing."""

from __future__ import annotations

from skuld_py.model.memory_store import MemoryStore
from skuld_py.simulation.cluster import Cluster


class ForgetfulStore(MemoryStore):
    """A store that makes no promise durable but the first, empty one: the others are gone after a crash."""

    def commit(self) -> None:
        forgotten = {key: value for key, value in self.undo["meta"].items()
                     if key.startswith(b"promise") and value is not None}
        super().commit()
        self.undo["meta"].update(forgotten)


def plant_forgetful_stores(cluster: Cluster) -> None:
    """Vote promises are not persisted."""
    cluster.make_store = ForgetfulStore


def half(size: int) -> int:
    """A majority as one often sees it, and wrong: two halves need not meet."""
    return size // 2
