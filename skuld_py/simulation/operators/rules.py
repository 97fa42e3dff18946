"""P1 to P12: what documents may become under the hands of nodes and operators, revision by revision.

Every revision is compared with the one that it took the place of, so whatever was read and decided in between, a
write that is not bound to the revision it was made of shows. Whoever wrote it is told by its ``write_id``:
operators by nodes (``-op``) and by hand, all others are nodes that stand or lead. Between revisions stand cuts: a
document that was deleted and put back, and a cluster that was restored; nothing is compared over a restore, but
that epochs rise and barriers stay.

Source: Manatee's invariants I1 to I25 and those of partitions, C1 to C12, as far as documents show them. C1, C2,
C3, C4, C6 and C10 are the rules of usual runs (C5, C6, C3, C7, X2, V2 there); C5 is the guards'; C7 the monitor's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs

from skuld_py.model.document import LEAD, REAP, SOLO, Document
from skuld_py.model.history import epoch_of
from skuld_py.partition.candidacy import GIVEN_UP, PUT_BACK, SPENT
from skuld_py.simulation.checkers.claims import granted_renewals
from skuld_py.simulation.checkers.evidence import Evidence, Finding, Written, judge
from skuld_py.simulation.operators.hands import HAND

RESTORED = "restored"
MOVED = "the placement moved"
BY_OPERATORS = ("freeze", "promote", "mode", "force", "loss", "barred", "spent", "malformed", "unknown",
                "write_id", "cause")
"""What an operator's write may change; all else is its leader's."""
WRITES_MAX, WINDOW_MS = 60, 1_000
"""Of nodes, to one document; a node tries again after 60 ms at the least, and there are seven."""
NOISE_MS = 5
"""Claims are told in whole milliseconds."""


@attrs.frozen
class Step:
    """A revision, and the one before it."""

    old: Document
    new: Document
    time_ms: int
    partition: int = 0

    @property
    def is_operators(self) -> bool:
        """Whether an operator has written it."""
        return "-op" in self.new.write_id or self.new.write_id.startswith(HAND)

    @property
    def is_led_anew(self) -> bool:
        """Whether it begins a leadership."""
        return self.new.epoch > self.old.epoch

    def __str__(self) -> str:
        return f"at {self.time_ms} ms {self.old} became {self.new}"


def changes_in(writes: Sequence[Written]) -> list[Step]:
    """All changes of documents, but those over a restore."""
    by_partition: dict[int, list[Written]] = {}
    for write in writes:
        by_partition.setdefault(write.partition, []).append(write)
    return [Step(one.document, other.document, other.time_ms, other.partition) for rows in by_partition.values()
            for one, other in pairwise(rows) if other.document.cause.split(" ")[0] != RESTORED]


def check(evidence: Evidence) -> list[Finding]:
    """All verdicts."""
    steps = changes_in(evidence.writes)
    return [operators_keep_to_their_fields(steps), what_operators_hold_stays(steps),
            frozen_stays(steps, evidence), solo_stays(steps), wishes_are_obeyed_once(steps),
            wishes_end_with_the_epoch(steps), forced_as_was_said(steps, evidence), barriers_hold(evidence),
            horizons_outlast_restores(evidence), writes_are_few(evidence),
            epochs_outlast_restores(evidence.writes), barriers_outlast_restores(evidence)]


def operators_keep_to_their_fields(steps: Sequence[Step]) -> Finding:
    """[P1] An operator's write changes what is an operator's, and no leader, voter, epoch or horizon."""
    own = [step for step in steps if step.is_operators]

    def kept(document: Document) -> Document:
        return attrs.evolve(document, **{field: getattr(Document(), field) for field in BY_OPERATORS})
    return judge("P1 operators change what is theirs", len(own),
                 (str(step) for step in own if kept(step.old) != kept(step.new)))


def what_operators_hold_stays(steps: Sequence[Step]) -> Finding:
    """[P2] No write of a node loses what an operator had written before it: a freeze, solo, another tool's field;
    nor a wish or a force, but that its leader may take these out. Every write is so bound to the revision before
    it."""
    nodes = [step for step in steps if not step.is_operators and step.new.cause != PUT_BACK]

    def broken() -> Iterator[str]:
        for step in nodes:
            old, new = step.old, step.new
            if (old.freeze, old.mode, old.barred, old.unknown) != (new.freeze, new.mode, new.barred, new.unknown):
                yield f"a freeze, solo, a bar or an unknown field is lost: {step}"
            if new.promote not in (None, old.promote) or new.force not in (None, old.force):
                yield f"a wish comes from a node: {step}"
            if new.loss != old.loss and (new.loss is None or (old.loss is not None and not step.is_led_anew and (
                    new.loss.epoch, new.loss.lost, new.loss.until_ms) != (old.loss.epoch, old.loss.lost,
                                                                          old.loss.until_ms))):
                yield f"a loss is forgotten: {step}"
            if new.spent < old.spent or new.no_grant_before_ms < old.no_grant_before_ms:
                yield f"epochs or a barrier are forgotten: {step}"
    return judge("P2 what operators hold outlives every write of a node", len(nodes), broken())


def _is_frozen(document: Document, wall_ms: int, skew_ms: int) -> bool:
    freeze = document.freeze
    return freeze is not None and (not freeze.until_ms or wall_ms + skew_ms < freeze.until_ms)


def frozen_stays(steps: Sequence[Step], evidence: Evidence) -> Finding:
    """[P3] While frozen, leader and cohort stay: only the recorded leader begins an epoch, over the same voters;
    and learners, wishes and quarantine are left alone. (A write that begins an epoch was bound to the revision
    before it, but decided up to a candidacy earlier.)"""
    held = [step for step in steps if not step.is_operators and step.new.cause != PUT_BACK
            and _is_frozen(step.old, evidence.wall_start_ms + step.time_ms, evidence.skew_ms)]

    def broken() -> Iterator[str]:
        for step in held:
            old, new = step.old, step.new
            if step.is_led_anew and old.leader and (
                    new.leader != old.leader or {*new.cohort} != {*old.cohort}):
                yield f"leader or cohort changed: {step}"
            if not step.is_led_anew and (new.learners, new.quarantine, new.promote) != (
                    old.learners, old.quarantine, old.promote):
                yield f"learners, quarantine or a wish changed: {step}"
    return judge("P3 what is frozen stays", len(held), broken())


def solo_stays(steps: Sequence[Step]) -> Finding:
    """[P4] While solo, the voters stay, whoever leads; but for a force."""
    held = [step for step in steps if step.old.mode == SOLO and step.is_led_anew and step.new.cause != GIVEN_UP]
    return judge("P4 what is solo keeps its voters", len(held),
                 (str(step) for step in held if {*step.new.cohort} != {*step.old.cohort}))


def wishes_are_obeyed_once(steps: Sequence[Step]) -> Finding:
    """[P5] A leader alone begins an epoch by its own wish or an operator's, or yields; and each wish that names a
    node changes a leadership once, if it is of the epoch and its node is able: it is gone with the epoch."""
    moves = [step for step in steps if step.is_led_anew]
    obeyed: dict[tuple[int, str], Step] = {}

    def broken() -> Iterator[str]:
        for step in moves:
            old, new = step.old, step.new
            if new.cause in (MOVED, SPENT) and (new.leader, new.boot) != (old.leader, old.boot):
                yield f"a deposed leader begins an epoch: {step}"
            if new.cause.endswith(" yielded") and new.cause != f"{old.leader} yielded":
                yield f"who did not lead has yielded: {step}"
            wish = old.promote
            is_obeyed = wish is not None and wish.kind == LEAD and new.leader == wish.target != old.leader
            if wish is not None and is_obeyed:
                if (step.partition, wish.id) in obeyed:
                    yield f"wish {wish.id} was obeyed twice: {obeyed[step.partition, wish.id]}; {step}"
                obeyed[step.partition, wish.id] = step
    return judge("P5 a wish is obeyed by its leader, and once", len(moves), broken())


def wishes_end_with_the_epoch(steps: Sequence[Step]) -> Finding:
    """[P6] No epoch begins with a wish or a force in it; an epoch keeps its leader, its process and its voters,
    and is followed by higher ones only."""
    nodes = [step for step in steps if not step.is_operators]

    def broken() -> Iterator[str]:
        for step in nodes:
            old, new = step.old, step.new
            if step.is_led_anew and (new.promote is not None or new.force is not None):
                yield f"a wish outlives its epoch: {step}"
            if step.is_led_anew and old.leader and new.epoch <= old.spent and new.cause == GIVEN_UP:
                yield f"a forced epoch is one that may be promised: {step}"
    return judge("P6 wishes end with the epoch", len(nodes), broken())


def forced_as_was_said(steps: Sequence[Step], evidence: Evidence) -> Finding:
    """[P7] Voters are given up only by an operator's word of that epoch, for just those who remain; what is
    written says so, and names a barrier behind the horizon by the skew. Less than that gives up one voter at a
    time: one that is reaped by a wish of that epoch, or any where fewer copies were wanted."""
    forced = [step for step in steps if step.is_led_anew and (
        step.new.cause == GIVEN_UP or (len(step.new.cohort) < len(step.old.cohort)
                                       and not _is_one_less(step, may_be_any=bool(evidence.resized))))]

    def broken() -> Iterator[str]:
        for step in forced:
            force, loss = step.old.force, step.new.loss
            if force is None or force.epoch != step.old.epoch or {*force.remaining} != {*step.new.cohort}:
                yield f"nobody said so: {step}"
            elif loss is None or loss.epoch != step.new.epoch or {*loss.remaining} != {*step.new.cohort}:
                yield f"it does not say so: {step}"
            elif step.new.no_grant_before_ms < step.old.horizon_ms + evidence.skew_ms:
                yield f"the barrier is too near: {step}"
    return judge("P7 voters are given up as an operator said", len(forced), broken())


def _is_one_less(step: Step, *, may_be_any: bool) -> bool:
    gone, wish = [name for name in step.old.cohort if name not in step.new.cohort], step.old.promote
    is_reaped = wish is not None and wish.kind == REAP and gone == [wish.target]
    return len(gone) == 1 and {*step.new.cohort} < {*step.old.cohort} and (is_reaped or may_be_any)


def barriers_hold(evidence: Evidence) -> Finding:
    """[P8] No claim is told of before the barrier of its epoch's document."""
    barriers: dict[tuple[int, int], int] = {}
    for write in evidence.writes:
        place = write.partition, write.document.epoch
        barriers[place] = max(barriers.get(place, 0), write.document.no_grant_before_ms)
    told = [(each, barriers.get((evidence.partition(each.task), epoch_of(each.token)), 0))
            for each in evidence.told]
    behind = [(each, barrier_ms) for each, barrier_ms in told if barrier_ms]
    return judge("P8 nothing is granted before the barrier", len(behind), (
        f"the barrier is {barrier_ms - evidence.wall_start_ms} ms: {each.operation}" for each, barrier_ms in behind
        if each.operation.done_ms + evidence.wall_start_ms + evidence.skew_ms + NOISE_MS < barrier_ms))


