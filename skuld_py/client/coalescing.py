"""Single calls that are made at the same time travel as one request: which, when, and what becomes of each.

A ``Lane`` holds the calls of one kind and with equal options that wait to leave. They leave together once
nothing of the lane is under way, so the slower the cluster the larger the request; a full request does not
wait for that. Nothing waits for a clock: a call that is alone leaves alone and at once.

Invariants:

* Each call has an outcome of its own. When a request is refused because of some call in it, it is asked again
  in halves, down to the one that stands in the way (``one_by_one``), so no call fails for another one's fault.
  That is why only idempotent calls may travel together.
* A call that was given up before it left does not leave.

Rejected: a fixed delay to gather in, which every single call would pay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import attrs

from skuld_py.client.asking import Joint, Work
from skuld_py.client.pursuit import FINAL_CODES, RETRIED_CODES
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused, SkuldError, Uncertain

COUNT_MAX = DEFAULT_LIMITS.batch_tasks
BYTES_MAX = DEFAULT_LIMITS.batch_bytes // 4
"""Bytes of one request of many calls: few enough that it does not hold the node up for the other lanes."""
GRACE_S = 0.1
"""How much longer than its own time a call waits: the outcome of the call that asks for all may come this late."""
UNDER_WAY_MAX = 4
"""Requests of one lane at a time, when calls come faster than they are answered."""
ABOUT_ALL = (*RETRIED_CODES, "unreachable", "bad_w", "bad_answer", "too_large", "forbidden", "closed")
"""Refusals that say nothing about a single task: asking for each alone would give the same."""

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")


@attrs.define(eq=False)
class Lane(Generic[K]):
    """Calls of one kind; ``K`` is the type by which the owner tells callers apart."""

    waiting: deque[tuple[Joint[Any, Any], K]] = attrs.field(factory=deque)
    size: int = 0
    under_way: int = 0

    def add(self, joint: Joint[Any, Any], caller: K) -> None:
        """One more call."""
        self.waiting.append((joint, caller))
        self.size += joint.size

    @property
    def is_full(self) -> bool:
        """Whether what waits makes a full request."""
        return len(self.waiting) >= COUNT_MAX or self.size >= BYTES_MAX

    def is_due(self) -> bool:
        """Whether a request may leave now."""
        if not self.waiting or self.under_way >= UNDER_WAY_MAX:
            return False
        return not self.under_way or self.is_full

    def take(self, is_wanted: Callable[[K], bool]) -> list[tuple[Joint[Any, Any], K]]:
        """The calls of the next request, oldest first; those that were given up are dropped."""
        taken: list[tuple[Joint[Any, Any], K]] = []
        size = 0
        while self.waiting and len(taken) < COUNT_MAX and size < BYTES_MAX:
            joint, caller = self.waiting.popleft()
            self.size -= joint.size
            if is_wanted(caller):
                taken.append((joint, caller))
                size += joint.size
        return taken


def one_by_one(items: Sequence[T], do: Callable[[Sequence[T]], Work[Sequence[R]]]) -> Work[list[R | SkuldError]]:
    """The outcome of each item: asked for at once, and in halves when a refusal may be about one of them."""
    try:
        return list((yield from do(items)))
    except SkuldError as error:
        if len(items) == 1 or not _is_about_one(error):
            return [error] * len(items)
    half = len(items) // 2
    first = yield from one_by_one(items[:half], do)
    return first + (yield from one_by_one(items[half:], do))


def _is_about_one(error: SkuldError) -> bool:
    return error.code in FINAL_CODES or (isinstance(error, Refused) and error.code not in ABOUT_ALL)


def out_of_time(is_unsent: bool) -> SkuldError:
    """The error of a call that has waited for others as long as it may."""
    if is_unsent:
        return Refused("unsent", "timeout_s: the requests before this one took all of its time; give it more, or"
                       " share the client among fewer")
    return Uncertain("deadline", "no answer before the deadline")


def own(outcome: R | Exception) -> R:
    """A caller's outcome: given, or raised, each caller having an error of its own to add a traceback to."""
    if not isinstance(outcome, Exception):
        return outcome
    twin = type(outcome).__new__(type(outcome), *outcome.args)
    twin.__dict__.update(outcome.__dict__)
    raise twin from outcome.__cause__
