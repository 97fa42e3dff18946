"""Segments of one step that a function gets together, as a list: of a step with ``batch`` in its entry.

Each segment is a task with a list of one. Where several wait, one call is for all of them, in the thread of the
first. What it returns is nothing, or a list with one thing for each of them, and each ends by itself then. A
function that takes the context gets lists of one: what it writes by that belongs to one task's claim.

Invariants:

* An error of the function is that of all of them. One that was claimed before is in a list of its own, so none
  takes the others along twice.
* The call is stopped when none of them is wanted any more. Of one that is lost before, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.errors import Refused
from skuld_py.worker.assignment import Work
from skuld_py.worker.batches.sizes import BYTES_MAX
from skuld_py.worker.endings import Ending, Snoozed, Stopped
from skuld_py.worker.injection import CONTEXT

if TYPE_CHECKING:
    from skuld_py.worker.run import Run

AGAIN_MS = 1_000


class Together:
    """Runs that one call is for. As a batch is, for what stops it."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self.name = runs[0].context.name
        for run in runs:
            run.together, run.batch, run.started_s = runs, self, runs[0].started_s

    @property
    def is_wanted(self) -> bool:
        """Whether it holds a run of which nothing is decided."""
        return any(run.fate is None for run in self._runs)

    def stop(self) -> None:
        """Tell the thread that calls the function."""
        self._runs[0].interrupt_thread()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        return self._runs[0].join_thread(timeout_s)


def may_join(run: Run) -> bool:
    """Whether a segment may be in a list with others."""
    work = run.assignment.work
    return (run.kind is None and run.claim.is_first and isinstance(work, Work) and not work.traits.is_async
            and not work.traits.injection.has(CONTEXT) and _is_list_of_one(work.call.args))


def lists_of(runs: Iterable[Run], size: int) -> list[list[Run]]:
    """In lists of at most so many."""
    lists: list[list[Run]] = []
    is_open, left = False, 0
    for run in runs:
        joins, length = may_join(run), len(run.claim.payload)
        if joins and is_open and len(lists[-1]) < size and length <= left:
            lists[-1].append(run)
            left -= length
        else:
            lists.append([run])
            is_open, left = joins, BYTES_MAX - length
    return lists


def joined(works: Sequence[Work | Refused]) -> Work | Refused:
    """One call for all of these."""
    first = works[0]
    if len(works) == 1 or not isinstance(first, Work):
        return first
    values = [work.call.args[0][0] for work in works if isinstance(work, Work)]
    return attrs.evolve(first, call=attrs.evolve(first.call, args=[values]))


def stopped_for(run: Run, ending: Ending) -> Ending:
    """How one ended whose call was stopped, perhaps for the sake of another one: it is tried again then."""
    return Snoozed(AGAIN_MS) if isinstance(ending, Stopped) and run.fate is None else ending


def shared(value: Any, count: int) -> Sequence[Any]:
    """What a call returned for each of its segments."""
    if value is None:
        return [None] * count
    if not isinstance(value, list) or len(value) != count:
        what = f"a list of {len(value)}" if isinstance(value, list) else f"a {type(value).__name__}"
        raise Refused("bad_batch_result", f"a step with a batch returns nothing, or a list with one thing for each"
                      f" of its segments: it got {count} and returned {what}")
    return value


def _is_list_of_one(args: Sequence[Any]) -> bool:
    return len(args) == 1 and isinstance(args[0], list) and len(args[0]) == 1