def horizons_outlast_restores(evidence: Evidence) -> Finding:
    """[P11] Whatever becomes of a document, no claim that was told of, or that its leader renewed, ends after the
    horizon of a later one: who gives voters up then waits for it."""
    ends: list[tuple[int, int, int]] = [(told.operation.done_ms, evidence.partition(told.task), told.end_ms)
                                        for told in evidence.told]
    ends += [(operation.done_ms, evidence.partition(task_id), end_ms)
             for operation, task_id, _, end_ms in granted_renewals(evidence)]
    broken = (f"a claim told of at {done_ms} ms ends at {end_ms} ms: {write}"
              for done_ms, partition, end_ms in ends for write in evidence.writes
              if write.partition == partition and write.time_ms > done_ms
              and write.document.leader and write.document.horizon_ms < end_ms)
    return judge("P11 horizons outlast restores", len(ends), broken)


def writes_are_few(evidence: Evidence) -> Finding:
    """[P9] Nodes write a document so often only: what fails or is refused is not tried again at once."""
    times: dict[int, list[int]] = {}
    for write in evidence.writes:
        step = Step(Document(), write.document, write.time_ms)
        if not step.is_operators:
            times.setdefault(write.partition, []).append(write.time_ms)
    return judge("P9 documents come to rest", len(times), (
        f"partition {partition}: {WRITES_MAX} writes from {first} to {last} ms"
        for partition, found in times.items()
        for first, last in zip(found, found[WRITES_MAX:], strict=False) if last - first < WINDOW_MS))


