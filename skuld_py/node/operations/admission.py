"""Checks of clients' requests that several features share. A refusal is definite: nothing was sent anywhere yet.
It names the field and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.errors import Refused
from skuld_py.model import ids
from skuld_py.model.columns import Column
from skuld_py.node.knowledge.view import View


class Admission:
    """The checks of one node."""

    def __init__(self, view: View) -> None:
        self._view = view

    def group(self, task_ids: bytes) -> dict[int, Sequence[int]]:
        """Indexes of a column of ids by partition; refused before each partition has had its first leader."""
        groups = ids.group(task_ids, self._view.parameters.partitions)
        if not groups:
            raise Refused("empty", "ids: none given")
        for partition in groups:
            if not self._view.vnodes[partition].standing.era:
                raise Refused("not_ready", f"the cluster waits for {self._view.replicas} nodes to"
                              " join and for their first election; try again, or see 'skuld status'")
        return groups

    def owners(self, w: int) -> int:
        """How many owners are to store something; 0 for a majority."""
        if w > self._view.replicas:
            raise too_many_owners(w, self._view.replicas)
        return w

    def check_entries(self, field: str, entries: Column) -> None:
        """Refuse results and errors that are too many, or longer than a log takes."""
        limits = self._view.limits
        size = max(map(len, entries.unpack(field)), default=0)
        if size > limits.entry_bytes:
            raise Refused("entry_too_large", f"{field}: {size} bytes, the limit is {limits.entry_bytes}; store the"
                          " data elsewhere and send its path", size=size)
        if len(entries.data) > limits.batch_bytes:
            raise Refused("too_large", f"{field}: a request holds at most {limits.batch_bytes} bytes of them; send"
                          " several")


def too_many_owners(w: int, replicas: int) -> Refused:
    """More owners are to store something than a cluster has."""
    return Refused("bad_w", f"w: {w} is more than the {replicas} replicas; use 0 for a majority", w=w)
