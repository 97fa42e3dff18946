"""The library over the simulated network: its own verbs, its own pursuit of an answer, its own mint of ids.

What clients may believe is settled half by nodes and half by the library: a refusal of what is asked again is none
while an earlier attempt is in doubt, and an id rises above what was acknowledged. So its code runs here as it is,
without sockets and threads. Each attempt is an operation of the history; what the caller is told at last is a
``Call``, which checkers hold against what the attempts did.

Rejected: to write its rules once more for simulated clients, which would prove the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import ceil
from typing import Any, cast

import attrs

from skuld_py.client.asking import Answered, Ask, Blocking, Joint, Work
from skuld_py.client.concluding import Concluding
from skuld_py.client.enqueueing import Enqueueing
from skuld_py.client.holding import Holding
from skuld_py.client.minting import Minter
from skuld_py.client.pursuit import Heard, Listen, Nodes, Step, Try, pursue
from skuld_py.client.scheduling import Scheduling
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.messages.message import Message
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.history import Call, Operation, Status

TIMEOUT_S = 4.0
"""Of a call: room for a silent node, and for another one after it."""
Pursued = Generator[tuple[Ask, Step], Heard, Any]
Told = Callable[[Call], None]


class Library(Blocking, Enqueueing, Holding, Concluding, Scheduling):
    """The verbs of one client. A verb's method gives its work, for ``call`` to carry out."""

    def __init__(self, client: Client) -> None:
        self.holder = client.name
        self.ahead_ms = 0
        """By how much the client's clock is wrong."""
        self._client = client
        self._clock = self._now_s
        self._wall_ms = lambda: client.wall_ms() + self.ahead_ms
        self._minter = Minter(client.random)
        self._nodes = Nodes(client.nodes)

    def _now_s(self) -> float:
        return self._client.scheduler.now_ms / 1000

    def _run(self, work: Work[Any], perform: object = None) -> Any:
        return work

    def call(self, verb: str, work: object, then: Told = lambda call: None) -> Call:
        """Begin a call; ``then`` hears its end."""
        call = Call(self._client.name, verb, self._client.scheduler.now_ms, self._wall_ms())
        self._client.history.calls.append(call)
        flow = self._pursued(cast(Work[Any], work))
        self._go_on(call, flow, then, lambda: next(flow))
        return call

    def _pursued(self, work: Work[Any]) -> Pursued:
        """A verb, and each of its requests until that is answered or given up. It travels alone."""
        error: SkuldError | None = None
        answer: Any = None
        while True:
            try:
                step = work.send(answer) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            error, answer = None, None
            try:
                if isinstance(step, Joint):
                    answer, = yield from self._pursued(step.together([step.item]))
                    error = answer if isinstance(answer, SkuldError) else None
                else:
                    answer = yield from self._asked(step)
            except SkuldError as raised:
                error = raised

    def _asked(self, ask: Ask) -> Pursued:
        sent_s = self._now_s()
        pursuit = pursue(self._nodes, sent_s, TIMEOUT_S, is_idempotent=ask.is_idempotent, wait_s=ask.wait_s,
                         is_reading=ask.message.is_reading, doubted=ask.doubted)
        step = next(pursuit)
        while True:
            heard = yield ask, step
            try:
                step = pursuit.send(heard)
            except StopIteration as end:
                return Answered(end.value, sent_s)

    # -- what a pursuit wants done -------------------------------------------------------------

    def _go_on(self, call: Call, flow: Pursued, then: Told, move: Callable[[], tuple[Ask, Step]],
               node: str = "") -> None:
        """Take one step; ``node`` took the request, if one did."""
        try:
            ask, step = move()
        except StopIteration as end:
            self._end(call, Status.OK, end.value, then)
            return
        except SkuldError as error:
            self._end(call, Status.FAIL if isinstance(error, Refused) else Status.INFO, error.code, then)
            return

        def heard(answer: Message | None = None, by: str = "") -> None:
            self._go_on(call, flow, then, lambda: flow.send(Heard(self._now_s(), by, answer)), by)
        if isinstance(step, Try):
            heard(by=step.nodes[0])
        elif isinstance(step, Listen):
            self._ask(call, ask.message, node, self._left_ms(step.until), heard)
        else:
            self._client.later(self._left_ms(step.until), heard)

    def _left_ms(self, until: float) -> int:
        return max(1, ceil((until - self._now_s()) * 1000))

    def _ask(self, call: Call, message: Any, node: str, patience_ms: int,
             heard: Callable[[Message | None], None]) -> None:
        def then(operation: Operation) -> None:
            heard(operation.answer)
        call.clock_ms = max(call.clock_ms, self._wall_ms())
        patience_ms -= getattr(message, "wait_ms", 0)
        operation = self._client.ask_at(node, lambda request: attrs.evolve(message, request=request), then,
                                        patience_ms)
        operation.call = call
        call.operations.append(operation)

    def _end(self, call: Call, status: Status, told: object, then: Told) -> None:
        call.status, call.done_ms, call.told = status, self._client.scheduler.now_ms, told
        then(call)
