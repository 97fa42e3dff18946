"""A replica whose parts have versions of their own: cheap entries apply while an expensive decision is pending.

The replica's fields fall into groups (``commands.footprints``). A *derived* group is one that a decision makes of
others, such as the placement of the placed nodes. While the decision is being made, that group lags, and so does
what waits for it; all else goes on.

The log is a list of *steps*: an entry is one, and behind it, for each derived group that it may concern, a step
that asks for the decision. A step may be taken once no step before it that still waits writes what it reads. Those
that wait keep what they read as it stood when their turn was, since later steps may write it meanwhile: values are
immutable, so a view of the past costs nothing. So every step reads what it would read if all were played in order,
and what it writes is what it would write; and as what is written is read, too, no group is ever written out of
order. **At each moment each group is exactly what playing the log in order up to that group's version makes of
it.**

A decision that is overtaken by a newer one of its group before any step reads it is dropped: its group goes from
the version before it to the one after. Decisions that come in another order than they were asked in wait for each
other.

Two things are not the commands' own. That an entry is its writer's newest is noted when its turn comes, before its
command is looked at, so that entries of others need not wait for it. And the list of failures is put together by
position, up to where no entry waits.

Bounds: ``WAITING_MAX`` steps wait, and none is more than ``AHEAD_MAX`` positions behind; then the reader of the
log has to wait as well (``has_room``). With no derived group, or none that an entry reads, no entry ever waits.

Rejected: versions of single keys (the groups are what commands read whole); applying later entries provisionally
and again when the decision is there (what was told cannot be taken back). Source: "Multi-versioned Replica" of
Onyx's proposals for scale; Tomasulo, "An Efficient Algorithm for Exploiting Multiple Arithmetic Units", 1967, for
steps that wait for their inputs under names of their own.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from skuld_py.cluster.log.commands import COMMANDS, Command
from skuld_py.cluster.log.commands.footprints import ENVELOPE, FOOTPRINTS, GROUPS, Footprint, Groups
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import Outcome, Played, admit, failed, perform
from skuld_py.cluster.log.replica import FAILED_MAX, Failure, Replica
from skuld_py.cluster.placement import Placement
from skuld_py.cluster.scale.decisions import Question, Unwanted, Wanted, ask_placement, placement_of
from skuld_py.errors import Malformed

WAITING_MAX = 1_024
AHEAD_MAX = 16_384
NOTHING: Groups = frozenset()

VersionsEffect = Played | Wanted | Unwanted


@attrs.frozen
class PlacedReplica(Replica):
    """A replica with its placement, which is derived: no part of the canonical text."""

    placement: Placement = attrs.field(default=(), eq=False, repr=False)

    @classmethod
    def of(cls, replica: Replica) -> PlacedReplica:
        """The replica, not placed yet."""
        return cls(**_fields(replica))

    def without_placement(self) -> Replica:
        """What playing in order makes."""
        return Replica(**_fields(self))


def _fields(replica: Replica) -> dict[str, Any]:
    return {field.name: getattr(replica, field.name) for field in attrs.fields(Replica)}


@attrs.frozen
class Derived:
    """The group ``name``, a field of the replica, is what a decision makes of the groups that it ``reads``."""

    name: str
    reads: Groups
    ask: Callable[[Any], Question]
    """Of the replica, in which only what it reads need be right."""
    take: Callable[[Question, Any], Any]
    """The field's value, of question and result. A result of None means that the function fails."""


