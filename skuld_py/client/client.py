"""The client: enqueue, claim, renew, update, complete, and read, over any nodes of a cluster.

    with Client("127.0.0.1:13000") as client:
        client.enqueue("reports", b"2026-11-20")
        for claim in client.claim("reports", n=10, lease_s=30, wait_s=5):
            client.complete(claim)

Every verb works on many tasks at once; the single form is the many form of one. Every call has a
deadline (``timeout_s``) and raises ``Refused`` (it did not happen) or ``Uncertain`` (it may have).
Only what is idempotent is tried again: enqueue carries its ids, renew, update and complete their
token. A claim is not: after ``Uncertain`` a lease may be out that nobody holds; it lapses.

The verbs themselves are in ``verbs``, shared with the client that is awaited (``async_client``).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from types import TracebackType
from typing import Any, Self

import attrs

from skuld_py.client.asking import Answered, Ask, Blocking, Joint, Step
from skuld_py.client.claims import Claim, ClaimKey, ClaimName
from skuld_py.client.coalescing import Lane, own
from skuld_py.client.connection import Connection
from skuld_py.client.holding import LEASE_S
from skuld_py.client.reading import Depth
from skuld_py.client.verbs import TIMEOUT_S, Verbs, addresses_of
from skuld_py.errors import SkuldError, Uncertain
from skuld_py.model import messages as m

__all__ = ["LEASE_S", "TIMEOUT_S", "Claim", "ClaimKey", "ClaimName", "Client", "Depth"]


@attrs.define(eq=False)
class _Caller:
    """A thread that waits for another one to ask for it too, or for its turn to ask for others."""

    outcome: Any = None
    is_answered: bool = False
    is_due: threading.Event = attrs.field(factory=threading.Event)


class Client(Verbs, Blocking):
    """A connection to a cluster. Threads may share it: requests go one after another, and single calls that
    wait for their turn meanwhile go in one request. A claim that waits for tasks holds all others up."""

    def __init__(self, nodes: str | Sequence[str] = "127.0.0.1:13000", *, holder: str | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(holder)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._lanes_lock = threading.Lock()
        self._lanes: dict[tuple[Hashable, ...], Lane[_Caller]] = {}
        self._connection = Connection(addresses_of(nodes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Claims stay until their leases end."""
        with self._lock:
            self._connection.close()

    def _perform(self, step: Step) -> Any:
        return self._ask(step) if isinstance(step, Ask) else self._join(step)

    def _ask(self, question: Ask) -> Answered[Any]:
        with self._lock:
            sent = self._clock()
            if type(question.message) is m.Greet:
                return Answered(self._connection.greet(self._timeout_s), sent)
            request = self._connection.next_request()
            message = attrs.evolve(question.message, request=request)  # type: ignore[call-arg]
            answer = self._connection.call(message, self._timeout_s, is_idempotent=question.is_idempotent,
                                           wait_s=question.wait_s)
            return Answered(answer, sent)

    def _join(self, joint: Joint[Any, Any]) -> Any:
        """Who finds nobody at it does it; who comes meanwhile waits, and one of them does it next for all."""
        caller = _Caller()
        with self._lanes_lock:
            lane = self._lanes.setdefault(joint.key, Lane())
            lane.add(joint, caller)
            is_first, lane.under_way = not lane.under_way, 1
        if not is_first:
            caller.is_due.wait()
        if not caller.is_answered:
            self._go_together(joint.key, lane)
        return own(caller.outcome)

    def _go_together(self, key: tuple[Hashable, ...], lane: Lane[_Caller]) -> None:
        with self._lanes_lock:
            taken = lane.take(lambda _: True)
        outcomes: Sequence[Any] = [Uncertain("interrupted", "the thread that asked for all was interrupted")
                                   ] * len(taken)
        try:
            outcomes = self._run(taken[0][0].together([joint.item for joint, _ in taken]))
        except SkuldError as error:
            outcomes = [error] * len(taken)
        finally:
            with self._lanes_lock:
                if lane.waiting:
                    lane.waiting[0][1].is_due.set()
                else:
                    del self._lanes[key]
            for (_, caller), outcome in zip(taken, outcomes, strict=True):
                caller.outcome, caller.is_answered = outcome, True
                caller.is_due.set()
