"""What an answer says of a task beside its records, which know neither the time nor other tasks.

A copy says whether the task waits behind others of its key, and behind which: only those other tasks tell that.
The coordinator, which has joined what the copies know, says where the task stands, by its own clock and the
cluster's skew bound. So a client, whose clock is not watched, decides nothing, and ``get``, ``list`` and ``count``
agree on what a state is. Both say what they leave out of a log.

Encoding: ``standing u8 | count u8 | ids | (token u64 | left out u64)*``, 255 for no standing; or empty: nothing,
which is what nodes of earlier releases say.

Rejected: another message for it, which nodes and clients of the release before would not know.
"""

from __future__ import annotations

import attrs

from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.cuts import WHOLE, Cuts
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.model.state import State

_NOTHING = 255
_HEAD_BYTES = 2
_CUT_BYTES = 16


@attrs.frozen
class Aside:
    """``standing``: where the task stands, as a coordinator says. A copy says ``BLOCKED`` for a task behind others
    of its key, else None. ``behind``: the tasks whose turn it is. ``cuts``: what is left out of its log."""

    standing: State | None = None
    behind: tuple[bytes, ...] = ()
    cuts: Cuts = WHOLE

    def encode(self) -> bytes:
        """The bytes of a column; empty for nothing."""
        if self.standing is None and not self.cuts:
            return b""
        head = bytes([_NOTHING if self.standing is None else self.standing, len(self.behind)])
        numbers = [number for cut in sorted(self.cuts.items()) for number in cut]
        return head + b"".join(self.behind) + columns.pack_u64(numbers)

    @classmethod
    def decode(cls, text: bytes) -> Aside:
        """Parse; raises ``Malformed``."""
        if not text:
            return SILENCE
        at = _HEAD_BYTES + int.from_bytes(text[1:_HEAD_BYTES], "big") * ids.ID_BYTES
        if text[0] not in (*State, _NOTHING) or len(text) < at or (len(text) - at) % _CUT_BYTES:
            raise Malformed("Got.asides", "say what a task cannot be")
        numbers = columns.unpack_u64(text[at:])
        cuts = dict(zip(numbers[::2], numbers[1::2], strict=True))
        if not all(token >= FIRST_TOKEN and 0 < count <= U63_MAX for token, count in cuts.items()):
            raise Malformed("Got.asides", "leave out what no log has")
        return cls(None if text[0] == _NOTHING else State(text[0]), tuple(ids.split(text[_HEAD_BYTES:at])), cuts)


SILENCE = Aside()
