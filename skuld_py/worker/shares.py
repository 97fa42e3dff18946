"""Which queue of a worker is asked next, and for how many tasks: fair by weight, without a thread or a clock.

    a:3,b       three tasks of a for one of b, as long as both have some

Room is a count of permits: one for each task that may be claimed. A queue that had tasks when it was last asked is
*full*, and asked by its turn: of the full queues that one which was served least for its weight, for its share of
the room. One that had none is *empty*: it waits at the cluster for a single task, beside the others and without a
permit, so it costs them nothing, and nobody polls.

Invariants:

* A full queue is asked only while there is room, and never for more. What it is asked for counts as served until
  it has answered: so one that is asked at the moment keeps its turn, and the others wait for no more than that
  answer.
* What empty queues bring may go beyond the room, by one task each; the next room that comes is theirs. None is
  asked for that while there is no room and no task has ended since it was asked before: a worker whose tasks
  take an hour brings nothing that would have to wait as long.
* A batch (``batches``) is served as one task, as it takes one slot; but it takes a permit for each of its tasks. *
A queue that was empty is served from now on: what it was not given then, it does not get on top. * A worker of one
queue waits at the cluster with all its room. * A queue with a *cap*, that of a workflow's step, is asked for no
more than that brings it to: what it gave and has not ended counts. Its cap is its weight. Queues with caps come
and go (``cap``).

Rejected: all weights by chance. A queue of weight 1 beside one of 100 may then wait for long, and a test of it
says nothing for sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model import names
from skuld_py.model.messages.workers import TAGS_MAX
from skuld_py.model.seats import CLAIMS, SEATED

QUEUES_MAX, WEIGHT_MAX = 64, 1_000
COUNT_MAX = DEFAULT_LIMITS.batch_tasks


@attrs.frozen
class Wish:
    """Ask a queue for so many tasks; waiting for one, if none is there. ``is_beyond``: no permit is kept for
    it."""

    count: int
    waits: bool
    is_beyond: bool = False


@attrs.define
class _Queue:
    weight: int
    served: float = 0.0
    is_empty: bool = True
    is_asked: bool = False
    looked_at: int = 0
    cap: int | None = None
    ahead: int = 0
    held: int = 0
    """Of one with a cap: what it gave that has not ended."""

    @property
    def room(self) -> int:
        """How many more it may give."""
        return COUNT_MAX if self.cap is None else min(COUNT_MAX, self.cap + self.ahead - self.held)


class Shares:
    """The queues of one worker and the room it has."""

    def __init__(self, weights: Mapping[str, int], permits: int) -> None:
        self._queues = {name: _Queue(weight) for name, weight in weights.items()}
        self._permits = permits
        self._turns = 0
        self._now = 0.0
        """How much had been served, for its weight, of the queue whose turn was the last."""

    def cap(self, caps: Mapping[str, int]) -> None:
        """Have exactly these queues with caps, and those without as before. What one that goes still holds, it
        holds to the end."""
        for name, queue in [*self._queues.items()]:
            if queue.cap is not None and name not in caps:
                queue.cap = queue.ahead = 0
                self._forget(name)
        for name, cap in caps.items():
            queue = self._queues.setdefault(name, _Queue(cap, served=self._now, cap=cap))
            if queue.cap is not None:
                queue.weight = queue.cap = cap
                queue.ahead = 0

    def ahead(self, name: str, count: int) -> None:
        """A queue with a cap may hold so many beyond it."""
        if name in self._queues and self._queues[name].cap:
            self._queues[name].ahead = count

    def has(self, name: str) -> bool:
        """Whether a queue is to be asked, now or later."""
        return name in self._queues and self._queues[name].cap != 0

    def ended(self, name: str) -> None:
        """Something that a queue with a cap gave has ended."""
        if name in self._queues:
            self._queues[name].held -= 1
            self._forget(name)

    def _forget(self, name: str) -> None:
        queue = self._queues[name]
        if queue.cap == 0 and not (queue.held or queue.is_asked):
            del self._queues[name]

    def give(self, permits: int) -> None:
        """Note room for more tasks; less, if it is negative."""
        self._permits += permits
        self._turns += permits > 0

    def take(self, name: str) -> Wish | None:
        """What to ask this queue for now; None for nothing. It is to be followed by ``answered``."""
        queue = self._queues[name]
        wish = self._wish_for(queue) if queue.room > 0 else None
        if wish is not None:
            queue.is_asked, queue.looked_at = True, self._turns
            if not wish.is_beyond:
                self._permits -= wish.count
                self._charge(queue, wish.count)
        return wish

    def answered(self, name: str, wish: Wish, count: int) -> None:
        """The queue gave so many."""
        queue = self._queues[name]
        queue.is_asked = False
        queue.is_empty = count < wish.count and not (wish.waits and count)
        if not wish.is_beyond:
            self._permits += wish.count - count
            queue.served -= (wish.count - count) / queue.weight
        elif count:
            self._permits -= count
            queue.served = max(queue.served, self._now)
            self._charge(queue, count)
        if queue.cap is not None:
            queue.held += count
            self._forget(name)

    def joined(self, name: str, count: int) -> None:
        """So many of what the queue gave last run in the batches of others: they are no turns of their own."""
        if name in self._queues:
            self._queues[name].served -= count / self._queues[name].weight

    def _charge(self, queue: _Queue, count: int) -> None:
        self._now = max(self._now, queue.served)
        queue.served += count / queue.weight

    def _wish_for(self, queue: _Queue) -> Wish | None:
        if queue.is_asked:
            return None
        if len(self._queues) == 1:
            return Wish(min(queue.room, self._permits), waits=True) if self._permits > 0 else None
        if queue.is_empty:
            may_ask = self._permits > 0 or self._turns > queue.looked_at
            return Wish(1, waits=True, is_beyond=True) if may_ask else None
        full = [each for each in self._queues.values() if not each.is_empty and each.room > 0]
        next_served = min((each.served for each in full if each is not queue), default=None)
        if self._permits <= 0 or (next_served is not None and queue.served > next_served):
            return None
        share = self._permits * queue.weight // sum(each.weight for each in full)
        behind = 0 if next_served is None else int((next_served - queue.served) * queue.weight)
        return Wish(min(queue.room, self._permits, max(1, share, behind)), waits=False)


def tags_of(given: Iterable[str]) -> tuple[str, ...]:
    """What a worker says that it can do, each once."""
    tags = tuple(sorted({*given}))
    for tag in tags:
        names.check_name("tag", tag)
        if tag == SEATED or tag.startswith(CLAIMS):
            raise Refused("bad_tag", f"tag: {tag!r} is the cluster's own; name it otherwise")
    if len(tags) > TAGS_MAX:
        raise Refused("bad_tag", f"tag: {len(tags)} tags; a worker has at most {TAGS_MAX}")
    return tags


def weights_of(text: str) -> dict[str, int]:
    """``NAME[:WEIGHT],...`` as weights, 1 where none is given."""
    weights: dict[str, int] = {}
    for part in text.split(","):
        name, colon, weight = part.strip().partition(":")
        names.check_name("queue", name)
        if name in weights:
            raise Refused("bad_queue", f"queue: {name} is given twice")
        if colon and not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= WEIGHT_MAX):
            raise Refused("bad_queue", f"queue: {part.strip()[:80]!r}: a weight is 1 to {WEIGHT_MAX},"
                          f" as in {name}:3")
        weights[name] = int(weight) if colon else 1
    if len(weights) > QUEUES_MAX:
        raise Refused("bad_queue", f"queue: {len(weights)} queues; a worker has at most {QUEUES_MAX}")
    return weights
