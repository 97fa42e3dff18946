"""Entries that no member should have to read: no JSON, unknown commands, a command that fails when it is applied.

``Poison`` stands for a bug in a command that only some replica brings to light: every member meets it at the same
entry, and must go on in the same way.
"""

from __future__ import annotations

from random import Random

import attrs

from skuld_py.cluster.log.commands import Command, RetireNode
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class Poison(Command):
    """Raises when it is applied."""

    kind = "poison"

    text: str

    def apply(self, replica: Replica, position: int) -> Replica:
        """Fails."""
        raise ValueError(self.text)


def poisoned(random: Random, seq: int) -> bytes:
    """An entry that cannot be applied."""
    return random.choice([
        b"", b"{", b"null", b"\xff\xfe", b"[" * 5_000, b'{"do":1,"seq":0,"with":{},"writer":"x"}',
        b'{"do":"no-such","seq":0,"with":{},"writer":"x"}',
        b'{"do":"leave","seq":%d,"with":{"member":7},"writer":"poisoner"}' % seq,
        Entry("poisoner", seq, Poison("as planned")).encode(),
        Entry("poisoner", seq, RetireNode("no-such-node")).encode()])