def epochs_outlast_restores(writes: Sequence[Written]) -> Finding:
    """[P10] Epochs rise over a restore and a deletion: a token that was granted is never granted again."""
    highest: dict[int, Document] = {}
    broken, count = [], 0
    for write in writes:
        known = highest.get(write.partition)
        new = write.document
        if known is not None and new.cause.split(" ")[0] == RESTORED:
            count += 1
            if max(new.epoch, new.spent) < max(known.epoch, known.spent if known.leader else 0):
                broken.append(f"restored below {known}: {write}")
        elif known is not None and new.epoch < known.epoch:
            broken.append(f"an older epoch than {known}: {write}")
        highest[write.partition] = new if known is None or new.epoch >= known.epoch else known
    return judge("P10 epochs outlast restores", count or len(highest), broken)


def barriers_outlast_restores(evidence: Evidence) -> Finding:
    """[P12] Whatever becomes of a document, no later one lets claims be granted earlier: what those who were given
    up have granted goes on. Once a barrier is over by everybody's clock, nobody needs to know of it."""
    latest: dict[int, Document] = {}
    broken, count = [], 0
    for write in evidence.writes:
        known, new = latest.get(write.partition, write.document), write.document
        count += known.no_grant_before_ms > 0
        since_ms = evidence.wall_start_ms + write.time_ms - evidence.skew_ms
        if new.no_grant_before_ms < known.no_grant_before_ms and since_ms < known.no_grant_before_ms:
            broken.append(f"nothing before {known.no_grant_before_ms} said {known}, and then: {write}")
        else:
            latest[write.partition] = new
    return judge("P12 barriers outlast restores", count, broken)
