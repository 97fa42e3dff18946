"""Messages of members and joiners beside the coordination log.

All of it is an option (``config.Scaling``), and all of it may be lost, repeated or late: the log alone decides.
Each message names the cluster by its id, not only by the name that the envelope carries, for a cluster may be
destroyed and made again under the same name while a process of the old one lives.

The receiver's replica may not know the sender: a joiner, or a member that has read further.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.document import Member
from skuld_py.model.messages.message import Message

SHARED_MAX = 1_000
"""Entries of one ``Share``."""
PART_BYTES = 256 << 10
"""Of a replica's text in one ``ReplicaPart``."""
PARTS_MAX = 512
"""Parts of one replica: 128 MiB."""
DIGEST_BYTES = 16

# -- sharing of entries --------------------------------------------------------------------------


@attrs.frozen
class Share(Message):
    """Entries that stand in the log, each with its position and the number of this hop.

    ``digest``, when not empty, is that of the sender's replica as of ``version``.
    """

    is_promise = False
    columns = ("positions", "hops", "entries")
    cluster_id: str = fields.name()
    version: int = fields.number(-1)
    digest: bytes = fields.blob(1, DIGEST_BYTES)
    positions: bytes = fields.u64s(SHARED_MAX)
    hops: bytes = fields.blob(1, SHARED_MAX)
    entries: Column = fields.strings(SHARED_MAX)


# -- direct join ---------------------------------------------------------------------------------


@attrs.frozen
class JoinMe(Message):
    """Stitch me in behind you. My pulse stands under ``joiner``; the rest describes my node."""

    is_promise = False
    cluster_id: str = fields.name()
    joiner: str = fields.life()
    name: str = fields.wide_name()
    host: str = fields.text(255)
    port: int = fields.number(0, 65_535)
    boot: str = fields.text(64)
    incarnation: str = fields.text(64)

    @property
    def member(self) -> Member:
        """The node that wants to join."""
        return Member(self.name, self.host, self.port, self.boot, self.incarnation)


@attrs.frozen
class Welcomed(Message):
    """``joiner`` is a member as of ``version``."""

    is_promise = False
    cluster_id: str = fields.name()
    joiner: str = fields.life()
    version: int = fields.number()


@attrs.frozen
class NotNow(Message):
    """What was asked for ``joiner`` will not be done here: ask another member."""

    is_promise = False
    cluster_id: str = fields.name()
    joiner: str = fields.life()
    reason: str = fields.name()


# -- transfer of a replica -----------------------------------------------------------------------


@attrs.frozen
class FetchReplica(Message):
    """Part ``index`` of your replica's text as of ``version``; -1: of any, but not before ``at_least``."""

    is_promise = False
    cluster_id: str = fields.name()
    joiner: str = fields.life()
    version: int = fields.number(-1)
    at_least: int = fields.number(-1)
    index: int = fields.number(0, PARTS_MAX - 1)


@attrs.frozen
class ReplicaPart(Message):
    """One of ``count`` parts of a replica's canonical text; ``digest`` is that of the whole text."""

    is_promise = False
    cluster_id: str = fields.name()
    joiner: str = fields.life()
    version: int = fields.number(-1)
    index: int = fields.number(0, PARTS_MAX - 1)
    count: int = fields.number(1, PARTS_MAX)
    digest: bytes = fields.blob(1, DIGEST_BYTES)
    data: bytes = fields.blob(1, PART_BYTES)


COORDINATION_MESSAGES: tuple[type[Message], ...] = (Share, JoinMe, Welcomed, NotNow, FetchReplica, ReplicaPart)
"""What goes to the membership machine, not to the node machine, also from processes that are no members."""
