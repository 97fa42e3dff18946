"""The tasks that a completion brings: for each segment that it emits one, in the queue of its step.

Whoever knows a completion makes the same tasks of it, byte for byte: the worker whose function it was, and the
feeder that looks after a root. So enqueueing them again changes nothing.

Invariant: they are a function of the definition, when that was submitted, the parent's id, its root, and the claim
and the emission of the completion; of nothing else.

A *life* of a workflow is from a submission on: its time, in milliseconds, which the ids of its plan and its
feeders have. The log forgets an ended workflow some day, and its id may be submitted again; by their lives
segments of the one are none of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs
import msgpack

from skuld_py.calls.payloads import AS_IT_IS, BY_ANNOTATION
from skuld_py.calls.plain import Writer
from skuld_py.client.options import Retry
from skuld_py.errors import Malformed
from skuld_py.worker.time_limit import with_limit
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.segments import Emission, child_ids

KEEP = "skuld:keep"
"""The function of inputs, and of outputs that have none of their own: it returns what it is given."""
LIFE_BYTES = 8
_SEGMENT, _ONE = b"\x95", b"\x91"


def packed(value: Any) -> bytes:
    """A segment's value as it travels; ``Refused`` when it is none."""
    made: bytes = msgpack.packb(Writer().plain(value, "value"))
    return made


def unpacked(value: bytes) -> Any:
    """The value again."""
    return msgpack.unpackb(value, strict_map_key=True)


def tag_of(root: bytes, source: str, life: int) -> bytes:
    """What a segment says of where it belongs."""
    return root + source.encode() + life_bytes(life)


def life_bytes(life: int) -> bytes:
    """What a segment's payload ends with."""
    return life.to_bytes(LIFE_BYTES, "big")


@attrs.frozen
class Completed:
    """A segment, its root, the input that made that; and a completion of it: the claim's token, and when the claim
    began by its leader's clock."""

    segment: bytes
    root: bytes
    source: str
    token: int
    start_ms: int
    emission: Emission


@attrs.frozen(slots=False)
class Calls:
    """How segments of one step are called, around their values, in one life of their workflow."""

    entry: Entry
    life: int

    @cached_property
    def _is_kept(self) -> bool:
        return not self.entry.function or self.entry.kind is Kind.INPUT

    @cached_property
    def _front(self) -> bytes:
        name, version = (KEEP, AS_IT_IS) if self._is_kept else (self.entry.function, BY_ANNOTATION)
        front: bytes = _SEGMENT + msgpack.packb(version) + msgpack.packb(name) + _ONE
        return front + _ONE if self.entry.batch else front

    @cached_property
    def _back(self) -> bytes:
        parameters = {} if self._is_kept else dict(self.entry.parameters)
        back: bytes = msgpack.packb(Writer().plain(parameters, "parameters"))
        return back

    def payload(self, value: bytes, root: bytes, source: str) -> bytes:
        """The payload of a segment with this value, packed."""
        made: bytes = self._front + value + self._back + msgpack.packb(tag_of(root, source, self.life))
        return made

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """What its tasks are enqueued with besides."""
        timeout_s = self.entry.timeout_ms / 1000 if self.entry.timeout_ms else None
        headers = with_limit(None, timeout_s)
        retry = {"retry": Retry(max_attempts=self.entry.attempts)}
        return retry if headers is None else {**retry, "headers": headers}


@attrs.define
class Lot:
    """Segments of one step, to be enqueued together."""

    queue: str
    options: Mapping[str, Any]
    ids: list[bytes] = attrs.field(factory=list)
    payloads: list[bytes] = attrs.field(factory=list)


class Nursery:
    """Makes the tasks of a workflow's segments."""

    def __init__(self, definition: Definition, life: int) -> None:
        self._definition = definition
        self._calls = {name: Calls(entry, life) for name, entry in definition.entries.items()}

    def lots(self, completed: Iterable[Completed]) -> list[Lot]:
        """What these emit, a lot for each step."""
        lots: dict[str, Lot] = {}
        for each in completed:
            rows = each.emission.rows
            for child, (step, value) in zip(child_ids(each.segment, each.token, each.start_ms, len(rows)), rows,
                                            strict=True):
                if step not in self._calls:
                    raise Malformed("emission", f"there is no step {step} in {self._definition.id}")
                if step not in lots:
                    lots[step] = Lot(self._definition.queue(step), self._calls[step].options)
                lots[step].ids.append(child)
                lots[step].payloads.append(self._calls[step].payload(value, each.root, each.source))
        return list(lots.values())
