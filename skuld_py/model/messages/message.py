"""What all messages share: their senders, when they may leave, and the two batches of work.

``is_promise`` says when a message may leave. One that promises nothing (data on its way, a question)
may leave before the local commit, so that the disks of a cohort work side by side. Every other leaves
only after the commit of the batch that made it: an acknowledgement means fsynced.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from skuld_py.model import fields
from skuld_py.model.columns import Column

ROLE_CLIENT, ROLE_NODE = 1, 2


@attrs.frozen
class Message:
    """Root of all messages; ``roles`` are those that may send it. ``columns`` are fields with equal counts.
    ``since``: the protocol that brought it. ``is_reading``: a client's request that changes nothing."""

    is_promise: ClassVar[bool] = True
    is_reading: ClassVar[bool] = False
    roles: ClassVar[int] = ROLE_NODE
    columns: ClassVar[tuple[str, ...]] = ()
    since: ClassVar[int] = 1


@attrs.frozen
class TaskBatch:
    """Tasks that share a header (``model.body.Header``), of one partition when between nodes.

    ``payloads``: of each its prelude, if the header says that there is one, and its payload.
    """

    columns: ClassVar[tuple[str, ...]] = ("ids", "payloads")
    header: bytes = fields.blob(bytes_max=8_192)
    ids: bytes = fields.ids()
    payloads: Column = fields.strings()


@attrs.frozen
class ClaimBatch:
    """Claims granted together: ``bodies`` are body records, leases run to ``end_ms``. ``proofs``: to clients only,
    which show them with all that they ask for these claims. ``is_first``: as far as the leader knows, none of
    these tasks was claimed before."""

    columns: ClassVar[tuple[str, ...]] = ("ids", "bodies")
    ids: bytes = fields.ids()
    first_token: int = fields.number()
    end_ms: int = fields.number()
    bodies: Column = fields.strings()
    proofs: bytes = fields.proofs()
    is_first: bool = fields.truth(default=False, since=3)
