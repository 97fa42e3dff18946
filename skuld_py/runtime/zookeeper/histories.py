"""The histories of partition documents: ``history/PARTITION/r-%010d``, one node for each revision.

Each is written in the transaction that writes its revision, and is numbered by ZooKeeper. Revisions by which only
the horizon moved are ``u-%010d``, so that a name tells what may go. Whoever writes sees from the number whether it
is time to look for what is too much: then the oldest are deleted, beside the transaction, for what is deleted
twice would end it.

**A partition is begun once.** The transaction that creates its first document creates ``history/PARTITION/begun``,
too, and fails where that is: whoever deletes a document takes its history for nothing, and no candidate that read
"there is none" long ago may begin anew. A history without ``begun`` is of a release that did not write it, and
counts as much: that there is one is read with each document that is not there. Only a cluster whose nodes never
wrote a history (of releases before there were any) can be begun anew, until a leader has next written.

**A swap is bound to the document that it was made of.** ZooKeeper numbers the versions of a node anew when it is
created again, so of a document that was put back a version may come a second time. How often that was is the
version of ``begun``: who puts a document back raises it in the same transaction, and every other swap checks it.
It is in the document, too, for whoever makes a swap of it. Where somebody has taken the histories away, ``begun``
is made anew and raised to what the document says; releases before neither raised nor checked it. A text of
before that somebody has written by hand says less: who reads it after a swap failed by that takes what is so.

Rejected: the history in the document (every node that keeps a partition reads it at each change); the whole
document for each revision (hundreds of megabytes of ZooKeeper's memory with 4,096 partitions).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from skuld_py.errors import Malformed
from skuld_py.model.events import RevisionsRead, SwapDocument
from skuld_py.model.revision import KEPT, ROUTINE_KEPT, Revision, revision_of
from skuld_py.runtime.zookeeper.connection import Connection

PRUNED_EVERY = 16
BEGUN = "begun"
RAISED_MAX = 100
"""So often ``begun`` is raised where it was taken away; no document is put back more often."""
_NAME = re.compile(r"([ru])-([0-9]{10})")


class Histories:
    """Those of one cluster, as the process ``writer`` writes and reads them."""

    def __init__(self, connection: Connection, root: str, writer: str) -> None:
        self._connection = connection
        self._root = f"{root}/history"
        self._writer = writer
        self._made: dict[int, None] = {}
        """Partitions whose folder is there."""

    def make(self, effect: SwapDocument) -> None:
        """Have the folder of a partition made ahead of what is asked for next; that it is there is no problem."""
        client, path = self._connection.client, f"{self._root}/{effect.partition}"
        if effect.partition in self._made:
            return
        if not self._made:
            client.create_async(self._root, b"")
        client.create_async(path, b"")
        if not effect.is_founding:
            client.create_async(f"{path}/{BEGUN}", b"")
            for number in range(min(effect.document.put_back - (effect.version < 0), RAISED_MAX)):
                client.set_async(f"{path}/{BEGUN}", b"", version=number)
        self._made[effect.partition] = None

    def enter(self, transaction: Any, effect: SwapDocument) -> None:
        """Add the revision to the transaction that writes it."""
        revision = revision_of(effect.document, effect.version + 1, self._writer)
        kind = "u" if revision.is_routine else "r"
        transaction.create(f"{self._root}/{effect.partition}/{kind}-", revision.encode(), sequence=True)

    def bind(self, transaction: Any, effect: SwapDocument) -> None:
        """Have the transaction fail if the partition ever had a document that it knows nothing of, by a name that
        stays."""
        path, put_back = f"{self._root}/{effect.partition}/{BEGUN}", effect.document.put_back
        if effect.is_founding:
            transaction.create(path, b"")
        elif effect.version >= 0:
            transaction.check(path, put_back)
        elif put_back:
            transaction.set_data(path, b"", version=put_back - 1)

    def ask_put_back(self, partition: int) -> Any:
        """Have it told how often the document of a partition was put back."""
        return self._connection.client.exists_async(f"{self._root}/{partition}/{BEGUN}")

    def has(self, partition: int) -> bool:
        """Whether a partition has a history. The newest revisions are never pruned."""
        stat = self._connection.wait(self._connection.client.exists_async(f"{self._root}/{partition}"))
        return stat is not None and stat.numChildren > 0

    def settle(self, partition: int, result: object) -> None:
        """After a transaction: ``result`` is what became of the history's part."""
        match = _NAME.fullmatch(result.rpartition("/")[2]) if isinstance(result, str) else None
        if match is None:
            self._made.clear()  # somebody has taken the folders away, say
        elif int(match[2]) % PRUNED_EVERY == PRUNED_EVERY - 1:
            with suppress(KazooException, KazooTimeoutError):  # the next one prunes
                self._prune(partition)

    def _prune(self, partition: int) -> None:
        client, path = self._connection.client, f"{self._root}/{partition}"
        for name in superfluous(self._connection.wait(client.get_children_async(path))):
            client.delete_async(f"{path}/{name}")

    def read(self, partition: int, most: int) -> RevisionsRead:
        """The newest revisions, newest first."""
        client, path = self._connection.client, f"{self._root}/{partition}"
        try:
            client.sync_async(path)
            names = self._connection.wait(client.get_children_async(path))
            newest = sorted(filter(_NAME.fullmatch, names), key=_number, reverse=True)[:most]
            answers = [client.get_async(f"{path}/{name}") for name in newest]
            return RevisionsRead(partition, most, tuple(
                each for answer in answers if (each := self._revision(answer)) is not None))
        except NoNodeError:
            return RevisionsRead(partition, most, ())
        except (KazooException, KazooTimeoutError):
            return RevisionsRead(partition, most, None)

    def _revision(self, answer: Any) -> Revision | None:
        """One; none if it was pruned meanwhile, or is not ours to read."""
        try:
            raw, stat = self._connection.wait(answer)
            return Revision.decode(raw, stat.ctime)
        except (NoNodeError, Malformed):
            return None


def _number(name: str) -> int:
    return int(name[2:])


def superfluous(names: Sequence[str]) -> list[str]:
    """The names of revisions that are to go: of each kind the oldest beyond those that are kept."""
    found = []
    for kind, kept in (("r", KEPT), ("u", ROUTINE_KEPT)):
        ours = sorted((name for name in names if _NAME.fullmatch(name) and name[0] == kind), key=_number)
        found += ours[: max(0, len(ours) - kept)]
    return found
