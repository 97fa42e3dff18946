"""The leader's verdicts on claims and dead tasks, by its own copy, before a majority records them.

Only the newest claim of an open task can be renewed or ended, and only while its lease lasts: what comes late, or
from an older claim, changes nothing. A question is repeated until it is answered. So what has happened already is
answered as before, and recorded again where it was not: the same word of the same holder is no second ending, nor
the same revival a second one.

Nor is a claim renewed while its partition waits for the end of what voters that were given up may have granted:
one that looks like the newest here may have been ended by them, and its task granted to another holder. Nor is it
called lost, for its lease runs on: whether it could be renewed is unknown.

A lease is renewed as a whole or not at all, since its holder counts the whole one from when it asked. One that
would end beyond the document's horizon waits until that has moved, as grants do; while ZooKeeper is away it stays
as it was. Rejected: to renew up to the horizon. The holder would have to learn how long that is. From the
difference of two ends it would learn it with an error of the clocks' rates, which some hundred renewals add up to
a lease; and a holder that renews by id and token alone knows no old end. The gain is a third of a lease, when
ZooKeeper is away for a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import DEFAULT_RETRY, Body, header_of
from skuld_py.model.history import (
    CLAIMS_FOR_LIFE,
    DIED,
    FAILED,
    PERMANENT,
    RELEASED,
    REVIVED,
    ROUNDS_MAX,
    History,
    decode_history,
    open_claim,
)
from skuld_py.model.retrying import pause_ms
from skuld_py.model.state import State, state_of
from skuld_py.node.claims.ask_leaders import ClaimRow, by_partition_of, rows_of
from skuld_py.node.claims.horizons import Horizons
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.copies.garbage import shut
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Amendment, Mark
from skuld_py.partition.vnode import Vnode


@attrs.frozen
class Verdicts:
    """The answer to each row, and what must be recorded to make it true."""

    told: Mapping[ClaimRow, int]
    change: Change
    cancelled: Sequence[bytes] = ()
    """Those of the tasks that are cancelled."""
    unknown: Sequence[ClaimRow] = ()
    """Rows on which nothing can be said yet."""


Judge = Callable[[Vnode, Sequence[ClaimRow]], Verdicts]
Answer = Callable[[Mapping[ClaimRow, int], Collection[bytes], Collection[ClaimRow]], m.Message]


def lead_renewal(horizons: Horizons, operations: Operations, now_ms: int, origin: Origin,
                 request: m.Renew) -> None:
    """The leader's side of ``Renew``: at once, if the horizons reach as far as the leases would."""
    if horizons.awaits(origin):
        return
    if request.lease_ms and not _may_reach(operations.view, now_ms, request):
        HorizonWait(horizons, operations, origin, now_ms, request).start(now_ms)
        return
    rows = rows_of(request.ids, request.tokens)
    _lead(operations, now_ms, origin, rows,
          lambda vnode, part: judge_renewals(vnode, now_ms, part, request.lease_ms),
          lambda told, cancelled, unknown: _renewed(origin, rows, told, cancelled, unknown))


def _may_reach(view: View, now_ms: int, request: m.Renew) -> bool:
    partitions = by_partition_of(view, rows_of(request.ids, request.tokens))
    led = [vnode for partition in partitions if (vnode := view.renewing(partition)) is not None]
    near = [vnode for vnode in led if not vnode.reaches(now_ms + request.lease_ms)]
    return not near


class HorizonWait(Operation):
    """A renewal that waits until the horizon has moved. Without that, what became of it is not known."""

    def __init__(self, horizons: Horizons, operations: Operations, origin: Origin, now_ms: int,
                 request: m.Renew) -> None:
        super().__init__(operations, origin, now_ms, operations.view.timing.grant_ms)
        self._horizons = horizons
        self._request = request

    def begin(self, now_ms: int) -> None:
        """Have it moved."""
        self.operations.timers.set(self.deadline_ms, self)
        self._horizons.add(now_ms, self)

    def on_horizon(self, now_ms: int) -> None:
        """Renew, if it is far enough now."""
        if _may_reach(self.view, now_ms, self._request):
            self.end()
            lead_renewal(self._horizons, self.operations, now_ms, self.origin, self._request)
        else:
            self._horizons.add(now_ms, self)

    def on_timer(self, now_ms: int) -> None:
        """Too late."""
        self.give_up("the lease would end beyond the horizon in ZooKeeper, which could not be moved in time; the"
                     " old end holds: try again, or for a shorter time")
        self.end()


