"""A task: an immutable body joined with a history that only grows.

Body record: ``header length u16 | header | payload``; the header holds what decides order (queue,
priority) and is shared by all tasks of a batch, so it is checked once per batch.

History record: ``completed_ms u64 | completed_token u64 | horizon_ms u64 | claims``, each claim
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
HEADER = struct.Struct(">iB")
RELEASED = 1
TIME_MS_MAX = 1 << 62
PRIORITY_MIN, PRIORITY_MAX = -(1 << 31), (1 << 31) - 1
TOKEN_COUNTER_BITS = 32


def token_of(epoch: int, counter: int) -> int:
    """The fencing token of the ``counter``-th claim of an epoch; rises with both."""
    return epoch << TOKEN_COUNTER_BITS | counter


def epoch_of(token: int) -> int:
    """The epoch that granted a token."""
    return token >> TOKEN_COUNTER_BITS


@attrs.frozen
class Header:
    """What decides a task's place: ``queue``, and ``priority`` (i32, higher first)."""

    queue: str
    priority: int = 0

    def encode(self) -> bytes:
        """The canonical bytes."""
        queue = self.queue.encode()
        return HEADER.pack(self.priority, len(queue)) + queue

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Parse; raises ``ValueError`` on anything that ``encode`` does not give."""
        if len(raw) < HEADER.size:
            raise ValueError("header is too short")
        priority, size = HEADER.unpack_from(raw)
        if len(raw) != HEADER.size + size:
            raise ValueError("header has a wrong length")
        return cls(raw[HEADER.size :].decode("ascii"), priority)


def encode_body(header: bytes, payload: bytes) -> bytes:
    """The body record."""
    return len(header).to_bytes(2, "big") + header + payload


def decode_body(record: bytes) -> tuple[Header, bytes]:
    """Header and payload of a body record."""
    size = int.from_bytes(record[:2], "big")
    return Header.decode(record[2 : 2 + size]), record[2 + size :]


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


@attrs.frozen
class LogEntry:
    """Numbered note of a claim: ``seq`` from 0, contiguous, immutable."""

    token: int
    seq: int
    data: bytes


@attrs.frozen
class ClaimView:
    """A claim as readers see it. ``log`` is its contiguous prefix."""

    token: int
    holder: str
    start_ms: int
    end_ms: int
    is_released: bool
    completed_ms: int | None
    log: tuple[bytes, ...] = ()


@attrs.frozen
class Task:
    """A task as readers see it."""

    id: bytes
    queue: str
    priority: int
    payload: bytes
    claims: tuple[ClaimView, ...] = ()
    completed_ms: int | None = None
    completed_token: int | None = None

    @property
    def is_completed(self) -> bool:
        """Whether any claim completed it."""
        return self.completed_ms is not None


def view(task_id: bytes, body: bytes, history: History, entries: list[LogEntry]) -> Task:
    """A task for readers, from its replicated parts."""
    header, payload = decode_body(body)
    logs = contiguous(entries)
    done = history.completion.value
    claims = tuple(
        ClaimView(token, claim.holder, claim.start_ms, claim.end.value, claim.released.is_raised,
                  done[0] if done and done[1] == token else None, logs.get(token, ()))
        for token, claim in sorted(history.claims.entries.items()))
    return Task(task_id, header.queue, header.priority, payload, claims,
                done[0] if done else None, done[1] if done else None)


def contiguous(entries: list[LogEntry]) -> dict[int, tuple[bytes, ...]]:
    """Log entries by token, cut at the first gap."""
    logs: dict[int, list[bytes]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.token, entry.seq)):
        log = logs.setdefault(entry.token, [])
        if entry.seq == len(log):
            log.append(entry.data)
    return {token: tuple(log) for token, log in logs.items()}
