"""The lives of a node: which of two began later, as their ids tell, and ids for the next ones.

An id is the node's name, ``~``, and a number that rises from life to life, with a random tail: two processes that
took the same number by mistake still differ. The number goes on from the newest life that ZooKeeper knows of the
node, which is noted there before its pulse is made; so no clock and no file decides which life is newer.

Ids made by releases before rules 2 have a random tail only. They are shorter, and so older than all others.

Rejected: a number beside the id (every entry and message that names a joiner would have another form); the start's
count of the data directory (it begins anew with an empty one); the time of day (it may be set back).
"""

from __future__ import annotations

import re

import attrs

_DIGITS = 8
_TAIL = re.compile(rf"([0-9a-f]{{{_DIGITS}}})[0-9a-f]{{{_DIGITS}}}", re.ASCII)


def is_newer(life: str, other: str) -> bool:
    """Whether of two lives of one node the first began later."""
    return _age(life) > _age(other)


def _age(life: str) -> tuple[int, str]:
    tail = life.rpartition("~")[2]
    return len(tail), tail


def number_of(life: str) -> int:
    """The number in an id; 0 of one that has none."""
    found = _TAIL.fullmatch(life.rpartition("~")[2])
    return int(found[1], 16) if found is not None else 0


@attrs.define
class Lives:
    """Ids for the lives of a node. ``newest`` is the last one that is known, empty before the first."""

    name: str
    newest: str = ""

    def next(self, nonce: int) -> str:
        """The id of the next life; ``nonce`` is a random number below 2**32."""
        self.newest = f"{self.name}~{number_of(self.newest) + 1:0{_DIGITS}x}{nonce:0{_DIGITS}x}"
        return self.newest
