"""The prelude stands before a task's payload: the options that differ from task to task of a batch.

    prelude = [ WAKE: not before ms u64 ] [ EXPIRES: expires ms u64 ] [ NAMED: made ms u64 | length u8 | name ]
              [ KEYED: length u8 | ordering key ] [ DEPS: count u16 | ids ]

Which of them are there is told by flags in the header (``model.body``), so a batch of tasks with as many times,
keys or dependencies is still one batch. Invariant: one value has one form. Times are not 0, names are not empty,
dependencies rise and none is there twice; so what ``decode`` takes is what ``encode`` gives.

Whether names and dependencies fit the task's id, ``problem_of`` says, once, where a task comes in.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import attrs

from skuld_py.model import ids

TIME_MS_MAX = 253_402_300_799_999
"""The end of the year 9999, the last that a ``datetime`` can show."""
NAME_BYTES_MAX = 255
"""Of an ordering key and of a unique name, in UTF-8."""
DEPS_MAX = 1_000

WAKE, EXPIRES, NAMED, KEYED, DEPS = 0x10, 0x20, 0x40, 0x80, 0x100
PRELUDE = WAKE | EXPIRES | NAMED | KEYED | DEPS
_TIME_BYTES = 8
PRELUDE_BYTES_MAX = 3 * _TIME_BYTES + 2 * (1 + NAME_BYTES_MAX) + 2 + DEPS_MAX * ids.ID_BYTES


@attrs.frozen
class Prelude:
    """The options of one task. Times are milliseconds of the wall clock; 0 and empty are none.

    Not claimed before ``not_before_ms``, not claimed after ``expires_ms``. ``unique`` names the task, once in each
    window of the header, and ``made_ms`` is when it was asked for. Tasks of one ``key`` are worked on in order.
    ``deps``: ids, rising, of tasks that end before this one is claimed.
    """

    not_before_ms: int = 0
    expires_ms: int = 0
    made_ms: int = 0
    unique: str = ""
    key: str = ""
    deps: tuple[bytes, ...] = ()

    @property
    def flags(self) -> int:
        """A flag for each option that is there."""
        return ((WAKE if self.not_before_ms else 0) | (EXPIRES if self.expires_ms else 0)
                | (NAMED if self.unique else 0) | (KEYED if self.key else 0) | (DEPS if self.deps else 0))

    def encode(self) -> bytes:
        """The canonical bytes; what is not there takes none."""
        parts = [_time_bytes(time_ms) for time_ms in (self.not_before_ms, self.expires_ms) if time_ms]
        if self.unique:
            parts += [_time_bytes(self.made_ms), _name_bytes(self.unique)]
        if self.key:
            parts.append(_name_bytes(self.key))
        if self.deps:
            parts += [len(self.deps).to_bytes(2, "big"), *self.deps]
        return b"".join(parts)

    @classmethod
    def decode(cls, flags: int, rest: bytes) -> tuple[Prelude, int]:
        """The prelude before a payload, and its size in bytes; raises ``ValueError``, naming the field."""
        not_before_ms, at = _time("not_before", rest, 0) if flags & WAKE else (0, 0)
        expires_ms, at = _time("expires", rest, at) if flags & EXPIRES else (0, at)
        if not flags & (NAMED | KEYED | DEPS):
            return cls(not_before_ms, expires_ms), at
        made_ms, at = _time("made", rest, at) if flags & NAMED else (0, at)
        unique, at = _name("unique", rest, at) if flags & NAMED else ("", at)
        key, at = _name("key", rest, at) if flags & KEYED else ("", at)
        deps, at = _deps(rest, at) if flags & DEPS else ((), at)
        return cls(not_before_ms, expires_ms, made_ms, unique, key, deps), at

    def problem_of(self, task_id: bytes, queue: str, window_ms: int) -> str:
        """What is wrong with its id or its dependencies, ``""`` when they fit."""
        if task_id in self.deps:
            return "deps: a task cannot wait for itself"
        if self.deps and self.unique:
            return "deps: a task with a unique name has none; enqueue one without a name that waits, and then this"
        if ids.is_laned(task_id) != bool(self.key):
            return "id: an id is of a lane exactly when its task has a key; let the client make it"
        if self.key and any(dep > task_id and ids.is_laned(dep) and dep[16:] == task_id[16:] for dep in self.deps):
            return ("deps: a younger task of its key, which is worked on after it, so both would wait for ever;"
                    " make the id of what it needs before its own")
        if self.unique:
            made = ids.named_id(queue, self.unique, self.made_ms // window_ms * window_ms, self.key)
            return "" if task_id == made else "id: is not the one of this unique name and time"
        if self.key and ids.route_of(task_id) != ids.lane_route(queue, self.key):
            return "id: is of another key's lane; let the client make it"
        return ""


_ONE = (1).to_bytes(2, "big")
ONE_DEP_BYTES = len(_ONE) + ids.ID_BYTES
"""The prelude of a task with one dependency and no other option."""


def only_deps(flags: int, rests: Sequence[bytes]) -> list[bytes]:
    """The dependencies of a batch, if each task has one and no other option, which is so common that it is seen by
    looking at columns; else none."""
    fronts = b"".join([rest[:ONE_DEP_BYTES] for rest in rests]) if flags == DEPS else b""
    is_so = len(fronts) == ONE_DEP_BYTES * len(rests) and all(
        fronts[at::ONE_DEP_BYTES].count(byte) == len(rests) for at, byte in enumerate(_ONE))
    return list(struct.unpack(f"{len(_ONE)}x{ids.ID_BYTES}s" * len(rests), fronts)) if is_so else []


def fronts_of(deps: Sequence[bytes]) -> list[bytes]:
    """The preludes of such tasks."""
    return [_ONE + dep for dep in deps]


def _time_bytes(time_ms: int) -> bytes:
    return time_ms.to_bytes(_TIME_BYTES, "big")


def _name_bytes(name: str) -> bytes:
    data = name.encode()
    return bytes([len(data)]) + data


def _time(field: str, rest: bytes, at: int) -> tuple[int, int]:
    end = at + _TIME_BYTES
    time_ms = int.from_bytes(rest[at:end], "big")
    if len(rest) < end or not 1 <= time_ms <= TIME_MS_MAX:
        raise ValueError(f"{field}: is cut short, or not in 1..{TIME_MS_MAX} ms")
    return time_ms, end


def _name(field: str, rest: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + (rest[at] if at < len(rest) else 0)
    if len(rest) < end or end == at + 1:
        raise ValueError(f"{field}: is empty, or cut short")
    return rest[at + 1 : end].decode(), end


def _deps(rest: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    count, at = int.from_bytes(rest[at : at + 2], "big"), at + 2
    end = at + count * ids.ID_BYTES
    if len(rest) < end or not 1 <= count <= DEPS_MAX:
        raise ValueError(f"deps: are cut short, or not 1..{DEPS_MAX}")
    deps = tuple(ids.split(rest[at:end]))
    if any(dep >= following for dep, following in pairwise(deps)):
        raise ValueError("deps: do not rise")
    return deps, end