def lead_conclusion(operations: Operations, now_ms: int, origin: Origin, request: m.Conclude) -> None:
    """The leader's side of ``Conclude``."""
    rows = rows_of(request.ids, request.tokens)
    errors = dict(zip(rows, request.errors.unpack("errors"), strict=False))
    _lead(operations, now_ms, origin, rows,
          lambda vnode, part: judge_conclusions(vnode, now_ms, part, request.kind, request.delay_ms, errors,
                                                 request.is_final),
          lambda told, cancelled, unknown: _renewed(origin, rows, told, cancelled, unknown))


def lead_revival(operations: Operations, now_ms: int, origin: Origin, request: m.Revive) -> None:
    """The leader's side of ``Revive``."""
    rows = [(task_id, 0) for task_id in ids.split(request.ids)]
    _lead(operations, now_ms, origin, rows, lambda vnode, part: judge_revivals(vnode, now_ms, part),
          lambda told, *_: m.Revived(origin.request, bytes(told[row] for row in rows)))


def _lead(operations: Operations, now_ms: int, origin: Origin, rows: Sequence[ClaimRow], judge: Judge,
          answer: Answer) -> None:
    view = operations.view
    by_partition = by_partition_of(view, dict.fromkeys(rows))
    led = {partition: vnode for partition in by_partition if (vnode := view.renewing(partition)) is not None}
    if not all(partition in led for partition in by_partition):
        operations.outbox.reply(origin, m.Failed(origin.request, "not_leader", "no longer the leader", True))
        return
    verdicts = {led[partition]: judge(led[partition], part) for partition, part in by_partition.items()}
    told = {row: number for verdict in verdicts.values() for row, number in verdict.told.items()}
    cancelled = dict.fromkeys(task_id for verdict in verdicts.values() for task_id in verdict.cancelled)
    unknown = dict.fromkeys(row for verdict in verdicts.values() for row in verdict.unknown)
    changes = {vnode: verdict.change for vnode, verdict in verdicts.items() if verdict.change.ids}
    AmendOperation(operations, origin, now_ms, changes, answer(told, cancelled, unknown)).start(now_ms)


def _renewed(origin: Origin, rows: Sequence[ClaimRow], told: Mapping[ClaimRow, int],
             cancelled: Collection[bytes], unknown: Collection[ClaimRow]) -> m.Message:
    in_doubt = [index for index, row in enumerate(rows) if row in unknown] if unknown else []
    return m.Renewed(origin.request, columns.pack_u64([told.get(row, 0) for row in rows]),
                     columns.pack_u64(in_doubt) if in_doubt else b"",
                     columns.pack_u64([index for index, row in enumerate(rows)
                                       if row[0] in cancelled and told.get(row)]))


def judge_renewals(vnode: Vnode, now_ms: int, rows: Sequence[ClaimRow], lease_ms: int) -> Verdicts:
    """A new end never lies before the old one, nor nearer than the whole lease. The claim of a cancelled task is
    renewed too: its holder learns of it by this very answer."""
    if not lease_ms:
        return judge_conclusions(vnode, now_ms, rows, RELEASED, 0, {})
    if now_ms < vnode.election.document.no_grant_before_ms:
        return Verdicts({}, Change(), unknown=rows)
    known = vnode.replica.histories([row[0] for row in rows])
    amendments: list[Amendment] = []
    cancelled: list[bytes] = []
    for task_id, token in rows:
        history = decode_history(known.get(vnode.replica.prefix + task_id))
        claim = open_claim(history, token, now_ms)
        if claim is None:
            continue
        amendments.append(Amendment(task_id, token, max(claim.end.value, now_ms + lease_ms)))
        if history.cancelled.value is not None:
            cancelled.append(task_id)
    return Verdicts({(row.id, row.token): row.end_ms for row in amendments}, Change(amendments),
                    cancelled)


