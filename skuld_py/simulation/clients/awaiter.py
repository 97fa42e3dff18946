"""Clients that wait for tasks to end and follow their logs; and one that must be woken once all is healed."""

from __future__ import annotations

from collections.abc import Collection

from skuld_py.model import messages as m
from skuld_py.model.ids import ID_BYTES, split
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options

WAITS_MS = (0, 500, 3_000)
LONG_MS = 10_000
AGAIN_MS = 50
PAGE = 100


class Awaiter:
    """Waits for some of the tasks that were held of late, or for the log of one of their claims."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._left: bytes = b""
        self._most = m.ENDS_MAX

    def begin(self) -> None:
        """Wait."""
        self._client.repeat(self._options.workload.await_ms, self._await)

    def _await(self) -> None:
        random, known = self._client.random, self._client.history.holds[-50:]
        wait_ms = random.choice(WAITS_MS)
        if known and random.random() < 0.7:
            ids = b"".join(dict.fromkeys(random.choice(known).task for _ in range(3)))
            self._client.ask(lambda request: m.Await(request, ids, wait_ms), lambda operation: None)
        elif known:
            hold, after = random.choice(known), random.choice((0, 0, 1))
            self._client.ask(lambda request: m.ReadLog(request, hold.task, hold.token, after, PAGE, wait_ms),
                             lambda operation: None)

    # -- after healing -------------------------------------------------------------------------

    def await_all(self) -> None:
        """Wait for the ends of all that was held of late, until they are told."""
        most = min(m.ENDS_MAX, self._options.limits.batch_tasks)
        held = dict.fromkeys(hold.task for hold in self._client.history.holds[-most:])
        self._left = b"".join(held)
        self._await_left()

    def _await_left(self) -> None:
        if self._left:
            part = self._left[: self._most * ID_BYTES]
            self._client.ask(lambda request: m.Await(request, part, LONG_MS), self._on_told)

    def _on_told(self, operation: Operation) -> None:
        answer, question = operation.answer, operation.message
        assert isinstance(question, m.Await)
        asked = split(question.ids)
        if isinstance(answer, m.Awaited):
            ended = [task_id for task_id, end in zip(asked, answer.ends, strict=True) if end != m.NOT_ENDED]
            self._left = b"".join(task_id for task_id in split(self._left) if task_id not in ended)
        elif isinstance(answer, m.Failed) and answer.code == "no_such_task":  # one of them: fewer say which
            self._left = self._left[len(question.ids) if len(asked) == 1 else 0 :]
            self._most = max(1, len(asked) // 2)
        self._client.later(AGAIN_MS, self._await_left)

    def forget(self, lost: Collection[bytes]) -> None:
        """Wait no more for these, which may be lost: that one is unknown is said after a long wait."""
        self._left = b"".join(task_id for task_id in split(self._left) if task_id not in lost)

    def lacks(self, going: Collection[bytes]) -> list[str]:
        """The tasks whose ends it has not been told; those of collected ones are not told any more."""
        return [f"nobody was told of the end of {task_id.hex()}" for task_id in split(self._left)
                if task_id not in going]
