"""Conditions and lifecycles out of plain data, and whether they fit the steps that they are about.

    [[conditions]]
    from = "words"
    to = ["long"]
    when = ["and", "acme.jobs:is_word", ["acme.jobs:is_longer", "than"]]
    parameters = {than = 10}

Conditions of a step are looked at in their order. One that short-circuits is the last one looked at, so those
stand before the others. What sends to all or to none, what is about an exception, transforms, or tries again
decides alone: it short-circuits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import (
    ALWAYS,
    Combined,
    Condition,
    Lifecycle,
    Moment,
    Named,
    Operator,
    Policy,
    Predicate,
)
from skuld_py.workflow.definition.faults import Faults, Wrong, listed, meant, quoted
from skuld_py.workflow.definition.fields import Table, flag, function, one_or_several, plain, several, text
from skuld_py.workflow.definition.names import ALL, DEPTH_MAX, NONE, OWN, STEPS_MAX

GIVEN, VALUES, ATTEMPT, IS_LAST = "given", "values", "attempt", "is_last"
OF_PASSAGE = (GIVEN, VALUES, ATTEMPT, IS_LAST)
"""What a predicate may be given besides parameters: the segment, all that the step returned of it, which attempt
it is, and whether it is the last one."""
OWN_PREDICATES = ("skuld:always", "skuld:last_attempt")
RETRY = "retry"
KEYS_MAX = 100
_WORDS = tuple(operator.value for operator in Operator)


def condition_of(table: Table, steps: Collection[str]) -> Condition:
    """A condition, by itself."""
    source = table.need("from", _one_of(steps, ALL), "", "name the step whose values it is about, or all")
    parameters = table.take("parameters", _parameters, {})
    retry = table.take("action", _action, False)
    to = (table.take("to", _targets(steps), ()) if retry
          else table.need("to", _targets(steps), (), "name the steps it sends to, or all, or none"))
    is_all = ALL in to
    made = Condition(
        source, () if is_all else to, is_all, table.take("when", predicate, ALWAYS), parameters,
        exclude=table.take("exclude", one_or_several(text, KEYS_MAX), ()),
        exception=table.take("exception", flag, False), transform=table.take("transform", function, ""),
        retry=retry)
    sends = bool(made.to or made.is_all) or "to" not in table
    if retry and to:
        table.fault("to", "goes with no retry", "leave it out: the segment is tried again, and nothing is sent")
    for key, value in (("transform", made.transform), ("exclude", made.exclude)):
        if value and not retry and not sends:
            table.fault(key, "is of no use: nothing is sent", "leave it out, or name steps under to")
    for missing in sorted(_unknown(made.when, parameters)):
        table.fault("when", f"{quoted(missing)} is none of its parameters",
                    meant(missing, (*parameters, *OF_PASSAGE)))
    alone = decides_alone(made)
    short = table.take("short_circuit", flag, bool(alone))
    if alone and not short:
        table.fault("short_circuit", f"is false, and it {alone}", "leave it out: such a condition decides alone")
    table.end()
    return attrs.evolve(made, short_circuit=short)


def lifecycle_of(table: Table, steps: Collection[str]) -> Lifecycle:
    """A lifecycle, by itself."""
    step = table.take("step", _one_of(steps, ALL), ALL)
    calls = {moment: named for moment in Moment if (named := table.take(moment.value, function, ""))}
    made = Lifecycle(step, calls, table.take("on_exception", _policy, Policy.DEFER),
                     table.take("parameters", plain, {}))
    if not any(moment.value in table for moment in Moment) and "on_exception" not in table:
        table.fault("", "does nothing", f"name a function under {listed(moment.value for moment in Moment)}, or"
                    " on_exception")
    table.end()
    return made


def predicate(value: Any, depth: int = 0) -> Predicate:
    """A predicate: ``name``, ``[name, key, ...]``, or ``["and", ...]``, ``["or", ...]``, ``["not", one]``."""
    if isinstance(value, str):
        return Named(_predicate_name(value))
    if not isinstance(value, list | tuple) or not value:
        raise Wrong(f"{quoted(value)} is no predicate", 'write a name, [name, key], or ["and", one, another]')
    if depth > DEPTH_MAX:
        raise Wrong(f"is nested deeper than {DEPTH_MAX}", "name a function that says it")
    first, *rest = value
    if first not in _WORDS:
        return Named(_predicate_name(first), several(text, KEYS_MAX)(rest) if rest else ())
    operator = Operator(first)
    if not rest or (operator is Operator.NOT and len(rest) > 1):
        wanted = "one predicate" if operator is Operator.NOT else "one or more"
        raise Wrong(f"{first} has {len(rest)} predicates", f"write {wanted} behind it")
    return Combined(operator, tuple(predicate(part, depth + 1) for part in rest))


def names_of(tree: Predicate) -> list[Named]:
    """The predicates of a tree, from left to right."""
    return [tree] if isinstance(tree, Named) else [each for part in tree.parts for each in names_of(part)]


def check_conditions(faults: Faults, conditions: Sequence[tuple[str, Condition]],
                     children: Mapping[str, Sequence[str]], inputs: Collection[str]) -> None:
    """Do they fit the edges, and stand in an order in which each of them counts? Each with its name in faults."""
    plain_before: set[tuple[str, bool]] = set()
    known = {step: frozenset(others) for step, others in children.items()}
    for entry, condition in conditions:
        for key, is_said in (("exception", condition.exception), ("action", condition.retry)):
            if is_said and condition.source in inputs:
                faults.add(entry, key, f"{condition.source} is an input, which has no attempts", "leave it out: an"
                           " input that fails goes on where it was")
        concerned = [step for step in children if is_about(condition, step, known[step])]
        if condition.source == ALL and not concerned and condition.to:
            faults.add(entry, "to", f"no step has edges to {listed(condition.to)}", "add these, or name others")
        for to in condition.to:
            if condition.source in known and to not in known[condition.source]:
                faults.add(entry, "to", f"no edge leads from {condition.source} to {to}",
                           f"add the edge {condition.source} >> {to}, or name another step")
        if condition.is_all and condition.source in children and not children[condition.source]:
            faults.add(entry, "to", f"no edge leads from {condition.source}", "write none")
        for step in concerned:
            if not condition.short_circuit:
                plain_before.add((step, condition.exception))
            elif (step, condition.exception) in plain_before:
                faults.add(entry, "short_circuit", f"it stands behind conditions of {step} that do not", "put it"
                           " before them")
                break


def is_about(condition: Condition, step: str, children: Collection[str]) -> bool:
    """Whether a condition is for a step: one of all steps is for those that have edges to all that it names."""
    return condition.source == step or (condition.source == ALL and all(to in children for to in condition.to))


def decides_alone(condition: Condition) -> str:
    """Why it does, in words; empty when it need not."""
    if condition.retry:
        return "tries again"
    if condition.exception:
        return "is about an exception"
    if condition.transform:
        return "transforms"
    if condition.is_all:
        return "sends to all"
    return "" if condition.to else "sends to none"


def _unknown(tree: Predicate, parameters: Mapping[str, Any]) -> set[str]:
    return {key for each in names_of(tree) for key in each.keys or ()} - {*parameters, *OF_PASSAGE}


def _one_of(steps: Collection[str], *words: str) -> Any:
    def read(value: Any) -> str:
        if not isinstance(value, str) or (value not in steps and value not in words):
            raise Wrong(f"{quoted(value)} is no step", meant(str(value), (*steps, *words)))
        return value
    return read


def _targets(steps: Collection[str]) -> Any:
    """Steps; ``(all,)`` for all of them, and none as no step."""
    many = one_or_several(_one_of(steps, ALL, NONE), STEPS_MAX)

    def read(value: Any) -> tuple[str, ...]:
        if value == []:
            raise Wrong("names no step", "write none if that is meant")
        to = many(value)
        if len(to) > 1 and not {ALL, NONE}.isdisjoint(to):
            raise Wrong("all and none go with no other step", "write only that, or only names of steps")
        return () if to == (NONE,) else to
    return read


def _parameters(value: Any) -> dict[str, Any]:
    parameters = plain(value)
    for key in OF_PASSAGE:
        if key in parameters:
            raise Wrong(f"{key} is what a predicate can ask for anyway", "call the parameter otherwise")
    return parameters


def _predicate_name(value: Any) -> str:
    if isinstance(value, str) and value in _WORDS:
        raise Wrong(f"{value} stands alone", f'write it first in a list: ["{value}", "acme.jobs:is_word"]')
    if isinstance(value, str) and value.startswith(OWN) and value not in OWN_PREDICATES:
        raise Wrong(f"{quoted(value)} is no predicate of Skuld's", f"there is {listed(OWN_PREDICATES)}")
    return value if value in OWN_PREDICATES else function(value)


def _action(value: Any) -> bool:
    if value != RETRY:
        raise Wrong(f"{quoted(value)} is no action", "write retry, or leave it out")
    return True


def _policy(value: Any) -> Policy | str:
    words = [policy.value for policy in Policy]
    if isinstance(value, str) and value in words:
        return Policy(value)
    if isinstance(value, str) and ":" not in value:
        raise Wrong(f"{quoted(value)} is no policy", f"write {listed(words)}, or the name of a function, as"
                    " acme.jobs:judge")
    return function(value)
