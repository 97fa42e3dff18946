"""One request until it is answered or given up: which node to ask, how long to wait, what may be asked twice.

A call has one deadline. Nodes are asked in turn; one that was silent is passed over for a while, unless
all are. A request that is idempotent is sent to another node when one is silent; any other is sent once,
and silence makes its outcome ``Uncertain``. A refusal is definite only if no earlier attempt is in doubt.
A node that is not connected is never sent to (the socket refuses at once), so "no node is reachable" is
a definite refusal.

A node that stops says farewell: it is sent nothing more, and answers what it was sent before. A connection that
breaks without a word takes its answers with it, and nobody knows which of its requests were read: that is silence,
known at once. So an idempotent request goes to another node, after a pause, and any other one is ``Uncertain``.
Rejected: to claim again elsewhere. What the first node granted would lie until its lease ends, and a second answer
of nothing would hide that.

A node is asked again ever more seldom: overloaded nodes carry out abandoned requests too, and would never catch up
with a thousand callers that keep asking.

A pure machine: ``pursue`` yields what is to be done and is told what came of it and what time it is. The
sync and the async connection are two ways to do it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

import attrs

from skuld_py.config import GREETING_PROTOCOL, protocol_of
from skuld_py.errors import Refused, Uncertain
from skuld_py.model import messages as m
from skuld_py.model.ids import ID_BYTES

ATTEMPT_S = 1.5
"""A silent node is given up for another one after this, the next after twice as long, within the call's time."""
SILENCE_S = 5.0
"""A node that gave no answer is asked again only after this, as long as others are there."""
LEAVING_S = 2.0
"""A node that has said farewell is sent nothing for this long: by then its connection is gone, or it is back."""
FIRST_CONNECT_S, CONNECT_S = 0.005, 0.05
"""How long connections are given before the nodes are tried again: at first, for most stand in a millisecond or
two, and at most. After a refusal the nodes are left alone for the longer time, and twice as long after each."""
PAUSE_S, BUSY_S = 0.2, 1.6
"""The longest pause after a refusal; and after one that tells of too much work."""
LAST_S = 0.25
"""A request that was refused is not sent again with less time than this for its answer: a definite refusal is
worth more than doubt."""
NOT_READY = "not_ready"
"""Said by a node that has just begun, or is about to stop: others are asked before it for a while."""
RETRIED_CODES = (NOT_READY, "unavailable", "busy", "no_leader")
"""Refusals that pass by themselves: tried again until the deadline."""
GREETING_S = 10.0
"""How often a client in use asks which nodes live."""
FORGET_S = 900.0
"""A member that has been gone for this long is not connected to any more."""
GRANTED_MAX = 1_000
"""How many answers with claims a client remembers the node of."""
CLOSED = "the client is closed; make another one"
OTHER_LOOP = "the client belongs to the event loop of its first call; make one for each loop"
FINAL_CODES = ("conflict", "too_old")
"""Refusals that no second question changes, even where they leave in doubt what was stored."""


@attrs.define
class Try:
    """Send to the first of these nodes that takes it."""

    nodes: tuple[str, ...]


@attrs.define
class Listen:
    """Wait for the answer until then."""

    until: float


@attrs.define
class Pause:
    """Wait until then; what comes meanwhile is late."""

    until: float


Step = Try | Listen | Pause


@attrs.define
class Heard:
    """What came of a step, at ``now``: the node that took the request, or the answer; or nothing, perhaps because
    the client was closed meanwhile, or the connection broke that the request was sent over (``is_cut``)."""

    now: float
    node: str = ""
    answer: m.Message | None = None
    is_closed: bool = False
    is_cut: bool = False


Pursuit = Generator[Step, Heard, "m.Message"]
Doubted = Callable[["m.Message"], "m.Message"]
"""What can be believed of an answer when an earlier attempt may have been carried out."""


