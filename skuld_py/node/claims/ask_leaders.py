"""The coordinator's side of what only leaders decide: renewing and ending claims, reviving tasks.

A client's rows are passed to the leaders of their partitions, wherever those move, and asked again until they
are answered: every such question may be repeated (``verdicts``). A leader that is silent must not cost the others'
tasks their leases: once anything is known, the rest is waited for as long as two questions take, or an eighth of a
short lease. What is not known by then is called so, never lost.

A leader that is asked twice may refuse what it did when it was asked first: it renewed a claim whose task has been
completed since, say. So a refusal counts only for rows that were asked about once; the others are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.history import RELEASED
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin

ClaimRow = tuple[bytes, int]
"""A claim as task id and token; a task's token is 0."""
Verdict = tuple[int, bool]
"""A number, whose meaning is the question's, and whether the task is cancelled."""


class LeaderQuestion(Operation):
    """Rows of one partition, passed to its leader. The number is its own, so an answer is to these rows."""

    def __init__(self, referral: Referral, leader: str, rows: Sequence[ClaimRow], now_ms: int) -> None:
        super().__init__(referral.operations, referral.origin, now_ms)
        self._referral = referral
        self._leader = leader
        self.rows = rows
        self.was_repeated = False

    def begin(self, now_ms: int) -> None:
        """Ask until answered."""
        self.ask(now_ms, {self._leader: self._referral.question(self.request, self.rows)})

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Verdicts, one per row; or it does not lead, or does not know."""
        if peer != self._leader or self._referral.is_closed:
            return
        if isinstance(message, m.Failed):
            self.end()
            self._referral.on_failed(now_ms, self, message)
            return
        verdicts = self._referral.verdicts_of(message)
        if len(verdicts) == len(self.rows):
            self.end()
            self._referral.on_verdicts(now_ms, self, verdicts)

    def on_timer(self, now_ms: int) -> None:
        """Ask again, or end."""
        self.was_repeated = True
        super().on_timer(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Say nothing: the referral, which has the same deadline, does."""
        self.end()


