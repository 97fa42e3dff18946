"""Waiting for the ends of tasks, and for what is added to a log, without asking again and again.

A wait is a read (``get``) that leaves word with the keepers (``interests``). When a keeper says that some tasks
have changed, they are read again, with those that changed meanwhile, and so on until there is something to say or
the wait is over. So an end is told as soon as a majority has it, at the cost of one read; and no later read lacks
what was told.

Word can be lost, with a message or with a keeper, and a task whose last lease lapses dies without any record of
it. So everything that is waited for is also looked at every ``LOOK_MS``: once nodes hear each other again, no wait
takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.history import FAILED, History, decode_history
from skuld_py.model.outcomes import ERROR_SEQ, entries_of, result_of
from skuld_py.model.state import end_of
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import eras_of
from skuld_py.node.reads.get import ReadOperation, Rows

LOOK_MS = 5_000
PACE_MS = 50
"""Between two looks at a task that keeps changing."""

Headers = Mapping[bytes, bytes]


class Look(ReadOperation):
    """One read of a wait."""

    def __init__(self, watch: Watch, task_ids: Sequence[bytes], now_ms: int) -> None:
        partitions = [ids.partition_of(task_id, watch.view.parameters.partitions) for task_id in task_ids]
        super().__init__(watch.operations, Origin(0), now_ms, task_ids, dict.fromkeys(partitions),
                         partial(watch.question, task_ids))
        self.task_ids = task_ids
        self._watch = watch
        self._headers: dict[bytes, bytes] = {}
        self._gone: dict[str, Sequence[bytes]] = {}

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Take what a copy knows, the headers of its bodies, and the tasks that it takes from no other copy any
        more."""
        if isinstance(message, m.Kept):
            self._gone[peer] = ids.split(message.old)
        if isinstance(message, m.Got):
            self._headers.update((row.id, header) for row, header in zip(
                message.tasks, message.asides.unpack("asides"), strict=False) if header)
        super().on_reply(now_ms, peer, message)

    def conclude(self, now_ms: int, rows: Rows) -> None:
        """Hand over what was read. A task that one counted copy has sealed and lacks comes to no copy again."""
        self._watch.gone = [task_id for task_id in self.task_ids if task_id not in rows and any(
            task_id in gone and self.speaks_for(peer, task_id) for peer, gone in self._gone.items())]
        self._watch.on_look(now_ms, rows, self._headers)

    def on_deadline(self, now_ms: int) -> None:
        """Nothing for certain."""
        self.end()
        self._watch.on_look_failed(now_ms, self.task_ids)


