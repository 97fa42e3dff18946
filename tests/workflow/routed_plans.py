"""Workflows with conditions, drawn from a seed; their functions; and where values go, said once more and plainly.

``wanted`` is written from what the manual says of conditions, and shares nothing with ``workflow.routing``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from skuld_py.workflow.definition.definition import Combined, Condition, Definition, Named, Operator, Predicate
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.routing.passage import Outcome

Rows = list[tuple[str, Any]]
EDGES = (("clean", "join"), ("clean", "write"), ("clean", "rejects"), ("join", "write"), ("join", "rejects"))
LEAVES = ("write", "rejects")


class Raised(Exception):
    """A predicate or a transform raised something."""


def _breaks(value: Any, **_: Any) -> bool:
    if number(value) % 11 == 3:
        raise LookupError("no such word")
    return number(value) % 2 == 0


def number(value: Any) -> int:
    """What predicates look at: of a failure that was sent, the number of its segment."""
    return number(value["segment"]) if "segment" in value else int(value["n"])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "odd": lambda value, **_: number(value) % 2 == 1,
    "above": lambda value, least: number(value) % 100 > least,
    "like_given": lambda value, given: number(value) % 3 == number(given) % 3,
    "largest": lambda value, values: not values or number(value) == max(map(number, values)),
    "later": lambda value, attempt: attempt > 1,
    "breaks": _breaks,
    "is_value_error": lambda error: error.get("error") == "ValueError",
    "marked": lambda value, **_: {**value, "mark": "m"},
}


def draw_definition(chance: random.Random, workflow: str, strands: Sequence[int], policy: str) -> Definition:
    """With inputs of so many strands, conditions about each step, and two outputs."""
    names = [f"in{index}" for index in range(len(strands))]
    edges = [*((name, "clean") for name in names), ("in0", "rejects"), *EDGES]
    catalog: dict[str, Any] = {name: {"kind": "input", "offsets": "source", "most": most}
                               for name, most in zip(names, strands, strict=True)}
    catalog |= {step: {"kind": "function", "function": step} for step in ("clean", "join")}
    catalog |= {step: {"kind": "output", "path": f"/out/{step}", "function": step} for step in LEAVES}
    children = {step: [to for source, to in edges if source == step] for step in catalog}
    conditions = [row for step in catalog for row in _conditions(chance, step, children[step], step in names)]
    return read({"id": workflow, "edges": edges, "catalog": catalog, "conditions": conditions,
                 "lifecycles": [{"step": "all", "on_exception": policy}]})


def _conditions(chance: random.Random, step: str, children: list[str], is_input: bool) -> list[dict[str, Any]]:
    rows = []
    if not is_input and chance.random() < 0.8:
        to = chance.choice([["rejects"], ["none"], children]) if "rejects" in children else ["none"]
        when = chance.choice(["is_value_error", "skuld:always", ["not", "is_value_error"], "skuld:last_attempt"])
        rows.append({"from": step, "to": to, "exception": True, "when": when})
    if not is_input and chance.random() < 0.2:
        rows.append({"from": step, "action": "retry", "when": ["and", "odd", ["not", ["later", "attempt"]]]})
    if not children:
        return rows
    for _ in range(chance.choice([0, 1, 2])):
        row = {"from": step, "to": chance.choice([["all"], ["none"], children[:1], children[-1:]]),
               "when": _predicate(chance, is_input), "parameters": {"least": chance.randrange(100)},
               "short_circuit": True}
        if row["to"] != ["none"] and chance.random() < 0.4:
            row |= chance.choice([{"transform": "marked"}, {"exclude": ["r"]}])
        rows.append(row)
    for _ in range(chance.choice([0, 0, 1, 3])):
        rows.append({"from": step, "to": chance.sample(children, chance.randint(1, len(children))),
                     "when": _predicate(chance, is_input), "parameters": {"least": chance.randrange(100)},
                     **({"exclude": ["r"]} if chance.random() < 0.2 else {})})
    return rows


def _predicate(chance: random.Random, is_input: bool, depth: int = 0) -> Any:
    """None about an input breaks: the same value would break it for ever."""
    if depth < 2 and chance.random() < 0.4:
        word = chance.choice(["and", "or", "not"])
        return [word, *(_predicate(chance, is_input, depth + 1) for _ in range(1 if word == "not" else 2))]
    return chance.choice(["odd", ["above", "least"], ["like_given", "given"], ["largest", "values"],
                          "skuld:always", "odd" if is_input or chance.random() < 0.7 else ["breaks", "least"]])


# -- where values go -------------------------------------------------------------------------------


def wanted(definition: Definition, step: str, outcome: Outcome) -> tuple[str, Rows]:
    """``emit`` and what goes where, ``retry``, or ``failed``."""
    about = [each for each in definition.conditions if each.source == step]
    children = sorted(to for source, to in definition.edges if source == step)
    if outcome.failure is not None:
        values = [{"error": outcome.failure.type, "message": outcome.failure.message, "segment": outcome.given}]
        about = [each for each in about if each.exception]
    else:
        values = [*outcome.values]
        about = [each for each in about if not each.exception]
    rows: Rows = []
    try:
        for value in values:
            said = _said(about, outcome, value)
            if any(each.retry for each in said):
                return "retry", []
            if outcome.failure is not None and not said:
                return "failed", []
            rows += _sent(said, children, outcome, value, any(each.to or each.is_all for each in about))
    except Raised:
        return "failed", []
    return "emit", rows


def _said(about: list[Condition], outcome: Outcome, value: Any) -> list[Condition]:
    said = []
    for each in about:
        if _true(each.when, each, outcome, value):
            said.append(each)
            if each.short_circuit:
                return said
    return said


def _sent(said: list[Condition], children: list[str], outcome: Outcome, value: Any, is_sorted: bool) -> Rows:
    if not said:
        return [] if is_sorted else [(to, value) for to in children]
    targets = {*children} if any(each.is_all for each in said) else {to for each in said for to in each.to}
    for each in said:
        if each.transform and targets:
            value = FUNCTIONS[each.transform](value)
    without = {key for each in said for key in each.exclude}
    value = {key: part for key, part in value.items() if key not in without}
    return [(to, value) for to in children if to in targets]


def _true(tree: Predicate, condition: Condition, outcome: Outcome, value: Any) -> bool:
    if isinstance(tree, Combined):
        if tree.operator is Operator.NOT:
            return not _true(tree.parts[0], condition, outcome, value)
        for part in tree.parts:
            if _true(part, condition, outcome, value) is (tree.operator is Operator.OR):
                return tree.operator is Operator.OR
        return tree.operator is Operator.AND
    return _named(tree, condition, outcome, value)


def _named(named: Named, condition: Condition, outcome: Outcome, value: Any) -> bool:
    if named.name == "skuld:always":
        return True
    if named.name == "skuld:last_attempt":
        return outcome.is_last
    passage = {"given": outcome.given, "values": [*outcome.values], "attempt": outcome.attempt}
    about = {**condition.parameters, **passage}
    keys = named.keys if named.keys is not None else tuple(condition.parameters)
    try:
        return bool(FUNCTIONS[named.name](value, **{key: about[key] for key in keys}))
    except Exception as error:
        raise Raised from error
