"""The ids of a workflow's tasks, and what a segment's completion says of the segments that it emits.

Ids are derived, never minted: whoever knows a completion knows the ids of what it emits, so anybody may enqueue
that again, and it changes nothing. They are task ids like others (``model.ids``). Their first 64 bits are a time
at which nodes take them: neither older than what they have closed nor of the future. The route of a tree is that
of its root, and what is between time and route is a hash.

* **A root**'s time is that of the batch in which its feeder drew it, and is in the feeder's checkpoint before the
  root is enqueued. Roots whose numbers stand side by side share a route, so a batch is few partitions' business.
* **A child**'s time is the start of the claim whose completion emits it: a leader's clock, in the history of the
  parent, the same on every copy, and known to the holder from the claim's answer (its end less its lease). So a
  child is refused only when its parent's claim began before all that is kept: retention must be longer than a
  root's life. Rejected: the time of the completion. Its coordinator sets it, no answer tells it, and it may fall
  when a copy that was cut off comes back.

**Which completion?** The earliest stands, by the clocks of coordinators; and one that is earlier may become known
after another has been read (``model.outcomes``): a holder completes at one copy only, is cut off, its lease
lapses, another holder completes everywhere and emits, then the first copy comes back. So "the children of the
winning completion" is not one set for ever. Therefore the claim's token is hashed into the ids of what it emits,
and a holder emits only when no other claim can ever complete (``is_sole``). Proof: it was the first claim, or all
former ones were given back by their holders, who do not complete what they gave back; and when its completion was
acknowledged by a majority its lease was not over. Until then no leader could grant another claim, and since then
each majority has a copy that knows of the completion and vetoes one. All other holders leave it to the feeder, who
is one, fenced, and writes down which token it takes before it emits (``acking.feeder``).

Rejected: ids of the parent alone (two attempts that emit different lists would make a mixture of both).
"""

from __future__ import annotations

import hashlib
import struct
from functools import reduce
from operator import xor

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Malformed, Refused
from skuld_py.model.history import TIME_MS_MAX
from skuld_py.model.ids import ID_BYTES, TaskId
from skuld_py.model.names import queues_of
from skuld_py.workflow.definition.names import FEEDS, SEALS

EMISSION_BYTES_MAX = DEFAULT_LIMITS.entry_bytes - 1_024
"""Of an emission as stored. It is part of a result, which has 64 KiB; the rest is for what an output says."""
EMITTED_MAX = 4_096
"""Segments that one segment emits at most."""
STRAND_DIGITS = 2
STEPS_MAX = 256
NAME_BYTES_MAX = 64
STRIPE = 64
"""Roots of one route: those of numbers ``64 n`` to ``64 n + 63``."""
NUMBER_MAX = 1 << 62
"""Of roots of one input, at most."""
_TOKEN_END = 1 << 64
_VALUE_BITS = (1 << 63) - 1
_HEAD = b"skE\x01"
_COUNTS = struct.Struct(">HH")


# -- ids ---------------------------------------------------------------------------------------------


def root_ids(workflow: str, step: str, first: int, count: int, time_ms: int) -> list[bytes]:
    """The ids of ``count`` roots of an input, by their numbers from ``first`` on; see ``root_id``."""
    _check("first", first, NUMBER_MAX)
    end, made = first + count, list[bytes]()
    head = _time(time_ms)
    while first < end:
        stripe, offset = divmod(first, STRIPE)
        taken = min(end - first, STRIPE - offset)
        drawn = _drawn(4 + STRIPE * 8, "root", workflow, step, stripe)
        values = _values(drawn[4:])[offset : offset + taken]
        made += [head + value.to_bytes(8, "big") + drawn[:4] for value in values]
        first += taken
    return made


def root_id(workflow: str, step: str, number: int, time_ms: int) -> TaskId:
    """The id of a root: of an input, the root's number from 0 on, and the time of its batch."""
    return TaskId(root_ids(workflow, step, number, 1, time_ms)[0])


def child_ids(parent: bytes, token: int, start_ms: int, count: int) -> list[bytes]:
    """The ids of the first ``count`` segments that a claim's completion emits: the claim's segment, its token, and
    when the claim began by its leader's clock. Of more, the first have the same ids."""
    head, tail = _time(start_ms), parent[16:]
    return [head + value.to_bytes(8, "big") + tail for value in _child_values(parent, token, count)]


