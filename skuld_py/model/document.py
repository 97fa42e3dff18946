"""The partition document: which node leads, by which votes, since which epoch. One znode per partition.

It changes only by test-and-set bound to the revision the decision read. ``write_id`` is unique to
the attempt: after a lost connection the outcome is settled by reading the document back and
looking for one's own ``write_id``, never by trying again. Every writer evolves the document it
read, so that a field it does not know survives it (``unknown``).

``promises`` keeps what a voter must remember: the newest epoch for which its vote was counted. Older programs
carry the field on and do not write it, so what it says is true, but may be older than the voter's newest promise.

Within an epoch leader, cohort, floor, promises and previous stay; a new cohort means a new epoch. ``era`` is the
epoch that seated the present cohort, so that "the same cohort?" is a comparison of numbers.

What operators wish (``INTENTS``) may be nonsense, by a slip of a hand. Then it counts as not being there and is
kept in ``malformed``, for status to name and for the leader to take out: no wish may stop a partition. Nor may one
blind those who look: a text that no message can carry is nonsense, too, and so is a time beyond the year 9999, and
a text that would leave the document no room to be written again.

Source: Manatee's cluster state object, with majorities in the place of its single sync.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from skuld_py.errors import Malformed
from skuld_py.model.bounds import MOMENT_MS_MAX

FORMAT = 1
INTENTS = ("freeze", "promote", "mode", "force", "barred")
"""The fields that operators write."""
NORMAL, SOLO = "normal", "solo"
LEAD, REORDER, REBALANCE, REAP = "lead", "reorder", "rebalance", "reap"
WORD_BYTES = 1_000
"""A text in what operators write may have so many."""


@attrs.frozen
class Seat:
    """A voter: a node, and the data directory (``incarnation``) that its vote rests on."""

    node: str
    incarnation: str = ""


def seats_of(names: Iterable[str], incarnations: Mapping[str, str] | None = None) -> tuple[Seat, ...]:
    """Seats for nodes, in their order."""
    known = incarnations or {}
    return tuple(Seat(name, known.get(name, "")) for name in names)


@attrs.frozen
class Floor:
    """What the leader had recovered when it was written: live claims; the root of the hash tree of all its records
    (0: none, or not known yet); the latest end of a claim."""

    claims: int = 0
    digest: int = 0
    end_ms: int = 0


@attrs.frozen
class Quarantine:
    """A voter whose memory is not to be trusted until it has filled again from the others."""

    node: str
    incarnation: str
    reason: str
    since_ms: int


@attrs.frozen
class Freeze:
    """Only the recorded leader may stand, and the cohort stays, until lifted or ``until_ms`` (0: never)."""

    id: str
    by: str
    reason: str
    at_ms: int
    until_ms: int = 0


@attrs.frozen
class Promotion:
    """An operator's wish: ``target`` shall lead (``lead``), or be the first to succeed the leader (``reorder``);
    or the voters shall stand in the order of placement, and the first of them lead (``rebalance``, no target);
    or the target, which is down, shall be no voter any more (``reap``)."""

    id: str
    kind: str
    target: str
    epoch: int
    expires_ms: int
    by: str


@attrs.frozen
class Bar:
    """An operator's word that a node is not to be trusted: it leads nothing, and gets no new vote."""

    id: str
    node: str
    by: str
    reason: str
    at_ms: int


@attrs.frozen
class Force:
    """An operator's word that so many voters of ``epoch`` are lost for good that no majority will ever be there
    again: ``remaining``, all of them together, elect the next leader by themselves."""

    id: str
    epoch: int
    remaining: tuple[str, ...]
    by: str
    reason: str
    at_ms: int


@attrs.frozen
class Loss:
    """That voters were given up, for people: what only they had is gone. ``epoch`` is that of the first leader
    after them, which grants nothing before ``until_ms``. ``missing``: how many tasks those who remain have heard
    of and do not have, once that was counted (``counted_ms``); ``named``: the first of them."""

    epoch: int
    lost: tuple[str, ...]
    remaining: tuple[str, ...]
    by: str
    reason: str
    at_ms: int
    until_ms: int
    counted_ms: int = 0
    missing: int = 0
    named: tuple[str, ...] = ()


@attrs.frozen
class Previous:
    """The leadership before this one."""

    epoch: int = 0
    leader: str = ""
    cohort: tuple[str, ...] = ()