def judge_conclusions(vnode: Vnode, now_ms: int, rows: Sequence[ClaimRow], kind: int, delay_ms: int,
                      errors: Mapping[ClaimRow, bytes], is_final: bool = False) -> Verdicts:
    """The answer is when the task may be claimed again, or the lease's end. Of two pauses the first one said
    stands; so a failure that was said to be final later, or in an earlier round, kills nothing."""
    replica = vnode.replica
    known = replica.histories([row[0] for row in rows])
    needs_policy = delay_ms < 0 or kind == FAILED
    bodies = dict(zip(rows, replica.bodies([row[0] for row in rows]), strict=True)) if needs_policy else {}
    amendments: list[Amendment] = []
    marks: list[Mark] = []
    told: dict[ClaimRow, int] = {}
    for row in rows:
        task_id, token = row
        history = decode_history(known.get(replica.prefix + task_id))
        said = history.claims.entries.get(token)
        if said is not None and said.kind == kind:
            claim, until_ms = said, said.until_ms
        else:
            found = open_claim(history, token, now_ms)
            if found is None:
                continue
            claim, until_ms = found, _until(history, bodies.get(row), now_ms, task_id, token, kind,
                                            0 if is_final else delay_ms)
            if is_final and kind == FAILED:
                marks.append(Mark(task_id, DIED, history.round + 1, PERMANENT))
        amendments.append(Amendment(task_id, token, claim.end.value, kind, until_ms))
        told[row] = until_ms or claim.end.value
    return Verdicts(told, Change(amendments, marks, {row: errors[row] for row in told if errors.get(row)}))


def _until(history: History, body: bytes | None, now_ms: int, task_id: bytes, token: int, kind: int,
           delay_ms: int) -> int:
    """Behind the last attempt there is no pause: the time tells when the task has died."""
    if kind == RELEASED:
        return 0
    if kind == FAILED:
        policy = DEFAULT_RETRY if body is None else header_of(body).retry
        attempts = history.attempts(now_ms - 1) + 1
        if body is not None and attempts >= policy.max_attempts:
            return now_ms
        if delay_ms < 0:
            delay_ms = pause_ms(policy, attempts, task_id, token)
    return now_ms + max(0, delay_ms)


def judge_revivals(vnode: Vnode, now_ms: int, rows: Sequence[ClaimRow]) -> Verdicts:
    """The answers are ``Revival``s. A task that was revived and has not ended since counts as revived: a client
    without an answer asks again, and by then the task may have been claimed."""
    replica = vnode.replica
    task_ids = [row[0] for row in rows]
    known = replica.histories(task_ids)
    over = shut(replica, task_ids)
    told: dict[ClaimRow, int] = {}
    marks: list[Mark] = []
    for row, body in zip(rows, replica.bodies(task_ids), strict=True):
        history = decode_history(known.get(replica.prefix + row[0]))
        if body is None:
            told[row] = m.Revival.NO_TASK
            continue
        if history.completion.value is None and history.cancelled.value is not None:
            told[row] = m.Revival.CANCELLED
        elif row[0] in over:
            told[row] = m.Revival.TOO_OLD
        elif history.round >= ROUNDS_MAX:
            told[row] = m.Revival.NOT_DEAD
        elif state_of(history, decoded := Body.decode(body), now_ms, replica.skew_ms) is State.DEAD:
            if 0 < decoded.expires_ms <= now_ms:
                told[row] = m.Revival.EXPIRED
                continue
            if len(history.claims.entries) >= CLAIMS_FOR_LIFE:
                told[row] = m.Revival.TOO_OLD
                continue
            told[row] = m.Revival.REVIVED
            marks.append(Mark(row[0], REVIVED, history.round + 1, history.newest_token))
        elif history.completion.value is None and history.round:
            told[row] = m.Revival.REVIVED
            marks.append(Mark(row[0], REVIVED, history.round, history.base))
        else:
            told[row] = m.Revival.NOT_DEAD
    return Verdicts(told, Change((), marks))
