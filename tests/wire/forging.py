"""Peer messages as an enemy, or a peer gone wrong, would make them: of the right types, with values that bite.

A value is mostly one that the receiver knows (its tasks, tokens, cursors, epochs, open operations), for what it
does not know is seldom looked at; else it lies at an edge of its kind, or just beyond it. Drawn from a seed,
without a search, so that a hundred thousand take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model import columns, fields
from skuld_py.model import messages as m
from skuld_py.model.bounds import U32_MAX, U63_MAX
from skuld_py.model.columns import Column
from skuld_py.model.history import (
    CANCELLED,
    DIED,
    RELEASED,
    REVIVED,
    TIME_MS_MAX,
    ClaimRecord,
    History,
    encode_mark,
    ending_of,
    token_of,
)
from skuld_py.model.notes import SUB
from skuld_py.model.outcomes import ERROR_SEQ, FIRST_TOKEN, LOG_SEQS, RESULT_SEQ

Forge = Callable[[int], Any]
"""Makes a value; a list or column has so many items."""
ITEMS = 3
ODD_NUMBERS = (0, 1, 2, 3, 255, 1 << 16, 1 << 31, U32_MAX - 1, U32_MAX, U32_MAX + 1, TIME_MS_MAX - 1, TIME_MS_MAX,
               TIME_MS_MAX + 1, U63_MAX)
STRANGERS = ("evil:1", "evil:2", "127.0.0.1:9", "x")


@attrs.define
class Known:
    """What the receiver knows, as far as it makes forgeries bite."""

    names: Sequence[str]
    partitions: int
    now_ms: int = 0
    queues: list[str] = attrs.field(factory=list)
    ids: list[bytes] = attrs.field(factory=list)
    ids_of: dict[int, list[bytes]] = attrs.field(factory=dict)
    """The same by partition."""
    tokens: list[int] = attrs.field(factory=list)
    epochs: list[int] = attrs.field(factory=list)
    histories: list[bytes] = attrs.field(factory=list)
    bodies: list[bytes] = attrs.field(factory=list)
    headers: list[bytes] = attrs.field(factory=list)
    places: list[bytes] = attrs.field(factory=list)
    cursors: list[bytes] = attrs.field(factory=lambda: [b""])
    requests: list[int] = attrs.field(factory=lambda: [0])
    turns: list[int] = attrs.field(factory=lambda: [0])
    cluster_id: str = "id"
    lives: list[str] = attrs.field(factory=lambda: ["x:1~1"])


class Forger:
    """Makes messages of any class from what is known."""

    def __init__(self, random: Random, known: Known) -> None:
        self._random = random
        self.known = known
        self._pick = random.choice
        self._below = random.randrange
        self._focus = 0
        self._makers: dict[type, Callable[[], Any]] = {}
        self._by_name: dict[str, Forge] = {
            "partition": lambda _: self._partition(),
            "epoch": lambda _: self._epoch(), "era": lambda _: self._epoch(), "base": lambda _: self._epoch(),
            "promised": lambda _: self._epoch(), "settled": lambda _: self._epoch(),
            "first_token": lambda _: self._token(), "token": lambda _: self._token(),
            "tokens": self._column_of(self._token), "seqs": self._column_of(self._seq),
            "partitions": self._column_of(self._partition), "unkept": self._column_of(self._partition),
            "lacking": self._column_of(self._partition), "led": self._column_of(self._partition),
            "epochs": self._column_of(self._epoch), "eras": lambda _: self._eras(),
            "ids": lambda count: b"".join(self._id() for _ in range(count)), "id": lambda _: self._id(),
            "refused": lambda count: b"".join(self._id() for _ in range(count)),
            "queue": lambda _: self._pick(self.known.queues), "request": lambda _: self._request(),
            "histories": self._strings_of(self._history), "history": lambda _: self._history(),
            "bodies": self._strings_of(self._body),
            "body": lambda _: columns.pack([self._body()]) if self._below(4) else Column(),
            "places": self._strings_of(self._place), "after": lambda _: self._cursor(),
            "next": lambda _: self._cursor(), "upto": lambda _: self._cursor(),
            "header": lambda _: self._pick(self.known.headers), "node": lambda _: self._name(),
            "holder": lambda _: self._name(), "writer": lambda _: self._name(),
            "cluster_id": lambda _: self.known.cluster_id, "joiner": lambda _: self._pick(self.known.lives),
            "vetoed": self._column_of(lambda: self._below(5)), "gone": self._column_of(lambda: self._below(5)),
            "kept": self._column_of(lambda: self._below(5)), "differing": self._column_of(lambda: self._below(70)),
            "parents": self._column_of(lambda: self._below(70)),
            "cohort": lambda _: self._cohort(), "sources": lambda _: self._cohort(), "seq": lambda _: self._seq(),
            "units": self._units, "turn": lambda _: self._pick(self.known.turns),
            "role": lambda _: self._pick(("learner", "suspect", "zombie", "x")),
            "ends": lambda count: bytes(self._below(8) for _ in range(count)),
        }

    def message(self, of: type[m.Message]) -> m.Message:
        """One of a class, mostly about one partition, and mostly with fields that go together."""
        self._focus = self._below(self.known.partitions)
        message = self._record(of)
        if self._below(4):
            if isinstance(message, m.Grant):
                epoch = message.epoch or 1
                message = attrs.evolve(message, epoch=epoch, first_token=token_of(epoch, 1 + self._below(5)),
                                       end_ms=message.start_ms + self._below(60_000))
            elif isinstance(message, m.Amend):
                message = attrs.evolve(message, tokens=b"", errors=Column())
            elif isinstance(message, m.Offered):
                message = attrs.evolve(
                    message, bodies=Column(), histories=Column(), counts=b"", tokens=b"", seqs=b"",
                    entries=Column(), tasks=message.tasks if self._below(2) else ())
        return cast(m.Message, message)

    # -- records ---------------------------------------------------------------------------------

    def _record(self, of: type) -> Any:
        maker = self._makers.get(of)
        if maker is None:
            maker = self._makers[of] = self._compile(of)
        return maker()

    def _compile(self, of: type) -> Callable[[], Any]:
        equal = getattr(of, "columns", ())
        makes: list[tuple[Forge, bool]] = []
        for field in attrs.fields(of):
            kind = field.metadata["kind"]
            makes.append((self._forge_of(of, field.name, kind), field.name in equal))
        below = self._below

        def make() -> Any:
            count = below(ITEMS + 1)
            return of(*[forge(count if is_equal else below(ITEMS + 1)) for forge, is_equal in makes])
        return make

    def _forge_of(self, of: type, name: str, kind: fields.Kind) -> Forge:
        if name.endswith("_ms"):
            return lambda _: self._time()
        if isinstance(kind, fields.Number | fields.Name) and name in ("after", "next", "upto", "partitions"):
            return self._by_kind(kind)
        named = self._by_name.get(name)
        if named is not None and not (name == "seqs" and of is m.Note):
            return named
        if name == "seqs":
            return self._column_of(lambda: self._below(self.known.partitions + 2))
        return self._by_kind(kind)

    def _by_kind(self, kind: fields.Kind) -> Forge:
        below, pick = self._below, self._pick
        match kind:
            case fields.Number(low, high):
                near = [value for value in (low, low + 1, low + 2, high - 1, high, *ODD_NUMBERS)
                        if low <= value <= high]
                return lambda _: pick(near) if below(50) else low - 1
            case fields.Truth():
                return lambda _: below(2) == 1
            case fields.Name(is_life=True):
                return lambda _: pick(self.known.lives)
            case fields.Name(is_wide=True):
                return lambda _: self._name()
            case fields.Name():
                return lambda _: pick((*self.known.queues, "limits", "paused", "schedule"))
            case fields.Text():
                return lambda _: pick(("", "x", "\x9b31m\u202e", "a" * 20))
            case fields.Blob(unit):
                return lambda count: self._random.randbytes(unit * count)
            case fields.Strings(count_max):
                return self._strings_of(lambda: self._random.randbytes(below(30)))
            case fields.Rows(of, count_max):
                return lambda count: tuple(self._record(of) for _ in range(min(count, count_max)))
            case fields.Names():
                return lambda _: self._cohort()
        raise AssertionError(f"no way to forge {kind}")

    # -- values ----------------------------------------------------------------------------------

    def _column_of(self, one: Callable[[], int]) -> Forge:
        return lambda count: columns.pack_u64([one() for _ in range(count)])

    def _strings_of(self, one: Callable[[], bytes]) -> Forge:
        return lambda count: columns.pack([one() for _ in range(count)])

    def _units(self, count: int) -> Column:
        return columns.pack(sorted(self._id() + (b"" if self._below(4) else bytes(12)) for _ in range(count)))

    def _partition(self) -> int:
        return self._focus if self._below(20) else self._pick(
            (*range(self.known.partitions), self.known.partitions, PARTITIONS_MAX - 1, PARTITIONS_MAX, U63_MAX))

    def _epoch(self) -> int:
        near: int = self._pick(self.known.epochs) + self._below(4) - 1
        far = (0, 1, near + 1_000, near + 2_000, U32_MAX - 1, U32_MAX)
        return max(0, near) if self._below(8) else self._pick(far)

    def _token(self) -> int:
        draw = self._below(10)
        if draw < 6:
            token: int = self._pick(self.known.tokens)
            return token
        return token_of(self._epoch(), self._below(5)) & U63_MAX if draw < 9 else self._pick(ODD_NUMBERS)

    def _seq(self) -> int:
        return self._pick((0, 1, 2, LOG_SEQS - 2, LOG_SEQS - 1, RESULT_SEQ, ERROR_SEQ, SUB & U32_MAX, U32_MAX))

    def _eras(self) -> bytes:
        numbers: list[int] = []
        for _ in range(self._below(3)):
            numbers += (self._partition(), self._epoch())
        return columns.pack_u64(numbers if self._below(20) else [*numbers, 1])

    def _id(self) -> bytes:
        draw = self._below(20)
        if draw:
            task_id: bytes = self._pick(self.known.ids_of.get(self._focus) or self.known.ids)
            if draw == 17:
                task_id = self._pick(self.known.ids)
            return task_id if draw < 18 else task_id[:12] + self._random.randbytes(4) + task_id[16:]
        return self._random.randbytes(20)

    def _time(self) -> int:
        draw = self._below(8)
        if draw < 6:
            return self.known.now_ms + self._below(20_000) - 10_000
        return self._pick((0, *ODD_NUMBERS))

    def _request(self) -> int:
        return self._pick(self.known.requests) if self._below(4) else self._below(100)

    def _name(self) -> str:
        return self._pick(self.known.names) if self._below(6) else self._pick(STRANGERS)

    def _cohort(self) -> tuple[str, ...]:
        draw = self._below(8)
        if draw < 5:
            return tuple(self.known.names)
        return tuple(self._name() for _ in range(self._below(5)))

    def _cursor(self) -> bytes:
        return self._pick(self.known.cursors) if self._below(3) else self._random.randbytes(self._below(33))

    def _body(self) -> bytes:
        return self._pick(self.known.bodies) if self._below(8) else self._random.randbytes(self._below(30))

    def _place(self) -> bytes:
        return self._pick(self.known.places) if self._below(6) else self._random.randbytes(self._below(9))

    def _history(self) -> bytes:
        draw = self._below(8)
        if draw < 3:
            record: bytes = self._pick(self.known.histories)
            return record
        if draw == 3:
            spoilt = bytearray(self._pick(self.known.histories))
            spoilt[self._below(len(spoilt))] ^= 1 << self._below(8)
            return bytes(spoilt)
        if draw == 4:
            return encode_mark(self._pick((CANCELLED, REVIVED, DIED)), self._time(), self._below(6))
        return self._made_up_history()

    def _made_up_history(self) -> bytes:
        start_ms = abs(self._time())
        claim = ClaimRecord(start_ms, Max(min(start_ms + 60_000, TIME_MS_MAX)),
                            ending_of(self._below(4), self._below(1_000)), self._name())
        if claim.kind <= RELEASED:
            claim = attrs.evolve(claim, ending=ending_of(claim.kind))
        token = max(FIRST_TOKEN, self._token())
        done = Min((max(1, self._time()), token)) if not self._below(4) else Min()
        return History(done, LatticeMap({token: claim})).encode()
