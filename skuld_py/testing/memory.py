"""Clients of a cluster in memory: the verbs of the real clients, performed by a node machine in this process.

Time stands still between calls and moves by ``advance``. A call that has to wait (a claim with ``wait_s``) moves
it as far as it waits, at no cost of real time. Each request passes through the codec of the wire, so what a
cluster would refuse as too large or of a wrong type is refused here. A closed client is closed, an awaited one
belongs to one event loop, and threads may share one, as with the real ones. Random lives of tasks are lived here
and in a cluster of three nodes, and every answer is compared. What differs stands at ``MemoryClient``.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import attrs

from skuld_py.client.asking import Answered, Ask, Awaiting, Blocking, Joint, Step, Work
from skuld_py.client.coalescing import own
from skuld_py.client.minting import Minter
from skuld_py.client.pursuit import CLOSED, OTHER_LOOP
from skuld_py.client.verbs import TIMEOUT_S, Verbs
from skuld_py.errors import Malformed, Refused, Uncertain
from skuld_py.model.ids import TaskId
from skuld_py.model.messages import Failed, Message
from skuld_py.node.operations.admission import too_many_owners
from skuld_py.testing.running import Middlewares, Ran, run_until_empty
from skuld_py.testing.single_node import SingleNode
from skuld_py.wire.codec import Envelope, decode, encode

REPLICAS = 3
"""How many owners ``w`` may ask for, though there is one."""
PAUSE_MS = 50
"""After this a request that the node is too busy for is asked again, as a client of a cluster does."""


class MemoryMinter(Minter):
    """Ids that rise from call to call over all clients of a cluster. Time stands still here, and among ids of one
    moment those with keys would stand behind all others."""

    _least_ms = 0
    _has_laned = False

    def begin(self, *, has_plain: bool) -> None:
        """A call's ids come next; whether some are for tasks without keys."""
        if has_plain and self._has_laned:
            self._least_ms, self._has_laned = self._mint.time_ms + 1, False

    def mint(self, floor_ms: int, now_ms: int, count: int, lane: int | None = None) -> list[TaskId]:
        """Fresh ids, all of one partition; of a lane, if one is given."""
        self._has_laned = self._has_laned or lane is not None
        return super().mint(floor_ms, max(now_ms, self._least_ms), count, lane)


class MemoryCluster:
    """One node in memory, and its time. ``now`` is seconds since 1970, the real time when not given."""

    def __init__(self, now: float | None = None) -> None:
        self._lock = threading.RLock()
        self._node = SingleNode(round((time.time() if now is None else now) * 1000))
        self._numbers = itertools.count(1)
        self.minter = MemoryMinter()

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
        with self._lock:
            self._node.pass_until(self._node.now_ms + round(seconds * 1000))

    def client(self, *, holder: str | None = None, timeout_s: float = TIMEOUT_S) -> MemoryClient:
        """One more client of this cluster."""
        return MemoryClient(holder=holder, timeout_s=timeout_s, cluster=self)

    def ask(self, question: Ask, timeout_s: float) -> Answered[Any]:
        """Perform a request, letting as much time pass as its answer takes."""
        with self._lock:
            sent, request = self.steady_s(), next(self._numbers)
            message = _received(attrs.evolve(question.message, request=request))  # type: ignore[call-arg]
            until_ms = self._node.now_ms + round((timeout_s + question.wait_s) * 1000)
            answer = self._once(message, request, until_ms)
            while isinstance(answer, Failed) and answer.code == "busy" and self._node.now_ms + PAUSE_MS < until_ms:
                self._node.pass_until(self._node.now_ms + PAUSE_MS)
                answer = self._once(message, request, until_ms)
        if isinstance(answer, Failed):
            raise _error_of(answer, message)
        return Answered(answer, sent)

    def _once(self, message: Message, request: int, until_ms: int) -> Message:
        self._node.ask(b"client", _for_one_owner(message))
        while (answer := self._answer_to(request)) is None:
            if not self._node.pass_until(until_ms, is_one_step=True):
                raise Uncertain("deadline", "the node in memory gave no answer before the deadline")
        self._node.settle()
        return answer

    def _answer_to(self, request: int) -> Message | None:
        for _, answer in self._node.answers():
            if getattr(answer, "request", None) == request:
                return answer
        return None