@attrs.frozen
class Scheme:
    """The groups of a replica, and what reads and writes them. A derived group may read those before it."""

    derived: tuple[Derived, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = GROUPS
    footprints: Mapping[str, Footprint] = FOOTPRINTS
    commands: Mapping[str, type[Command]] = COMMANDS
    fields: Mapping[str, tuple[str, ...]] = attrs.field(default=attrs.Factory(
        lambda self: {**self.groups, **{each.name: (each.name,) for each in self.derived}}, takes_self=True))

    def of(self, kind: str) -> Footprint:
        """The footprint of a command; everything for one that has none."""
        everything = frozenset(self.fields)
        return self.footprints.get(kind) or Footprint(everything, frozenset(self.groups))


def placing(partitions: int) -> Scheme:
    """The scheme of a ``PlacedReplica``."""
    return Scheme((Derived(
        "placement", frozenset({"nodes", "copies"}),
        lambda replica: ask_placement(placed(replica), partitions, replica.replicas),
        lambda question, result: () if result is None else placement_of(question, result)),))


@attrs.define(eq=False)
class _Step:
    """An entry, or a derived group. ``writes`` what it may still write; ``missing`` what it has yet to read;
    ``view`` the fields that it has read. ``since``: the first position whose value it holds back."""

    position: int
    since: int
    missing: Groups
    writes: Groups
    entry: Entry | None = None
    derived: Derived | None = None
    is_admitted: bool = False
    question: Question | None = None
    value: Any = None
    is_decided: bool = False
    view: dict[str, Any] = attrs.field(factory=dict)


class Versions:
    """A replica that is fed with the log. ``feed`` and ``decide`` give what was played (of which only what the
    command writes is up to date in ``Played.replica``), and which decisions are wanted, or not any more."""

    def __init__(self, replica: Replica, scheme: Scheme) -> None:
        self._replica = replica
        self._scheme = scheme
        self._last = replica.version
        self._waiting: list[_Step] = []
        self._failures: list[tuple[int, str]] = []
        """Failures of entries behind one that waits."""
        self._made: dict[str, tuple[Question, Any]] = {}
        """The question that each derived group answers now, and the answer."""
        self._effects: list[VersionsEffect] = []
        self.ahead = 0
        """Entries that were played while an earlier one, or a decision, was pending."""

    def begin(self) -> list[VersionsEffect]:
        """Ask for what is derived from the replica that it begins with."""
        for derived in self._scheme.derived:
            self._add(_Step(self._last, self._last, derived.reads, frozenset({derived.name}), derived=derived))
        return self._go_on()

    def feed(self, position: int, raw: bytes) -> list[VersionsEffect]:
        """The next entry of the log; there must be room. Raises ``UnknownRules`` as ``play`` does."""
        assert position > self._last and self.has_room
        self._last = position
        try:
            entry = decode(raw, self._scheme.commands)
        except Malformed as problem:
            self._fail(failed(self._replica, position, None, Outcome.FAILED, problem.message))
            return self._go_on()
        footprint = self._scheme.of(entry.command.kind)
        self._add(_Step(position, position, ENVELOPE | footprint.reads, footprint.writes | {"writers"}, entry))
        written = footprint.writes
        for derived in self._scheme.derived:
            if not written.isdisjoint(derived.reads):
                written |= {derived.name}
                self._add(_Step(position, position, derived.reads, frozenset({derived.name}), derived=derived))
        return self._go_on()

    def decide(self, question: bytes, result: Any) -> list[VersionsEffect]:
        """The result of a question, by its hash."""
        for step in self._waiting:
            if step.question is not None and step.question.hash == question and step.derived is not None:
                step.value, step.is_decided = step.derived.take(step.question, result), True
        return self._go_on()

    # -- what is known -------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether another entry can be taken."""
        behind = next((self._last - step.position for step in self._waiting if step.entry is not None), 0)
        return len(self._waiting) < WAITING_MAX and behind < AHEAD_MAX

    def version(self, group: str) -> int:
        """The position up to which a group is current. ``failed`` is a group, too."""
        if group == "failed":
            since = [step.since for step in self._waiting if step.entry is not None]
        else:
            since = [step.since for step in self._waiting if group in step.writes]
        return min(since) - 1 if since else self._last

    def observe(self, group: str) -> tuple[int, tuple[Any, ...]]:
        """A group's version, and its fields as of that."""
        fields = ("failed",) if group == "failed" else self._scheme.fields[group]
        return self.version(group), tuple(getattr(self._replica, field) for field in fields)

    @property
    def replica(self) -> Replica | None:
        """The whole as of the last entry; None while an entry waits. What is derived may lag."""
        if any(step.entry is not None for step in self._waiting):
            return None
        return attrs.evolve(self._replica, version=self._last)

    # -- steps ---------------------------------------------------------------------------------

    def _add(self, step: _Step) -> None:
        self._waiting.append(step)

    def _go_on(self) -> list[VersionsEffect]:
        """Take what steps can be taken, in order: what one sets free is free for those behind it."""
        lagging, before = NOTHING, list[_Step]()
        for step in list(self._waiting):
            fresh = step.missing - lagging
            if fresh:
                self._look(step, fresh)
            if step.entry is not None:
                self._play(step, step.entry)
            elif self._derive(step, before):
                before = [other for other in before if other in self._waiting]
                lagging = NOTHING.union(*(other.writes for other in before))
            if step in self._waiting:
                before.append(step)
                lagging |= step.writes
        self._settle_failures()
        effects, self._effects = self._effects, []
        return effects

    def _look(self, step: _Step, fresh: Groups) -> None:
        """Read these groups: nothing before the step will write them any more, nothing behind it has yet."""
        for group, fields in self._scheme.fields.items():
            if group in fresh:
                step.view.update((field, getattr(self._replica, field)) for field in fields)
        step.missing -= fresh

    def _past(self, step: _Step) -> Replica:
        return attrs.evolve(self._replica, version=step.position, **step.view)

    def _play(self, step: _Step, entry: Entry) -> None:
        if not step.is_admitted and step.missing.isdisjoint(ENVELOPE):
            admitted = admit(self._past(step), step.position, entry)
            if isinstance(admitted, Played):
                self._drop(step.position)
                self._tell(admitted)
                return
            step.is_admitted = True
            step.view["writers"] = admitted.writers
            step.writes = self._scheme.of(entry.command.kind).writes
            if "writers" not in step.writes:
                self._replica = attrs.evolve(self._replica, writers=admitted.writers)
        if step.missing:
            return
        played = perform(self._past(step), step.position, entry)
        self._write(step, played.replica)
        if played.outcome is Outcome.APPLIED:
            self._waiting.remove(step)
        else:
            self._drop(step.position)
        self.ahead += any(other.position < step.position for other in self._waiting)
        self._tell(played)

    def _tell(self, played: Played) -> None:
        if played.outcome in (Outcome.FAILED, Outcome.REFUSED):
            self._fail(played)
        else:
            self._effects.append(played)

    def _write(self, step: _Step, made: Replica) -> None:
        self._replica = attrs.evolve(self._replica, **{
            field: getattr(made, field) for group, fields in self._scheme.fields.items() if group in step.writes
            for field in fields})

    def _drop(self, position: int) -> None:
        """An entry that changes nothing asks for no decision, either."""
        self._waiting = [step for step in self._waiting if step.position != position]

    # -- what is derived -----------------------------------------------------------------------

    def _derive(self, step: _Step, before: list[_Step]) -> bool:
        """Ask for the decision, or take it if its turn has come. Whether that made earlier ones needless."""
        derived = step.derived
        assert derived is not None
        if step.missing or step not in self._waiting:
            return False
        overtaken = [] if step.question is not None else self._ask(step, derived, before)
        is_turn = not any(derived.name in other.writes for other in before if other not in overtaken)
        if step.is_decided and is_turn and step.question is not None:
            self._made[derived.name] = (step.question, step.value)
            self._replica = attrs.evolve(self._replica, **{derived.name: step.value})
            self._waiting.remove(step)
        return bool(overtaken)

    def _ask(self, step: _Step, derived: Derived, before: list[_Step]) -> list[_Step]:
        step.question = question = derived.ask(self._past(step))
        same = next((other for other in self._waiting if other is not step and other.question == question), None)
        made = self._made.get(derived.name)
        if same is not None:
            step.value, step.is_decided = same.value, same.is_decided
        elif made is not None and made[0] == question:
            step.value, step.is_decided = made[1], True
        overtaken = _overtaken(derived, before)
        step.since = min([step.since, *(other.since for other in overtaken)])
        self._waiting = [other for other in self._waiting if other not in overtaken]
        asked = [other.question for other in self._waiting]
        self._effects += [Unwanted(other.question.hash) for other in overtaken
                          if other.question is not None and other.question not in asked]
        if same is None and not step.is_decided:
            self._effects.append(Wanted(step.position, question))
        return overtaken

    # -- failures ------------------------------------------------------------------------------

    def _fail(self, played: Played) -> None:
        insort(self._failures, (played.position, played.reason))
        self._effects.append(played)

    def _settle_failures(self) -> None:
        version = self.version("failed")
        ready = [Failure(*each) for each in self._failures if each[0] <= version]
        if ready:
            self._failures = self._failures[len(ready):]
            self._replica = attrs.evolve(self._replica, failed=(*self._replica.failed, *ready)[-FAILED_MAX:])


def _overtaken(derived: Derived, before: list[_Step]) -> list[_Step]:
    """Earlier decisions of the same group that no step between has yet to read."""
    found: list[_Step] = []
    for other in reversed(before):
        if derived.name in other.missing:
            break
        if other.derived is derived:
            found.append(other)
    return found
