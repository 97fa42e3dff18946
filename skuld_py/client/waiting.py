"""The verbs that wait: for the ends of tasks, and for what their holders log.

A wait is one request that a node answers when there is something to say; it does not poll. It lasts ``SLICE_S`` at
most, so that a node which died meanwhile is noticed, and is then taken up by the next request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from skuld_py.calls.results import decode_result
from skuld_py.calls.shapes import rebuilt
from skuld_py.client import checking
from skuld_py.client.asking import Flow, Part, Work, ask, stream, verb
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId, to_text
from skuld_py.model.state import State
from skuld_py.model.task import LogEntry

SLICE_S = 10.0


@attrs.frozen
class End:
    """How a task ended: ``completed``, ``cancelled`` or ``dead``; an empty ``state`` while it has not.

    ``result`` is what its function returned, or what its completion gave; ``error`` that of the last claim that
    failed with one.
    """

    id: TaskId
    state: str
    result: Any = None
    error: bytes | None = None


class Waiting:
    """Needs a steady clock."""

    _clock: Callable[[], float]

    @verb
    def ends(self, ids: Sequence[bytes | str], *, wait_s: float = 0.0) -> Work[list[End]]:
        """How tasks have ended, in the order asked; waits until all of them have, or ``wait_s`` are over.

        A task that is collected, or never was and is too old to come, is refused as ``no_such_task``; one that may
        be enqueued yet is waited for. An end that is told is on a majority of the task's owners. A dead task can
        be retried; the others stay what they are, but that a late completion wins over a cancelling.
        """
        return (yield from self._ends(ids, wait_s))

    @verb
    def results(self, ids: Sequence[bytes | str], *, wait_s: float = 0.0) -> Work[list[Any]]:
        """What completed tasks returned, in the order asked; None where that is nothing, or not yet. Waits and
        refuses as ``ends`` does; cancelled and dead tasks have no result.

        Values are of the types that were returned (``calls.results``). What a client gave as bytes is bytes, and
        so is what a worker of a release before 0.2 stored.
        """
        return [end.result for end in (yield from self._ends(ids, wait_s))]

    @verb
    def result(self, id: bytes | str, *, wait_s: float = 0.0, like: Any = None) -> Work[Any]:
        """What a task returned; waits for it up to ``wait_s``. ``like``: a class, or another annotation, that it
        is made into, where the task returned a record, of which the fields are stored.

        Raises ``Refused``: ``not_ended`` when it has not by then, ``dead`` or ``cancelled`` when it never will,
        with its last error; ``bad_arguments`` when the result is nothing like that; and as ``ends`` does.
        """
        end, = yield from self._ends([id], wait_s)
        if not end.state:
            raise Refused("not_ended", f"id: {to_text(end.id)} has not ended by now, or is not enqueued yet; wait"
                          " longer (wait_s), or see by 'skuld workers' whether any worker has its queue")
        if end.state != "completed":
            error = (end.error or b"").decode(errors="replace").partition("\n")[0]
            raise Refused(end.state, f"id: the task is {end.state}{error and ': ' + error}")
        return end.result if like is None else rebuilt(end.result, like, "result")

    def _ends(self, ids: Sequence[bytes | str], wait_s: float) -> Work[list[End]]:
        wanted = [checking.as_id(task_id) for task_id in ids]
        until = self._clock() + seconds("wait_s", wait_s)
        known = dict.fromkeys(wanted, (m.NOT_ENDED, b"", b""))
        for start in range(0, len(wanted), m.ENDS_MAX):
            part = list(dict.fromkeys(wanted[start : start + m.ENDS_MAX]))
            while part:
                left = min(SLICE_S, max(0.0, until - self._clock()))
                question = m.Await(0, b"".join(part), round(left * 1000))
                answer = (yield from ask(m.Awaited, question, wait_s=left)).message
                known.update(zip(part, zip(answer.ends, answer.results.unpack(), answer.errors.unpack(),
                                           strict=True), strict=True))
                part = [task_id for task_id in part if known[task_id][0] == m.NOT_ENDED] if left else []
        return [_end_of(task_id, *known[task_id]) for task_id in wanted]

    @stream
    def log(self, id: bytes | str, *, token: int | None = None, after: LogEntry | None = None,
            follow_s: float = 0.0) -> Flow[LogEntry]:
        """The log entries of a task's holders, claim by claim, each log from its beginning and without a gap; or
        one claim's. ``after``: only what comes behind this entry. With ``follow_s``, entries to come as well, for
        that many seconds (``math.inf``: without end) or until the task has ended.

        Once a later claim has been granted, entries that an earlier one still adds are shown only by another call.
        """
        task_id, until = checking.as_id(id), self._clock() + seconds("follow_s", follow_s)
        first = 0 if token is None else checking.as_token(token)
        at, seq = (first, 0) if after is None else (after.token, after.seq + 1)
        while True:
            left = min(SLICE_S, max(0.0, until - self._clock()))
            question = m.ReadLog(0, task_id, at, seq, m.PAGE_ENTRIES_MAX, round(left * 1000))
            answer = (yield from ask(m.Logged, question, wait_s=left)).message
            entries = answer.entries.unpack()
            if entries:
                yield Part([LogEntry(at, number, data) for number, data in enumerate(entries, seq)])
                seq += len(entries)
            elif answer.next_token and token is None:
                at, seq = answer.next_token, 0
            elif answer.next_token or answer.is_over or not left:
                return


def seconds(field: str, given: object) -> float:
    """A span of time, which may be without end; ``Refused`` names the field."""
    if isinstance(given, bool) or not isinstance(given, int | float) or math.isnan(given) or given < 0:
        raise Refused("bad_duration", f"{field}: {given!r} is no number of seconds from 0 on")
    return given


def _end_of(task_id: TaskId, number: int, result: bytes, error: bytes) -> End:
    state = "" if number == m.NOT_ENDED else State(number).name.lower()
    return End(task_id, state, decode_result(result), error or None)
