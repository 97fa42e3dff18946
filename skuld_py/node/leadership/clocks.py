"""Watches the clocks: is this node's within the cluster's skew bound, as far as answers tell?

Leases rest on one promise: at any moment two nodes' clocks differ by at most ``skew_ms``. Operators keep it; here
it is checked, so that a broken clock costs its node the right to grant, and no holder its lease. Nothing is ever
adjusted: a clock that moves under the leases would be worse.

A node asks each peer what its clock shows. The answer was read between question and answer, so the round
trip bounds the difference of the two clocks: a late answer (a stopped process, a slow link) gives a wide
span, never a wrong one. A span widens with age by what two clocks can drift apart, is met with the next
one, and is forgotten when it is old or its node has started anew.

Judgement (Marzullo's algorithm). Each clock heard says: "the right time is within half the bound of me". The
times that most of them allow, at least a majority of the registered nodes, are the agreed ones.

* **agreed**: a node whose clock allows all of them. Clocks that all lie within the bound of each other have
  a time in common that all allow, so none of them is ever suspected. Of two nodes that agree on one time,
  neither is farther than the bound from the other, give or take the width of the spans.
* **outside**: a majority agrees, or two equal ones do, and not all with this clock. It grants and renews
  nothing. A clock farther from all good ones than the bound is at least this once those are heard.
* **far**: the clocks that are certainly farther than the bound from this one are too many for a majority to be
  near it, were all unheard ones near. It resigns and does not stand. A clock within half the bound of the right
  time is never far while a majority of clocks is, whatever the others say and whatever was not heard.
* **disagreed**: a majority was heard and no majority agrees. Which clock is right cannot be known, so no node
  grants: to trust a clock too few costs time, a clock too many the guarantee.
* **unheard**: too few were heard for a judgement. The node carries on: without a majority of nodes it can
  neither win an election nor have a grant recorded, unless its replicas are fewer than its nodes.

Two nodes can only agree or both be far: neither can tell which of them is wrong. If the majority is wrong
and the minority right, the minority is judged wrong: what counts for the leases is that clocks agree. A
single node is always right, and a step of its clock between two starts shows in its leases.

After a start a node grants nothing before it has heard a majority of the live nodes, or waited for
``silence_ms``.

Source: Marzullo, "Maintaining the Time in a Distributed System", 1984; NTP's selection algorithm. Rejected:
one-way stamps (they measure delay as well as skew), the distance from the cluster's fastest clock (one fast
clock would condemn all others), the median (of two clocks each is one).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import ClassVar

import attrs

from skuld_py.model import messages as m
from skuld_py.model.remarks import Kind, Remark
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.partition.leadership.quorum import majority

DRIFT = 400
"""Two clocks drift apart by at most one part in this: each keeps within 1e-3 of the true rate, with room."""
ROUNDING_MS = 1
ROUNDS_KEPT = 5
"""A span that was not renewed in this many rounds of questions is forgotten."""
JUDGE_MS = 100
"""Least pause between two judgements, which cost n log n."""


class Verdict(Enum):
    """What is known of a clock."""

    UNHEARD = "unheard"
    AGREED = "agreed"
    OUTSIDE = "outside"
    FAR = "far"
    DISAGREED = "disagreed"


DOUBTS = (Verdict.OUTSIDE, Verdict.FAR, Verdict.DISAGREED)


@attrs.frozen
class Span:
    """How far a peer's clock is ahead of one's own, in milliseconds: between ``low`` and ``high``."""

    low: int = 0
    high: int = 0

    def widened(self, age_ms: int) -> Span:
        """The same after some time."""
        drift_ms = -(-age_ms // DRIFT)
        return Span(self.low - drift_ms, self.high + drift_ms)

    def met(self, other: Span) -> Span | None:
        """What both allow; None when they contradict each other."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else None

    def is_within(self, distance_ms: int, other: Span) -> bool:
        """Whether the two clocks can be so near to each other."""
        return self.low - other.high <= distance_ms and other.low - self.high <= distance_ms

    @property
    def middle(self) -> int:
        """The best guess."""
        return (self.low + self.high) // 2


def span_of(asked_ms: int, told_ms: int, heard_ms: int) -> Span:
    """What a round trip says: the peer read ``told_ms`` between the two readings of one's own clock."""
    return Span(told_ms - heard_ms - ROUNDING_MS, told_ms - asked_ms + ROUNDING_MS)


