"""Cancels what waits in the queues of workflows that have ended, and acks that no feeder hears any more.

Nobody has seats in a workflow that has ended, so what waits there would wait for ever. The leader of each
partition sees to its own tasks: it finds their queues in the counts, and marks them as a client's cancelling does,
by a majority. What is claimed goes on until its worker sees that the workflow has ended; what is scheduled is met
once it waits. The same holds for the acks and hauls of an input, or a strand, that is exhausted: from then on they
are news to nobody. While a feeder is gone its acks wait for its next life.

Of a workflow that is complete the tasks of its own queues stay for ``GRACE_MS``: a worker may be about to end
them.

Bounds: a turn looks at ``QUEUES_AT_ONCE`` queues and cancels ``REAPED_AT_ONCE`` tasks, and the next one comes
``PAGE_MS`` later. A round that finds nothing is followed by a later one, up to ``REST_MS``; while the log knows
nothing that has ended there is none. What comes after the log has forgotten the workflow stays (``skuld purge``).

A node that lags may take for ended what was submitted again. Without its feeders that would wait for ever, and
without its plan nobody could read it; so of these those of the life that ended are cancelled, and older ones. A
segment that is cancelled its feeder sees. Of what seals and gathers this cannot be told: its time is often that of
its own naming, not its life's.

Rejected: the client that kills, which may end in the middle. A worker, for which a dead workflow had to have
seats. Acks that expire: a dead task each, which people would have to be told to pass over.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.cluster.log.workflows import State, Workflow, strand_name
from skuld_py.cluster.member.playback import Playback
from skuld_py.model import messages as m
from skuld_py.model.history import CANCELLED
from skuld_py.model.ids import ID_BYTES, time_of
from skuld_py.model.state import State as TaskState
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.vnode import Vnode
from skuld_py.workflow.definition.names import PLAN, QUEUES, is_feeder, is_sealer, step_of
from skuld_py.workflow.segments import ack_queue, haul_queue, sources_of

QUEUES_AT_ONCE, REAPED_AT_ONCE = 500, 500
PAGE_MS, ROUND_MS, REST_MS = 50, 1_000, 30_000
GRACE_MS = 60_000


class Reaper(Duty):
    """Of one node."""

    def __init__(self, operations: Operations, playback: Playback) -> None:
        self._operations = operations
        self._view = operations.view
        self._playback = playback
        self.news = (playback.changed,)
        self.due_ms = NEVER_MS
        self._since: dict[str, int] = {}
        """Of those that have ended when that was first seen here."""
        self._deaf: frozenset[str] = frozenset()
        """Queues of live workflows in which nothing is heard."""
        self._at: tuple[int, str] = (0, "")
        """The partition and the queue behind which to go on."""
        self._pause_ms = ROUND_MS
        self._has_found = False

    def look(self, now_ms: int) -> None:
        """Cancel a page."""
        if self._playback.changed:
            self._playback.changed.clear()
            self._note(now_ms)
        if not (self._since or self._deaf):
            self.due_ms = NEVER_MS
            return
        is_cut = self._view.may_grant and self._page(now_ms)
        if not is_cut:
            self._at = (0, "")
            self._pause_ms = ROUND_MS if self._has_found else min(2 * self._pause_ms, REST_MS)
            self._has_found = False
        self.due_ms = now_ms + (PAGE_MS if is_cut else self._pause_ms)

    def _note(self, now_ms: int) -> None:
        workflows = self._playback.replica.workflows
        ended = {name: self._since.get(name, now_ms) for name, each in workflows.items() if not each.is_live}
        deaf = frozenset(queue for name, each in workflows.items() if each.is_live for queue in _deaf(name, each))
        if ended.keys() - self._since.keys() or deaf - self._deaf:
            self._pause_ms, self._at = ROUND_MS, (0, "")
        self._since, self._deaf = ended, deaf

    def _page(self, now_ms: int) -> bool:
        """Whether there may be more."""
        left, room = QUEUES_AT_ONCE, REAPED_AT_ONCE
        changes: dict[Vnode, Change] = {}
        first, after = self._at
        is_cut = False
        for vnode in self._view.vnodes[first:]:
            if not vnode.is_leading:
                continue
            looked, found, after, is_cut = self._reap(now_ms, vnode, after if vnode.partition == first else "",
                                                      left, room)
            left, room = left - looked, room - len(found)
            if found:
                changes[vnode] = Change((), [Mark(task_id, CANCELLED, now_ms) for task_id in found])
            if is_cut:
                self._at = (vnode.partition, after)
                break
        if changes:
            self._has_found = True
            operation = AmendOperation(self._operations, Origin(0), now_ms, changes, m.Revived(0, b""))
            operation.has_answered = True
            operation.start(now_ms)
        return is_cut

    def _reap(self, now_ms: int, vnode: Vnode, after: str, left: int, room: int
              ) -> tuple[int, list[bytes], str, bool]:
        """How many queues of a partition were looked at, what is to be cancelled, behind which queue to go on, and
        whether that is needed."""
        filing = vnode.replica.filing
        looked, queues = 0, list[str]()
        is_cut = False
        for queue, counts in filing.tally.rows(after or QUEUES[:-1]):
            if not queue.startswith(QUEUES):
                break
            if looked == left:
                is_cut = True
                break
            looked, after = looked + 1, queue
            if counts[TaskState.WAITING] > 0 and self._is_over(now_ms, queue):
                queues.append(queue)
        found: list[bytes] = []
        former = ""
        for queue in queues:
            ids = [head[-ID_BYTES:] for head in filing.heads(queue, None, room - len(found))]
            found += [task_id for task_id in ids if self._has_ended(queue, task_id)]
            if len(found) >= room:
                return looked, found, former or QUEUES[:-1], True
            former = queue
        return looked, found, after, is_cut

    def _has_ended(self, queue: str, task_id: bytes) -> bool:
        """Whether a task in such a queue is none of a later life."""
        named = step_of(queue)
        if named is None or not (named[1] == PLAN or is_feeder(queue)):
            return True
        return time_of(task_id) <= self._playback.replica.workflows[named[0]].life

    def _is_over(self, now_ms: int, queue: str) -> bool:
        """Whether what waits in a queue waits for nobody."""
        if queue in self._deaf:
            return True
        named = step_of(queue)
        since_ms = None if named is None else self._since.get(named[0])
        if named is None or since_ms is None:
            return False
        known: Workflow | None = self._playback.replica.workflows.get(named[0])
        is_killed = known is not None and known.state == State.KILLED.value
        is_own = named[1] == PLAN or is_sealer(queue) or is_feeder(queue)
        return is_killed or not is_own or now_ms >= since_ms + GRACE_MS


def _deaf(name: str, known: Workflow) -> Iterator[str]:
    """Queues of inputs, and of strands, that are exhausted; what names none of these is passed over."""
    for step in known.inputs:
        is_exhausted = step in known.exhausted
        if is_exhausted:
            yield haul_queue(name, step)
        for strand, source in enumerate(sources_of(step, known.strands(step))):
            if is_exhausted or strand_name(step, strand) in known.drained:
                yield ack_queue(name, source)
