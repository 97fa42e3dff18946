"""The one text of a definition, by which it is stored and known again.

    text_of(definition)     # canonical JSON: keys sorted, defaults left out, no spaces
    digest_of(definition)   # of that text, 64 hex digits

Invariant: equal definitions have equal texts, and ``parse`` of the text gives the definition. A default that a
later release adds changes no digest, since what is as it was is not written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any

from skuld_py.workflow.definition.definition import (
    ALWAYS,
    Combined,
    Condition,
    Definition,
    Lifecycle,
    Policy,
    Predicate,
)
from skuld_py.workflow.definition.entries import Entry, Kind, Target
from skuld_py.workflow.definition.names import ALL, NONE
from skuld_py.workflow.definition.rules import decides_alone
from skuld_py.workflow.definition.sources import Files, Jdbc, Offsets, Outputs, Queue, Values
from skuld_py.workflow.scheduling.demand import Spreading

DIGEST_BYTES = 32
_LIKE_ANY = {kind: Entry("", kind, most=1) if kind is Kind.INPUT else Entry("", kind) for kind in Kind}


def text_of(definition: Definition) -> str:
    """The canonical text."""
    return json.dumps(plain_of(definition), sort_keys=True, separators=(",", ":"), ensure_ascii=False,
                      allow_nan=False)


def digest_of(definition: Definition) -> str:
    """The digest of the canonical text."""
    return digest(text_of(definition))


def digest(text: str) -> str:
    """The digest of a text, 64 hex digits."""
    return blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def plain_of(definition: Definition) -> dict[str, Any]:
    """Plain data that ``reading`` makes the definition of again."""
    made = {"id": definition.id, "edges": [list(edge) for edge in definition.edges],
            "catalog": {step: plain_of_entry(entry) for step, entry in definition.entries.items()}}
    return made | _said({
        "conditions": [plain_of_condition(each) for each in definition.conditions],
        "lifecycles": [_lifecycle(each) for each in definition.lifecycles],
        "spreading": "" if definition.spreading is Spreading.BALANCED else definition.spreading.value,
        "percentage": definition.percentage, "metadata": definition.metadata})


def plain_of_entry(entry: Entry) -> dict[str, Any]:
    """A table of the catalog."""
    like = _LIKE_ANY[entry.kind]
    made: dict[str, Any] = {"kind": entry.kind.value} | _source(entry)
    for key in ("function", "parameters", "doc"):
        made |= _said({key: getattr(entry, key)})
    for key in ("least", "most", "percentage", "batch", "attempts", "max_pending", "flux"):
        if getattr(entry, key) != getattr(like, key):
            made[key] = _word(getattr(entry, key))
    for key in ("timeout", "root_timeout"):
        if getattr(entry, f"{key}_ms") != getattr(like, f"{key}_ms"):
            made[f"{key}_s"] = _seconds(getattr(entry, f"{key}_ms"))
    if entry.target is not None:
        made["path"] = entry.target.path
        made |= _said({"format": "" if entry.target == Target(entry.target.path) else entry.target.format})
    return made | _said({"tags": sorted(entry.tags)})


def plain_of_condition(condition: Condition) -> dict[str, Any]:
    """A table of the conditions."""
    to: Any = [*condition.to] or (ALL if condition.is_all else NONE)
    made = {"from": condition.source} | ({"action": "retry"} if condition.retry else {"to": to})
    return made | _said({
        "when": "" if condition.when == ALWAYS else _predicate(condition.when),
        "parameters": condition.parameters, "exclude": [*condition.exclude], "exception": condition.exception,
        "transform": condition.transform,
        "short_circuit": condition.short_circuit and not decides_alone(condition)})


def _said(rows: Mapping[str, Any]) -> dict[str, Any]:
    """What is not empty, and so not as it is anyway."""
    return {key: value for key, value in rows.items() if value}


def _word(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _seconds(millis: int) -> int | float:
    return millis // 1000 if millis % 1000 == 0 else millis / 1000


def _source(entry: Entry) -> dict[str, Any]:
    match entry.source:
        case Files((one,)):
            return {"files": one}
        case Files(globs):
            return {"files": [*globs]}
        case Jdbc() as jdbc:
            numbers = {"lower": jdbc.lower, "upper": jdbc.upper, "column": jdbc.column,
                       "partitions": 0 if jdbc.partitions == 1 else jdbc.partitions}
            return {"jdbc": {"url": jdbc.url, "table": jdbc.table} | _said(
                {**numbers, "credentials": jdbc.credentials, "options": jdbc.options})}
        case Offsets(adapter):
            return {"offsets": adapter}
        case Outputs(workflow, "", False, "", False):
            return {"workflow": workflow}
        case Outputs(workflow, step, routed, content, together):
            return {"workflow": _said({"id": workflow, "step": step, "routed": routed, "content": content,
                                       "together": together})}
        case Queue(name):
            return {"queue": name}
        case Values(function):
            return {"function": function}
        case None:
            return {}


def _predicate(tree: Predicate) -> Any:
    if isinstance(tree, Combined):
        return [tree.operator.value, *map(_predicate, tree.parts)]
    return tree.name if tree.keys is None else [tree.name, *tree.keys]


def _lifecycle(lifecycle: Lifecycle) -> dict[str, Any]:
    made = {moment.value: name for moment, name in lifecycle.calls.items()} | {"step": lifecycle.step}
    if lifecycle.on_exception is not Policy.DEFER or not lifecycle.calls:
        made["on_exception"] = _word(lifecycle.on_exception)
    return made | _said({"parameters": lifecycle.parameters})
