"""The verbs about all tasks of which something is so: those of a queue, that call a function, that failed with
such an error, that were enqueued between two times. Dead ones are retried, those that wait are cancelled.

A page is found and done at a time: memory stays bounded, and after an error some are done. Asked for again, it
goes on with the others, since what is done is not found any more. With ``dry_run`` it only counts.

Nodes know queues, states and times; calls and errors are looked at here. Errors are no part of a page: to choose
by them costs a read of every task that is found otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import attrs

from skuld_py.calls.payloads import check_name, function_of
from skuld_py.client.asking import Work, as_part, ask, verb
from skuld_py.client.concluding import Concluding
from skuld_py.client.preludes import Time, time_ms_of
from skuld_py.client.reading import Reading
from skuld_py.errors import Refused
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model import names
from skuld_py.model.messages import Revival
from skuld_py.model.state import State
from skuld_py.model.task import Task

PAGE = 500
"""Tasks found, and done, at a time."""
PATTERN_CHARS_MAX = 500
_DEAD = 1 << State.DEAD
_TO_COME = 1 << State.WAITING | 1 << State.SCHEDULED | 1 << State.BLOCKED


@attrs.frozen
class _Choice:
    """Which tasks: in these states, and what else is asked of them."""

    queue: str
    states: int
    since_ms: int
    until_ms: int
    function: str | None
    error: str | None

    def question(self, after: bytes) -> m.List:
        """Asks for the page behind an id."""
        return m.List(0, self.queue, after, PAGE, self.states, self.since_ms, self.until_ms)

    def suits(self, task: Task) -> bool:
        """Whether a task is one, but for its error."""
        return bool(self.states >> State[task.state.upper()] & 1) and (
            self.function is None or function_of(task.payload) == self.function)

    def has_error(self, task: Task) -> bool:
        """Whether a task failed in such a way."""
        said = (task.error or b"").decode("utf-8", "replace")
        return self.error is None or fnmatchcase(said.lower(), self.error.lower())


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
        choice = self._choice(queue, _TO_COME, None, None, None, None)
        return (yield from self._each_page(choice, self._cancelled, progress))

    @verb
    def retry_all(self, queue: str | None = None, *, function: str | None = None, error: str | None = None,
                  since: Time | None = None, until: Time | None = None, dry_run: bool = False,
                  progress: Callable[[int], None] | None = None) -> Work[int]:
        """Let all dead tasks of a queue, or of all, be claimed again; gives how many. Those that cannot be, as
        ``retry`` says, are left out and not counted.

        ``function``: only calls of it. ``error``: only those whose last error is like this pattern, ``*`` for any
        text, large letters like small ones; each task is read for it. ``since``, ``until``: only those that were
        enqueued then or later, and before then. ``dry_run``: only count. ``progress`` is called after each page
        with how many so far.
        """
        choice = self._choice(queue, _DEAD, since, until, function, error)
        return (yield from self._each_page(choice, None if dry_run else self._revived, progress))

    @verb
    def cancel_all(self, queue: str | None = None, *, function: str | None = None, since: Time | None = None,
                   until: Time | None = None, dry_run: bool = False,
                   progress: Callable[[int], None] | None = None) -> Work[int]:
        """Cancel all tasks of a queue, or of all, that wait, are scheduled or blocked; gives how many. Which of
        them is chosen as in ``retry_all``. It cannot be taken back."""
        choice = self._choice(queue, _TO_COME, since, until, function, None)
        return (yield from self._each_page(choice, None if dry_run else self._cancelled, progress))

    def _choice(self, queue: str | None, states: int, since: Time | None, until: Time | None,
                function: str | None, error: str | None) -> _Choice:
        now_ms = self._wall_ms()
        if queue is not None:
            names.check_name("queue", queue)
        if function is not None:
            check_name(function)
        if error is not None and (type(error) is not str or not 0 < len(error) <= PATTERN_CHARS_MAX):
            raise Refused("bad_error", f"error: is no pattern of 1 to {PATTERN_CHARS_MAX} characters, as"
                          " '*timeout*'")
        return _Choice(queue or "", states, time_ms_of("since", since, now_ms), time_ms_of("until", until, now_ms),
                       function, error)

    def _each_page(self, choice: _Choice, act: Callable[[Sequence[bytes]], Work[int]] | None,
                   progress: Callable[[int], None] | None) -> Work[int]:
        count, pages, after, is_over = 0, 0, b"", False
        while not is_over:
            found, done, after = yield from as_part(pages, self._page(choice, act, after))
            count, pages, is_over = count + done, pages + bool(found), not after
            if found and progress is not None:
                progress(count)
        return count

    def _page(self, choice: _Choice, act: Callable[[Sequence[bytes]], Work[int]] | None,
              after: bytes) -> Work[tuple[int, int, bytes]]:
        """How many of a page were found and done, and behind which id to go on; a majority says where they
        stand."""
        page = (yield from ask(m.Listed, choice.question(after))).message
        tasks = [task for task in (yield from self._bare(task_ids.split(page.ids))) if choice.suits(task)]
        if choice.error is not None:
            read = yield from self._get([task.id for task in tasks])
            tasks = [task for task in read if choice.suits(task) and choice.has_error(task)]
        done = len(tasks) if act is None or not tasks else (yield from act([task.id for task in tasks]))
        return len(tasks), done, page.upto

    def _cancelled(self, ids: Sequence[bytes]) -> Work[int]:
        return (yield from self._marked(ids))

    def _revived(self, ids: Sequence[bytes]) -> Work[int]:
        outcomes = yield from self._revive(ids)
        if Revival.UNKNOWN in outcomes:
            raise self._unanswered()
        return outcomes.count(Revival.REVIVED)
