"""A revision of a partition's document, as its history keeps it: who wrote it, why, when, and what it came to.

It stands in ZooKeeper beside the document and is written with it in one transaction, so no revision is without it,
unless a program of a release before wrote it. The time is ZooKeeper's own. Revisions by which a leader only moves
its horizon on come by the clock: they are kept apart (``is_routine``), or they would push all others out.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from skuld_py.errors import Malformed
from skuld_py.model.document import Document

KEPT, ROUTINE_KEPT = 100, 8
"""Revisions of a partition that are kept; and how many by which only the horizon moved, besides."""
HORIZON = "upkeep: horizon_ms"
"""The cause of a routine revision."""


@attrs.frozen
class Revision:
    """One revision. ``version``: the document's in ZooKeeper; ``write_id``: of the attempt that wrote it, which
    begins with the id of the request where there was one; ``at_ms``: by ZooKeeper's clock."""

    version: int
    epoch: int
    leader: str
    voters: tuple[str, ...]
    writer: str
    cause: str
    write_id: str
    at_ms: int = 0

    @property
    def is_routine(self) -> bool:
        """Whether nothing but the horizon was moved."""
        return self.cause == HORIZON

    def encode(self) -> bytes:
        """JSON, without the time."""
        fields = attrs.asdict(self)
        del fields["at_ms"]
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes, at_ms: int) -> Revision:
        """Parse; what later releases add is passed over. Raises ``Malformed``."""
        try:
            fields = json.loads(raw)
            version, epoch = (_of(int, fields[name]) for name in ("version", "epoch"))
            leader, writer, cause, write_id = (_of(str, fields[name]) for name in (
                "leader", "writer", "cause", "write_id"))
            voters = tuple(_of(str, name) for name in _of(list, fields["voters"]))
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise Malformed("revision", repr(problem)) from None
        return cls(version, epoch, leader, voters, writer, cause, write_id, at_ms)


def revision_of(document: Document, version: int, writer: str) -> Revision:
    """What the history keeps of a document that is written as this version."""
    return Revision(version, document.epoch, document.leader, document.cohort, writer, document.cause,
                    document.write_id)


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
