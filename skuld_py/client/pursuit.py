"""One request until it is answered or given up: whom to ask, how long to wait, what may be asked twice.

A call has one deadline. Nodes are asked in turn; one that was silent is passed over for a while, unless
all are. A request that is idempotent is sent to another node when one is silent; any other is sent once,
and silence makes its outcome ``Uncertain``. A refusal is definite only if no earlier attempt is in doubt.
A node that is not connected is never sent to (the socket refuses at once), so "no node is reachable" is
a definite refusal.

A pure machine: ``pursue`` yields what is to be done and is told what came of it and what time it is. The
sync and the async connection are two ways to do it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import attrs

from skuld_py.errors import Refused, Uncertain
from skuld_py.model.messages import Failed, Message

ATTEMPT_S = 1.5
"""A silent node is given up for another one after this, within the call's deadline."""
SILENCE_S = 5.0
"""A node that gave no answer is asked again only after this, as long as others are there."""
CONNECT_S = 0.05
"""Connections are given so long before the nodes are tried again."""
RETRIED_CODES = ("not_ready", "unavailable", "busy", "no_leader")
"""Refusals that pass by themselves: tried again until the deadline."""
FINAL_CODES = ("conflict",)
"""What nobody's second question changes, even where the answer leaves in doubt what was stored."""


@attrs.frozen
class Try:
    """Send to the first of these nodes that takes it."""

    nodes: tuple[str, ...]


@attrs.frozen
class Listen:
    """Wait for the answer until then."""

    until: float


@attrs.frozen
class Pause:
    """Wait until then; what comes meanwhile is late."""

    until: float


Step = Try | Listen | Pause


@attrs.frozen
class Heard:
    """What came of a step, at ``now``: the node that took the request, or the answer; or nothing."""

    now: float
    node: str = ""
    answer: Message | None = None


Pursuit = Generator[Step, Heard, Message]


class Nodes:
    """The nodes a client knows, and which of them were silent lately."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._turn = 0
        self._silent_until: dict[str, float] = {}

    def add(self, name: str) -> None:
        """One more."""
        self.names.append(name)

    def in_turn(self, now: float) -> tuple[str, ...]:
        """All of them, another one first each time, those that were silent last."""
        self._turn += 1
        first = self._turn % len(self.names)
        turned = [*self.names[first:], *self.names[:first]]
        if self._silent_until:
            turned.sort(key=lambda name: self._silent_until.get(name, 0) > now)
        return tuple(turned)

    def note_silence(self, name: str, now: float) -> None:
        """It took a request and gave no answer in time."""
        self._silent_until[name] = now + SILENCE_S


def pursue(nodes: Nodes, now: float, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0) -> Pursuit:
    """Have one request answered, which may take ``wait_s`` more than the timeout.

    Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
    """
    reach_by = now + timeout_s
    deadline = reach_by + wait_s
    was_sent, is_in_doubt = False, False
    refusal: Refused | Uncertain | None = None
    while now < (end := deadline if was_sent else reach_by):
        heard = yield Try(nodes.in_turn(now))
        node, now = heard.node, heard.now
        if not node:
            now = (yield Pause(min(now + CONNECT_S, end))).now
            continue
        was_sent = True
        heard = yield Listen(min(deadline, now + wait_s + ATTEMPT_S) if is_idempotent else deadline)
        answer, now = heard.answer, heard.now
        if answer is not None and not isinstance(answer, Failed):
            return answer
        if answer is None:
            nodes.note_silence(node, now)
        else:
            refusal = _judge(answer, is_idempotent, is_in_doubt)
        is_in_doubt = is_in_doubt or answer is None or not answer.is_definite
        if is_in_doubt and not is_idempotent:
            break
        now = (yield Pause(min(now + CONNECT_S, deadline))).now
    names = ", ".join(nodes.names)
    if not was_sent:
        raise Refused("unreachable", f"nodes: none of {names} can be reached; are they running?")
    if refusal is not None and (not is_in_doubt or isinstance(refusal, Uncertain)):
        raise refusal
    raise Uncertain("deadline", f"no answer from {names} before the deadline")


def _judge(answer: Failed, is_idempotent: bool, is_in_doubt: bool) -> Refused | Uncertain:
    """Raise what is final; give back what may be tried again. What an earlier attempt may have done, no
    refusal undoes."""
    if not answer.is_definite:
        doubt = Uncertain(answer.code, answer.text)
        if not is_idempotent or answer.code in FINAL_CODES:
            raise doubt
        return doubt
    refusal = Refused(answer.code, answer.text)
    if answer.code not in RETRIED_CODES:
        raise Uncertain(answer.code, answer.text) if is_in_doubt else refusal
    return refusal
