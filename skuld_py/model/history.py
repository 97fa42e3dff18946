"""A task's history: all that happened to it. It only grows.

Record: ``completed_ms u64 | completed_token u64 | horizon_ms u64 | claims``, each claim
``token u64 | start_ms u64 | end_ms u64 | flags u8 | holder length u8 | holder``, in token order.
The horizon is the latest end of a claim that was not released, 0 without one; it is derived from
the claims and stands in front so that the hot path reads and patches a record without parsing it.
The encoding is canonical: equal histories are equal bytes on every replica.

Laws: ``History.merge`` is the product of the lattices in ``crdt``: claims by token (never by list
index, where two leaders' claims would melt into one), their ends by maximum, their release flags
by or, the completion by minimum of (time, token). Completion dominates: nothing removes it.

Source: Skuld's ``merge`` and what broke in it (claims merged per index; payloads merged last).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

from skuld_py.crdt import Flag, LatticeMap, Max, Min
from skuld_py.errors import Corrupt

HISTORY_HEAD = struct.Struct(">QQQ")
COMPLETION = struct.Struct(">QQ")
CLAIM = struct.Struct(">QQQBB")
RELEASED = 1
TIME_MS_MAX = 1 << 62
TOKEN_COUNTER_BITS = 32


def token_of(epoch: int, counter: int) -> int:
    """The fencing token of the ``counter``-th claim of an epoch; rises with both."""
    return epoch << TOKEN_COUNTER_BITS | counter


def epoch_of(token: int) -> int:
    """The epoch that granted a token."""
    return token >> TOKEN_COUNTER_BITS


@attrs.frozen
class ClaimRecord:
    """One claim as replicated: lease ``start_ms``..``end_ms`` by the leader's clock, and its holder."""

    start_ms: int
    end: Max
    released: Flag
    holder: str

    def merge(self, other: ClaimRecord) -> ClaimRecord:
        """Join; start and holder never differ for one token, the minimum keeps it total."""
        return ClaimRecord(min(self.start_ms, other.start_ms), self.end.merge(other.end),
                           self.released.merge(other.released), min(self.holder, other.holder))


@attrs.frozen
class History:
    """All that happened to a task, as a lattice."""

    completion: Min = Min()
    claims: LatticeMap[int, ClaimRecord] = LatticeMap()

    def merge(self, other: History) -> History:
        """Join of the parts."""
        return History(self.completion.merge(other.completion), self.claims.merge(other.claims))

    @property
    def horizon_ms(self) -> int:
        """No claim granted so far ends later; 0 when none is held."""
        return max((claim.end.value for claim in self.claims.entries.values()
                    if not claim.released.is_raised), default=0)

    @property
    def newest_token(self) -> int:
        """The highest token granted, 0 without one."""
        return max(self.claims.entries, default=0)

    def allows(self, token: int, holder: str, over_ms: int) -> bool:
        """Whether the task may be claimed with this token; leases that end after ``over_ms`` may be held.

        Not when it is completed, when another lease may be held, or when the token is not the newest. The
        very claim is no objection, so a repeated grant is harmless; but that it is known (from an exchange,
        say) proves nothing about the leases that its leader overlooked.
        """
        if self.completion.value is not None or token < self.newest_token:
            return False
        for other, claim in self.claims.entries.items():
            if other == token:
                if claim.released.is_raised or claim.holder != holder:
                    return False
            elif not claim.released.is_raised and claim.end.value > over_ms:
                return False
        return True

    def encode(self) -> bytes:
        """The canonical record."""
        done_ms, done_token = self.completion.value or (0, 0)
        parts = [HISTORY_HEAD.pack(done_ms, done_token, self.horizon_ms)]
        for token, claim in sorted(self.claims.entries.items()):
            parts.append(encode_claim(token, claim.start_ms, claim.end.value, claim.holder.encode(),
                                      RELEASED if claim.released.is_raised else 0))
        return b"".join(parts)

    @classmethod
    def decode(cls, record: bytes) -> History:
        """Parse a record; raises ``ValueError`` when it is none."""
        if len(record) < HISTORY_HEAD.size:
            raise ValueError("history record is too short")
        done_ms, done_token, _ = HISTORY_HEAD.unpack_from(record)
        return cls(Min((done_ms, done_token)) if done_ms else Min(), LatticeMap(dict(_claims(record))))


EMPTY_HISTORY = History()


def encode_claim(token: int, start_ms: int, end_ms: int, holder: bytes, flags: int = 0) -> bytes:
    """One claim inside a history record."""
    return CLAIM.pack(token, start_ms, end_ms, flags, len(holder)) + holder


def _claims(record: bytes) -> Iterator[tuple[int, ClaimRecord]]:
    at, last = HISTORY_HEAD.size, -1
    while at < len(record):
        if at + CLAIM.size > len(record):
            raise ValueError("history record is cut short")
        token, start_ms, end_ms, flags, size = CLAIM.unpack_from(record, at)
        at += CLAIM.size + size
        if at > len(record) or token <= last or flags & ~RELEASED or end_ms > TIME_MS_MAX:
            raise ValueError("history record is damaged")
        last = token
        yield token, ClaimRecord(start_ms, Max(end_ms), Flag(bool(flags)), record[at - size : at].decode())


def decode_history(record: bytes | None) -> History:
    """A stored history; nothing stored is an empty one."""
    if record is None:
        return EMPTY_HISTORY
    try:
        return History.decode(record)
    except ValueError:
        raise Corrupt("history", b"") from None
