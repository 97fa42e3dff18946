"""The partition document: who leads, by which votes, since which epoch. One znode per partition.

It changes only by test-and-set bound to the revision the decision read. ``write_id`` is unique to
the attempt: after a lost connection the outcome is settled by reading the document back and
looking for one's own ``write_id``, never by trying again.

Source: Manatee's cluster state object; DESIGN's operator plane adds its other fields later.
"""

from __future__ import annotations

import json

import attrs

from skuld_py.errors import Malformed


@attrs.frozen
class Document:
    """``epoch`` rises by test-and-set; ``cohort`` voted it in; ``boot`` names the leader's process."""

    epoch: int
    leader: str
    boot: str
    cohort: tuple[str, ...]
    write_id: str
    cause: str = ""

    def encode(self) -> bytes:
        """JSON, so that an operator can read it with any ZooKeeper client."""
        return json.dumps(attrs.asdict(self), sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Document:
        """Parse; raises ``Malformed`` naming the field."""
        try:
            fields = json.loads(raw)
            cohort = tuple(str(name) for name in fields["cohort"])
            return cls(int(fields["epoch"]), str(fields["leader"]), str(fields["boot"]), cohort,
                       str(fields["write_id"]), str(fields.get("cause", "")))
        except (ValueError, KeyError, TypeError) as problem:
            raise Malformed("partition document", repr(problem)) from None


NOBODY = Document(0, "", "", (), "")


@attrs.frozen
class Member:
    """A live node process: its name, address, and the id of this start (``boot``)."""

    name: str
    host: str
    port: int
    boot: str
