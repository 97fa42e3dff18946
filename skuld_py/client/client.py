"""The client: enqueue, claim, renew, update, complete, and read, over any nodes of a cluster.

    with Client("127.0.0.1:13000") as client:
        client.enqueue("reports", b"2026-11-20")
        for claim in client.claim("reports", n=10, lease_s=30, wait_s=5):
            client.complete(claim)

Every verb works on many tasks at once; the single form is the many form of one. Every call has a deadline
(``timeout_s``, from the call; one of many requests has it for each) and raises ``Refused`` (it did not happen) or
``Uncertain`` (it may have). Only what is idempotent is tried again: enqueue carries its ids, renew, update and
complete their token. A claim is not: after ``Uncertain``, or an interrupt, a lease may be out that no one holds.
The next call gives it back when its answer comes; without a next call it lapses.

A client may be made before a fork, and used on both sides: the child has connections and ids of its own
(``forks``). What only an open connection needs (ZeroMQ, keys, the codec) is imported with the first one, so that
a web application's import of this class costs little. The verbs themselves are in ``verbs``, shared with the
client that is awaited (``async_client``).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import attrs

from skuld_py.client import forks
from skuld_py.client.asking import Answered, Ask, Blocking, Joint, Step
from skuld_py.client.claims import LEASE_S, Claim, ClaimKey, ClaimName
from skuld_py.client.coalescing import GRACE_S, out_of_time, own
from skuld_py.client.parties import Caller, Parties, Party
from skuld_py.client.pursuit import CLOSED
from skuld_py.client.reading import Depth
from skuld_py.client.steady import monotonic_s
from skuld_py.client.verbs import TIMEOUT_S, Verbs, addresses_of
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.variables import check_process

if TYPE_CHECKING:
    from skuld_py.client.connection import Undo
    from skuld_py.keys.files import ClientKey
    from skuld_py.model.messages import Message

__all__ = ["LEASE_S", "TIMEOUT_S", "Claim", "ClaimKey", "ClaimName", "Client", "Depth"]


class Client(Verbs, Blocking):
    """A connection to a cluster: to ``nodes``, or to those that ``$SKULD_NODES`` names, or to this machine's;
    with ``key``, or the file that ``$SKULD_CLIENT_KEY`` names, or the one that 'skuld dev' left. Threads may
    share it: their requests are under way side by side, and single calls that are made while one of their kind
    is under way travel in one request."""

    def __init__(self, nodes: str | Sequence[str] | None = None, *, holder: str | None = None,
                 timeout_s: float = TIMEOUT_S, key: str | PathLike[str] | ClientKey | None = None) -> None:
        check_process()
        super().__init__(holder)
        self._timeout_s = timeout_s
        self._addresses = addresses_of(nodes)
        from skuld_py.client.dial import key_of

        self._key = key_of(key, self._addresses)
        self._begin()
        forks.renew(self)

    def _begin(self) -> None:
        from skuld_py.client.connection import Connection

        self._connection = Connection(self._addresses, key=self._key)
        self._lanes_lock = threading.RLock()
        self._lanes: dict[tuple[Hashable, ...], Parties] = {}

    def after_fork(self) -> None:
        """Begin anew, as another client; a closed one stays closed."""
        was_closed = self._connection.is_closed
        self._connection.abandon()
        self._begin()
        self._connection.is_closed = was_closed
        super().after_fork()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Calls under way end as ``closed``; claims stay until their leases end."""
        self._connection.close()
        with self._lanes_lock:
            callers = [member for lane in self._lanes.values() for party in lane.open for member in party.members]
        for caller in callers:
            caller.wake()

    def _perform(self, step: Step) -> Any:
        return self._ask(step, self._timeout_s) if isinstance(step, Ask) else self._join(step)

    def _ask(self, question: Ask, timeout_s: float) -> Answered[Any]:
        sent = self._clock()
        if type(question.message) is m.Greet:
            return Answered(self._connection.greet(timeout_s), sent)
        request = self._connection.next_request()
        message = attrs.evolve(question.message, request=request)  # type: ignore[call-arg]
        answer = self._connection.call(message, min(timeout_s, question.within_s), only=question.only,
                                       is_idempotent=question.is_idempotent, wait_s=question.wait_s,
                                       undo=_undoing(question), doubted=question.doubted)
        return Answered(answer, sent)

    # -- calls that travel together --------------------------------------------------------------

    def _join(self, joint: Joint[Any, Any]) -> Any:
        """Travel with others, and ask for all of them when it is this one's turn."""
        caller = Caller(joint, monotonic_s() + self._timeout_s)
        lane: Parties | None = None
        try:
            lane = self._enter(caller)
            while not caller.is_answered:
                if (party := self._driven_by(lane, caller)) is not None:
                    self._ask_for(party, caller)
                else:
                    self._wait(caller)
        finally:
            caller.is_gone = True
            if lane is not None:
                self._pass_on(lane, caller)
        return own(caller.outcome)

    def _enter(self, caller: Caller) -> Parties:
        with self._lanes_lock:
            lane = self._lanes.get(caller.joint.key)
            if lane is None:
                lane = self._lanes[caller.joint.key] = Parties()
            lane.join(caller)
        return lane

    def _driven_by(self, lane: Parties, caller: Caller) -> Party | None:
        with self._lanes_lock:
            return lane.driven_by(caller)

    def _pass_on(self, lane: Parties, caller: Caller) -> None:
        with self._lanes_lock:
            lane.pass_on(caller)
            if not lane.open and self._lanes.get(caller.joint.key) is lane:
                del self._lanes[caller.joint.key]

    def _wait(self, caller: Caller) -> None:
        left = caller.deadline + GRACE_S - monotonic_s()
        is_unsent = caller.party is None or caller.party.items is None
        if self._connection.is_closed and is_unsent:
            raise Refused("closed", CLOSED)
        if left <= 0:
            raise out_of_time(is_unsent)
        caller.wait(left)

    def _ask_for(self, party: Party, caller: Caller) -> None:
        assert party.items is not None
        try:
            party.outcomes = self._run(party.together(party.items), partial(self._ask_until, caller.deadline))
        except SkuldError as error:
            party.outcomes = [error] * len(party.items)

    def _ask_until(self, deadline: float, step: Step) -> Any:
        assert isinstance(step, Ask)
        left = deadline - monotonic_s()
        if left <= 0:
            raise out_of_time(is_unsent=False)
        return self._ask(step, left)


def _undoing(question: Ask) -> Undo | None:
    undo = question.undo
    if undo is None:
        return None

    def undoing(answer: Message) -> Message | None:
        asked = undo(answer)
        return None if asked is None else asked.message
    return undoing
