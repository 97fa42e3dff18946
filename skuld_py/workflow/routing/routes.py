"""Where the values of a step go: flow conditions, at the level of results.

    routed = route(definition, "words", Outcome(given, values), resolve)

The conditions that are about a step are looked at in their order, for each value by itself. One that applies adds
the steps that it names; one that short-circuits is the last one. What no condition sends is not sent. A step
without conditions that send anything sends all of its values to all of its children, but for what goes to none.
The keys that a condition excludes are taken from a value on all of its ways.

A failure is a value, too, for conditions about exceptions; what they do not take is ``FAILED``.

Invariants:

* A function of its arguments; predicates are called as often as they are reached, from left to right, and no more
  once ``and`` or ``or`` is decided.
* All of a step's values are emitted, or none: one that is to be tried again keeps the others back, since a
  completion is what it emits.

Source: Onyx's flow conditions. There a step whose only conditions send to none sends nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import Condition, Definition, Named, Operator, Predicate
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.rules import ATTEMPT, GIVEN, IS_LAST, OF_PASSAGE, VALUES, is_about
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.routing.passage import Failure, Outcome, Resolve, Routed, Verdict

_OWN: Mapping[str, Callable[[Outcome], bool]] = {
    "skuld:always": lambda outcome: True,
    "skuld:last_attempt": lambda outcome: outcome.is_last,
}


def route(definition: Definition, step: str, outcome: Outcome, resolve: Resolve) -> Routed:
    """What becomes of a step's outcome."""
    return Router(definition, step, resolve).route(outcome)


class Router:
    """The conditions of one step, for many outcomes."""

    def __init__(self, definition: Definition, step: str, resolve: Resolve) -> None:
        entry, self._children = definition.entries[step], definition.children[step]
        is_input = entry.kind is Kind.INPUT
        self._resolve = resolve
        self._conditions = tuple(
            each for each in definition.conditions if is_about(each, step, self._children)
            and not (is_input and (each.exception or each.retry)))
        self._is_routed = isinstance(entry.source, Outputs) and entry.source.routed

    def route(self, outcome: Outcome) -> Routed:
        """What becomes of an outcome."""
        if self._is_routed:
            return Routed(Verdict.EMIT, tuple((to, value) for to, value in outcome.values if to in self._children))
        try:
            return self._failed(outcome) if outcome.failure else self._returned(outcome)
        except _Raised as raised:
            return Routed(Verdict.FAILED, failure=raised.failure)

    @cached_property
    def _plain(self) -> tuple[Condition, ...]:
        return tuple(each for each in self._conditions if not each.exception)

    @cached_property
    def _otherwise(self) -> tuple[str, ...]:
        """Where values go of which no condition says anything."""
        sends = any(condition.to or condition.is_all for condition in self._plain)
        return () if sends else self._children

    def _returned(self, outcome: Outcome) -> Routed:
        emitted: list[tuple[str, Any]] = []
        for value in outcome.values:
            applied = self._applied(self._plain, outcome, value)
            if any(condition.retry for condition in applied):
                return Routed(Verdict.RETRY)
            to = self._targets(applied) if applied else self._otherwise
            if to:
                sent = self._sent(applied, outcome, value)
                emitted += [(step, sent) for step in to]
        return Routed(Verdict.EMIT, tuple(emitted))

    def _failed(self, outcome: Outcome) -> Routed:
        value = outcome.error_value
        taking = tuple(each for each in self._conditions if each.exception)
        applied = self._applied(taking, outcome, value)
        if not applied:
            return Routed(Verdict.FAILED, failure=outcome.failure)
        if applied[0].retry:
            return Routed(Verdict.RETRY)
        to = self._targets(applied)
        sent = self._sent(applied, outcome, value) if to else None
        return Routed(Verdict.EMIT, tuple((step, sent) for step in to))

    def _applied(self, conditions: tuple[Condition, ...], outcome: Outcome, value: Any) -> list[Condition]:
        found = []
        for condition in conditions:
            if self._holds(condition.when, condition, outcome, value):
                found.append(condition)
                if condition.short_circuit:
                    break
        return found

    def _targets(self, applied: list[Condition]) -> tuple[str, ...]:
        named = {to for condition in applied for to in (self._children if condition.is_all else condition.to)}
        return tuple(step for step in self._children if step in named)

    def _sent(self, applied: list[Condition], outcome: Outcome, value: Any) -> Any:
        for condition in applied:
            if condition.transform:
                value = self._called(Named(condition.transform), condition, outcome, value)
        excluded = {key for condition in applied for key in condition.exclude}
        if excluded and isinstance(value, Mapping):
            return {key: part for key, part in value.items() if key not in excluded}
        return value

    def _holds(self, tree: Predicate, condition: Condition, outcome: Outcome, value: Any) -> bool:
        if isinstance(tree, Named):
            return bool(self._called(tree, condition, outcome, value))
        parts = (self._holds(part, condition, outcome, value) for part in tree.parts)
        match tree.operator:
            case Operator.AND:
                return all(parts)
            case Operator.OR:
                return any(parts)
            case _:
                return not next(parts)

    def _called(self, named: Named, condition: Condition, outcome: Outcome, value: Any) -> Any:
        if named.name in _OWN:
            return _OWN[named.name](outcome)
        function = self._resolve(named.name)
        try:
            return function(value, **_arguments(named, condition, outcome))
        except Exception as error:
            raise _Raised(Failure.of(error, f"in {named.name}")) from error


@attrs.frozen
class _Raised(Exception):
    """A predicate or a transform raised something."""

    failure: Failure


def _arguments(named: Named, condition: Condition, outcome: Outcome) -> dict[str, Any]:
    if named.keys is None:
        return dict(condition.parameters)
    of_passage = {GIVEN: outcome.given, VALUES: list(outcome.values), ATTEMPT: outcome.attempt,
                  IS_LAST: outcome.is_last}
    return {key: of_passage[key] if key in OF_PASSAGE else condition.parameters[key] for key in named.keys}


