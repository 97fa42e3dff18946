"""Clients of a cluster in memory: the verbs of the real clients, performed by a node machine in this process.

Time stands still between calls and moves by ``advance``. A call that has to wait (a claim with ``wait_s``) moves
it as far as it waits, at no cost of real time. Each request passes through the codec of the wire, so what a
cluster would refuse as too large or of a wrong type is refused here.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import attrs

from skuld_py.client.asking import Answered, Ask, Awaiting, Blocking, Joint, Step
from skuld_py.client.coalescing import own
from skuld_py.client.verbs import TIMEOUT_S, Verbs
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.messages import Failed, Message
from skuld_py.testing.running import Middlewares, Ran, run_until_empty
from skuld_py.testing.single_node import SingleNode
from skuld_py.wire.codec import Envelope, decode, encode


class MemoryCluster:
    """One node in memory, and its time. ``now`` is seconds since 1970, the real time when not given."""

    def __init__(self, now: float | None = None) -> None:
        self._node = SingleNode(round((time.time() if now is None else now) * 1000))
        self._numbers = itertools.count(1)

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._node.now_ms

    def steady_s(self) -> float:
        """The same as seconds: here no clock is ever set."""
        return self._node.now_ms / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything that is due on the way happen."""
        if not 0 <= seconds < 1e9:
            raise Refused("bad_duration", f"seconds: time moves forward only, and not by {seconds!r}")
        self._node.pass_until(self._node.now_ms + round(seconds * 1000))

    def client(self, *, holder: str | None = None, timeout_s: float = TIMEOUT_S) -> MemoryClient:
        """One more client of this cluster."""
        return MemoryClient(holder=holder, timeout_s=timeout_s, cluster=self)

    def ask(self, question: Ask, timeout_s: float) -> Answered[Any]:
        """Perform a request, letting as much time pass as its answer takes."""
        sent, request = self.steady_s(), next(self._numbers)
        numbered = attrs.evolve(question.message, request=request)  # type: ignore[call-arg]
        message, = decode(encode(Envelope("", "", (numbered,)))).messages
        self._node.ask(b"client", message)
        until_ms = self._node.now_ms + round((timeout_s + question.wait_s) * 1000)
        while (answer := self._answer_to(request)) is None:
            if not self._node.pass_until(until_ms, is_one_step=True):
                raise Uncertain("deadline", "the node in memory gave no answer before the deadline")
        if isinstance(answer, Failed):
            raise (Refused if answer.is_definite else Uncertain)(answer.code, answer.text)
        return Answered(answer, sent)

    def _answer_to(self, request: int) -> Message | None:
        for _, answer in self._node.answers():
            if getattr(answer, "request", None) == request:
                return answer
        return None


def _alone(joint: Joint[Any, Any], run: Callable[[Any], Any]) -> Any:
    outcomes: Sequence[Any] = run(joint.together([joint.item]))
    return own(outcomes[0])


class MemoryClient(Verbs, Blocking):
    """``Client`` without a cluster."""

    def __init__(self, *, now: float | None = None, holder: str | None = None, timeout_s: float = TIMEOUT_S,
                 cluster: MemoryCluster | None = None) -> None:
        self.cluster = cluster or MemoryCluster(now)
        super().__init__(holder, clock=self.cluster.steady_s, wall=self.cluster.wall_ms)
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held: the cluster lives as long as somebody knows it."""

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything that is due on the way happen."""
        self.cluster.advance(seconds)

    def run_until_empty(self, *queues: str, spark: Any = None, middleware: Middlewares | None = None,
                        raises: bool = True) -> list[Ran]:
        """Run the task functions that waiting tasks of the queues name, until nothing waits; see ``running``."""
        return run_until_empty(self, queues, spark, middleware, raises)

    def _perform(self, step: Step) -> Any:
        return self.cluster.ask(step, self._timeout_s) if isinstance(step, Ask) else _alone(step, self._run)


class AsyncMemoryClient(Verbs, Awaiting):
    """``AsyncClient`` without a cluster, or on the one of another client. Nothing is ever under way: a call is
    done when it is awaited."""

    def __init__(self, *, now: float | None = None, holder: str | None = None, timeout_s: float = TIMEOUT_S,
                 cluster: MemoryCluster | None = None) -> None:
        self.cluster = cluster or MemoryCluster(now)
        super().__init__(holder, clock=self.cluster.steady_s, wall=self.cluster.wall_ms)
        self._timeout_s = timeout_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Nothing is held."""

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything that is due on the way happen."""
        self.cluster.advance(seconds)

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Ask):
            return self.cluster.ask(step, self._timeout_s)
        outcomes: Sequence[Any] = await self._run(step.together([step.item]))
        return own(outcomes[0])
