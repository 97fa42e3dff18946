"""The machine that feeds a workflow from one input, and follows its roots until their trees are done.

    effects = feeder.step(now_ms, event)      # see ``events``

It draws values while fewer than ``max_pending`` roots are under way, and has their batch written into its task's
checkpoint before it enqueues them. It hears acks (``register``), looks after roots that are not heard of
(``ring``, ``walk``), and has emitted again what a dead holder left out. When the source has no more and all roots
are done, it says so in the checkpoint, then in the coordination log, then completes its task.

Invariants:

* A root is done when every segment of its tree is: completed by a claim whose children are the segment's. That is
  in the checkpoint before the input is called exhausted.
* A segment that several claims could have completed gets the children of one of them: who decides is the feeder
  alone, and a decision is in the checkpoint before any child is enqueued. Checkpoints are fenced, so a former
  life's decision is either known to the next, or never acted upon.
* An ack costs a look into a set. What did not change is not looked at: see ``ring``.
* Memory is bounded: ``max_pending`` roots, and ``segments_max`` registers. Beyond, a root's registers are
  forgotten until it is looked after, except the oldest root's, so there is always one that comes to its end. A
  tree has at most ``segments_of_root``; what is larger ends the workflow, with this limit's name.

Onyx's meaning is kept: acking at the source, a timeout pool of turning buckets, an input that ends when all its
segments are acked. Its retry of whole roots is not: here a segment's task is durable, so only what was left out is
done again. Rejected: acks that must arrive (a queue of them would have to be as reliable as the tasks).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.checkpoint import BATCH_MAX, DECISIONS_MAX, DECISIONS_SPARE, Batch, Book
from skuld_py.workflow.acking.register import Root
from skuld_py.workflow.acking.ring import Ring
from skuld_py.workflow.acking.walk import Walk
from skuld_py.workflow.segments import root_ids

IN_HAND_MAX = 2
"""Batches that are drawn and not stored yet; the shell holds their values."""
PATIENCE_MAX = 4
"""A root is looked after less and less often while nothing new is heard of it: at last every 2^4 timeouts."""


@attrs.frozen
class Options:
    """How an input is fed. ``max_pending``: roots under way at most. ``timeout_ms``: a root that is not heard of
    for as long is looked after. ``keep_ms``: how often done roots are written down. ``dry_ms``: when to draw again
    from a source that has nothing now. ``segments_of_root``: what a tree may have; ``segments_max``: what is
    remembered of all; ``decisions_max``: how many segments are decided on at a time. ``policies``: by step, what
    follows when a segment is dead."""

    max_pending: int = 10_000
    timeout_ms: int = 60_000
    keep_ms: int = 1_000
    dry_ms: int = 1_000
    segments_of_root: int = 10_000
    segments_max: int = 250_000
    decisions_max: int = DECISIONS_MAX
    policies: Mapping[str, e.Policy] = attrs.field(factory=dict)


class Feeder:
    """One life of the feeder of one input of a workflow."""

    def __init__(self, workflow: str, step: str, options: Options) -> None:
        self._workflow, self._step, self._options = workflow, step, options
        self.book = Book()
        self.roots: dict[bytes, Root] = {}
        self.pending = self.registers = 0
        self.is_over = False
        self.walk = Walk(self)
        self._ring: Ring[Root] = Ring(0, options.timeout_ms)
        self._again: deque[Batch] = deque()
        self._resumed: dict[int, None] = {}
        self._in_hand: dict[int, None] = {}
        self._is_drawing = self._is_auditing = self._is_keeping = self._is_dirty = self._is_exhausting = False
        self._dry_until_ms = self._kept_ms = 0
        self._once_kept: list[e.Effect] = []
        self._now_kept: list[e.Effect] = []
        self._repairing: dict[bytes, Root] = {}
        self._now_ms = 0
        self._effects: list[e.Effect] = []
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            e.Resumed: self._on_resumed, e.Drawn: self._on_drawn, e.Kept: self._on_kept, e.Stored: self._on_stored,
            e.Acked: self._on_acked, e.Audited: self._on_audited, e.Repaired: self._on_repaired,
            e.Unrevived: self._on_unrevived, e.Exhausted: self._on_exhausted, e.Ticked: self._on_ticked,
        }

    def step(self, now_ms: int, event: e.Event) -> list[e.Effect]:
        """What to do, now that this has happened."""
        self._now_ms, self._effects = now_ms, []
        if not self.is_over:
            self._handlers[type(event)](event)
        if not self.is_over:
            self._look_after()
            self._draw()
            self._audit()
            self._finish()
            self._keep()
        return self._effects

    def deadline_ms(self) -> int:
        """When it wants to hear of the time."""
        times = [self._ring.next_ms]
        if self._is_dirty:
            times.append(self._kept_ms + self._options.keep_ms)
        if self._dry_until_ms > self._now_ms:
            times.append(self._dry_until_ms)
        return min(times)

    # -- what it hears ---------------------------------------------------------------------------------

    def _on_resumed(self, event: e.Resumed) -> None:
        self.book = Book.decode(event.checkpoint)
        self._ring = Ring(self._now_ms, self._options.timeout_ms)
        self._again.extend(self.book.batches.values())
        self._resumed = dict.fromkeys(self.book.batches)
        self.pending = sum(batch.left for batch in self.book.batches.values())

    def _on_drawn(self, event: e.Drawn) -> None:
        self._is_drawing = False
        if self._again:
            batch = self._again.popleft()
            if event.count != batch.count:
                self._kill(e.Fail(b"", b"", self._step, "source"))
                return
            self._register(batch)
            self._effects.append(self._storing(batch))
            return
        self.book.cursor = event.cursor
        if event.is_last:
            self.book.is_drained = self._is_dirty = True
        if not event.count:
            self._dry_until_ms = self._now_ms + self._options.dry_ms
            return
        batch = self.book.add(event.count, self._now_ms, event.part, event.offset)
        self.pending += event.count
        self._register(batch)
        self._once_kept.append(self._storing(batch))

    def _on_kept(self, event: e.Kept) -> None:
        self._is_keeping = False
        self._effects += self._now_kept
        self._now_kept = []

    def _on_stored(self, event: e.Stored) -> None:
        self._in_hand.pop(event.first, None)
        batch = self.book.batches.get(event.first)
        if batch is None:
            return
        for root in [self.roots[each] for each in self._ids_of(batch) if each in self.roots]:
            if root.number in event.refused:
                self.gone(root)
                return
            self._ring.put(root, self._options.timeout_ms)
            root.heard_ms = self._now_ms
            if event.first in self._resumed:
                self.walk.begin(root)

    def _on_acked(self, event: e.Acked) -> None:
        roots = self.roots
        for root_id, segment, ack in event.acks.sure:
            root = roots.get(root_id)
            if root is not None:
                self.heard(root, segment, ack)
        for root_id, segment in event.acks.unsure:
            root = roots.get(root_id)
            if root is not None and not root.has_heard(segment):
                self.walk.hint(root, segment)

    def _on_audited(self, event: e.Audited) -> None:
        self._is_auditing = False
        self.walk.answer(event.sights)

    def _on_repaired(self, event: e.Repaired) -> None:
        root = self._repairing.pop(event.parent, None)
        if event.is_late:
            self._kill(e.Fail(event.root, event.parent, "", "too_old"))
        elif event.is_done and self.book.decisions.get(event.parent) == event.token:
            del self.book.decisions[event.parent]
            self._is_dirty = True
            if root is not None and not root.is_over:
                self.walk.hint(root, event.parent)

    def _on_unrevived(self, event: e.Unrevived) -> None:
        self._kill(e.Fail(event.root, event.segment, event.step))

    def _on_exhausted(self, event: e.Exhausted) -> None:
        self.is_over = True
        self._effects.append(e.Done(self.book.completed))

    def _on_ticked(self, event: e.Ticked) -> None:
        """What time asks for is seen after each event."""

    # -- what a walk finds -----------------------------------------------------------------------------

    def heard(self, root: Root, segment: bytes, ack: int) -> None:
        """Count a segment's ack, once."""
        if root.is_forgotten or not root.hear(segment, ack):
            return
        self.registers += 1
        root.heard_ms, root.audits = self._now_ms, 0
        if root.is_complete:
            self._complete(root)
        elif len(root.heard) > self._options.segments_of_root:
            self._kill(e.Fail(root.id, segment, "", "too_large"))
        elif self.registers > self._options.segments_max and not self._is_oldest(root):
            self.registers -= root.forget()

    def missing(self, root: Root, parent: e.Sight, token: int, numbers: tuple[int, ...]) -> None:
        """No other claim's children can be the parent's, so these may be enqueued at once."""
        self._effects.append(e.Repair(root.id, parent.segment, token, numbers))

    def decided(self, segment: bytes) -> int | None:
        """The token that was decided on, and whose children are not known to be stored."""
        return self.book.decisions.get(segment)

    def undecided(self, root: Root, segment: bytes, token: int) -> None:
        """Decide on the token, unless another was decided on before. Where there are too many decisions it is left
        to the next look."""
        if segment in self._repairing:
            return
        known = self.book.decisions.get(segment)
        if known is not None:
            self._repairing[segment] = root
            self._effects.append(e.Repair(root.id, segment, known))
        elif len(self.book.decisions) < self._options.decisions_max + self._is_oldest(root) * DECISIONS_SPARE:
            self._repairing[segment] = root
            self.book.decisions[segment] = token
            self._once_kept.append(e.Repair(root.id, segment, token))

    def gone(self, root: Root) -> None:
        """A root that was stored ended so long ago that it was collected, or is too old to be stored."""
        self._kill(e.Fail(root.id, root.id, "", "too_old"))

    def dead(self, root: Root, sight: e.Sight) -> None:
        """As the step's policy says. What is tried again may soon be dead again, and a worker's word of it may be
        lost: so its root is looked after as often as one of which something was heard."""
        if self._options.policies.get(sight.step) is e.Policy.RESTART:
            root.audits = 0
            self._effects.append(e.Revive(root.id, sight.segment, sight.step))
        else:
            self._kill(e.Fail(root.id, sight.segment, sight.step))

    def spoilt(self, root: Root, sight: e.Sight) -> None:
        """It cannot be tried again, for it is done."""
        self._kill(e.Fail(root.id, sight.segment, sight.step, "result"))

    def _kill(self, failure: e.Fail) -> None:
        if not self.is_over:
            self.is_over = True
            self._effects.append(failure)

    # -- what it does by itself ------------------------------------------------------------------------

    def _is_oldest(self, root: Root) -> bool:
        return root is next(iter(self.roots.values()), None)

    def _ids_of(self, batch: Batch) -> list[bytes]:
        return root_ids(self._workflow, self._step, batch.first, batch.count, batch.time_ms)

    def _register(self, batch: Batch) -> None:
        made = self._ids_of(batch)
        for number in batch.undone():
            root = Root(made[number - batch.first], number, batch, self._now_ms)
            self.roots[root.id] = root

    def _storing(self, batch: Batch) -> e.Store:
        self._in_hand[batch.first] = None
        return e.Store(batch.first, batch.time_ms, tuple(batch.undone()))

    def _complete(self, root: Root) -> None:
        del self.roots[root.id]
        self.registers -= len(root.heard)
        self.pending -= 1
        root.is_over = self._is_dirty = True
        self.book.finish(root.batch, root.number)

    def _look_after(self) -> None:
        """Begin to look after roots that were not heard of for long."""
        timeout_ms = self._options.timeout_ms
        for root in self._ring.turn(self._now_ms):
            if root.is_over:
                continue
            patience_ms, quiet_ms = timeout_ms << min(root.audits, PATIENCE_MAX), self._now_ms - root.heard_ms
            if root.looks:
                self._ring.put(root, timeout_ms)
            elif quiet_ms >= patience_ms:
                root.audits += 1
                root.heard_ms = self._now_ms
                self.walk.begin(root)
                self._ring.put(root, timeout_ms)
            else:
                self._ring.put(root, patience_ms - quiet_ms)

    def _draw(self) -> None:
        """Draw, if there is room for a good part of what may be under way: each batch costs a checkpoint."""
        if self._is_drawing or len(self._in_hand) >= IN_HAND_MAX:
            return
        if self._again:
            self._is_drawing = True
            batch = self._again[0]
            self._effects.append(e.Draw(batch.first, batch.count, b"", True, batch.part, batch.offset))
            return
        most = self._options.max_pending
        room = min(self.book.room, most - self.pending)
        if (self.book.is_drained or self._now_ms < self._dry_until_ms or room < min(BATCH_MAX, max(1, most // 4))
                or self.registers >= self._options.segments_max):
            return
        self._is_drawing = True
        self._effects.append(e.Draw(self.book.next, room, self.book.cursor))

    def _audit(self) -> None:
        if not self._is_auditing:
            wanted = self.walk.ask()
            if wanted:
                self._is_auditing = True
                self._effects.append(e.Audit(wanted))

    def _finish(self) -> None:
        if self.book.is_finished and not self._is_exhausting:
            self._is_exhausting = True
            self._once_kept.append(e.Exhaust())

    def _keep(self) -> None:
        """Write down what must be known before something is done; and now and then what is done."""
        is_due = self._is_dirty and self._now_ms - self._kept_ms >= self._options.keep_ms
        if self._is_keeping or not (self._once_kept or is_due):
            return
        self._is_keeping, self._is_dirty, self._kept_ms = True, False, self._now_ms
        self._now_kept, self._once_kept = self._once_kept, []
        self._effects.append(e.Keep(self.book.encode()))
