"""What clients asked and were told, in true time: the only thing the checkers believe.

An operation is invoked, then ok, fail (it did not happen and never will) or info (unknown: the deadline passed, or
the node said so). A hold is the time in which a worker believes that a task is its own.

Source: Jepsen's histories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import attrs

from skuld_py.model.messages import Failed, Message, TaskRow
from skuld_py.model.outcomes import entries_of


class Status(Enum):
    """How an operation ended, as far as its client knows."""

    OPEN = "open"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@attrs.define(eq=False)
class Call:
    """One call of a verb of the library: all that was asked for it, and what its caller was told at last."""

    client: str
    verb: str
    begun_ms: int
    clock_ms: int
    """The latest that the caller's clock showed when it asked."""
    status: Status = Status.OPEN
    done_ms: int = -1
    told: object = None
    """What it returned, or the code of what it raised."""
    operations: list[Operation] = attrs.field(factory=list, repr=False)

    @property
    def is_asked_again(self) -> bool:
        """Whether an attempt was in doubt that others came after."""
        return any(operation.status is Status.INFO for operation in self.operations[:-1])

    def __str__(self) -> str:
        return (f"{self.begun_ms}..{self.done_ms} ms {self.client} {self.verb} {self.status.value}"
                f" {str(self.told)[:80]}")


@attrs.define(eq=False)
class Operation:
    """One request of one client."""

    client: str
    request: int
    node: str
    message: Message
    invoked_ms: int
    status: Status = Status.OPEN
    done_ms: int = -1
    answer: Message | None = None
    call: Call | None = None
    """The call of the library that it is part of, if any."""

    @property
    def asked_ms(self) -> int:
        """When it was asked for first, by whichever attempt."""
        attempts = self.call.operations if self.call is not None else ()
        return min((each.invoked_ms for each in attempts if type(each.message) is type(self.message)),
                   default=self.invoked_ms)

    @property
    def is_refused(self) -> bool:
        """Whether its client was told that it did not happen, now or by an attempt that came after it."""
        return self.status is Status.FAIL or (self.call is not None and self.call.status is Status.FAIL)

    @property
    def is_ok(self) -> bool:
        """Whether the client knows that it happened."""
        return self.status is Status.OK

    def __str__(self) -> str:
        return (f"{self.invoked_ms}..{self.done_ms} ms {self.client}#{self.request} at {self.node}"
                f" {self.status.value}: {str(self.message)[:160]} -> {str(self.answer)[:160]}"
                f"{'' if self.call is None else f', for {self.call}'}")


@attrs.define(eq=False)
class Hold:
    """A worker's belief that it may work on a task: from the answer to ``stop_ms``."""

    task: bytes
    token: int
    holder: str
    asked_ms: int
    start_ms: int
    stop_ms: int
    proof: bytes = attrs.field(default=b"", repr=False)

    def __str__(self) -> str:
        return (f"{self.holder} held {self.task.hex()} by token {self.token:#x} {self.start_ms}.."
                f"{self.stop_ms} ms, asked at {self.asked_ms}")


Archived = tuple[bytes, bytes, list[tuple[int, int, bytes]]]
"""Body, history and log entries (token, number, content) of a task, as an archiver was offered them."""


class History:
    """All operations and holds of a run."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.holds: list[Hold] = []
        self.calls: list[Call] = []
        self.archived: dict[bytes, list[Archived]] = {}
        """All that was put into the archive, by task."""
        self._open: dict[tuple[str, int], Operation] = {}

    def archive(self, rows: Sequence[TaskRow]) -> None:
        """An archiver writes tasks down."""
        for row in rows:
            if len(row.body):
                entries = sorted((*number, data) for number, data in entries_of(row).items())
                self.archived.setdefault(row.id, []).append((row.body.unpack()[0], row.history, entries))

    def invoke(self, now_ms: int, client: str, node: str, request: int, message: Message) -> Operation:
        """A request leaves its client."""
        operation = Operation(client, request, node, message, now_ms)
        self.operations.append(operation)
        self._open[client, request] = operation
        return operation

    def find(self, client: str, request: int) -> Operation | None:
        """The operation that still waits under this number."""
        return self._open.get((client, request))

    def finish(self, now_ms: int, operation: Operation, answer: Message | None) -> None:
        """It ends with an answer, or with none."""
        del self._open[operation.client, operation.request]
        operation.done_ms, operation.answer = now_ms, answer
        if answer is None:
            operation.status = Status.INFO
        elif isinstance(answer, Failed):
            operation.status = Status.FAIL if answer.is_definite else Status.INFO
        else:
            operation.status = Status.OK

    def of(self, kind: type[Message], status: Status | None = None) -> Iterator[Operation]:
        """Operations that sent this kind of message."""
        for operation in self.operations:
            if type(operation.message) is kind and (status is None or operation.status is status):
                yield operation