def child_id(parent: bytes, token: int, start_ms: int, number: int) -> TaskId:
    """The id of one of them, numbered from 0 on."""
    return TaskId(child_ids(parent, token, start_ms, number + 1)[number])


def feeder_id(workflow: str, source: str, time_ms: int) -> TaskId:
    """The id of the task that feeds an input, or a strand of it. The time is that of the submission, and its log
    entry says it."""
    return _own_id("feed", workflow, source, time_ms)


def seal_id(workflow: str, step: str, time_ms: int) -> TaskId:
    """The id of the task that seals a leaf. The time must be known to all who may enqueue it, and recent: it is
    that of the last exhausting."""
    return _own_id("seal", workflow, step, time_ms)


def haul_id(workflow: str, step: str, offset: int, time_ms: int) -> TaskId:
    """The id of the task that says which tasks an input drew from a queue together; the offset says its time."""
    return _own_id("haul", workflow, step, time_ms, offset)


def haul_queue(workflow: str, step: str) -> str:
    """The queue of these tasks, in which nobody claims."""
    return f"{queues_of(workflow)}_hauls-{step}"


def ack_queue(workflow: str, source: str) -> str:
    """The queue of the acks of roots of one input, or of a strand of it, which its feeder claims. No step's name
    begins like this, so it is no step's queue."""
    step, strand = strand_of(source)
    return f"{queues_of(workflow)}_acks{strand or ''}-{step}"


def feeder_queue(workflow: str, step: str) -> str:
    """The queue of the feeders of an input alone: it has several, or needs other workers than another input."""
    return f"{queues_of(workflow)}{FEEDS}{step}"


def seal_queue(workflow: str, step: str) -> str:
    """The queue of what seals a leaf alone, where another leaf needs other workers."""
    return f"{queues_of(workflow)}{SEALS}{step}"


# -- strands -----------------------------------------------------------------------------------------


def sources_of(step: str, strands: int) -> list[str]:
    """Who makes the roots of an input: it by itself, and where it has several feeders its strands. No step's name
    has a colon."""
    return [step, *(f"{step}:{strand}" for strand in range(1, strands))]


def strand_of(source: str) -> tuple[str, int]:
    """The input, and which strand of it; the first is called as the input."""
    step, _, strand = source.partition(":")
    if strand and not (strand.isascii() and strand.isdecimal() and len(strand) <= STRAND_DIGITS):
        raise Malformed("source", "its strand is no number")
    return step, int(strand or 0)


# -- acks --------------------------------------------------------------------------------------------


def value_of(segment: bytes) -> int:
    """What a segment is in the sums of acks: the 63 bits of its id that are a hash."""
    return int.from_bytes(segment[8:16], "big") & _VALUE_BITS


def ack_of(segment: bytes, token: int, count: int) -> int:
    """A segment's ack: its value and those of the ``count`` segments that its completion emitted, by XOR. It is a
    function of the completion, so hearing it twice, from whomever, is hearing the same."""
    return reduce(xor, _child_values(segment, token, count), value_of(segment))


def is_sole(is_alone: bool, acknowledged_s: float, deadline_s: float) -> bool:
    """Whether a holder whose completion a majority has stored may emit by itself: the answer came before its lease
    was over, by its steady clock; and the claim ``is_alone``, that is the task's first, or all former ones failed,
    were snoozed or released. Otherwise another claim may stand: it leaves the segment to the feeder."""
    return is_alone and acknowledged_s < deadline_s


# -- what a completion emits -------------------------------------------------------------------------

Emitted = tuple[str, bytes]
"""The step that a segment is for, and its value as bytes."""