class Watch(Operation):
    """A wait for something about some tasks. ``wanted``: the tasks that are still looked at. ``gone``: tasks that
    the last look did not find and that cannot come any more."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, task_ids: Sequence[bytes],
                 wait_ms: int) -> None:
        super().__init__(operations, origin, now_ms, wait_ms + operations.view.timing.request_ms)
        self.wanted = dict.fromkeys(task_ids)
        self.gone: Sequence[bytes] = ()
        self._stirred = dict.fromkeys(task_ids)
        self._waits_until_ms = now_ms + wait_ms
        self._look: Look | None = None
        self._looked_ms = now_ms
        self._has_looked = False

    def question(self, task_ids: Sequence[bytes], request: int, partitions: Sequence[int]) -> m.Message:
        """What keepers of some partitions are asked about some tasks."""
        kept = [task_id for task_id in task_ids
                if ids.partition_of(task_id, self.view.parameters.partitions) in partitions]
        eras = eras_of(self.view, partitions)
        return m.Interest(request, self.request, b"".join(kept), eras, *self.page())

    def page(self) -> tuple[int, int, int]:
        """Which claim's log is read as well (0: none), from which number, and how much of it."""
        return 0, 0, 1

    def note(self, now_ms: int, rows: Rows, headers: Headers) -> bool:
        """Take in what was read; says whether the wait is over."""
        raise NotImplementedError

    def tell(self) -> None:
        """Answer with what is known."""
        raise NotImplementedError

    def begin(self, now_ms: int) -> None:
        """Look."""
        self._start(now_ms)

    def _start(self, now_ms: int) -> None:
        task_ids, self._stirred = list(self._stirred or self.wanted), {}
        self._look = Look(self, task_ids, now_ms)
        self._look.start(now_ms)

    def _go_on(self, now_ms: int) -> None:
        """Look at what was stirred, now and then at everything; or end."""
        if self.is_closed or self._look is not None:
            return
        due_ms = self._looked_ms + (PACE_MS if self._stirred else LOOK_MS)
        if now_ms >= self._waits_until_ms:
            self._finish()
        elif now_ms >= due_ms:
            self._start(now_ms)
        else:
            self.operations.timers.set(min(self._waits_until_ms, due_ms), self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A keeper has news."""
        if isinstance(message, m.Stirred):
            self._stirred.update({task_id: None for task_id in ids.split(message.ids) if task_id in self.wanted})
            self._go_on(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """A look is due, or the wait is over."""
        self._go_on(now_ms)

    def on_look(self, now_ms: int, rows: Rows, headers: Headers) -> None:
        """A look has read something: answer if that ends the wait, else go on."""
        self._look, self._looked_ms, self._has_looked = None, now_ms, True
        if self.note(now_ms, rows, headers):
            self._finish()
        else:
            self._go_on(now_ms)

    def on_look_failed(self, now_ms: int, task_ids: Sequence[bytes]) -> None:
        """No majority answered. As long as the wait lasts, try on."""
        self._look, self._looked_ms = None, now_ms
        self._stirred.update(dict.fromkeys(task_ids))
        self._go_on(now_ms)

    def _finish(self) -> None:
        if self._has_looked:
            self.tell()
        else:
            self.refuse("unavailable", "fewer than a majority of a task's owners answered; try again")
        self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Never comes: the end of the wait is a timer of its own."""

    def end(self) -> None:
        """End, and the look under way with it."""
        super().end()
        if self._look is not None:
            self._look.end()


class AwaitOperation(Watch):
    """A wait until all of some tasks have ended."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.Await) -> None:
        self._asked = ids.split(request.ids)
        super().__init__(operations, origin, now_ms, list(dict.fromkeys(self._asked)), request.wait_ms)
        self._ends: dict[bytes, tuple[int, bytes, bytes]] = {}

    def note(self, now_ms: int, rows: Rows, headers: Headers) -> bool:
        """Look no more at tasks that have ended. The end of those that are gone is never heard."""
        for task_id, row in rows.items():
            history = decode_history(row.history or None)
            attempts = Header.decode(headers[task_id]).retry.max_attempts if task_id in headers else 1 << 32
            ended = end_of(history, attempts, now_ms, self.view.parameters.skew_ms)
            if ended is not None:
                self.wanted.pop(task_id, None)
                self._ends[task_id] = (ended, *_outcomes_of(history, row))
        return not self.wanted or bool(self.gone)

    def tell(self) -> None:
        """How each has ended, or that it has not."""
        if self.gone:
            self.refuse("no_such_task", f"{ids.none_said(self.gone)}, and will not come; leave"
                        f" {'it' if len(self.gone) == 1 else 'them'} out")
            return
        ends = [self._ends.get(task_id, (m.NOT_ENDED, b"", b"")) for task_id in self._asked]
        self.answer(m.Awaited(self.origin.request, bytes(end[0] for end in ends),
                              columns.pack([end[1] for end in ends]), columns.pack([end[2] for end in ends])))


def _outcomes_of(history: History, row: m.TaskRow) -> tuple[bytes, bytes]:
    """The result of a task, and the error of the last claim that failed."""
    entries = entries_of(row)
    failed = max((token for token, claim in history.claims.entries.items() if claim.kind == FAILED), default=0)
    return result_of(history.completion.value, entries) or b"", entries.get((failed, ERROR_SEQ), b"")


class ReadLogOperation(Watch):
    """A wait for more of a claim's log, a later claim, or the end of the task."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.ReadLog) -> None:
        super().__init__(operations, origin, now_ms, [request.id], request.wait_ms)
        self._request = request
        self._answer: m.Message = m.Logged(request.request, columns.pack([]), 0, False)

    def page(self) -> tuple[int, int, int]:
        """The page asked for."""
        return self._request.token, self._request.after, self._request.limit

    def note(self, now_ms: int, rows: Rows, headers: Headers) -> bool:
        """Entries without a gap, from the one that was asked for on."""
        request, row = self._request, rows.get(self._request.id)
        if row is None or request.id not in headers:
            self._answer = _failed(request, "no_such_task", ids.none_said([request.id], "id"))
            return True
        history, entries = decode_history(row.history or None), entries_of(row)
        if request.token and request.token not in history.claims.entries:
            self._answer = _failed(request, "no_such_claim", f"token: the task was never claimed with"
                                   f" {request.token}")
            return True
        found: list[bytes] = []
        while len(found) < request.limit and (request.token, request.after + len(found)) in entries:
            found.append(entries[request.token, request.after + len(found)])
        later = [token for token in history.claims.entries if token > request.token]
        ended = end_of(history, Header.decode(headers[request.id]).retry.max_attempts, now_ms,
                       self.view.parameters.skew_ms)
        self._answer = m.Logged(request.request, columns.pack(found), min(later, default=0), ended is not None)
        return bool(found or later) or ended is not None

    def tell(self) -> None:
        """Answer with the entries that are known."""
        self.answer(self._answer)


def _failed(request: m.ReadLog, code: str, text: str) -> m.Failed:
    return m.Failed(request.request, code, text, True)
