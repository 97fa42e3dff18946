"""The seats of workflows, as this node knows them: what it tells its workers, and which claims it refuses for
them.

A claim in the queue of a step is for who has a seat there: it shows the seat's fence. One that shows none, or
shows that of seats which are no more, is refused: before it waits, before each node that it is tried at, and again
before this node picks tasks for it. So what seats are changed to holds as soon as the node that is asked knows of
it, but for what it asked another one before. Of a workflow that it does not know a
node refuses no claim without a fence: it may be behind, or the queue may be nobody's step, only named like one.
"""

from __future__ import annotations

from skuld_py.model.seats import Seat, Seats
from skuld_py.node.knowledge.attendance import Tags
from skuld_py.workflow.definition.names import is_own, step_of
from skuld_py.workflow.scheduling.fences import NO_FENCE, fence_of, is_stale

STALE, NO_SEAT = "stale_allocation", "no_seat"


class Seating:
    """``news`` is not empty when seats have changed since its reader cleared it."""

    def __init__(self) -> None:
        self.seats = Seats()
        self.news: dict[str, None] = {}

    def know(self, seats: Seats) -> None:
        """Take what the coordination log comes to."""
        self.seats = seats
        self.news["seats"] = None

    def here(self, tags: Tags) -> tuple[Seat, ...]:
        """The seats of this node's slots of one kind; ``tags`` are those that workers gave."""
        return dict(self.seats.here).get(tags, ())

    def flaw(self, queue: str, fence: int) -> tuple[str, str] | None:
        """Why a claim in a queue is refused, as a code and words; None if it is not."""
        named = step_of(queue)
        if named is None:
            return None
        workflow, step = named
        known = self.seats.fences.get(workflow)
        if fence == NO_FENCE:
            return None if known is None or is_own(step) else (
                NO_SEAT, f"queue: {queue} is of step {step} of workflow {workflow}, in which only workers claim"
                " that were given a seat there; start one with 'skuld worker --workflows'")
        gone = fence_of(self.seats.position, ())
        if is_stale(fence, gone if known is None else known):
            return STALE, (f"queue: {queue} is of a workflow whose seats have changed since this worker was told"
                           " of its own; it is to report, and claim by those that it is told then")
        return None
