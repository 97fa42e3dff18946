"""A task's history: all that happened to it. It only grows.

Record: ``completed_ms u64 | completed_token u64 | horizon_ms u64 | rows``, each row ``token u64 | u64 | u64 |
ending u8 | holder length u8 | holder | until u64, if the ending has one``, in token order. A row is a claim: its
two numbers are its start and end. Or it is a *mark*, whose token is below all claims': cancelled (when, 0),
revived (round, base token) or died (round + 1, when * 2^8 + reason). The horizon is the latest end of a claim
without ending, 0 without one; it is derived, and stands in front so that the hot path reads and patches a record
without parsing it. The encoding is canonical: equal histories are equal bytes on every replica.

Laws: ``History.merge`` is the product of the lattices in ``crdt``: claims by token (never by list index, where two
leaders' claims would melt into one), their ends and endings by maximum, the completion and the cancelling by
minimum of (time, tie), revivals and deaths by maximum. Completion dominates: nothing removes it. Then a claim that
is held, then cancelled, then dead: see ``state``.

**Attempts are counted, not kept**: claims that failed, or ended without a word, since the task was last revived.
So a task that kills its workers dies on every replica alike, and no two leaders add to one number. A snoozed or a
released claim is no attempt, but no task is claimed more than ``CLAIMS_MAX`` times in a round, nor revived after
``CLAIMS_FOR_LIFE``.

Rejected: an outcome per claim in a table of its own (one more table in every batch); dead as a flag (there is no
way back). Source: Skuld's ``merge`` and what broke in it (claims merged per index; payloads merged last).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

import attrs

from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.errors import Corrupt

HISTORY_HEAD = struct.Struct(">QQQ")
COMPLETION = struct.Struct(">QQ")
CLAIM = struct.Struct(">QQQBB")
UNTIL = struct.Struct(">Q")
RELEASED, SNOOZED, FAILED = 1, 2, 3
"""How a claim ended by its holder's word; 0 if it did not."""
CANCELLED, REVIVED, DIED = 1, 2, 3
"""Tokens of marks. No leader grants these: the first token of an epoch is 2^32."""
EXHAUSTED, EXPIRED, DEP_FAILED, DEP_UNKNOWN, TOO_MANY_CLAIMS, PERMANENT = 1, 2, 3, 4, 5, 6
"""Why a task is dead. ``PERMANENT``: its holder said that no other attempt could succeed."""
CLAIMS_MAX = 1_000
CLAIMS_FOR_LIFE = 8_000
"""A task claimed this often, over all its rounds, is revived no more. A history is one record, which no page of an
election cuts: with one more round, and the longest names, it takes half the room there is."""
ROUNDS_MAX = 1 << 20
"""A task is revived at most this often."""
HISTORIES_KEPT, KEPT_BYTES = 2_048, 512
"""The cache of parsed histories: how many, of records up to how many bytes. One is looked at several times in a
row."""
DEATH_TIME_RULES = 6
"""From these rules of the cluster on a mark says when a task died of a dependency; who knows older ones only takes
such a mark for damage."""
TIME_MS_MAX = 1 << 62
TOKEN_COUNTER_BITS = 32
_TIME_BITS = 62
_REASON_BITS = 8
_BASE_BITS = _DEATH_BITS = 64


def token_of(epoch: int, counter: int) -> int:
    """The fencing token of the ``counter``-th claim of an epoch; rises with both. One more claim than the counter
    holds would have a token of the next epoch."""
    assert 0 <= counter < 1 << TOKEN_COUNTER_BITS, f"claim {counter} of epoch {epoch} has no token"
    return epoch << TOKEN_COUNTER_BITS | counter


def epoch_of(token: int) -> int:
    """The epoch that granted a token."""
    return token >> TOKEN_COUNTER_BITS


@attrs.frozen
class ClaimRecord:
    """One claim as replicated: lease ``start_ms``..``end_ms`` by the leader's clock, how it ended, its holder."""

    start_ms: int
    end: Max
    ending: Max
    holder: str

    @property
    def kind(self) -> int:
        """``RELEASED``, ``SNOOZED``, ``FAILED``; 0 for a claim that was not ended by its holder."""
        return self.ending.value >> _TIME_BITS

    @property
    def until_ms(self) -> int:
        """Not to be claimed again before."""
        return self.ending.value & TIME_MS_MAX - 1

    def merge(self, other: ClaimRecord) -> ClaimRecord:
        """Join; start and holder never differ for one token, the minimum keeps it total."""
        return ClaimRecord(min(self.start_ms, other.start_ms), self.end.merge(other.end),
                           self.ending.merge(other.ending), min(self.holder, other.holder))


def ending_of(kind: int, until_ms: int = 0) -> Max:
    """How a claim ended. Of two endings that two leaders recorded, both true stories of one holder, the later kind
    stands, then the later time."""
    return Max(kind << _TIME_BITS | until_ms)


