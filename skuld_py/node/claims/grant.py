"""The leader's operation that grants claims: each partition's by its own cohort, and each by a majority.

Claims that fall short are released by a monotone flag, so that the task waits again at once instead of being
blocked by a phantom until the lease would end. Until that is done a majority may have recorded them: a claimer
that gets no other claim is told so, and not that there is nothing.

A follower's veto means that its copy knows more. The leader reads the vetoed tasks from it, so the
same stale entry cannot stand at the head of the queue for ever. A veto because a lane is full may mean the
opposite, that the follower has missed the end of another task's claim; so the leader reads that task too, and
sends back what both know of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.history import RELEASED
from skuld_py.model.setting import home_of
from skuld_py.node.claims import caps
from skuld_py.node.claims.horizons import Horizons
from skuld_py.node.claims.pick import pick
from skuld_py.node.limits.borrower import Loans
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.cohort import Ballot, CohortOperation
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.rows import in_messages, merge_rows, read_rows
from skuld_py.partition.data.tables import id_of_head
from skuld_py.partition.vnode import Vnode

NOTHING = columns.pack([])
LESSON_TASKS = 16
"""Vetoed tasks read by one question: an answer holds this many of the largest bodies and the longest histories."""


@attrs.frozen
class Gates:
    """What a grant may have to wait for."""

    horizons: Horizons
    loans: Loans


class GrantOperation(CohortOperation):
    """Claims from all partitions this node leads, best task first; up to ``count`` of ``queue``."""

    def __init__(self, operations: Operations, gates: Gates, origin: Origin, now_ms: int, queue: str, count: int,
                 lease_ms: int, holder: str) -> None:
        super().__init__(operations, origin, now_ms)
        self._gates = gates
        self.fence: int | None = None
        """Of the seat that it is for, where this node has to look at that."""
        self.queue = queue
        self.count = count
        self._lease_ms = lease_ms
        self._holder = holder
        self._bodies: dict[bytes, bytes] = {}
        self._failures: dict[Vnode, list[Amendment]] = {}
        self._lessons = 0
        self._blockers: dict[tuple[str, int], bytes] = {}
        """The task whose claim filled a lane, by vetoer and partition."""
        self._is_waiting = False
        self._withheld = ""
        """Why it grants nothing, though tasks wait."""

    def begin(self, now_ms: int) -> None:
        """Pick, record here, ask the cohorts. Partitions whose horizon is too near wait until it has moved. A
        paused queue is treated like an empty one."""
        if self.queue in self.view.settings.paused:
            self._grant(now_ms, {})
            return
        end_ms = now_ms + self._lease_ms
        stocked = self.view.stocked(self.queue)
        vnodes = {vnode.partition: vnode for vnode in stocked if vnode.may_grant_until(now_ms, end_ms)}
        if len(vnodes) < len(stocked) and not any(vnode.replica.filing.heads(self.queue, None, 1)
                                              for vnode in vnodes.values()):
            self._is_waiting = True
            self._gates.horizons.add(now_ms, self)
            self._wake(now_ms)
        elif self.queue in self.view.settings.lent:
            self._wake(now_ms)
            self._gates.loans.borrow(now_ms, self)
        else:
            self._grant(now_ms, vnodes)

    def on_lent(self, now_ms: int, count: int, leads: Mapping[int, int]) -> int:
        """Grant of a limited queue what its home allows, on what this node led when it asked."""
        if self.is_closed or self.has_answered:
            return 0
        self.count = min(self.count, count)
        home = home_of(self.queue, self.view.parameters.partitions)
        if not count and self.view.stocked(self.queue) and self.view.leader_of(home):
            self._withheld = "limited"
        vnodes = {vnode.partition: vnode for vnode in self.view.stocked(self.queue)
                  if self.count and leads.get(vnode.partition) == vnode.epoch
                  and vnode.may_grant_until(now_ms, now_ms + self._lease_ms)}
        self._grant(now_ms, {} if self.queue in self.view.settings.paused else vnodes)
        return sum(len(ballot.grant.ids) for ballot in self.ballots.values() if ballot.grant is not None)

    def on_horizon(self, now_ms: int) -> None:
        """A document was written, or read: try again."""
        self._is_waiting = False
        self.begin(now_ms)

    def end(self) -> None:
        """A grant that gave up lets others try."""
        if self._is_waiting:
            self._gates.horizons.give_up(self.queue)
        super().end()

    def _grant(self, now_ms: int, vnodes: Mapping[int, Vnode]) -> None:
        if self.fence is not None and self.view.seating.flaw(self.queue, self.fence) is not None:
            vnodes = {}  # the seat went while a horizon or a loan was waited for
        picked = pick(now_ms, vnodes, self.queue, self._room() if vnodes else 0)
        for partition, heads in self._within_bytes(vnodes, picked).items():
            vnode = vnodes[partition]
            message, grant = vnode.propose(now_ms, self.request, self.queue, heads, self._lease_ms,
                                           self._holder)
            if grant.ids:
                self.open_ballot(vnode, message, grant)
        if not self.ballots:
            self.view.router.forget(self.view.me.name, self.queue)
        self.decide_if_settled(now_ms)
        if not self.is_closed:
            self._wake(now_ms)

    def _room(self) -> int:
        """How many claims its holder may be granted now, of as many as it wants."""
        limits = self.view.settings.capped.get(self.queue)
        if limits is None:
            return self.count
        if not caps.allows_lease(limits, self._lease_ms):
            room = 0  # its coordinator has not heard of the cap yet
        else:
            room = caps.room_of(self.view, limits, self.queue, self._holder, self.count)
        if not room and self.count:
            self._withheld = caps.CAPPED
        return room

    def _within_bytes(self, vnodes: Mapping[int, Vnode],
                      picked: Mapping[int, list[bytes]]) -> dict[int, list[bytes]]:
        """Cut what was picked to what one answer can carry, and keep the bodies for it."""
        left = self.view.limits.batch_bytes
        kept: dict[int, list[bytes]] = {}
        for partition, heads in picked.items():
            task_ids = list(map(id_of_head, heads))
            bodies = [body or b"" for body in vnodes[partition].replica.bodies(task_ids)]
            size, fitting = sum(map(len, bodies)), len(heads)
            if size > left:
                sizes = list(accumulate(map(len, bodies)))
                fitting = bisect_right(sizes, left) or (0 if self._bodies else 1)
            if fitting:
                kept[partition] = heads[:fitting]
                self._bodies.update(zip(task_ids[:fitting], bodies, strict=False))
            if fitting < len(heads):
                return kept
            left -= size
        return kept

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A follower recorded, vetoed, refused; or sent the tasks it had vetoed."""
        if isinstance(message, m.Got):
            self._learn(now_ms, peer, message)
        elif isinstance(message, m.Granted):
            ballot = self.record(now_ms, peer, message)
            if ballot is not None:
                self._note_vetoes(ballot, peer, columns.unpack_u64(message.vetoed), message.blockers)
                self.decide_if_settled(now_ms)

    def _note_vetoes(self, ballot: Ballot, peer: str, vetoed: Sequence[int], blockers: bytes) -> None:
        if not vetoed or ballot.grant is None:
            return
        known = [index for index in vetoed if index < len(ballot.grant.ids)]
        self.view.bulletin.counts.vetoed += len(known)
        for index in known:
            ballot.against.setdefault(index, {})[peer] = None
        if blockers:
            self._blockers[peer, ballot.vnode.partition] = blockers
        wanted = blockers + b"".join(ballot.grant.ids[index] for index in known)
        for at in range(0, len(wanted), ids.ID_BYTES * LESSON_TASKS):
            self._lessons += 1
            page = wanted[at : at + ids.ID_BYTES * LESSON_TASKS]
            self.outbox.send(peer, m.Get(self.request, page, is_bare=True))

    def on_too_large(self, now_ms: int, peer: str, message: m.Failed) -> None:
        """These vetoed tasks are left to an exchange."""
        self._end_lesson(now_ms)

    def _learn(self, now_ms: int, peer: str, message: m.Got) -> None:
        learned = dict.fromkeys(row.id for row in message.tasks)
        for row in message.tasks:
            ballot = self.ballots.get(ids.partition_of(row.id, self.view.parameters.partitions))
            if ballot is not None:
                merge_rows(ballot.vnode.replica, now_ms, self.view.parameters.partitions, [row])
        for partition, ballot in self.ballots.items():
            blockers = [task_id for task_id in ids.split(self._blockers.get((peer, partition), b""))
                        if task_id in learned]
            rows = [attrs.evolve(row, body=NOTHING) for row in read_rows(ballot.vnode.replica, blockers, True)]
            for part in in_messages(rows, self.view.limits):
                self.outbox.send(peer, m.Repair(partition, tuple(part)))
        self._end_lesson(now_ms)

    def _end_lesson(self, now_ms: int) -> None:
        self._lessons -= 1
        if self.has_answered and not self._lessons:
            self._release(now_ms)

    def decide(self, now_ms: int) -> None:
        """Answer what stands; wait for what vetoers know, then release what does not stand."""
        if not self.has_answered:
            batches: list[m.ClaimBatch] = []
            is_in_doubt = False
            for ballot in self.ballots.values():
                assert ballot.grant is not None, "a grant operation opens ballots with grants"
                failed = self._failed(ballot, ballot.grant)
                batches += self._batches(ballot.grant, failed)
                self.view.bulletin.counts.granted += len(ballot.grant.ids) - len(failed)
                is_in_doubt = is_in_doubt or any(map(ballot.may_stand, failed))
                if failed:
                    self._failures[ballot.vnode] = [
                        Amendment(ballot.grant.ids[index], ballot.grant.first_token + index,
                                  ballot.grant.end_ms, RELEASED) for index in failed]
            if batches or not is_in_doubt:
                self.answer(m.Claimed(self.origin.request, 0, tuple(batches), "" if batches else self._withheld))
            else:
                self.give_up("a cohort did not acknowledge claims in time; they are being released; try again")
        if not self._lessons or now_ms >= self.deadline_ms:
            self._release(now_ms)

    def _failed(self, ballot: Ballot, grant: Grant) -> list[int]:
        if not ballot.has_majority():
            return list(range(len(grant.ids)))
        return [index for index in sorted(ballot.against) if not ballot.has_majority(index)]

    def _release(self, now_ms: int) -> None:
        releases = {vnode: Change(rows) for vnode, rows in self._failures.items()
                    if self.ballots[vnode.partition].is_led}
        if releases:
            release = AmendOperation(self.operations, self.origin, now_ms, releases, m.Renewed(0, b""))
            release.has_answered = True
            release.start(now_ms)
        self.end()

    def _batches(self, grant: Grant, failed: Sequence[int]) -> Iterator[m.ClaimBatch]:
        """Granted claims in runs of consecutive tokens, those of tasks that were claimed before apart."""
        start = 0
        for stop in [*failed, len(grant.ids)]:
            for first, end, is_first in _runs(start, stop, grant.known):
                task_ids = grant.ids[first:end]
                yield m.ClaimBatch(b"".join(task_ids), grant.first_token + first, grant.end_ms,
                                   columns.pack(list(map(self._bodies.__getitem__, task_ids))), is_first=is_first)
            start = stop + 1


def _runs(start: int, stop: int, known: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """The indexes from start to stop in runs, each as its ends, and whether it is of tasks without a history."""
    if not known:
        yield from [(start, stop, True)] * (start < stop)
        return
    past = frozenset(known)
    for is_first, run in groupby(range(start, stop), lambda index: index not in past):
        indexes = [*run]
        yield indexes[0], indexes[-1] + 1, is_first