class Referral(Operation):
    """A client's question about several rows. ``is_pursued``: once it has answered, it goes on with the rest,
    whose verdicts go to no client."""

    is_pursued = True

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, rows: Sequence[ClaimRow]) -> None:
        super().__init__(operations, origin, now_ms)
        self.rows = rows
        self.patience_ms = 2 * operations.view.timing.resend_ms
        self._speak_ms = self.deadline_ms
        self._verdicts: dict[ClaimRow, Verdict | None] = {}
        """None where a leader cannot say, or leaves in doubt whether an earlier question was carried out."""
        self._unasked: list[ClaimRow] = list(dict.fromkeys(rows))
        self._asked: list[LeaderQuestion] = []
        self._failure: m.Failed | None = None
        self._doubted: dict[ClaimRow, None] = {}
        """Rows that a leader may have acted on before it was deposed."""

    def question(self, request: int, rows: Sequence[ClaimRow]) -> m.Message:
        """The message that asks a leader about some of the rows."""
        raise NotImplementedError

    def verdicts_of(self, message: m.Message) -> Sequence[Verdict | None]:
        """The verdicts in an answer, None where the leader cannot say; there are none when it is no answer to this
        question."""
        raise NotImplementedError

    def is_refusal(self, verdict: Verdict) -> bool:
        """Whether a verdict says that what was asked was not done and will not be."""
        raise NotImplementedError

    def answer_of(self, verdicts: Mapping[ClaimRow, Verdict | None]) -> m.Message:
        """The answer to the client; rows without verdict are unknown."""
        raise NotImplementedError

    def begin(self, now_ms: int) -> None:
        """Ask the leaders; keep rows without a leader for later."""
        self.operations.timers.set(self.deadline_ms, self)
        self._ask_leaders(now_ms)

    def _ask_leaders(self, now_ms: int) -> None:
        by_partition = by_partition_of(self.view, self._unasked)
        self._unasked = []
        for partition, rows in by_partition.items():
            leader = self.view.leader_of(partition)
            if leader:
                question = LeaderQuestion(self, leader, rows, now_ms)
                self._asked.append(question)
                question.start(now_ms)
            else:
                self._unasked += rows
        if self._unasked:
            self.operations.timers.set(min(self.deadline_ms, now_ms + self.view.timing.resend_ms), self)

    def on_timer(self, now_ms: int) -> None:
        """Look for leaders again, say what is known, or end."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)
            return
        if self._unasked:
            self._ask_leaders(now_ms)
        self._speak_if_due(now_ms)

    def on_verdicts(self, now_ms: int, question: LeaderQuestion, verdicts: Sequence[Verdict | None]) -> None:
        """Take a leader's verdicts."""
        self._asked.remove(question)
        if not self._verdicts:
            self._speak_ms = min(self.deadline_ms, now_ms + self.patience_ms)
            self.operations.timers.set(self._speak_ms, self)
        for row, verdict in zip(question.rows, verdicts, strict=True):
            was_asked_before = question.was_repeated or row in self._doubted
            is_in_doubt = verdict is not None and was_asked_before and self.is_refusal(verdict)
            self._verdicts[row] = None if is_in_doubt else verdict
        self._speak_if_due(now_ms)

    def on_failed(self, now_ms: int, question: LeaderQuestion, failure: m.Failed) -> None:
        """Not the leader any more: look for another one. If it was asked once only it did nothing; else it may
        have led when it was asked first, and the rows stay unknown."""
        self._asked.remove(question)
        if failure.code == "not_leader":
            if question.was_repeated:
                self._doubted.update(dict.fromkeys(question.rows))
            self._unasked += question.rows
            self.operations.timers.set(min(self.deadline_ms, now_ms + self.view.timing.resend_ms), self)
            return
        self._failure = failure
        self._speak_if_due(now_ms)

    def _speak_if_due(self, now_ms: int) -> None:
        is_over = not self._asked and not self._unasked
        if self._verdicts and (is_over or now_ms >= self._speak_ms):
            self.answer(self.answer_of(self._verdicts))
        elif is_over and self._failure is not None:
            self.answer(attrs.evolve(self._failure, request=self.origin.request))
        if is_over or (self.has_answered and not self.is_pursued):
            self.end()

    def on_deadline(self, now_ms: int) -> None:
        """No leader, or no answer."""
        if self._verdicts:
            self._speak_if_due(now_ms)
        elif self._asked or self._failure is not None or self._doubted:
            self.give_up("a leader did not answer in time; it may or may not have happened; try again")
        else:
            self.refuse("no_leader", "a partition has no leader now; try again in a few seconds")
        self.end()

    def end(self) -> None:
        """Stop asking too."""
        super().end()
        for question in self._asked:
            question.end()


class ClaimReferral(Referral):
    """About claims; answered by ``Renewed``."""

    def verdicts_of(self, message: m.Message) -> Sequence[Verdict | None]:
        """Ends; 0 where a claim is lost."""
        if not isinstance(message, m.Renewed):
            return []
        unknown = columns.unpack_u64(message.unknown) if message.unknown else ()
        cancelled = columns.unpack_u64(message.cancelled)
        return [None if index in unknown else (end_ms, index in cancelled)
                for index, end_ms in enumerate(columns.unpack_u64(message.ends))]

    def is_refusal(self, verdict: Verdict) -> bool:
        """The claim is lost."""
        return not verdict[0]

    def answer_of(self, verdicts: Mapping[ClaimRow, Verdict | None]) -> m.Message:
        """Ends, which of them are unknown, and which tasks are cancelled."""
        known = [verdicts.get(row) for row in self.rows]
        return m.Renewed(
            self.origin.request, columns.pack_u64([verdict[0] if verdict else 0 for verdict in known]),
            columns.pack_u64([index for index, verdict in enumerate(known) if verdict is None]),
            columns.pack_u64([index for index, verdict in enumerate(known) if verdict and verdict[1]]))


