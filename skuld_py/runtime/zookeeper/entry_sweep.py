"""Removing the entries (``nodes/NAME``) of nodes that are forgotten, and their keys from the roster; else there is
one per pod that ever ran, and each of these keys opens the cluster.

An entry is what a data directory is judged by at its next start (``node.life.identity``). So it goes only when
nothing that the node has promised counts any more:

* The log places the node no more, and no pulse of its newest life stands.
* Every partition has voters, and it is none of them, nor about to be one. A node that was forgotten while its vote
  was needed, as after an outage of many, keeps its entry: started again on its data it votes, and the partition
  goes on.
* It is removed by the version that was read before all of that: a start of the node in between has changed it. One
  after that makes the entry anew.
* A key goes when its node is neither placed nor has an entry. A node that starts has its key before its entry, so
  the roster is replaced by the version that was read before all of that; and a node that lives puts its own back
  (``Keyring.put``).

Any process that plays the log may do it, at any time, again, or two at once. What is left, also by earlier
releases, is found by the next one, for it compares what is there with the log and follows no entry.

Rejected: removing it with the node's ``forget-node`` (its reader may die before, and its vote may be needed).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from kazoo.exceptions import BadVersionError, NoNodeError

from skuld_py.errors import Malformed, Refused
from skuld_py.model.coordination import SweepEntries
from skuld_py.model.document import NOBODY, Document
from skuld_py.model.registration import Registration
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper.clusters import parameters_of
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.rosters import roster_path

_BATCH = 64

_log = logging.getLogger(__name__)


class EntrySweep:
    """One sweep on its way. ``step`` is called until it says that it is over."""

    def __init__(self, connection: Connection, root: str, wish: SweepEntries) -> None:
        self._connection = connection
        self._root = root
        self._placed = dict.fromkeys(wish.nodes)
        self._steps = self._run()

    def step(self) -> bool:
        """Do a little; True once it is over. After an exception there is no other step."""
        try:
            return next(self._steps)
        except (Malformed, Refused) as problem:
            _log.error("entries of forgotten nodes below %s/nodes stay: %s", self._root, problem.message)
            return True

    def _run(self) -> Iterator[bool]:
        client = self._connection.client
        client.sync_async(self._root)  # requests of a session are answered in order
        roster = self._roster()
        names = sorted(self._ask(client.get_children_async(f"{self._root}/nodes")))
        found: dict[str, int] = {}
        others = [name for name in names if name not in self._placed]
        for start in range(0, len(others), _BATCH):
            found |= self._lifeless(others[start : start + _BATCH])
            yield False
        if found:
            raw, _ = self._ask(client.get_async(f"{self._root}/parameters"))
            partitions = parameters_of(self._root, raw).partitions
            for start in range(0, partitions, _BATCH):
                self._keep_needed(found, range(start, min(start + _BATCH, partitions)))
                yield False
        for name, version in found.items():
            self._remove(name, version)
        if roster is not None:
            self._drop_keys(*roster)
        yield True

    def _roster(self) -> tuple[Roster, int] | None:
        """The roster and its version; None for a cluster without keys."""
        with suppress(NoNodeError):
            raw, stat = self._ask(self._connection.client.get_async(roster_path(self._root)))
            return Roster.decode(raw), stat.version
        return None

    def _drop_keys(self, roster: Roster, version: int) -> None:
        client = self._connection.client
        known = {*self._placed, *self._ask(client.get_children_async(f"{self._root}/nodes"))}
        gone = {row.name for row in roster.rows if row.is_node} - known
        if gone:
            with suppress(BadVersionError, NoNodeError):
                self._ask(client.set_async(roster_path(self._root), roster.without_nodes(gone).encode(), version))
                _log.info("keys of forgotten nodes are removed: %s", ", ".join(sorted(gone)))

    def _lifeless(self, names: Iterable[str]) -> dict[str, int]:
        """Nodes whose newest life has no pulse, each with the version of its entry, which is read before the
        pulse."""
        client, found = self._connection.client, {}
        entries = [(name, client.get_async(f"{self._root}/nodes/{name}")) for name in names]
        for name, answer in entries:
            with suppress(NoNodeError, Malformed):
                raw, stat = self._ask(answer)
                life = Registration.decode(raw).life
                if not life or self._ask(client.exists_async(f"{self._root}/members/{life}")) is None:
                    found[name] = stat.version
        return found

    def _keep_needed(self, found: dict[str, int], partitions: Iterable[int]) -> None:
        """Keep the nodes that a partition's document names; all nodes while it has none, for any may be its first
        voters."""
        client = self._connection.client
        answers = [client.get_async(f"{self._root}/partitions/{partition}") for partition in partitions]
        for answer in answers:
            document = NOBODY
            with suppress(NoNodeError):
                document = Document.decode(self._ask(answer)[0])
            if not document.seats:
                found.clear()
            for name in (document.leader, *document.cohort, *document.learners):
                found.pop(name, None)

    def _remove(self, name: str, version: int) -> None:
        with suppress(BadVersionError, NoNodeError):
            self._ask(self._connection.client.delete_async(f"{self._root}/nodes/{name}", version))
            _log.info("node %s is forgotten, and its entry below %s/nodes removed", name, self._root)

    def _ask(self, answer: Any) -> Any:
        return self._connection.wait(answer)
