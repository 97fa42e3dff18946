"""An entry of the coordination log: its writer, its number among that one's entries, and its command.

``seq`` numbers a writer's entries from 0: an append whose answer was lost is written again under the same number,
and whichever copy stands first counts. Bounds: an entry is at most ``ENTRY_BYTES_MAX`` long, well below what a
ZooKeeper node may hold. How deep a nesting and how long a number a program can read differs from one to the next,
and what an entry is must not: hence ``DEPTH_MAX`` and ``DIGITS_MAX``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import accumulate

import attrs

from skuld_py.cluster.log.canonical import from_plain, to_plain
from skuld_py.cluster.log.commands import COMMANDS, Command
from skuld_py.cluster.log.commands.command import ID
from skuld_py.errors import Malformed

ENTRY_BYTES_MAX = 256 << 10
DEPTH_MAX = 16
DIGITS_MAX = 20
UNKNOWN_COMMAND = "is no command of this version"
_BRACKETS = re.compile(rb"[\[\]{}]")
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


@attrs.frozen
class Entry:
    """A command in the log. ``writer`` is a member's id, or an operator's."""

    writer: str
    seq: int
    command: Command

    def encode(self) -> bytes:
        """The canonical text, as bytes."""
        plain = {"do": self.command.kind, "seq": self.seq, "with": to_plain(self.command), "writer": self.writer}
        return json.dumps(plain, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def _whole(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise Malformed("entry", f"has a number of more than {DIGITS_MAX} digits")
    return int(text)


def decode(raw: bytes, commands: Mapping[str, type[Command]] = COMMANDS) -> Entry:
    """The entry of a text; raises ``Malformed`` naming the field."""
    if len(raw) > ENTRY_BYTES_MAX:
        raise Malformed("entry", f"has {len(raw)} bytes, more than {ENTRY_BYTES_MAX}")
    if max(accumulate(_STEPS[each] for each in _BRACKETS.findall(raw)), default=0) > DEPTH_MAX:
        raise Malformed("entry", f"is nested more than {DEPTH_MAX} deep")
    try:
        plain = json.loads(raw.decode(), parse_int=_whole)
    except ValueError:
        raise Malformed("entry", "is no JSON") from None
    if not isinstance(plain, dict) or plain.keys() != {"do", "seq", "with", "writer"}:
        raise Malformed("entry", "is no object with do, seq, with and writer")
    kind, seq, writer = plain["do"], plain["seq"], plain["writer"]
    if not isinstance(writer, str) or not ID.fullmatch(writer):
        raise Malformed("entry.writer", "is no id")
    if type(seq) is not int or not 0 <= seq < 1 << 63:
        raise Malformed("entry.seq", "is no number from 0 on")
    if not isinstance(kind, str) or kind not in commands:
        raise Malformed("entry.do", UNKNOWN_COMMAND)
    return Entry(writer, seq, from_plain(commands[kind], plain["with"]))
