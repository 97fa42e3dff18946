"""When tasks died of a dependency, where that was not noted: under rules before ``DEATH_TIME_RULES``.

The mark of such a death has a reason and no time. But a node keeps what a task needs for as long as the task
itself, so when an archiver holds one that died so, its dependencies are still there to be asked: it died when the
first of them failed, or, if it came later, at once. A dependency that died so itself is followed to what that died
of, and so on.

No time is known where a dependency is not there any more, or one that failed has no known end, nor beyond
``DEPTH`` or ``TASKS``: the first to fail may be among them. Then the column is null, as it is where no node
answers: a batch does not wait for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from skuld_py.archive.rows import COLUMNS, DEP_FAILED, Row, ended_ms
from skuld_py.errors import SkuldError
from skuld_py.model.ids import from_text
from skuld_py.model.task import Task

DEPTH, TASKS = 16, 20_000
"""How far causes are followed, and how many tasks are asked for in one batch, at most."""
FAILED = ("dead", "cancelled")
_DEATH, _DEPS, _ENQUEUED, _ENDED_MS, _ENDED = map([*COLUMNS].index, (
    "death", "deps", "enqueued_ms", "ended_ms", "ended"))


@attrs.frozen
class _Cause:
    """``deps``: what it died of in turn, if it died so; ``ended_ms``: else its own end, if it failed."""

    enqueued_ms: int
    has_failed: bool
    ended_ms: int | None
    deps: tuple[bytes, ...]


class Causes:
    """Gives rows the time of such a death. ``ask`` gives the tasks that exist of some."""

    def __init__(self, ask: Callable[[Sequence[bytes]], Iterable[Task]]) -> None:
        self._ask = ask

    def dated(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows, with the ends that can be found out; the same rows where all ends are known."""
        undated = {index: tuple(map(from_text, row[_DEPS])) for index, row in enumerate(rows)
                   if row[_ENDED_MS] is None and row[_DEATH] == DEP_FAILED}
        if not undated:
            return rows
        causes, dated = self._followed([dep for deps in undated.values() for dep in deps]), [*rows]
        ends = _ends(causes)
        for index, deps in undated.items():
            row = [*rows[index]]
            row[_ENDED_MS] = row[_ENDED] = _first(row[_ENQUEUED], deps, causes, ends)
            dated[index] = tuple(row)
        return dated

    def _followed(self, wanted: Sequence[bytes]) -> dict[bytes, _Cause]:
        """What is known of these tasks, and of what they died of."""
        known, asked = dict[bytes, _Cause](), dict[bytes, None]()
        for _ in range(DEPTH):
            wanted = [*dict.fromkeys(each for each in wanted if each not in asked)][: TASKS - len(asked)]
            if not wanted:
                break
            asked.update(dict.fromkeys(wanted))
            found = dict[bytes, _Cause]()
            try:
                found.update((bytes(task.id), _cause_of(task)) for task in self._ask(wanted))
            except SkuldError:
                return known | found
            known.update(found)
            wanted = [dep for each in found.values() for dep in each.deps]
        return known


def _cause_of(task: Task) -> _Cause:
    has_failed = task.state in FAILED
    ended = ended_ms(task) if has_failed else None
    follows = has_failed and ended is None and task.death == DEP_FAILED
    return _Cause(task.enqueued_ms, has_failed, ended, tuple(map(bytes, task.deps)) if follows else ())


def _ends(causes: Mapping[bytes, _Cause]) -> dict[bytes, int]:
    """When each failed, as far as that is known: from those that died of nothing else up to what died of them."""
    ends = {task_id: cause.ended_ms for task_id, cause in causes.items() if cause.ended_ms is not None}
    for _ in range(DEPTH):
        ends.update({task_id: at_ms for task_id, cause in causes.items() if cause.deps
                     and (at_ms := _first(cause.enqueued_ms, cause.deps, causes, ends)) is not None})
    return ends


def _first(enqueued_ms: int, deps: Sequence[bytes], causes: Mapping[bytes, _Cause],
           ends: Mapping[bytes, int]) -> int | None:
    """When a task died: it was there, and the first of what it needs had failed. None while one may be earlier."""
    if any(dep not in causes or (causes[dep].has_failed and dep not in ends) for dep in deps):
        return None
    failed = [ends[dep] for dep in deps if dep in ends]
    return max(enqueued_ms, min(failed)) if failed else None
