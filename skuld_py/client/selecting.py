"""The verbs about all tasks of which something is so: those of a queue, that call a function, that failed with
such an error, that were enqueued between two times. Dead ones are retried, those that wait are cancelled,
both are purged, and claims are taken from their holder.

A page is found and done at a time: memory stays bounded, and after an error some are done. Asked for again, it
goes on with the others, since what is done is not found any more. With ``dry_run`` it only counts.

Nodes know queues, states and times; calls, headers, errors and holders are looked at here (``filters``), as in a
listing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.client.asking import Work, as_part, ask, verb
from skuld_py.client.concluding import Concluding
from skuld_py.client.filters import Filter
from skuld_py.client.holding import verdicts_of
from skuld_py.client.preludes import Time, time_ms_of
from skuld_py.client.reading import Reading, errors_of
from skuld_py.errors import SkuldError
from skuld_py.model import columns, names
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.state import State
from skuld_py.model.task import Task

PAGE = 500
"""Tasks found, and done, at a time."""
_DEAD = 1 << State.DEAD
CLAIMED = 1 << State.CLAIMED
TO_COME = 1 << State.WAITING | 1 << State.SCHEDULED | 1 << State.BLOCKED
_GONE_CODES = ("too_old", "no_such_task")


@attrs.frozen
class _Choice:
    """Which tasks: in these states, and what else is asked of them."""

    queue: str
    states: int
    since_ms: int
    until_ms: int
    wanted: Filter
    holder: str | None = None

    def question(self, after: bytes) -> m.List:
        """Asks for the page behind an id."""
        return m.List(0, self.queue, after, PAGE, self.states, self.since_ms, self.until_ms,
                      with_errors=self.wanted.error is not None)

    def suits(self, task: Task) -> bool:
        """Whether a task is one, but for its error."""
        return bool(self.states >> State[task.state.upper()] & 1) and self.wanted.suits(task) and (
            self.holder is None or (bool(task.claims) and task.claims[-1].holder == self.holder))


Act = Callable[[Sequence[Task]], Work[int]]
"""Does it to some tasks of a page; gives to how many."""


class Selecting(Concluding, Reading):
    """What is done with them is done as ``retry`` and ``cancel`` do it."""

    @verb
    def purge(self, queue: str, *, progress: Callable[[int], None] | None = None) -> Work[int]:
        """Cancel all tasks of a queue that wait, for others or a time, too; gives how many. Claimed ones go on;
        one that is claimed in that very moment is cancelled under its holder, as by ``cancel``.

        A page at a time, and ``progress`` is called after each with how many so far; what comes meanwhile is met,
        too. After an error some are cancelled: purge again. A queue that does not exist is empty.
        """
        names.check_name("queue", queue)
        choice = self._choice(queue, TO_COME, None, None, Filter())
        return (yield from self._each_page(choice, self._each(self._cancelled), progress))

    @verb
    def retry_all(self, queue: str | None = None, *, function: str | None = None, argument: str | None = None,
                  header: str | None = None, error: str | None = None, since: Time | None = None,
                  until: Time | None = None, dry_run: bool = False,
                  progress: Callable[[int], None] | None = None) -> Work[int]:
        """Let all dead tasks of a queue, or of all, be claimed again; gives how many. Those that cannot be, as
        ``retry`` says, are left out and not counted.

        ``function``: only calls of it. ``argument``, ``header``, ``error``: only those with one that is like this
        pattern, as in ``list``. ``since``, ``until``: only those that were enqueued then or later, and before
        then. ``dry_run``: only count. ``progress`` is called after each page with how many so far.
        """
        choice = self._choice(queue, _DEAD, since, until, Filter(function, argument, header, error))
        return (yield from self._each_page(choice, None if dry_run else self._each(self._revived), progress))

    @verb
    def cancel_all(self, queue: str | None = None, *, function: str | None = None, argument: str | None = None,
                   header: str | None = None, since: Time | None = None, until: Time | None = None,
                   dry_run: bool = False,
                   progress: Callable[[int], None] | None = None) -> Work[int]:
        """Cancel all tasks of a queue, or of all, that wait, are scheduled or blocked; gives how many. Which of
        them is chosen as in ``retry_all``. It cannot be taken back."""
        choice = self._choice(queue, TO_COME, since, until, Filter(function, argument, header))
        return (yield from self._each_page(choice, None if dry_run else self._each(self._cancelled), progress))

    @verb
    def purge_all(self, queue: str | None = None, *, function: str | None = None, argument: str | None = None,
                  header: str | None = None, error: str | None = None, since: Time | None = None,
                  until: Time | None = None, dry_run: bool = False,
                  progress: Callable[[int], None] | None = None) -> Work[int]:
        """Cancel all tasks of a queue, or of all, that wait, are scheduled or blocked, and the dead ones too, so
        that none of them ever runs; gives how many. Which of them is chosen as in ``retry_all``. It cannot be
        taken back.

        Dead ones from before the time for which ended tasks are kept are left out and not counted, though
        ``dry_run`` counts them: nothing changes them any more, and they are collected by themselves."""
        choice = self._choice(queue, TO_COME | _DEAD, since, until, Filter(function, argument, header, error))
        return (yield from self._each_page(choice, None if dry_run else self._each(self._cancelled), progress))

    @verb
    def release_all(self, queue: str | None = None, *, holder: str, function: str | None = None,
                    argument: str | None = None, header: str | None = None,
                    since: Time | None = None, until: Time | None = None, dry_run: bool = False,
                    progress: Callable[[int], None] | None = None) -> Work[int]:
        """Take all claims of a queue, or of all, from ``holder``: their tasks wait again at once; gives how many.
        Which of the tasks is chosen as in ``retry_all``.

        For holders that are gone, or hang. One that lives learns it by renewing, and if it completes a task all
        the same, that is completed: so tasks may run twice at once."""
        names.check_name("holder", holder, names.WIDE_NAME)
        choice = attrs.evolve(self._choice(queue, CLAIMED, since, until, Filter(function, argument, header)),
                              holder=holder)
        return (yield from self._each_page(choice, None if dry_run else self._evicted, progress))

    def _choice(self, queue: str | None, states: int, since: Time | None, until: Time | None,
                wanted: Filter) -> _Choice:
        now_ms = self._wall_ms()
        if queue is not None:
            names.check_name("queue", queue)
        wanted.check()
        return _Choice(queue or "", states, time_ms_of("since", since, now_ms), time_ms_of("until", until, now_ms),
                       wanted)

    @staticmethod
    def _each(act: Callable[[Sequence[bytes]], Work[int]]) -> Act:
        """What is done to tasks by their ids alone."""
        return lambda tasks: act([task.id for task in tasks])

    def _each_page(self, choice: _Choice, act: Act | None,
                   progress: Callable[[int], None] | None) -> Work[int]:
        count, pages, after, is_over = 0, 0, b"", False
        while not is_over:
            found, done, after = yield from as_part(pages, self._page(choice, act, after))
            count, pages, is_over = count + done, pages + bool(found), not after
            if found and progress is not None:
                progress(count)
        return count

    def _page(self, choice: _Choice, act: Act | None, after: bytes) -> Work[tuple[int, int, bytes]]:
        """How many of a page were found and done, and behind which id to go on; a majority says where they
        stand."""
        page = (yield from ask(m.Listed, choice.question(after))).message
        found = task_ids.split(page.ids)
        errors = errors_of(page) if choice.wanted.error is not None else None
        if errors is not None:
            found = [task_id for task_id in found if choice.wanted.has_error(errors[task_id])]
        tasks = [task for task in (yield from self._bare(found)) if choice.suits(task)]
        tasks = [*(yield from self._failed_so(choice.wanted, tasks, errors))]
        done = len(tasks) if act is None or not tasks else (yield from act(tasks))
        return len(tasks), done, page.upto

    def _evicted(self, tasks: Sequence[Task]) -> Work[int]:
        ended = 0
        answer = yield from ask(m.Renewed, m.Evict(
            0, b"".join([task.id for task in tasks]), columns.pack_u64([task.claims[-1].token for task in tasks])))
        for verdict in verdicts_of(answer):
            if verdict.end_ms is None:
                raise self._unanswered()
            ended += bool(verdict.end_ms)
        return ended

    def _cancelled(self, ids: Sequence[bytes]) -> Work[int]:
        """Those that can be. Where some cannot, halves are asked for: one that has been collected since it was
        found, or is to be, must not keep its page from being done for ever."""
        try:
            return (yield from self._marked(ids))
        except SkuldError as error:
            if error.code not in _GONE_CODES:
                raise
        if len(ids) == 1:
            return 0
        half = len(ids) // 2
        first = yield from self._cancelled(ids[:half])
        return first + (yield from self._cancelled(ids[half:]))

    def _revived(self, ids: Sequence[bytes]) -> Work[int]:
        outcomes = yield from self._revive(ids)
        if m.Revival.UNKNOWN in outcomes:
            raise self._unanswered()
        return outcomes.count(m.Revival.REVIVED)