@attrs.frozen
class Agreement:
    """What the clocks heard say together.

    ``groups``: the largest sets of clocks that can be right at once; ``size``: how many nodes there are.
    """

    spans: Mapping[str, Span]
    size: int
    skew_ms: int
    groups: tuple[tuple[str, ...], ...]
    middle_ms: int
    """The agreed time, ahead of one's own clock; 0 without a majority."""

    @property
    def is_majority(self) -> bool:
        """Whether enough clocks agree."""
        return len(self.groups[0]) >= majority(self.size)

    def verdict(self, name: str) -> Verdict:
        """What is known of this clock."""
        enough, span = majority(self.size), self.spans.get(name)
        if span is None or len(self.spans) < enough:
            return Verdict.UNHEARD
        near = sum(1 for other in self.spans.values() if span.is_within(self.skew_ms, other))
        if near + self.size - len(self.spans) < enough:
            return Verdict.FAR
        if not self.is_majority:
            return Verdict.DISAGREED
        return Verdict.AGREED if all(name in group for group in self.groups) else Verdict.OUTSIDE

    def offset_ms(self, name: str) -> int:
        """How far this clock is ahead of the agreed time, or of one's own clock when there is none."""
        span = self.spans.get(name)
        return span.middle - self.middle_ms if span is not None else 0

    def error_ms(self, name: str) -> int:
        """How much of that may be owed to delays."""
        span = self.spans.get(name)
        return (span.high - span.low + 1) // 2 if span is not None else 0


