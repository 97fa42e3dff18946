"""Garbage: what ended long ago is deleted everywhere, and nothing of it comes back.

The leader of a partition drives a *slice*: all ids up to a time that lies ``Retention.keep_ms`` back.

1. *Closing*: ``Ebb`` to every node; none takes new tasks up to then any more. A node that kept a task which the
   others lack still has it, so
2. *pulling*: a pass with each replica, all begun after the last has closed. Then everything below is on the
   leader. And *checking*: a second pass with each, begun after the last of the first. A replica that shows no
   difference below has it all too. One that is slow to compare is asked again; one that is no replica any more, or
   begins anew, ends the slice, and the next slice does without it.
3. *Sealing*: ``Ebb`` with the lives that were compared. What a sealed replica lacks, it takes from nobody.
4. *Slices*, a page at a time: a trial asks all who of them holds each task, with this digest, ended by then,
   and only what all agree on is deleted by all. What is equal to the leader's, by the digests that stand beside
   the records, is not read for a trial, but when it goes. A replica that misses the last word keeps the task until
   an exchange with another tells it (``gone``).
   With an archive, what they agree on is *on offer* first: it goes when an archiver says that it is written. A few
   pages are on offer at a time (``Retention.pages_ahead``), so that the next are read while one is written; each
   goes by itself, in whatever order.
   What others need is kept: each replica, and each other node that says that it keeps dependents of tasks so old,
   refuses what a task that it keeps, of any partition, names among its dependencies (``needs``), unless that goes
   with it. All nodes are asked, so some keeper of the dependent is. A task goes when the last that needs it has
   gone; so a dependent finds its results for as long as it is kept itself, and all that is behind them.

Where nodes are to keep ended tasks for different times, the longest counts: who is to keep them for longer than
the leader refuses to be closed so far, and says how far it may be. The slice begins anew with that time. The next
one asks again for the leader's own, so an option that was changed counts at once.

**All replicas**, not a majority: the keepers of the partition, all registered nodes and all live ones. Collection
waits for a node that is silent, in doubt about its memory, still has records to hand off, or is to keep all
(``replica_side``), and a status names it. So a node that was away for long has missed no
deletion that others count on; and what an old disk brings back finds all others sealed.

Nothing here rests on there being one leader: each step is true of the replicas whichever node asks. The epoch is
compared only so that new voters are known: a node that has voted for a newer leader refuses, and a new member of a
cohort reads the watermarks of its voters before it counts.

Rejected: a majority (its deletions come back from the rest); a leader's list of what may go, trusted without
digests (a late mark on one replica would be lost on all); whole components of tasks that depend on each other at
once (a search over all nodes, where one look at each end does).
Source: Skuld's collector, which deletes at its own clock's word; Cassandra's rule that a node away for longer than
the grace period must not come back as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import count

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.operations.operation import Operations
from skuld_py.node.retention.pace import Pace
from skuld_py.node.retention.replica_side import held_back
from skuld_py.node.retention.rounds import Round
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.copies.garbage import page_of
from skuld_py.partition.copies.remains import Remains
from skuld_py.partition.data.records import TABLES
from skuld_py.partition.vnode import Vnode

RETRY_MS = 1_000
"""After a slice had to be given up."""
CONFIRM_MS = 1_000
"""How often replicas are asked again whose comparison has not ended."""


class Stage(Enum):
    """What a slice waits for."""

    CLOSING = "closing"
    PULLING = "pulling"
    CHECKING = "checking"
    SEALING = "sealing"
    COLLECTING = "collecting"


@attrs.define
class Page:
    """Tasks that all replicas would delete, each with its digest. ``upto``: the id behind which the next page
    begins; ``cut``: those whose logs are longer than what is read of a task. ``ended_ms``: since then one of them
    is over. ``number``: pages on offer are numbered upwards, for as long as a node runs."""

    ids: bytes
    digests: bytes
    upto: bytes
    cut: bytes
    ended_ms: int = 0
    number: int = 0
    is_going: bool = False
    count: int = 0
    """How many tasks this node has deleted of them."""

    def is_(self, task_ids: bytes, digests: bytes) -> bool:
        """Whether somebody speaks of this page."""
        return self.ids == task_ids and self.digests == digests


@attrs.define
class Slice:
    """A partition's way to one time. ``is_own``: it goes as far as its leader's option says, and not that of a
    node which is to keep more; ``lives``: the replicas, each with the life that it told; ``through``: those
    compared with in this stage, by passes from number ``first`` on; the others are asked again at ``confirm_ms``;
    ``needy``: who else keeps tasks that may need what is to go; ``after``: how far it has collected, ``has_held``
    and ``has_deleted``: on this way through the pages; ``is_through``: it has come to the last page; ``offers``:
    what waits to be archived, or is being deleted, by number."""

    epoch: int
    upto_ms: int
    names: Collection[str]
    is_own: bool = True
    stage: Stage = Stage.CLOSING
    lives: Mapping[str, int] = attrs.field(factory=dict)
    first: int = 0
    confirm_ms: int = 0
    through: dict[str, None] = attrs.field(factory=dict)
    needy: Collection[str] = ()
    after: bytes = b""
    offers: dict[int, Page] = attrs.field(factory=dict)
    is_through: bool = False
    has_deleted: bool = False
    has_held: bool = False
    is_trying: bool = False


Next = Callable[[int, int, Slice, Mapping[str, m.Message]], None]


class Slices:
    """The slices of the partitions that a node leads."""

    def __init__(self, operations: Operations, exchanges: Exchanges) -> None:
        self._operations = operations
        self._view = operations.view
        self._exchanges = exchanges
        exchanges.on_pass.append(self.on_pass)
        self._slices: dict[int, Slice] = {}
        self._next_ms: dict[int, int] = {}
        self._hindered: dict[int, list[str]] = {}
        """The nodes that were away or refused when something of a partition was last to be collected."""
        self._gone: dict[int, list[Page]] = {}
        """The last pages of each partition that were archived and deleted."""
        self._lag_ms: dict[int, int] = {}
        """For how long others are to keep what ended of a partition, where that is longer than this node is."""
        self._collected: dict[int, tuple[int, int]] = {}
        """Of each partition the epoch, and the time up to which all went that could."""
        self._deleted: dict[int, int] = {}
        """How many tasks of each partition this node had deleted, since it runs."""
        self._pages = count(1)
        self.pace = Pace()

    def look(self, now_ms: int) -> None:
        """Begin what is due, go on with what is under way, give up what cannot end."""
        if not self._view.retention.keep_ms:
            return
        self.pace.look(now_ms)
        led = {vnode.partition: vnode for vnode in self._view.led()}
        for partition in [*self._slices]:
            if not self._may_go_on(partition, led.get(partition)):
                self._give_up(now_ms, partition)
        for partition, vnode in led.items():
            under_way = self._slices.get(partition)
            if under_way is not None:
                self._pursue(now_ms, partition, under_way)
            elif now_ms >= self._next_ms.get(partition, 0):
                self._begin(now_ms, vnode, now_ms - self._view.retention.keep_ms)

    def _may_go_on(self, partition: int, vnode: Vnode | None) -> bool:
        under_way = self._slices[partition]
        return vnode is not None and vnode.epoch == under_way.epoch and self._names(partition) == under_way.names

    def _give_up(self, now_ms: int, partition: int) -> None:
        if self._slices.pop(partition, None) is not None:
            self._next_ms[partition] = now_ms + RETRY_MS

    def _names(self, partition: int) -> list[str]:
        """All nodes that may keep something of the partition; none while one of them is away."""
        names = sorted({*self._view.vnodes[partition].keepers, *self._view.nodes, *self._view.live})
        self._hindered[partition] = [name for name in names if name not in self._view.live]
        return [] if self._hindered[partition] else names

    def awaited(self, partition: int) -> list[str]:
        """The nodes without which nothing more of a partition led here can be collected."""
        under_way = self._slices.get(partition)
        if under_way is not None and under_way.stage in (Stage.PULLING, Stage.CHECKING):
            return self._awaited(under_way)
        return self._hindered.get(partition, [])

    def unarchived_since_ms(self, partition: int) -> int:
        """Since when what is on offer to an archive could have gone; 0 when nothing is. By the ends of tasks: with
        each slice, and each leader, it would seem to have waited for no time."""
        under_way = self._slices.get(partition)
        if under_way is None or not under_way.offers:
            return 0
        return min(page.ended_ms for page in under_way.offers.values()) + self._keep_ms(partition)

    def due_ms(self, now_ms: int, partition: int) -> int:
        """What had ended by then may go, as far as its leader knows."""
        return max(0, now_ms - self._keep_ms(partition))

    def _keep_ms(self, partition: int) -> int:
        return max(self._view.retention.keep_ms, self._lag_ms.get(partition, 0))

    def deleted(self, partition: int) -> int:
        """How many tasks of a partition went, as far as this node led that."""
        return self._deleted.get(partition, 0)

    def is_under_way(self, partition: int) -> bool:
        """Whether a slice of a partition is."""
        return partition in self._slices

    def collected_ms(self, vnode: Vnode) -> int:
        """All that could go up to this time is gone, as far as its leader knows; 0 when it does not."""
        epoch, upto_ms = self._collected.get(vnode.partition, (0, 0))
        return upto_ms if epoch == vnode.epoch else 0

    def hasten(self, now_ms: int, partition: int, wanted_ms: int) -> None:
        """Somebody waits for a slice up to a time: the next one begins with the next look."""
        vnode = self._view.vnodes[partition]
        if partition not in self._slices and self.collected_ms(vnode) < wanted_ms:
            self._next_ms[partition] = min(now_ms, self._next_ms.get(partition, 0))

    # -- closing, comparing, sealing -----------------------------------------------------------

    def _begin(self, now_ms: int, vnode: Vnode, upto_ms: int, *, is_own: bool = True) -> None:
        retention = self._view.retention
        if not _is_any_below(vnode, upto_ms):
            self._next_ms[vnode.partition] = now_ms + retention.slice_ms
            self._collected[vnode.partition] = vnode.epoch, upto_ms
            self._hindered.pop(vnode.partition, None)
            return
        names = self._names(vnode.partition)
        self._next_ms[vnode.partition] = now_ms + RETRY_MS
        if not names:
            return
        under_way = self._slices[vnode.partition] = Slice(vnode.epoch, upto_ms, names, is_own=is_own)
        self._ask(now_ms, vnode.partition, under_way, names, lambda request, _: m.Ebb(
            request, vnode.partition, under_way.epoch, upto_ms), self._on_closed)

    def _ask(self, now_ms: int, partition: int, under_way: Slice, names: Collection[str],
             make: Callable[[int, str], m.Message], then: Next) -> None:
        def check(at_ms: int, answers: Mapping[str, m.Message]) -> None:
            if self._slices.get(partition) is not under_way:
                return
            refusals = {name: answers.get(name) for name in names
                        if not getattr(answers.get(name), "is_accepted", False)}
            allowed_ms = self._allowed_ms(partition, under_way, [*refusals.values()])
            hindering = [name for name, refusal in refusals.items() if not getattr(refusal, "allowed_ms", 0)]
            self._hindered[partition] = hindering or ([] if allowed_ms else [*refusals])
            if not refusals:
                then(at_ms, partition, under_way, answers)
            elif allowed_ms:
                self._lag_ms[partition] = at_ms - allowed_ms
                del self._slices[partition]
                self._begin(at_ms, self._view.vnodes[partition], allowed_ms, is_own=False)
            else:
                self._note_promised(at_ms, partition, answers)
                self._give_up(at_ms, partition)
        Round(self._operations, now_ms, make, names, check).start(now_ms)

    def _allowed_ms(self, partition: int, under_way: Slice, refusals: Sequence[m.Message | None]) -> int:
        """How far a slice may go instead that was refused; 0 where some refuse for another reason."""
        allowed = [getattr(refusal, "allowed_ms", 0) for refusal in refusals]
        if not allowed or 0 in allowed or not under_way.is_own:
            return 0
        may_go_on = self._may_go_on(partition, self._view.vnodes[partition])
        return min(*allowed, under_way.upto_ms) if may_go_on else 0

    def _note_promised(self, now_ms: int, partition: int, answers: Mapping[str, m.Message]) -> None:
        vnode = self._view.vnodes[partition]
        promised = max((getattr(answer, "promised", 0) for answer in answers.values()), default=0)
        if vnode.is_leading and promised > vnode.epoch:
            vnode.resign(now_ms, "a voter has promised a newer epoch")

    def _on_closed(self, now_ms: int, partition: int, under_way: Slice, answers: Mapping[str, m.Message]) -> None:
        under_way.lives = {name: answer.life for name, answer in answers.items()
                           if isinstance(answer, m.Ebbed) and answer.life}
        if under_way.is_own:
            self._lag_ms.pop(partition, None)
        self._compare(now_ms, partition, under_way, Stage.PULLING)

    def _compare(self, now_ms: int, partition: int, under_way: Slice, stage: Stage) -> None:
        under_way.stage, under_way.first, under_way.through = stage, self._exchanges.begun + 1, {}
        under_way.confirm_ms = now_ms + CONFIRM_MS
        self._go_on_if_through(now_ms, partition, under_way)
        self._pursue(now_ms, partition, under_way)

    def _pursue(self, now_ms: int, partition: int, under_way: Slice) -> None:
        if under_way.stage is Stage.COLLECTING:
            self._go_on(now_ms, partition, under_way)
        if under_way.stage in (Stage.PULLING, Stage.CHECKING):
            awaited = self._awaited(under_way)
            for name in awaited:
                self._exchanges.pursue(partition, name)
            if awaited and now_ms >= under_way.confirm_ms:
                self._confirm(now_ms, partition, under_way, awaited)

    def _awaited(self, under_way: Slice) -> list[str]:
        return [name for name in under_way.lives if name != self._view.me.name and name not in under_way.through]

    def _confirm(self, now_ms: int, partition: int, under_way: Slice, names: Collection[str]) -> None:
        """Ask whether they still are the replicas that were closed. A node that hands off answers no exchange, and
        one that has dropped its records has nothing to compare: the slice would never end."""
        under_way.confirm_ms = now_ms + CONFIRM_MS

        def check(at_ms: int, answers: Mapping[str, m.Message]) -> None:
            is_same = all(getattr(answer, "life", 0) == under_way.lives[name] for name, answer in answers.items())
            if not is_same and self._slices.get(partition) is under_way:
                self._note_promised(at_ms, partition, answers)
                self._give_up(at_ms, partition)
        Round(self._operations, now_ms, lambda request, _: m.Ebb(
            request, partition, under_way.epoch, under_way.upto_ms), names, check).start(now_ms)

    def on_pass(self, now_ms: int, ended: Pass) -> None:
        """An exchange is through."""
        under_way = self._slices.get(ended.partition)
        if under_way is None or ended.serial < under_way.first or ended.peer not in under_way.lives:
            return
        is_equal = not ended.oldest or ids.time_of(ended.oldest) > under_way.upto_ms
        if under_way.stage is Stage.PULLING or (under_way.stage is Stage.CHECKING and is_equal):
            under_way.through[ended.peer] = None
            self._go_on_if_through(now_ms, ended.partition, under_way)

    def _go_on_if_through(self, now_ms: int, partition: int, under_way: Slice) -> None:
        if self._awaited(under_way):
            return
        if under_way.stage is Stage.PULLING:
            self._compare(now_ms, partition, under_way, Stage.CHECKING)
        elif under_way.stage is Stage.CHECKING:
            under_way.stage = Stage.SEALING
            self._ask(now_ms, partition, under_way, under_way.lives, lambda request, name: m.Ebb(
                request, partition, under_way.epoch, under_way.upto_ms, under_way.lives[name]), self._on_sealed)

    def _on_sealed(self, now_ms: int, partition: int, under_way: Slice, answers: Mapping[str, m.Message]) -> None:
        """Find the nodes that keep nothing of the partition, but tasks that may need some of it."""
        under_way.stage = Stage.COLLECTING

        def on_told(at_ms: int, _: int, __: Slice, told: Mapping[str, m.Message]) -> None:
            under_way.needy = [name for name, answer in told.items()
                               if isinstance(answer, m.Collected) and answer.kept]
            under_way.is_trying = False
            self._go_on(at_ms, partition, under_way)
        under_way.is_trying = True
        strangers = [name for name in under_way.names if name not in under_way.lives]
        self._send(now_ms, partition, under_way, Page(b"", b"", b"", b""), strangers, on_told)

    # -- collecting ----------------------------------------------------------------------------

    def _go_on(self, now_ms: int, partition: int, under_way: Slice) -> None:
        """Look for the next page, unless enough are on offer; or, when the last one has gone, come to the end."""
        if under_way.is_trying:
            return
        if under_way.is_through:
            if not under_way.offers:
                self._come_to_the_end(now_ms, partition, under_way)
        elif len(under_way.offers) < self._view.retention.pages_ahead:
            self._try_page(now_ms, partition, under_way)

    def _try_page(self, now_ms: int, partition: int, under_way: Slice) -> None:
        """Ask who would delete the next page, without what this node itself knows to be needed."""
        replica = self._view.vnodes[partition].replica
        found, upto = page_of(replica, under_way.after, under_way.upto_ms, self._view.retention.page_tasks)
        page = self._without_needed(under_way, found)

        def on_tried(at_ms: int, _: int, __: Slice, answers: Mapping[str, m.Message]) -> None:
            under_way.is_trying = False
            kept = dict.fromkeys(index for answer in answers.values() if isinstance(answer, m.Collected)
                                 for index in columns.unpack_u64(answer.kept))
            left = page.at([index for index in range(len(page)) if index not in kept]) if kept else page
            ripe = _page(self._without_needed(under_way, left), upto, under_way.upto_ms)
            self._turn_page(under_way, upto)
            if ripe.ids:
                ripe.number = next(self._pages)
                under_way.offers[ripe.number] = ripe
                if not self._view.retention.archives:
                    self._delete(at_ms, partition, under_way, ripe, lambda _: None)
                    return
            self._go_on_soon(at_ms, partition, under_way)
        under_way.is_trying = True
        if len(page):
            asked = [*under_way.lives, *under_way.needy]
            self._send(now_ms, partition, under_way, _page(page, upto, under_way.upto_ms), asked, on_tried)
        else:
            under_way.is_trying = False
            self._turn_page(under_way, upto)

    def _without_needed(self, under_way: Slice, page: Remains) -> Remains:
        held = held_back(self._view, page.ids)
        under_way.has_held = under_way.has_held or bool(held)
        return page.at([index for index, task_id in enumerate(page.ids) if task_id not in held]) if held else page

    def _turn_page(self, under_way: Slice, upto: bytes) -> None:
        under_way.after, under_way.is_through = upto, not upto

    def _go_on_soon(self, now_ms: int, partition: int, under_way: Slice) -> None:
        """At once where pages are on offer, so that they are there before they are asked for; what is not goes on
        with the next look."""
        if under_way.offers:
            self._go_on(now_ms, partition, under_way)

    def _come_to_the_end(self, now_ms: int, partition: int, under_way: Slice) -> None:
        """All pages were looked at: the first comes again, if something was needed and what needed it may be gone
        by now; or the slice has come to its end."""
        if under_way.has_held and under_way.has_deleted:
            under_way.is_through = under_way.has_held = under_way.has_deleted = False
            under_way.after = b""
        else:
            del self._slices[partition]
            self._collected[partition] = under_way.epoch, under_way.upto_ms
            self._next_ms[partition] = now_ms + self._view.retention.slice_ms

    def _delete(self, now_ms: int, partition: int, under_way: Slice, page: Page,
                then: Callable[[int], None]) -> None:
        """Have all delete a page; ``then`` gets how many tasks that were."""
        if not self._may_go_on(partition, self._view.vnodes[partition]):
            self._give_up(now_ms, partition)
            return

        def on_deleted(at_ms: int, _: int, __: Slice, answers: Mapping[str, m.Message]) -> None:
            own = answers.get(self._view.me.name)
            kept = len(columns.unpack_u64(own.kept)) if isinstance(own, m.Collected) else 0
            page.count = len(ids.split(page.ids)) - kept
            self.pace.count += page.count
            self._deleted[partition] = self.deleted(partition) + page.count
            then(page.count)
            under_way.offers.pop(page.number, None)
            under_way.has_deleted = True
            self._go_on(at_ms, partition, under_way)
        page.is_going = True
        self._send(now_ms, partition, under_way, page, [*under_way.lives], on_deleted, is_trial=False)

    def _send(self, now_ms: int, partition: int, under_way: Slice, page: Page, names: Collection[str], then: Next,
              is_trial: bool = True) -> None:
        self._ask(now_ms, partition, under_way, names, lambda request, _: m.Collect(
            request, partition, under_way.epoch, under_way.upto_ms, is_trial, self._view.retention.archives,
            page.ids, page.digests), then)

    # -- archiving -----------------------------------------------------------------------------

    def offer(self, partition: int, after: int = 0) -> Page | None:
        """What of a partition waits to be archived: the first page of a number above this one."""
        under_way = self._slices.get(partition)
        pages = () if under_way is None else under_way.offers.values()
        return next((page for page in pages if not page.is_going and page.number > after), None)

    def discard(self, now_ms: int, partition: int, epoch: int, task_ids: bytes, digests: bytes,
                then: Callable[[int | None], None]) -> None:
        """A page is archived. ``then`` gets how many tasks were deleted, None when it is not on offer (any more);
        it is not called while that is being found out, or when it cannot be."""
        under_way = self._slices.get(partition)
        offers = () if under_way is None or under_way.epoch != epoch else under_way.offers.values()
        page = next((page for page in offers if page.is_(task_ids, digests)), None)
        if under_way is not None and page is not None:
            if not page.is_going:
                def on_gone(deleted: int) -> None:
                    gone = self._gone.setdefault(partition, [])
                    gone.append(page)
                    del gone[: -2 * self._view.retention.pages_ahead]
                    then(deleted)
                self._delete(now_ms, partition, under_way, page, on_gone)
        else:
            then(next((gone.count for gone in self._gone.get(partition, ()) if gone.is_(task_ids, digests)), None))


def _page(found: Remains, upto: bytes, upto_ms: int) -> Page:
    return Page(b"".join(found.ids), found.digests, upto, b"".join(found.with_long_logs()),
                min(upto_ms, found.first_end_ms() or upto_ms))


def _is_any_below(vnode: Vnode, upto_ms: int) -> bool:
    prefix = vnode.replica.prefix
    return any(vnode.store.is_any_between(table, prefix, prefix + (upto_ms + 1).to_bytes(8, "big"))
               for table in TABLES)