@attrs.frozen
class Emission:
    """What a segment's completion emits: ``rows`` in order, which is the order of their numbers."""

    rows: tuple[Emitted, ...] = ()

    def encode(self) -> bytes:
        """The stored form, never empty: a completion without a result would take another one's. ``Refused`` when
        it is too large."""
        if len(self.rows) > EMITTED_MAX:
            raise Refused("too_many_emitted", f"emitted: {len(self.rows)} segments from one, the limit is"
                          f" {EMITTED_MAX}; emit lists of them, or add a step between", field="emitted")
        names = list(dict.fromkeys(step for step, _ in self.rows))
        number = {name: index for index, name in enumerate(names)}
        texts = [name.encode() for name in names]
        if len(names) > STEPS_MAX or any(not 0 < len(text) <= NAME_BYTES_MAX for text in texts):
            raise Refused("bad_step", f"emitted: to {len(names)} steps; to at most {STEPS_MAX}, with names of 1 to"
                          f" {NAME_BYTES_MAX} bytes", field="emitted")
        values = [value for _, value in self.rows]
        data = b"".join((
            _HEAD, _COUNTS.pack(len(names), len(values)), bytes(map(len, texts)), *texts,
            bytes(number[step] for step, _ in self.rows), struct.pack(f">{len(values)}H", *map(_size, values)),
            *values))
        if len(data) > EMISSION_BYTES_MAX:
            raise Refused("emission_too_large", f"emitted: {len(data)} bytes from one segment, the limit is"
                          f" {EMISSION_BYTES_MAX}; write the values to a file and emit its path, or emit fewer",
                          field="emitted")
        return data

    @classmethod
    def decode(cls, data: object) -> Emission:
        """Of the stored form; total: anything else is ``Malformed``, and no more memory than it has bytes."""
        if not isinstance(data, bytes) or len(data) > EMISSION_BYTES_MAX or not data.startswith(_HEAD):
            raise Malformed("emission", "it is none")
        names, count, at = _named(data)
        at, steps = at + count, data[at : at + count]
        lengths_end = at + 2 * count
        if count > EMITTED_MAX or lengths_end > len(data) or max(steps, default=-1) >= len(names):
            raise Malformed("emission", "its counts do not fit")
        lengths = struct.unpack_from(f">{count}H", data, at)
        if lengths_end + sum(lengths) != len(data):
            raise Malformed("emission", "its lengths do not fit")
        rows, at = list[Emitted](), lengths_end
        for step, length in zip(steps, lengths, strict=True):
            rows.append((names[step], data[at : at + length]))
            at += length
        return cls(tuple(rows))


def _named(data: bytes) -> tuple[list[str], int, int]:
    """The steps, how many segments there are, and where what is said of them begins."""
    at = len(_HEAD) + _COUNTS.size
    if len(data) < at:
        raise Malformed("emission", "it is cut short")
    steps, count = _COUNTS.unpack_from(data, len(_HEAD))
    sizes, names = data[at : at + steps], list[str]()
    at += steps
    for size in sizes:
        try:
            names.append(data[at : at + size].decode())
        except UnicodeDecodeError:
            raise Malformed("emission", "a step's name is no text") from None
        at += size
    if len(sizes) < steps or at > len(data) or not all(0 < size <= NAME_BYTES_MAX for size in sizes):
        raise Malformed("emission", "its steps do not fit")
    return names, count, at


def _size(value: bytes) -> int:
    if len(value) > EMISSION_BYTES_MAX:
        raise Refused("emission_too_large", f"emitted: a value of {len(value)} bytes, the limit is"
                      f" {EMISSION_BYTES_MAX}; write it to a file and emit the path", field="emitted")
    return len(value)


# -- hashes ------------------------------------------------------------------------------------------


def _own_id(kind: str, workflow: str, step: str, time_ms: int, number: int = 0) -> TaskId:
    drawn = _drawn(12, kind, workflow, step, number)
    return TaskId(_time(time_ms) + _values(drawn[:8])[0].to_bytes(8, "big") + drawn[8:])


def _child_values(parent: bytes, token: int, count: int) -> list[int]:
    if len(parent) != ID_BYTES:
        raise Malformed("parent", f"{len(parent)} bytes are no id")
    _check("token", token, _TOKEN_END)
    _check("count", count, EMITTED_MAX + 1)
    return _values(hashlib.shake_128(b"child" + parent + token.to_bytes(8, "big")).digest(8 * count))


def _drawn(size: int, kind: str, workflow: str, step: str, number: int) -> bytes:
    """``size`` bytes that follow from these; the texts' lengths are hashed too, so that none is read as two."""
    texts = [text.encode() for text in (kind, workflow, step)]
    data = b"".join(len(text).to_bytes(2, "big") + text for text in texts) + number.to_bytes(8, "big")
    return hashlib.shake_128(data).digest(size)


def _values(drawn: bytes) -> list[int]:
    """Numbers of 63 bits: the first of an id's is its lane's."""
    return [value & _VALUE_BITS for value in struct.unpack(f">{len(drawn) // 8}Q", drawn)]


def _time(time_ms: int) -> bytes:
    _check("time_ms", time_ms, TIME_MS_MAX)
    return time_ms.to_bytes(8, "big")


def _check(field: str, number: int, end: int) -> None:
    if not 0 <= number < end:
        raise Malformed(field, f"{number} is not in 0..{end - 1}")