def _received(message: Message) -> Message:
    """A message as a node gets it; ``Refused`` where the node would find it malformed."""
    frames = encode(Envelope("", "", (message,)))
    try:
        return decode(frames).messages[0]
    except Malformed as problem:
        raise Refused(problem.code, problem.message) from None


def _for_one_owner(message: Message) -> Message:
    """Have the one node here do for the ``w`` owners that a cluster of ``REPLICAS`` would have."""
    return attrs.evolve(message, w=0) if 0 < getattr(message, "w", 0) <= REPLICAS else message  # type: ignore[call-arg]


def _error_of(answer: Failed, message: Message) -> Refused | Uncertain:
    if answer.code == "bad_w":
        return too_many_owners(message.w, REPLICAS)  # type: ignore[attr-defined]
    return (Refused if answer.is_definite else Uncertain)(answer.code, answer.text)


def _alone(joint: Joint[Any, Any], run: Callable[[Any], Any]) -> Any:
    outcomes: Sequence[Any] = run(joint.together([joint.item]))
    return own(outcomes[0])


class _InMemory(Verbs):
    """What both kinds of clients have."""

    def __init__(self, *, now: float | None = None, holder: str | None = None, timeout_s: float = TIMEOUT_S,
                 cluster: MemoryCluster | None = None) -> None:
        self.cluster = cluster or MemoryCluster(now)
        super().__init__(holder, clock=self.cluster.steady_s, wall=self.cluster.wall_ms)
        self._timeout_s = timeout_s
        self._is_closed = False
        self._minter = self.cluster.minter

    def _name(self, wanted: Sequence[TaskId | int | None]) -> Work[list[TaskId]]:
        self.cluster.minter.begin(has_plain=None in wanted)
        return (yield from super()._name(wanted))

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything that is due on the way happen."""
        self.cluster.advance(seconds)


class MemoryClient(_InMemory, Blocking):
    """``Client`` without a cluster.

    What differs from one of a cluster, and why:

    * The cluster is as one is made by default: three replicas as far as ``w`` goes, a skew bound of 2 s, and
      nothing is deleted, so ``collectable`` is refused as ``no_archive``, and nothing as too old to be kept.
      What other parameters change is for a test with a cluster.
    * ``status`` tells of one node, one partition and one copy: that is what there is. So ``collectable`` knows the
      number 0 alone, and tasks come in strict order, where a cluster's order among partitions is approximate.
    * Nothing is ever under way. Who waits moves the time at once, so what other threads or coroutines would have
      done meanwhile comes later; and who waits without an end for what never comes waits at full speed.
    * Nothing is lost, late or in doubt: without faults there is nothing to answer ``unreachable``, ``no_leader``
      or ``Uncertain`` for. What is too much at once, as lines of a calendar may be, moves the time a little.
      Settings are confirmed, and what the end of a task means for others is known, at once. Single calls made
      at the same time do not travel together.
    * There is one clock, so nothing is of the future (``future_id``), unless a caller makes such ids.
    * The child of a fork has a copy of the cluster, and no client of the same one: it is in a process's memory.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End this client: what it is asked from now on is refused as ``closed``. The cluster goes on."""
        self._is_closed = True

    def run_until_empty(self, *queues: str, spark: Any = None, middleware: Middlewares | None = None,
                        raises: bool = True) -> list[Ran]:
        """Run the task functions that waiting tasks of the queues name, until nothing waits; see ``running``."""
        return run_until_empty(self, queues, spark, middleware, raises)

    def _perform(self, step: Step) -> Any:
        if self._is_closed:
            raise Refused("closed", CLOSED)
        return self.cluster.ask(step, self._timeout_s) if isinstance(step, Ask) else _alone(step, self._run)


class AsyncMemoryClient(_InMemory, Awaiting):
    """``AsyncClient`` without a cluster, or on the one of another client; for one event loop.

    A call lets what else is ready to run go first, as one over a network does, and is then done at once."""

    _loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """End this client: what it is asked from now on is refused as ``closed``. The cluster goes on."""
        self._is_closed = True

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Ask):
            return await self._ask(step)
        outcomes: Sequence[Any] = await self._run(step.together([step.item]))
        return own(outcomes[0])

    async def _ask(self, question: Ask) -> Answered[Any]:
        self._check()
        await asyncio.sleep(0)
        self._check()
        return self.cluster.ask(question, self._timeout_s)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        if self._is_closed:
            raise Refused("closed", CLOSED)
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise Refused("other_loop", OTHER_LOOP)
