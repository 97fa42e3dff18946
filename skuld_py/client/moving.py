"""Tasks moved to another queue: copies there, each of which is done *instead* of the first task.

What is enqueued never changes, so a task is moved by a copy. The copy comes first, so that none is lost, and
waits for the first task (``ON_FAILURE_INSTEAD``): only when that is cancelled, or dead, and held by nobody, may
the copy be claimed; when it is completed, the copy is cancelled. Then the first task is cancelled. So of the two
one may be claimed at a time, whoever claims the first one meanwhile, and wherever the mover stops: until it is
cancelled the first one is there as before. It is as old as the first one, so what is moved stays in its order.

Invariant: a task has one copy at most, wherever it is moved to. The copy's id follows from the first one's id
alone, so whoever moves again makes no second copy, and cancels what was left; and who moves to another queue at
the same time names the same id with another body. A node keeps the body that it has and refuses the other, and a
majority must keep it before the first task is cancelled, so one mover of the two goes on. Should nodes have kept
different bodies, it is one task all the same, which is claimed and completed under one id.

Invariant: the first task is cancelled only when a majority shows, after it keeps the copy, that the copy is in the
right queue, and neither cancelled nor dead: else what was moved, purged there and moved again would be lost.

A copy is all that the first task was, but for its unique name, which is one of the queue that it leaves, and for
its dependencies, which are met; its attempts are counted anew. Its only dependency says where it came from.

Left where they are: what is claimed, for its holder works on it; what waits for others, since a task has one
policy for all that it waits for; what others wait for, since they would see it cancelled, and die or wait for
ever; what has a copy in another queue, or one that was cancelled or died; what is so old that no copy would be
taken any more; and what has an ordering key. The id of such a task says the lane of its queue and key, so copies
in two queues have two ids, in two partitions, and nothing would keep the second from being made. A copy of an
earlier release, whose id says the queue, waits for its first task under an id not looked for here: that task is
left as one that others wait for.

Rejected: to cancel first. What is interrupted between the two would be lost, and nothing would find it again.
Also rejected: a header that names the first task, which would make a batch of each copy; and a look at the first
task's notes for other copies, which the leaders of the copies write later than two movers look.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Work, as_part, ask, verb
from skuld_py.client.filters import Filter
from skuld_py.client.options import batches_of
from skuld_py.client.preludes import Time
from skuld_py.client.reading import GET_TASKS
from skuld_py.client.selecting import CLAIMED, TO_COME, Selecting
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import columns, ids, names
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_INSTEAD, Body
from skuld_py.model.ids import TaskId
from skuld_py.model.notes import SUB
from skuld_py.model.task import Task

UNKNOWN_MS = 24 * 3_600_000
"""How long a copy waits for its first task where nobody knows that."""
_ID_HEAD_BYTES = 12
_ALONE = {"too_old": "old", "conflict": "elsewhere"}
"""Why a task is left whose copy alone is refused with such a code."""
_NEVER_DONE = ("cancelled", "dead")
"""Where a copy stands that is not done any more. What a copy has completed was done, and is cancelled for good."""


@attrs.frozen
class Moved:
    """How many tasks are moved, and how many were left: ``held`` by a claim; ``tied``, since they wait for others
    or others for them; ``old``, of which no copy is taken any more; ``keyed``, which have an ordering key;
    ``elsewhere``, of which a move to another queue has begun; ``ended``, whose copy was cancelled or died."""

    count: int = 0
    held: int = 0
    tied: int = 0
    old: int = 0
    keyed: int = 0
    elsewhere: int = 0
    ended: int = 0


@attrs.frozen
class Copy:
    """What is to be stored instead of ``first``: an id, a header's bytes, and what stands behind it."""

    first: TaskId
    id: TaskId
    head: bytes
    rest: bytes


def copy_of(first: bytes, record: bytes, queue: str) -> Copy:
    """A task as it is to be in a queue; ``record`` is its body."""
    body = Body.decode(record)
    header = attrs.evolve(body.header, queue=queue, window_ms=0, policy=ON_FAILURE_INSTEAD, dep_wait_ms=UNKNOWN_MS)
    made = attrs.evolve(body, header=header, made_ms=0, unique="", deps=(first,))
    return Copy(TaskId(first), id_of_copy(first), made.header.encode(), made.rest)


def id_of_copy(first: bytes) -> TaskId:
    """The id that the copy of a task without a key has in whichever queue: with the task's time and number, which
    are its place in the order, and a nonce and a route by the whole id."""
    digest = hashlib.blake2b(first, digest_size=8, person=b"skuld moved").digest()
    return TaskId(first[:_ID_HEAD_BYTES] + digest)


