"""Which of a node's workers take which of its seats. Pure.

The node has the seats, in the log; who of its workers takes them concerns nobody else. So a worker that comes,
goes or has fewer slots changes nothing in the log at once: its node deals anew. Who has seats keeps them as far as
they and its slots go; what is open goes to the first worker by name that has a slot free, seat by seat, each step
in turn. So while workers lack for what the log says, every step has some.

Bound: a worker has seats of ``SEATS_MAX`` different steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skuld_py.model.messages.workers import SEATS_MAX
from skuld_py.model.seats import Seat
from skuld_py.node.knowledge.attendance import Name

Step = tuple[str, str]
"""A workflow and its step."""
Dealt = dict[Name, dict[Step, int]]
"""Of each worker, how many of its slots serve which steps."""


def deal(seats: Sequence[Seat], workers: Sequence[tuple[Name, int]], former: Mapping[Name, Mapping[Step, int]]
         ) -> Dealt:
    """Who takes what: of workers with their numbers of slots, and what each had before."""
    left = {(seat.workflow, seat.step): seat.count for seat in seats}
    dealt: Dealt = {}
    room: dict[Name, int] = {}
    for name, slots in workers:
        kept: dict[Step, int] = {}
        for step, count in former.get(name, {}).items():
            if (keeps := min(count, left.get(step, 0), slots)) > 0:
                kept[step] = keeps
                left[step] -= keeps
                slots -= keeps
        dealt[name], room[name] = kept, slots
    open_ = [step for step, count in left.items() if count]
    while open_:
        open_ = [step for step in open_ if _is_taken(step, dealt, room) and _less(left, step)]
    return dealt


def _is_taken(step: Step, dealt: Dealt, room: dict[Name, int]) -> bool:
    """Whether somebody could take a seat, and did."""
    for name in [*room]:
        if not room[name]:
            del room[name]
        elif step in dealt[name] or len(dealt[name]) < SEATS_MAX:
            dealt[name][step] = dealt[name].get(step, 0) + 1
            room[name] -= 1
            return True
    return False


def _less(left: dict[Step, int], step: Step) -> int:
    left[step] -= 1
    return left[step]