class Nodes:
    """The nodes a client knows: those it was given, for ever, and the members of the cluster as they come and go;
    and which of them were silent lately."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        self._given = frozenset(self.names)
        self._lock = threading.RLock()
        """Guards what threads change while they do not hold their connection's lock. A signal's handler gets in
        all the same, so nothing that it may change is walked over."""
        self._turn = 0
        self._silent_until: dict[str, float] = {}
        self._leaving_until: dict[str, float] = {}
        self._seen_at: dict[str, float] = {}
        self._greets_at = 0.0
        self._reported_to = ""
        self._granted: OrderedDict[bytes, str] = OrderedDict()
        """First claim of an answer -> the node that gave it, of the last answers."""
        self.protocol = GREETING_PROTOCOL
        """What all nodes understand, as far as is known."""
        self.foreign = ""
        """What was said last by a node that this program has no protocol in common with."""

    def is_greeting_due(self, now: float) -> bool:
        """Whether to ask which nodes live, besides what is asked anyway; once true, it is not due for a while."""
        if now < self._greets_at:
            return False
        self._greets_at = now + GREETING_S
        return True

    def learn(self, live: Sequence[str], now: float, protocol: int = GREETING_PROTOCOL) -> None:
        """Take the members of now. A node that is gone may come back for ``FORGET_S``; then it is forgotten."""
        self.protocol = protocol_of(protocol)
        self._greets_at = now + GREETING_S
        with self._lock:
            self._silent_until = _after(now, self._silent_until)
            self._leaving_until = _after(now, self._leaving_until)
        self._seen_at.update(dict.fromkeys(live, now))
        self._seen_at = {name: seen for name, seen in [*self._seen_at.items()] if now - seen < FORGET_S}
        self.names = [*dict.fromkeys([*(name for name in self.names if name in self._given), *self._seen_at])]

    def note_answered(self, name: str, answer: m.Message) -> None:
        """A node gave an answer; which node it was matters for later requests about claims, and for reports."""
        if isinstance(answer, m.Claimed):
            self._note_granted(name, answer)
        elif isinstance(answer, m.Reported):
            self._reported_to = name

    def _note_granted(self, name: str, granted: m.Claimed) -> None:
        """A node granted these. It remembers the proofs of a whole answer, which any other has to compute."""
        for batch in granted.batches[:1]:
            with self._lock:
                self._granted[batch.ids[:ID_BYTES]] = name
                if len(self._granted) > GRANTED_MAX:
                    self._granted.popitem(last=False)

    def first_for(self, message: m.Message) -> str:
        """Which node to ask first: that which granted the first of the claims that this names, or which took the
        report before; nothing where any will do."""
        if type(message) is m.Report:
            return self._reported_to
        named: bytes = getattr(message, "ids", b"") if getattr(message, "proofs", b"") else b""
        return self._granted.get(named[:ID_BYTES], "")

    def in_turn(self, now: float, first: str = "") -> tuple[str, ...]:
        """All nodes but those that leave: the one given first, or another one each time; nodes that were silent
        last."""
        self._turn += 1
        start = self._turn % len(self.names)
        turned = [*self.names[start:], *self.names[:start]]
        if first in turned:
            turned.sort(key=first.__ne__)
        if self._silent_until:
            turned.sort(key=lambda name: self._silent_until.get(name, 0) > now)
        if self._leaving_until:
            turned = [name for name in turned if not self.is_leaving(name, now)]
        return tuple(turned)

    def note_silence(self, name: str, now: float) -> None:
        """A node took a request and gave no answer in time, or said that it is not ready."""
        with self._lock:
            self._silent_until[name] = now + SILENCE_S

    def note_farewell(self, name: str, now: float) -> None:
        """A node stops, and is to be sent nothing more."""
        with self._lock:
            self._leaving_until[name] = now + LEAVING_S

    def is_leaving(self, name: str, now: float) -> bool:
        """Whether a node has said farewell just now."""
        return self._leaving_until.get(name, 0) > now


def _after(now: float, moments: Mapping[str, float]) -> dict[str, float]:
    """Those that are still to come."""
    return {name: until for name, until in [*moments.items()] if until > now}


def pursue(nodes: Nodes, now: float, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0,
           is_reading: bool = False, doubted: Doubted | None = None, first: str = "", only: str = "") -> Pursuit:
    """Have one request answered, which may take ``wait_s`` more than the timeout. One that only reads leaves
    nothing in doubt. ``first``: the node to ask at first, and then not before others. ``only``: no other node is
    asked, whatever this one does.

    Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
    """
    reach_by = now + timeout_s
    deadline = reach_by + wait_s
    was_sent, is_in_doubt = False, False
    patience_s, pause_s, connect_s = ATTEMPT_S, CONNECT_S, FIRST_CONNECT_S
    refusal: Refused | Uncertain | None = None
    while now < (end := deadline if was_sent else reach_by):
        heard = yield Try((only,) if only else nodes.in_turn(now, first))
        first = ""
        node, now = heard.node, heard.now
        if heard.is_closed:
            raise _closed(is_in_doubt)
        if not node:
            now = (yield Pause(min(now + connect_s, end))).now
            connect_s = min(2 * connect_s, CONNECT_S)
            continue
        was_sent = True
        heard = yield Listen(min(deadline, now + wait_s + patience_s) if is_idempotent else deadline)
        answer, now = heard.answer, heard.now
        if heard.is_closed and answer is None:
            raise _closed(is_in_doubt=True)
        if answer is not None and not isinstance(answer, m.Failed):
            nodes.note_answered(node, answer)
            return doubted(answer) if is_in_doubt and doubted is not None else answer
        if answer is None:
            nodes.note_silence(node, now)
            patience_s *= 1 if heard.is_cut else 2
        else:
            refusal = _judge(answer, is_idempotent, is_in_doubt)
            if answer.code == NOT_READY:
                nodes.note_silence(node, now)
        is_in_doubt = is_in_doubt or (not is_reading and (answer is None or not answer.is_definite))
        if is_in_doubt and not is_idempotent:
            if heard.is_cut:
                raise Uncertain("disconnected", f"the connection to {node} broke before an answer came")
            break
        if answer is not None or heard.is_cut:
            if now + pause_s + wait_s + LAST_S > deadline:
                break
            now = (yield Pause(now + pause_s)).now
            pause_s = min(2 * pause_s, BUSY_S if answer is None or answer.code == "busy" else PAUSE_S)
    if refusal is not None and (not is_in_doubt or isinstance(refusal, Uncertain)):
        raise refusal
    raise _unanswered(nodes, was_sent, is_in_doubt, only)


def _unanswered(nodes: Nodes, was_sent: bool, is_in_doubt: bool, only: str) -> Refused | Uncertain:
    names = only or ", ".join(nodes.names)
    if not was_sent:
        return Refused("unreachable", f"nodes: none of {names} can be reached; are they running?")
    if nodes.foreign and not is_in_doubt:
        return Refused("unknown_protocol", f"nodes: {nodes.foreign}")
    return Uncertain("deadline", f"no answer from {names} before the deadline")


def _closed(is_in_doubt: bool) -> Refused | Uncertain:
    if is_in_doubt:
        return Uncertain("closed", "the client was closed before an answer came")
    return Refused("closed", CLOSED)


def _judge(answer: m.Failed, is_idempotent: bool, is_in_doubt: bool) -> Refused | Uncertain:
    """Raise what is final; return what may be tried again. No refusal undoes what an earlier attempt may have
    done."""
    if not answer.is_definite:
        doubt = Uncertain(answer.code, answer.text)
        if not is_idempotent or answer.code in FINAL_CODES:
            raise doubt
        return doubt
    refusal = Refused(answer.code, answer.text)
    if answer.code not in RETRIED_CODES:
        raise Uncertain(answer.code, answer.text) if is_in_doubt else refusal
    return refusal