def revival_of(round_: int, base: int) -> Max:
    """The task began anew for the ``round_``-th time; claims up to the token ``base`` do not count any more."""
    return Max(round_ << _BASE_BITS | base)


def death_of(round_: int, reason: int, when_ms: int = 0) -> Max:
    """The task died in a round, for a reason; of what two leaders recorded the later stands."""
    return Max(round_ + 1 << _DEATH_BITS | cause_of(reason, when_ms))


def cause_of(reason: int, when_ms: int) -> int:
    """The second number of a mark of death; ``when_ms`` is 0 where that is not said."""
    return when_ms << _REASON_BITS | reason


@attrs.frozen
class History:
    """All that happened to a task, as a lattice."""

    completion: Min = Min()
    claims: LatticeMap[int, ClaimRecord] = LatticeMap()
    cancelled: Min = Min()
    revived: Max = Max()
    died: Max = Max()

    def merge(self, other: History) -> History:
        """Join of the parts."""
        return History(self.completion.merge(other.completion), self.claims.merge(other.claims),
                       self.cancelled.merge(other.cancelled), self.revived.merge(other.revived),
                       self.died.merge(other.died))

    @property
    def horizon_ms(self) -> int:
        """No claim granted so far ends later; 0 when none is held."""
        return max((claim.end.value for claim in self.claims.entries.values() if not claim.kind), default=0)

    @property
    def is_completed(self) -> bool:
        """Whether a claim has completed the task."""
        return self.completion.value is not None

    @property
    def newest_token(self) -> int:
        """The highest token granted, 0 without one."""
        return max(self.claims.entries, default=0)

    @property
    def facts(self) -> int:
        """How many facts it holds: claims, endings, completion, cancelling, deaths, revivals. It never falls."""
        claims = self.claims.entries.values()
        ends = (self.completion.value is not None) + (self.cancelled.value is not None)
        return (len(claims) + sum(1 for claim in claims if claim.kind) + ends + self.round
                + self.death_round)

    @property
    def round(self) -> int:
        """How often it was revived."""
        return self.revived.value >> _BASE_BITS

    @property
    def base(self) -> int:
        """Claims up to this token are of earlier rounds."""
        return self.revived.value & (1 << _BASE_BITS) - 1

    @property
    def death_round(self) -> int:
        """The newest round in which it died, counted from 1; 0 when it never did."""
        return self.died.value >> _DEATH_BITS

    @property
    def death_ms(self) -> int:
        """When it died in this round; 0 when it did not, or where a mark does not say it."""
        cause = self.died.value & (1 << _DEATH_BITS) - 1
        return cause >> _REASON_BITS if self.death_round == self.round + 1 else 0

    @property
    def pause_until_ms(self) -> int:
        """When the pause that the newest claim asked for is over; 0 without one."""
        token = self.newest_token
        return self.claims.entries[token].until_ms if token > self.base else 0

    def attempts(self, over_ms: int) -> int:
        """Claims of this round that failed or ended without a word; leases up to ``over_ms`` are over."""
        newest, base = self.newest_token, self.base
        return sum(1 for token, claim in self.claims.entries.items() if token > base and (
            claim.kind == FAILED or (not claim.kind and (token < newest or claim.end.value <= over_ms))))

    def death(self, max_attempts: int, over_ms: int) -> int:
        """Why the task is dead, 0 if it is not."""
        if self.death_round == self.round + 1:
            return self.died.value & (1 << _REASON_BITS) - 1
        if self.attempts(over_ms) >= max_attempts:
            return EXHAUSTED
        return TOO_MANY_CLAIMS if sum(1 for token in self.claims.entries if token > self.base) >= CLAIMS_MAX else 0

    def allows(self, token: int, holder: str, over_ms: int) -> bool:
        """Whether the task may be claimed with this token; leases that end after ``over_ms`` may be held.

        Not when it is completed or cancelled, has died in this round, when another lease may be held, or when the
        token is not the newest. A claim that is known already is no objection, so a repeated grant is harmless;
        but that it is known (from an exchange, say) does not show that its leader overlooked no lease.
        """
        if self.completion.value is not None or self.cancelled.value is not None or token < self.newest_token:
            return False
        if self.death_round == self.round + 1:
            return False
        for other, claim in self.claims.entries.items():
            if other == token:
                if claim.kind or claim.holder != holder:
                    return False
            elif not claim.kind and claim.end.value > over_ms:
                return False
        return True

    def encode(self) -> bytes:
        """The canonical record."""
        done_ms, done_token = self.completion.value or (0, 0)
        parts = [HISTORY_HEAD.pack(done_ms, done_token, self.horizon_ms)]
        if self.cancelled.value is not None:
            parts.append(CLAIM.pack(CANCELLED, *self.cancelled.value, 0, 0))
        if self.revived.value:
            parts.append(CLAIM.pack(REVIVED, self.round, self.base, 0, 0))
        if self.died.value:
            parts.append(CLAIM.pack(DIED, *divmod(self.died.value, 1 << _DEATH_BITS), 0, 0))
        for token, claim in sorted(self.claims.entries.items()):
            parts.append(encode_claim(token, claim.start_ms, claim.end.value, claim.holder.encode(),
                                      claim.kind, claim.until_ms))
        return b"".join(parts)

    @classmethod
    def decode(cls, record: bytes) -> History:
        """Parse a record; raises ``ValueError`` when it is none."""
        return _kept(record) if len(record) <= KEPT_BYTES else _decoded(record)


