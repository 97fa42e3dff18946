"""The dependency's side of dependencies: the leader of a task that others wait for tells them that it has ended.

A partition that asks (``Watch``) is noted on the task as a subscription, by a majority. From then on the rows of
``tell`` follow from the records on every replica: once a subscribed task is completed, or dead or cancelled and
not held, its end is to be told. Its leader first has a majority record what it knows of the task (``seal``), then
tells the leaders of the partitions that wait, and notes which partitions have recorded it.

Invariants. No partition is told of an end that a majority does not know: a completion by a single copy, or a death
by this leader's clock alone, could be forgotten while a dependent runs on it. So a question about a task that has
ended is answered at once only if some partition has been told before; else its answer waits for a majority, too.
A row stays until its partition has recorded the end, whichever node leads meanwhile.

What cannot be told now (no leader, no answer) is tried again after ``resend_ms``, and again.

Rejected: telling from the answer to a completion, which is lost with the node that took it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.errors import Malformed
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import DEFAULT_RETRY, header_of
from skuld_py.model.history import DIED, decode_history
from skuld_py.model.notes import SUB, TOLD, End, told_seq
from skuld_py.node.dependencies.dependent_side import FOREVER_MS, PAGE, MeetOperation
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.operation import Operation, Operations, not_leading
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import eras_of
from skuld_py.node.operations.silent import SilentOperation
from skuld_py.node.reads.get import GetOperation
from skuld_py.node.writes.notes import write_notes
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows
from skuld_py.partition.data.waiting import News
from skuld_py.partition.vnode import Vnode

IN_FLIGHT_MAX = 20_000
"""Ends that a node is telling at once."""


@attrs.define
class Round:
    """How far the telling of a partition's news has come."""

    due_ms: int
    after: bytes = b""