def agree(spans: Mapping[str, Span], size: int, skew_ms: int) -> Agreement:
    """Find the times that most clocks allow. ``spans`` holds one's own clock too, as (0, 0)."""
    edges: list[tuple[int, int, str]] = []
    for name, span in spans.items():
        edges.append((2 * span.low - skew_ms, 0, name))  # doubled, since half the bound need not be a whole
        edges.append((2 * span.high + skew_ms, 1, name))
    edges.sort()
    most = max(_depths(edges))
    allowing: dict[str, None] = {}
    groups: list[tuple[str, ...]] = []
    times: list[int] = []
    for at, (edge, is_end, name) in enumerate(edges):
        if is_end:
            del allowing[name]
            continue
        allowing[name] = None
        if len(allowing) == most:
            groups.append(tuple(allowing))
            times += edge, edges[at + 1][0]
    is_agreed = most >= majority(size)
    return Agreement(dict(spans), size, skew_ms, tuple(groups),
                     (min(times) + max(times)) // 4 if is_agreed else 0)


def _depths(edges: Iterable[tuple[int, int, str]]) -> Iterable[int]:
    depth = 0
    for _, is_end, _ in edges:
        depth += -1 if is_end else 1
        yield depth


class Timekeeper(Duty):
    """One node's view of the clocks."""

    asked: ClassVar[Asked] = {}

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self.served: Served = {m.AskTime: self.on_message, m.ToldTime: self.on_message}
        self._size = 1
        self._spans: dict[str, tuple[int, Span]] = {}
        self._asked: dict[int, tuple[str, int]] = {}
        self._next_round_ms = 0
        self._next_judgement_ms = 0
        self._is_news = True
        self.on_verdict: Callable[[int], None] = lambda now_ms: None
        """Called when it may grant or lead, or may not any more."""
        self._live_since_ms: int | None = None
        self._is_admitted = False
        self.agreement = agree({operations.view.me.name: Span()}, 1, operations.view.parameters.skew_ms)
        self.verdict = Verdict.UNHEARD
        self.may_grant = False
        """Whether claims may be granted and renewed by this clock."""
        self.may_lead = True
        """Whether a leadership may be kept, in the hope that the clock recovers."""

    # -- rounds --------------------------------------------------------------------------------

    def forget(self) -> None:
        """The clock has fallen back: what was measured by it before says nothing."""
        self._spans, self._asked, self._next_round_ms, self._next_judgement_ms = {}, {}, 0, 0
        self._plan()

    def look(self, now_ms: int, *, is_along: bool = False) -> None:
        """Ask around when it is time, and judge what is new. ``is_along``: something goes to all peers anyway, so
        a round that is nearly due begins."""
        slack_ms = self._slack_ms()
        if now_ms >= self._next_round_ms + (-slack_ms if is_along else slack_ms):
            self._begin_round(now_ms)
        if self._is_news and now_ms >= self._next_judgement_ms:
            self._judge(now_ms)
        self._plan()

    def _slack_ms(self) -> int:
        """How much sooner or later a round may begin, so that it goes along with a gossip."""
        return self._view.timing.gossip_ms // 2 if self._hears_majority() else 0

    def _plan(self) -> None:
        self.due_ms = self._next_round_ms + self._slack_ms()
        if self._is_news:
            self.due_ms = min(self.due_ms, self._next_judgement_ms)

    def _begin_round(self, now_ms: int) -> None:
        timing = self._view.timing
        oldest_ms = now_ms - ROUNDS_KEPT * timing.clock_ms
        self._spans = {name: row for name, row in self._spans.items() if row[0] >= oldest_ms}
        self._asked = {request: row for request, row in self._asked.items() if row[1] >= oldest_ms}
        self._ask(now_ms, [name for name in sorted(self._view.live) if name != self._view.me.name])
        self._next_round_ms = now_ms + (timing.clock_ms if self._hears_majority() else timing.resend_ms)
        self._is_news = True

    def _ask(self, now_ms: int, peers: Collection[str]) -> None:
        for name in peers:
            request = next(self._operations.numbers)
            self._asked[request] = (name, now_ms)
            self._outbox.send(name, m.AskTime(request))

    def _hears_majority(self) -> bool:
        """Whether the clocks of a majority of the live nodes are known."""
        return len(self._spans) + 1 >= majority(max(1, len(self._view.live)))

    def _judge(self, now_ms: int) -> None:
        if self._view.me.name in self._view.live and not self._is_admitted:
            self._live_since_ms = now_ms if self._live_since_ms is None else self._live_since_ms
            waited_ms = now_ms - self._live_since_ms
            self._is_admitted = self._hears_majority() or waited_ms >= self._view.timing.silence_ms
        spans = {name: span.widened(now_ms - at_ms) for name, (at_ms, span) in self._spans.items()}
        spans[self._view.me.name] = Span()
        self.agreement = agree(spans, max(self._size, len(spans)), self._view.parameters.skew_ms)
        was, self.verdict = self.verdict, self.agreement.verdict(self._view.me.name)
        self._say(was)
        could = self.may_grant, self.may_lead
        self.may_grant = self._is_admitted and self.verdict in (Verdict.AGREED, Verdict.UNHEARD)
        self.may_lead = self.verdict is not Verdict.FAR
        if could != (self.may_grant, self.may_lead):
            self.on_verdict(now_ms)
        self._next_judgement_ms = now_ms + (JUDGE_MS if self._is_admitted else 0)
        self._is_news = False

    def _say(self, was: Verdict) -> None:
        """Tell people when the judgement on this clock becomes a doubt, and when it is none any more."""
        if was is not self.verdict and (was in DOUBTS or self.verdict in DOUBTS):
            self._view.bulletin.remark(Remark(Kind.CLOCK, why=self.verdict.value))

    # -- news ----------------------------------------------------------------------------------

    def on_nodes(self, count: int) -> None:
        """The registered nodes, this one included, are this many now."""
        self._size = max(1, count)
        self._note_news()

    def on_members(self, now_ms: int, came: Collection[str], gone: Collection[str]) -> None:
        """Forget the clocks of processes that ended, and ask the new ones at once."""
        self._spans = {name: row for name, row in self._spans.items() if name not in gone}
        self._asked = {request: row for request, row in self._asked.items() if row[0] not in gone}
        self._ask(now_ms, came)
        self._note_news()

    def on_message(self, now_ms: int, peer: str, message: m.AskTime | m.ToldTime) -> None:
        """A question, or an answer to one of the last questions."""
        if isinstance(message, m.AskTime):
            self._outbox.send(peer, m.ToldTime(message.request, now_ms))
            return
        name, asked_ms = self._asked.pop(message.request, ("", 0))
        if name != peer or peer not in self._view.live:
            return
        span = span_of(asked_ms, message.told_ms, now_ms)
        known = self._spans.get(peer)
        if known is not None:
            span = known[1].widened(asked_ms - known[0]).met(span) or span
        self._spans[peer] = (asked_ms, span)
        self._note_news()

    def _note_news(self) -> None:
        self._is_news = True
        self._plan()