def _decoded(record: bytes) -> History:
    if len(record) < HISTORY_HEAD.size:
        raise ValueError("history record is too short")
    done_ms, done_token, _ = HISTORY_HEAD.unpack_from(record)
    marks: dict[int, tuple[int, int]] = {}
    claims: dict[int, ClaimRecord] = {}
    for token, start_ms, end_ms, ending, holder in _rows(record):
        if token <= DIED:
            marks[token] = (start_ms, end_ms)
        else:
            claims[token] = ClaimRecord(start_ms, Max(end_ms), ending, holder)
    return History(Min((done_ms, done_token)) if done_ms else Min(), LatticeMap(claims),
                   Min(marks.get(CANCELLED)), revival_of(*marks.get(REVIVED, (0, 0))),
                   Max((marks[DIED][0] << _DEATH_BITS | marks[DIED][1]) if DIED in marks else 0))


_kept = lru_cache(maxsize=HISTORIES_KEPT)(_decoded)
EMPTY_HISTORY = History()


def encode_claim(token: int, start_ms: int, end_ms: int, holder: bytes, kind: int = 0, until_ms: int = 0) -> bytes:
    """One claim inside a history record."""
    row = CLAIM.pack(token, start_ms, end_ms, kind, len(holder)) + holder
    return row + UNTIL.pack(until_ms) if kind > RELEASED else row


def encode_mark(kind: int, a: int, b: int) -> bytes:
    """A history record that holds one mark only, to be merged into another."""
    return HISTORY_HEAD.pack(0, 0, 0) + CLAIM.pack(kind, a, b, 0, 0)


def _rows(record: bytes) -> Iterator[tuple[int, int, int, Max, str]]:
    at, last = HISTORY_HEAD.size, 0
    while at < len(record):
        if at + CLAIM.size > len(record):
            raise ValueError("history record is cut short")
        token, start_ms, end_ms, kind, size = CLAIM.unpack_from(record, at)
        at += CLAIM.size + size
        holder = record[at - size : at].decode()
        until_ms = 0
        if kind > RELEASED:
            at += UNTIL.size
            until_ms = int.from_bytes(record[at - UNTIL.size : at], "big")
        if at > len(record) or token <= last or kind > FAILED or until_ms >= TIME_MS_MAX:
            raise ValueError("history record is damaged")
        if not _is_mark(token, start_ms, end_ms, kind, size) if token <= DIED else end_ms > TIME_MS_MAX:
            raise ValueError("history record has a damaged row")
        last = token
        yield token, start_ms, end_ms, ending_of(kind, until_ms), holder


def _is_mark(token: int, a: int, b: int, kind: int, size: int) -> bool:
    if kind or size or not a:
        return False
    return token in (CANCELLED, REVIVED) or (token == DIED and 0 < b & (1 << _REASON_BITS) - 1 <= PERMANENT)


def undated(record: bytes) -> bytes:
    """The record as it was before ``DEATH_TIME_RULES``: a mark of death does not say when. One that is damaged is
    as it was."""
    at = HISTORY_HEAD.size
    while at + CLAIM.size <= len(record):
        token, round_, cause, _, _ = CLAIM.unpack_from(record, at)
        if token > DIED:
            break
        if token == DIED and cause >> _REASON_BITS:
            row = CLAIM.pack(DIED, round_, cause & (1 << _REASON_BITS) - 1, 0, 0)
            return record[:at] + row + record[at + CLAIM.size :]
        at += CLAIM.size
    return record


def check_history(record: bytes) -> None:
    """Raises ``ValueError`` when a record is none, for half of what it costs to decode it."""
    if len(record) < HISTORY_HEAD.size:
        raise ValueError("history record is too short")
    for _ in _rows(record):
        pass


def open_claim(history: History, token: int, now_ms: int) -> ClaimRecord | None:
    """The claim, if its holder may act by it: the newest of an open task, not ended, its lease not over."""
    claim = history.claims.entries.get(token)
    if history.completion.value is not None or history.newest_token != token or claim is None:
        return None
    return None if claim.kind or claim.end.value < now_ms else claim


def decode_history(record: bytes | None) -> History:
    """A stored history; nothing stored is an empty one."""
    if record is None:
        return EMPTY_HISTORY
    try:
        return History.decode(record)
    except ValueError:
        raise Corrupt("history", b"") from None