class DependencySide:
    """What one node has to tell of tasks that it leads."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._rounds: dict[int, Round] = {}
        """The partitions with something to tell."""
        self._in_flight: dict[News, None] = {}
        self.due_ms = FOREVER_MS
        """When it next has something to do."""

    def begin(self, now_ms: int, partition: int) -> None:
        """Tell all that is to be told of a partition that this node leads."""
        self._rounds[partition] = Round(now_ms)
        self.due_ms = min(self.due_ms, now_ms)

    def leave(self, partition: int) -> None:
        """This node does not lead it any more."""
        self._rounds.pop(partition, None)
        self._plan()

    def _plan(self) -> None:
        self.due_ms = min((turn.due_ms for turn in self._rounds.values()), default=FOREVER_MS)

    def look(self, now_ms: int) -> bool:
        """Begin to tell what is due; says whether there was anything."""
        due = [partition for partition, turn in self._rounds.items() if turn.due_ms <= now_ms]
        told = [self._tell(now_ms, partition) for partition in due]
        self._plan()
        return any(told)

    def _tell(self, now_ms: int, partition: int) -> bool:
        """One page. At the end of the rows, what is left of them is looked at again somewhat later."""
        vnode, turn = self._view.vnodes[partition], self._rounds[partition]
        room = IN_FLIGHT_MAX - len(self._in_flight)
        page, turn.after = vnode.replica.filing.waiting.news(turn.after, PAGE) if room > 0 else ([], b"")
        turn.due_ms = now_ms if turn.after else now_ms + self._view.timing.resend_ms
        if room > 0 and (not vnode.is_leading or not (page or turn.after)):
            del self._rounds[partition]
        news = [row for row in page if row not in self._in_flight]
        if news and vnode.is_leading:
            self._in_flight.update(dict.fromkeys(news))
            SealOperation(self._operations, self, now_ms, vnode, news).start(now_ms)
            return True
        return bool(turn.after)

    def land(self, news: Sequence[News]) -> None:
        """These were told, or will be tried again."""
        for row in news:
            self._in_flight.pop(row, None)


class SealOperation(SilentOperation):
    """Has a majority record how these tasks ended, then tells the partitions that wait."""

    def __init__(self, operations: Operations, side: DependencySide, now_ms: int, vnode: Vnode,
                 news: Sequence[News]) -> None:
        super().__init__(operations, Origin(0), now_ms)
        self._side = side
        self._vnode = vnode
        self._news = news

    def begin(self, now_ms: int) -> None:
        """Record the ends that are certain; what a clock that was set back does not find dead any more is left
        out."""
        failed = dict.fromkeys(row[0] for row in self._news if row[2] is End.FAILED)
        marks, doubtful = deaths_of(self._vnode.replica, now_ms, list(failed))
        self._side.land([row for row in self._news if row[0] in doubtful])
        self._news = [row for row in self._news if row[0] not in doubtful]
        if not self._news:
            self.end()
            return
        self.extend(now_ms)
        change = Change((), marks, known=list(dict.fromkeys(row[0] for row in self._news)))
        AmendOperation(self.operations, self.origin_of_parts, now_ms, {self._vnode: change},
                           m.Told(self.request)).start(now_ms)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Recorded; or not for certain, and then it is tried again."""
        self.end()
        if not isinstance(message, m.Told):
            self._side.land(self._news)
            return
        by_partition: dict[int, list[News]] = {}
        for row in self._news:
            by_partition.setdefault(row[1], []).append(row)
        for partition, news in by_partition.items():
            TellOperation(self.operations, self._side, now_ms, self._vnode, partition, news).start(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Not for certain."""
        self.end()
        self._side.land(self._news)


class TellOperation(Operation):
    """A partition's leader is told of ends; when it has recorded them, that is noted."""

    def __init__(self, operations: Operations, side: DependencySide, now_ms: int, vnode: Vnode, partition: int,
                 news: Sequence[News]) -> None:
        super().__init__(operations, Origin(0), now_ms)
        self._side = side
        self._vnode = vnode
        self._partition = partition
        self._news = news
        self._rounds: Mapping[bytes, int] = {}

    def begin(self, now_ms: int) -> None:
        """Tell until answered."""
        self._rounds = rounds_of(self._vnode.replica, [row[0] for row in self._news])
        is_one = self._partition < self.view.parameters.partitions
        leader = self.view.leader_of(self._partition) if is_one else ""
        if leader:
            self.ask(now_ms, {leader: m.Tell(self.request, self._partition, b"".join(row[0] for row in self._news),
                                             bytes(row[2] for row in self._news))})
        else:
            self.on_deadline(now_ms)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Recorded there; or it does not lead any more."""
        if peer not in self.pending or not isinstance(message, m.Told | m.Failed):
            return
        self.on_deadline(now_ms)
        if isinstance(message, m.Told):
            write_notes(self.operations, now_ms, Origin(0), [
                (task_id, TOLD, told_seq(partition, end, self._rounds[task_id]))
                for task_id, partition, end in self._news])

    def on_deadline(self, now_ms: int) -> None:
        """What is not noted as told is told again."""
        self.end()
        self._side.land(self._news)


def rounds_of(replica: Replica, task_ids: Sequence[bytes]) -> Mapping[bytes, int]:
    """How often each of these tasks was revived."""
    known = replica.histories(task_ids)
    return {task_id: decode_history(known.get(replica.prefix + task_id)).round for task_id in task_ids}


def deaths_of(replica: Replica, now_ms: int, task_ids: Sequence[bytes]) -> tuple[list[Mark], dict[bytes, None]]:
    """Marks of death for tasks that are dead without one, most of them out of attempts by this leader's clock; and
    the tasks that are neither dead nor cancelled by it now."""
    known = replica.histories(task_ids)
    marks: list[Mark] = []
    doubtful: dict[bytes, None] = {}
    for task_id, body in zip(task_ids, replica.bodies(task_ids), strict=True):
        history = decode_history(known.get(replica.prefix + task_id))
        if history.cancelled.value is not None:
            continue
        most = DEFAULT_RETRY if body is None else header_of(body).retry
        reason = history.death(most.max_attempts, now_ms - replica.skew_ms)
        if reason:
            marks.append(Mark(task_id, DIED, history.round + 1, reason))
        else:
            doubtful[task_id] = None
    return marks, doubtful


# -- being asked -------------------------------------------------------------------------------------


def lead_watch(operations: Operations, now_ms: int, origin: Origin, request: m.Watch) -> None:
    """The dependency's leader is asked."""
    if request.partition >= operations.view.parameters.partitions or not request.ids:
        raise Malformed("Watch.partition", "does not exist, or asks about nothing")
    WatchedOperation(operations, origin, now_ms, request).start(now_ms)


def lead_tell(operations: Operations, now_ms: int, origin: Origin, request: m.Tell) -> None:
    """The dependent's leader is told."""
    if request.partition >= operations.view.parameters.partitions or not {*request.ends} <= {End.DONE, End.FAILED}:
        raise Malformed("Tell.partition", "does not exist, or tells of no end")
    vnode = operations.view.renewing(request.partition)
    if vnode is None:
        operations.outbox.reply(origin, not_leading(origin))
        return
    ends = {dep: End(end) for dep, end in zip(ids.split(request.ids), request.ends, strict=True)}
    MeetOperation(operations, origin, now_ms, vnode, ends).start(now_ms)


class WatchedOperation(SilentOperation):
    """One question, answered when the subscriptions that it asks for are kept by a majority."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: m.Watch) -> None:
        super().__init__(operations, origin, now_ms)
        self._question = request
        self._ids = ids.split(request.ids)
        self._by_partition = ids.by_partition(self._ids, operations.view.parameters.partitions)

    def _partition_of(self, task_id: bytes) -> int:
        return ids.partition_of(task_id, self.view.parameters.partitions)

    def begin(self, now_ms: int) -> None:
        """Subscribe the partition to the tasks to which it is not subscribed yet."""
        self.extend(now_ms)
        if not self._is_led():
            self.answer(not_leading(self.origin))
            self.end()
            return
        lacking: list[bytes] = []
        for partition, task_ids in self._by_partition.items():
            waiting = self.view.vnodes[partition].replica.filing.waiting
            known = dict.fromkeys(waiting.subscribed(task_ids, self._question.partition))
            lacking += [task_id for task_id in task_ids if task_id not in known]
        if lacking:
            write_notes(self.operations, now_ms, self.origin_of_parts,
                        [(task_id, SUB, self._question.partition) for task_id in lacking])
        else:
            self._look_around(now_ms)

    def _is_led(self) -> bool:
        return all(self.view.renewing(partition) is not None for partition in self._by_partition)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Subscribed; or what a majority knows of tasks that this copy does not; or neither."""
        if isinstance(message, m.Acked):
            self._look_around(now_ms)
        elif isinstance(message, m.Got):
            for row in message.tasks:
                vnode = self.view.vnodes[self._partition_of(row.id)]
                merge_rows(vnode.replica, now_ms, self.view.parameters.partitions, [row])
            self._tell(self._ends())
        else:
            self.on_deadline(now_ms)

    def _look_around(self, now_ms: int) -> None:
        """Ask a majority about tasks that are not known here, if this is the last question about them."""
        ends = self._ends()
        unknown = [task_id for task_id, end in ends.items() if end is End.UNKNOWN]
        if not unknown or not self._question.is_last:
            self._tell(ends)
            return

        def make(request: int, asked: list[int]) -> m.Message:
            wanted = [task_id for task_id in unknown if self._partition_of(task_id) in asked]
            return m.Get(request, b"".join(wanted), eras_of(self.view, asked))
        self.extend(now_ms)
        partitions = dict.fromkeys(map(self._partition_of, unknown))
        GetOperation(self.operations, self.origin_of_parts, now_ms, unknown, partitions, make).start(now_ms)

    def _ends(self) -> dict[bytes, End]:
        return {task_id: end for partition, task_ids in self._by_partition.items()
                for task_id, end in ends_known(self.view.vnodes[partition].replica, task_ids).items()}

    def _tell(self, ends: Mapping[bytes, End]) -> None:
        if self._is_led():
            self.answer(m.Watched(self.origin.request, bytes(ends[task_id] for task_id in self._ids)))
        else:
            self.answer(not_leading(self.origin))
        self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Leave it: the dependent's leader asks again."""
        self.give_up("a majority did not answer in time")
        self.end()


def ends_known(replica: Replica, task_ids: Sequence[bytes]) -> dict[bytes, End]:
    """The ends that may be told at once: those that a majority knows, since a partition was told of them before;
    and those of tasks that were collected, or are so old that no copy of them is taken any more."""
    ends = {task_id: End.UNKNOWN if body is None else End.OPEN
            for task_id, body in zip(task_ids, replica.bodies(task_ids), strict=True)}
    for key, record in replica.histories(task_ids).items():
        history, task_id = decode_history(record), key[len(replica.prefix):]
        end = replica.filing.end_of(task_id, history)
        if end is not End.OPEN:
            ends[task_id] = end if replica.filing.waiting.is_told(task_id, end, history.round) else End.OPEN
    unknown = [task_id for task_id, end in ends.items() if end is End.UNKNOWN]
    return ends | dict.fromkeys(replica.gone(unknown), End.GONE)