class RenewOperation(ClaimReferral):
    """Longer leases. What the client was told is unknown is not pursued: it may have stopped. The rows ``over``,
    by index, are lost: no leader is asked about them."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.Renew,
                 over: Sequence[int] = ()) -> None:
        super().__init__(operations, origin, now_ms, rows_of(request.ids, request.tokens))
        self._over = {self.rows[index]: (0, False) for index in over}
        self._unasked = [row for row in self._unasked if row not in self._over]
        self._lease_ms = request.lease_ms
        self.is_pursued = not request.lease_ms
        if request.lease_ms:
            shortest_ms = operations.view.timing.resend_ms // 4
            self.patience_ms = min(self.patience_ms, max(request.lease_ms // 8, shortest_ms))

    def question(self, request: int, rows: Sequence[ClaimRow]) -> m.Message:
        """For the leader to renew."""
        return m.Renew(request, self._lease_ms, *_packed(rows))

    def begin(self, now_ms: int) -> None:
        """Ask the leaders, if there is anything to ask."""
        super().begin(now_ms)
        if not self._asked and not self._unasked:
            self.answer(self.answer_of({}))
            self.end()

    def answer_of(self, verdicts: Mapping[ClaimRow, Verdict | None]) -> m.Message:
        """With those that no leader was asked about."""
        return super().answer_of({**verdicts, **self._over})


class ConcludeOperation(ClaimReferral):
    """Claims that end by their holder's word."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.Conclude) -> None:
        super().__init__(operations, origin, now_ms, rows_of(request.ids, request.tokens))
        self._request = request
        self._errors = dict(zip(self.rows, request.errors.unpack("errors"), strict=False))

    def question(self, request: int, rows: Sequence[ClaimRow]) -> m.Message:
        """For the leader to record."""
        errors = columns.pack([self._errors[row] for row in rows] if self._errors else [])
        return m.Conclude(request, self._request.kind, self._request.delay_ms, *_packed(rows), errors,
                          is_final=self._request.is_final)


def release(operations: Operations, now_ms: int, batches: Iterable[m.ClaimBatch]) -> None:
    """Give back claims that no client waits for any more; no client is answered."""
    for batch in batches:
        tokens = columns.pack_u64([batch.first_token + index for index in range(len(batch.ids) // ids.ID_BYTES)])
        conclude = m.Conclude(0, RELEASED, 0, batch.ids, tokens)
        ConcludeOperation(operations, Origin(0), now_ms, conclude).start(now_ms)


class ReviveOperation(Referral):
    """Dead tasks that begin anew."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.Revive) -> None:
        super().__init__(operations, origin, now_ms, [(task_id, 0) for task_id in ids.split(request.ids)])

    def question(self, request: int, rows: Sequence[ClaimRow]) -> m.Message:
        """For the leader to decide."""
        return m.Revive(request, b"".join(row[0] for row in rows))

    def verdicts_of(self, message: m.Message) -> Sequence[Verdict]:
        """``Revival``s."""
        return [(outcome, False) for outcome in message.outcomes] if isinstance(message, m.Revived) else []

    def is_refusal(self, verdict: Verdict) -> bool:
        """The task was not to be revived."""
        return verdict[0] != m.Revival.REVIVED

    def answer_of(self, verdicts: Mapping[ClaimRow, Verdict | None]) -> m.Message:
        """``Revival``s, in the order asked."""
        unknown = (int(m.Revival.UNKNOWN), False)
        return m.Revived(self.origin.request, bytes((verdicts.get(row) or unknown)[0] for row in self.rows))


def rows_of(task_ids: bytes, tokens: bytes) -> list[ClaimRow]:
    """Claims from the columns of a message."""
    return list(zip(ids.split(task_ids), columns.unpack_u64(tokens), strict=True))


def by_partition_of(view: View, rows: Iterable[ClaimRow]) -> dict[int, list[ClaimRow]]:
    """Rows by their partition."""
    found: dict[int, list[ClaimRow]] = {}
    for row in rows:
        found.setdefault(ids.partition_of(row[0], view.parameters.partitions), []).append(row)
    return found


def _packed(rows: Sequence[ClaimRow]) -> tuple[bytes, bytes]:
    return b"".join(row[0] for row in rows), columns.pack_u64([row[1] for row in rows])