class Moving(Selecting):
    """The verb that moves."""

    @verb
    def move_all(self, queue: str, to: str, *, function: str | None = None, argument: str | None = None,
                 header: str | None = None, since: Time | None = None, until: Time | None = None,
                 dry_run: bool = False,
                 progress: Callable[[int], None] | None = None) -> Work[Moved]:
        """Move all tasks of a queue that wait or are scheduled to another one; gives how many, and how many were
        left and why. Which of them is chosen as in ``retry_all``.

        A moved task is a copy with another id, which is done instead of the first one: as old, and as it was, but
        without a unique name, and with all its attempts before it. The first one is cancelled, and the copy lives
        once it is, and is held by nobody; if a worker completes it meanwhile, the copy is cancelled. So none is
        lost and none is done twice, whatever breaks and whoever else moves them; move again. Left are those that
        are claimed, that wait for others or that others wait for, that have an ordering key, that are too old, of
        which a move to another queue has begun (move them there, and from there), and whose copy was cancelled or
        died there.

        Refused as ``old_rules`` in a cluster that goes by rules before 4."""
        names.check_name("to", to)
        for field, name in (("queue", queue), ("to", to)):
            if str(name).startswith(names.QUEUES_OF_WORKFLOWS):
                raise Refused("bad_name", f"{field}: {name!r} is a queue of a workflow, which makes its tasks by"
                              " itself; name another", field=field)
        if to == queue:
            raise Refused("bad_name", f"to: {to!r} is the queue where they are; name another", field="to")
        names.check_name("queue", queue)
        left = Counter[str]()
        choice = self._choice(queue, TO_COME | CLAIMED, since, until, Filter(function, argument, header))
        count = yield from self._each_page(choice, lambda tasks: self._moved(to, tasks, left, dry_run), progress)
        return Moved(count, **{why: number for why, number in left.items() if why})

    def _moved(self, to: str, tasks: Sequence[Task], left: Counter[str], is_dry: bool) -> Work[int]:
        """How many of a page are moved, or would be."""
        free: list[bytes] = []
        for task in tasks:
            why = ("held" if task.state == "claimed" else "tied" if {*task.deps} & {*task.blocked_by}
                   else "keyed" if ids.is_laned(task.id) else "")
            left[why] += bool(why)
            free += [] if why else [task.id]
        copies = yield from self._copies(to, free, left)
        if is_dry or not copies:
            return len(copies)
        stored = yield from self._stored(copies, left)
        if not stored:
            return 0
        living = yield from as_part(1, self._suiting(to, stored, {copy.id: "old" for copy in stored}, left))
        if not living:
            return 0
        return (yield from as_part(1, self._cancelled([copy.first for copy in living])))

    def _copies(self, to: str, task_ids: Sequence[bytes], left: Counter[str]) -> Work[list[Copy]]:
        """The copies to be made. What others wait for is left; but a copy that is there waits, too, and then its
        first task is moved to the end."""
        made: list[Copy] = []
        awaited: dict[bytes, str] = {}
        for start in range(0, len(task_ids), GET_TASKS):
            answer = (yield from ask(m.Got, m.Get(0, b"".join(task_ids[start : start + GET_TASKS])))).message
            for row in answer.tasks:
                if len(row.body):
                    made.append(copy_of(row.id, row.body.unpack()[0], to))
                    if SUB in columns.unpack_u64(row.tokens):
                        awaited[made[-1].id] = "tied"
        return (yield from self._suiting(to, made, awaited, left))

    def _suiting(self, to: str, copies: Sequence[Copy], absent: Mapping[bytes, str],
                 left: Counter[str]) -> Work[list[Copy]]:
        """Those by which tasks are moved there, as a majority shows them; ``absent`` says why tasks are left whose
        copies are not there. A copy is cancelled, too, when its first task was completed: that one is not left."""
        there = {task.id: task for task in (yield from self._bare([copy.id for copy in copies]))}
        suiting: list[Copy] = []
        ended: list[Copy] = []
        for copy in copies:
            found = there.get(copy.id)
            if found is None or found.queue != to:
                why = absent.get(copy.id, "") if found is None else "elsewhere"
                left[why] += bool(why)
                suiting += [] if why else [copy]
            else:
                (ended if found.state in _NEVER_DONE else suiting).append(copy)
        firsts = yield from self._bare([copy.first for copy in ended])
        left["ended"] += sum(task.state not in ("completed", "cancelled") for task in firsts)
        return suiting

    def _stored(self, copies: Sequence[Copy], left: Counter[str]) -> Work[list[Copy]]:
        """Those that a majority keeps now. Where one is too old, or in another queue, halves are asked for, so
        that it is left out alone."""
        stored: list[Copy] = []
        done = 0
        for rests in checking.chunks([copy.rest for copy in copies]):
            part = copies[done : done + len(rests)]
            stored += yield from as_part(done, self._kept(part, left))
            done += len(rests)
        return stored

    def _kept(self, copies: Sequence[Copy], left: Counter[str]) -> Work[Sequence[Copy]]:
        batches = batches_of([copy.head for copy in copies], [copy.id for copy in copies],
                             [copy.rest for copy in copies])
        try:
            yield from ask(m.Acked, m.Enqueue(0, 0, batches))
        except SkuldError as error:
            if error.code == "malformed":
                raise Refused("old_rules", "to: the node that was asked does not know of tasks that are there"
                              " instead of others; upgrade the nodes, then raise the rules of the cluster"
                              " ('skuld cluster rules')") from error
            if error.code not in _ALONE:
                raise
            if len(copies) == 1:
                left[_ALONE[error.code]] += 1
                return []
            half = len(copies) // 2
            first = yield from self._kept(copies[:half], left)
            return [*first, *(yield from as_part(len(first), self._kept(copies[half:], left)))]
        return copies