@attrs.frozen
class Document:
    """``epoch`` rises by test-and-set; ``seats`` voted it in, in the order of succession; ``boot`` names
    the leader's process. No claim ends after ``horizon_ms``; none is granted before ``no_grant_before_ms``."""

    epoch: int = 0
    leader: str = ""
    boot: str = ""
    seats: tuple[Seat, ...] = ()
    write_id: str = ""
    cause: str = ""
    era: int = 0
    learners: tuple[str, ...] = ()
    floor: Floor = Floor()
    horizon_ms: int = 0
    no_grant_before_ms: int = 0
    spent: int = 0
    """Epochs up to this one were promised to candidates that never led; 0 if no candidate had to say so."""
    quarantine: tuple[Quarantine, ...] = ()
    mode: str = NORMAL
    barred: tuple[Bar, ...] = ()
    freeze: Freeze | None = None
    promote: Promotion | None = None
    force: Force | None = None
    loss: Loss | None = None
    """The last time that voters were given up, until an operator has taken note of it."""
    previous: Previous = Previous()
    promises: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    """Voter -> the newest epoch that it has promised, as the leaders elected by its vote know."""
    put_back: int = 0
    """How often its leader has written it again after somebody had deleted it. Each time its versions begin anew,
    so a swap is bound to this number too: one that was decided before finds no document of its version."""
    unknown: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    malformed: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    """What operators wrote that is no wish, as it was found."""

    @property
    def told_epoch(self) -> int:
        """The newest epoch that the document tells of."""
        return max(self.epoch, self.spent)

    @property
    def cohort(self) -> tuple[str, ...]:
        """The voters by name."""
        return tuple(seat.node for seat in self.seats)

    @property
    def outlaws(self) -> tuple[str, ...]:
        """The nodes that an operator has put into quarantine."""
        return tuple(bar.node for bar in self.barred)

    def encode(self) -> bytes:
        """JSON, so that an operator can read it with any ZooKeeper client."""
        fields = attrs.asdict(self)
        for name in ("barred", "put_back"):
            if not fields[name]:
                del fields[name]
        unknown, malformed = fields.pop("unknown"), fields.pop("malformed")
        return json.dumps({**unknown, **fields, **malformed, "format": FORMAT}, sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Document:
        """Parse; raises ``Malformed`` naming the field, unless that is an operator's."""
        try:
            fields = dict(_object(json.loads(raw)))
        except (ValueError, TypeError, RecursionError) as problem:
            raise Malformed("partition document", repr(problem)) from None
        if fields.pop("format", FORMAT) != FORMAT:
            raise Malformed("partition document.format", "is of a newer version; upgrade this node")
        known, malformed = dict[str, Any](), dict[str, Any]()
        for name, parse in _PARSERS.items():
            if name in fields:
                value = fields.pop(name)
                try:
                    known[name] = _parse(name, parse, value)
                except Malformed:
                    if name not in INTENTS:
                        raise
                    malformed[name] = value
        if "epoch" not in known:
            raise Malformed("partition document.epoch", "is missing")
        return cls(**known, unknown=fields, malformed=malformed)


def _parse(name: str, parse: Any, value: Any) -> Any:
    try:
        return parse(value)
    except (ValueError, KeyError, TypeError) as problem:
        raise Malformed(f"partition document.{name}", repr(problem)) from None


def _names(value: Any) -> tuple[str, ...]:
    return tuple(_text(name) for name in _list(value))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _word(value: Any) -> str:
    if len(_text(value).encode()) > WORD_BYTES:  # one that is no UTF-8 raises a ValueError
        raise ValueError(f"{value[:40]!r} is longer than {WORD_BYTES} bytes")
    return str(value)


def _words(value: Any) -> tuple[str, ...]:
    words = tuple(_word(word) for word in _list(value))
    if len({*words}) != len(words):
        raise ValueError(f"{value!r} names somebody twice")
    return words


def _moment(value: Any) -> int:
    if _number(value) > MOMENT_MS_MAX:
        raise ValueError(f"{value!r} is no time before the year 10000")
    return int(value)


def _mode(value: Any) -> str:
    if value not in (NORMAL, SOLO):
        raise ValueError(f"{value!r} is neither {NORMAL} nor {SOLO}")
    return str(value)


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number from 0 up")
    return value


def _record(of: type, **parsers: Any) -> Any:
    """Reads an object into ``of``; fields it does not name are an error of the format, not dropped."""
    def parse(value: Any) -> Any:
        strange = {*_object(value)} - {*parsers}
        if strange:
            raise ValueError(f"unknown fields {sorted(strange)}")
        return of(**{name: parsers[name](part) for name, part in value.items()})
    return parse


def _numbers(value: Any) -> dict[str, int]:
    return {_text(name): _number(number) for name, number in _object(value).items()}


_seat = _record(Seat, node=_text, incarnation=_text)
_quarantine = _record(Quarantine, node=_text, incarnation=_text, reason=_text, since_ms=_number)
_freeze = _record(Freeze, id=_word, by=_word, reason=_word, at_ms=_moment, until_ms=_moment)
_promotion = _record(Promotion, id=_word, kind=_word, target=_word, epoch=_number, expires_ms=_moment, by=_word)
_bar = _record(Bar, id=_word, node=_word, by=_word, reason=_word, at_ms=_moment)
_force = _record(Force, id=_word, epoch=_number, remaining=_words, by=_word, reason=_word, at_ms=_moment)
_loss = _record(Loss, epoch=_number, lost=_names, remaining=_names, by=_text, reason=_text, at_ms=_number,
                until_ms=_number, counted_ms=_number, missing=_number, named=_names)
_PARSERS = {
    "epoch": _number, "leader": _text, "boot": _text, "write_id": _text, "cause": _text, "era": _number,
    "seats": lambda value: tuple(_seat(part) for part in _list(value)),
    "learners": _names, "floor": _record(Floor, claims=_number, digest=_number, end_ms=_number),
    "horizon_ms": _number, "no_grant_before_ms": _number, "spent": _number,
    "quarantine": lambda value: tuple(_quarantine(part) for part in _list(value)), "mode": _mode,
    "barred": lambda value: tuple(_bar(part) for part in _list(value)),
    "freeze": lambda value: None if value is None else _freeze(value),
    "promote": lambda value: None if value is None else _promotion(value),
    "force": lambda value: None if value is None else _force(value),
    "loss": lambda value: None if value is None else _loss(value),
    "previous": _record(Previous, epoch=_number, leader=_text, cohort=_names), "promises": _numbers,
    "put_back": _number,
}

NOBODY = Document()


@attrs.frozen
class Member:
    """A live node process: its name, address, the id of this start (``boot``), and that of its data."""

    name: str
    host: str
    port: int
    boot: str
    incarnation: str = ""
