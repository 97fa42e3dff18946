"""A workflow as one value: what ``reading`` has found to be whole.

    definition.order                 # the steps, each behind those that it comes after
    definition.entries["words"]      # what a step is
    definition.children["words"]     # the steps that its edges lead to

Invariants, of a definition that was read: every step of an edge has an entry, no edge leads round in a circle,
each step is reached from an input, and inputs have no parents and outputs no children.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

import attrs

from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.names import ALL, queue_of
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.scheduling.demand import Demand, Spreading

T = TypeVar("T", bound=Hashable)
Edge = tuple[str, str]


@attrs.frozen
class Named:
    """A predicate by its name. ``keys``: which of the condition's parameters it is given; None for all of them."""

    name: str
    keys: tuple[str, ...] | None = None


class Operator(Enum):
    """How predicates are put together."""

    AND = "and"
    OR = "or"
    NOT = "not"


@attrs.frozen
class Combined:
    """Predicates put together; of ``not`` there is one."""

    operator: Operator
    parts: tuple[Predicate, ...]


Predicate = Named | Combined
ALWAYS = Named("skuld:always")


@attrs.frozen
class Condition:
    """Which values of a step go where. ``source``: the step they come from, or ``all``. ``to``: the steps they go
    to; ``is_all`` of them, or to none when it is empty. ``exception``: it is about what the step raised.
    ``transform``: the name of a function that makes of it what is sent. ``retry``: the segment is tried again."""

    source: str
    to: tuple[str, ...] = ()
    is_all: bool = False
    when: Predicate = ALWAYS
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    short_circuit: bool = False
    exclude: tuple[str, ...] = ()
    exception: bool = False
    transform: str = ""
    retry: bool = False


class Moment(Enum):
    """When a worker calls a lifecycle's functions, in this order."""

    BEFORE_START = "before_start"
    """It has a seat in the step: may it start? ``False`` is not yet."""
    AFTER_START = "after_start"
    BEFORE_BATCH = "before_batch"
    BEFORE_TASK = "before_task"
    AFTER_TASK = "after_task"
    AFTER_BATCH = "after_batch"
    AFTER_STOP = "after_stop"
    """It has no seat in the step any more."""


class Policy(Enum):
    """What becomes of a segment whose function raised something that no condition took."""

    RESTART = "restart"
    """It is tried again; this attempt does not count."""
    KILL = "kill"
    """Its workflow is killed."""
    DEFER = "defer"
    """The next lifecycle says; the last one leaves it to the step's attempts, and then to ``kill``."""


@attrs.frozen
class Lifecycle:
    """Functions by name that are called around a step's work. ``step``: whose, or ``all``. ``on_exception``: a
    policy, or the name of a function that gives one."""

    step: str = ALL
    calls: Mapping[Moment, str] = attrs.field(factory=dict)
    on_exception: Policy | str = Policy.DEFER
    parameters: Mapping[str, Any] = attrs.field(factory=dict)

    def is_of(self, step: str) -> bool:
        """Whether it is about this step."""
        return self.step in (ALL, step)


@attrs.frozen(slots=False)
class Definition:
    """A workflow. ``edges`` are sorted, so are the ``entries`` by name; the order of conditions and of lifecycles
    is a part of what they say. ``metadata`` is the users'."""

    id: str
    edges: tuple[Edge, ...]
    entries: Mapping[str, Entry]
    conditions: tuple[Condition, ...] = ()
    lifecycles: tuple[Lifecycle, ...] = ()
    spreading: Spreading = Spreading.BALANCED
    percentage: int = 0
    metadata: Mapping[str, Any] = attrs.field(factory=dict)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All steps, each behind its parents; by name, where that leaves a choice."""
        return tuple(ordered(self.entries, self.edges))

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Of each step those that its edges lead to, by name."""
        return neighbours(self.entries, self.edges)

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """Of each step those whose edges lead to it, by name."""
        return neighbours(self.entries, ((to, source) for source, to in self.edges))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Steps that make roots, in order."""
        return tuple(step for step in self.order if self.entries[step].kind is Kind.INPUT)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The strands of all inputs: each has a feeder."""
        return tuple(source for step in self.inputs for source in self.entries[step].sources)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Leaf steps, those without children, in order: each is sealed once."""
        return tuple(step for step in self.order if not self.children[step])

    @cached_property
    def own_draws(self) -> tuple[Edge, ...]:
        """Steps that an input of this workflow draws from, and that input."""
        return own_draws(self.entries)

    def inputs_above(self, step: str) -> tuple[str, ...]:
        """The inputs whose roots' segments come to a step, itself if it is one; once these are exhausted, the step
        is finished."""
        found, left = set[str](), [step]
        while left:
            at = left.pop()
            if at not in found:
                found.add(at)
                left += self.parents[at]
        return tuple(each for each in self.inputs if each in found)

    @cached_property
    def demand(self) -> Demand:
        """As slots are shared out to it, all of its steps."""
        return Demand(self.id, tuple(self.entries[step].step for step in self.order), self.spreading,
                      self.percentage)

    def queue(self, step: str) -> str:
        """Where the segments of a step wait."""
        return queue_of(self.id, step)


def own_draws(entries: Mapping[str, Entry | None]) -> tuple[Edge, ...]:
    """Steps that an input of the same workflow draws from, and that input."""
    sources = {step: entry.source for step, entry in entries.items() if entry is not None}
    return tuple((source.step, step) for step, source in sources.items()
                 if isinstance(source, Outputs) and not source.workflow and source.step)


def ordered(steps: Collection[str], edges: Sequence[Edge]) -> list[str]:
    """The steps, each behind its parents; those of a circle, and behind it, are left out."""
    ahead, children = dict.fromkeys(steps, 0), neighbours(steps, edges)
    for _, to in edges:
        ahead[to] += 1
    ready = [step for step, count in ahead.items() if not count]
    heapify(ready)
    found = []
    while ready:
        step = heappop(ready)
        found.append(step)
        for to in children[step]:
            ahead[to] -= 1
            if not ahead[to]:
                heappush(ready, to)
    return found


def neighbours(steps: Iterable[T], edges: Iterable[tuple[T, T]]) -> dict[T, tuple[T, ...]]:
    """Of each step the other ends of its edges, in their order."""
    found: dict[T, list[T]] = {step: [] for step in steps}
    for step, other in edges:
        found[step].append(other)
    return {step: tuple(others) for step, others in found.items()}
