"""Who asked for what may wait, so that a key is looked at again before the answer leaves.

Claims wait for hours, and reads for a minute: by then the key that asked may count no more, or for less. A request
is known by its connection and its number. Numbers are the sender's, and it may give several requests the same one,
by mistake or so that the answer to one is taken for that to another. So an answer is looked at with all requests
that were asked under its number, and one that nobody is known to have asked for is cleared for nobody.

Invariant: what is kept is as much as the node has open requests that may wait, each of which is answered once.

Rejected: to refuse a number that is in use. A client sends a read again under the number that it had, over the
same connection, when the node is slow to answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from skuld_py.errors import Refused
from skuld_py.model.messages import (
    Await,
    Awaited,
    Claim,
    Claimed,
    Failed,
    Follow,
    Followed,
    Logged,
    Message,
    ReadLog,
    Report,
    Reported,
    Survey,
    Surveyed,
)
from skuld_py.model.roster import KeyRow
from skuld_py.runtime.clearance import check_clearance

ANSWER_OF: dict[type[Message], type[Message]] = {
    Claim: Claimed, Await: Awaited, ReadLog: Logged, Survey: Surveyed, Follow: Followed, Report: Reported}
"""Requests that may wait, and what they are answered with, if not with ``Failed``."""
_ANSWERS = frozenset((*ANSWER_OF.values(), Failed))
SAME_MAX = 16
"""Open requests of one number; each answer is looked at with all of them."""
_UNASKED = "request: the number of this answer is that of no request which is open; give each its own number"


class Askers:
    """The requests of one node that wait. ``owner``: whose a key is now; None when it counts no more."""

    def __init__(self, owner: Callable[[str], KeyRow | None]) -> None:
        self._owner = owner
        self._open: dict[tuple[bytes, int], tuple[str, deque[Message]]] = {}

    def __len__(self) -> int:
        return sum(len(asked) for _, asked in self._open.values())

    def note(self, client: bytes, key: str, message: Message) -> None:
        """A request was let in. ``Refused`` when too many have its number."""
        if type(message) in ANSWER_OF:
            asked = self._open.setdefault((client, _number(message)), (key, deque()))[1]
            if len(asked) >= SAME_MAX:
                raise Refused("busy", f"request: {len(asked)} requests of this number wait already; give each its"
                              " own", field="request")
            asked.append(message)

    def cleared(self, client: bytes, answer: Message) -> Message:
        """The answer, or the refusal that leaves in its place."""
        if type(answer) not in _ANSWERS:
            return answer
        place = client, _number(answer)
        key, asked = self._open.get(place, ("", deque()))
        try:
            if type(answer) is not Failed:
                self._check(key, [*asked], type(answer))
        except Refused as problem:
            return Failed(place[1], problem.code, problem.message[:1000], True)
        finally:
            self._close(place, asked, type(answer))
        return answer

    def _check(self, key: str, asked: list[Message], kind: type[Message]) -> None:
        if not any(ANSWER_OF[type(each)] is kind for each in asked):
            raise Refused("denied", _UNASKED)
        for each in asked:
            check_clearance(self._owner(key), each)

    def _close(self, place: tuple[bytes, int], asked: deque[Message], kind: type[Message]) -> None:
        """One request fewer is open under this number: one that is answered so, or the oldest."""
        answered = next((each for each in asked if ANSWER_OF[type(each)] is kind), asked[0] if asked else None)
        if answered is None:
            return
        asked.remove(answered)
        if not asked:
            del self._open[place]


def _number(message: Message) -> int:
    number: int = getattr(message, "request", 0)
    return number
