"""What is said of a step, of a condition and of a lifecycle, in one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from skuld_py.workflow.definition.definition import (
    ALWAYS,
    Combined,
    Condition,
    Definition,
    Edge,
    Lifecycle,
    Operator,
    Policy,
    Predicate,
)
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.names import ALL, NONE
from skuld_py.workflow.definition.rules import is_about
from skuld_py.workflow.definition.sources import Files, Jdbc, Offsets, Outputs, Queue, Source, Values
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Flux

CHARS_MAX = 60
SHOWN_MAX = 5
WORDS = ("waiting", "claimed", "completed", "scheduled", "dead")
"""States of segments that are counted."""


@attrs.frozen
class Standing:
    """How it stands with a step now: a word for its state, and how many segments of each kind, in this order."""

    state: str = ""
    counts: Mapping[str, int] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.state, *(f"{count} {word}" for word, count in self.counts.items()))))


Standings = Mapping[str, Standing]


def standing_of(depth: Mapping[str, int] | None, *, is_sealed: bool) -> Standing:
    """How it stands with a step, by how many of its segments are in each state; None where it has none."""
    if depth is None:
        return Standing("done" if is_sealed else "waiting")
    counts = {word: depth[word] for word in WORDS if depth[word]}
    is_busy = depth["claimed"] or depth["waiting"] or depth["scheduled"]
    return Standing("failed" if depth["dead"] else "running" if is_busy else "done" if is_sealed else "waiting",
                    counts)


def work_of(entry: Entry) -> str:
    """What a step does: draws from, calls, writes to."""
    if entry.source is not None:
        return shortened(_source(entry.source))
    if entry.target is None:
        return shortened(entry.function)
    return shortened(f"{entry.target.path} ({entry.target.format})")


def run_of(entry: Entry) -> str:
    """How it is run, where that was said."""
    if entry.kind is Kind.INPUT:
        return "" if entry.most == 1 else ", ".join([feeders_said(entry.least, entry.most), *sorted(entry.tags)])
    said = []
    if (entry.least, entry.most) != (1, UNBOUNDED):
        most = "" if entry.most == UNBOUNDED else str(entry.most)
        said.append(f"{entry.least} slots" if entry.least == entry.most else f"{entry.least}..{most} slots")
    if entry.percentage:
        said.append(f"{entry.percentage}%")
    if entry.flux is not Flux.CONTINUE:
        said.append(f"flux {entry.flux.value}")
    if entry.batch:
        said.append(f"batches of {entry.batch}")
    return ", ".join([*said, *sorted(entry.tags)])


def feeders_said(least: int, most: int) -> str:
    """How many feeders an input has."""
    return "one feeder" if most == 1 else f"{most} feeders" if least == most else f"{least}..{most} feeders"


def words_of_condition(condition: Condition) -> tuple[str, str, str]:
    """From where, to where, and when."""
    to = "again" if condition.retry else ALL if condition.is_all else ", ".join(condition.to) or NONE
    said = ["on exception"] if condition.exception else []
    if condition.when != ALWAYS or not said:
        said.append("always" if condition.when == ALWAYS else f"when {_predicate(condition.when)}")
    if condition.parameters:
        said.append(shortened(json.dumps(condition.parameters, ensure_ascii=False, sort_keys=True)))
    if condition.transform:
        said.append(f"as {condition.transform}")
    if condition.exclude:
        said.append(f"without {', '.join(condition.exclude)}")
    return condition.source, to, shortened("; ".join(said), 3 * CHARS_MAX)


def words_of_lifecycle(lifecycle: Lifecycle) -> tuple[str, str]:
    """Of which step, and what."""
    said = [f"{moment.value} {name}" for moment, name in lifecycle.calls.items()]
    if lifecycle.on_exception is not Policy.DEFER:
        policy = lifecycle.on_exception
        said.append(f"on_exception {policy.value if isinstance(policy, Policy) else policy}")
    return lifecycle.step, shortened("; ".join(said), 3 * CHARS_MAX)


def conditions_of_edges(definition: Definition) -> dict[Edge, list[str]]:
    """Of each edge when values go along it: nothing where all do, ``SHOWN_MAX`` conditions at most."""
    found: dict[Edge, list[str]] = {}
    for source, children in definition.children.items():
        known = frozenset(children)
        about = [each for each in definition.conditions
                 if (each.to or each.is_all) and is_about(each, source, known)]
        for to in children:
            found[source, to] = _when(about, to)
    return found


def _when(about: Sequence[Condition], to: str) -> list[str]:
    """When values go to a step, by the conditions that send anything."""
    leading = [each for each in about if each.is_all or to in each.to]
    for each in about:
        if each.exception:
            continue
        if each.when == ALWAYS and (each.is_all or to in each.to):
            return []
        if each.short_circuit:
            break
    if all(each.exception for each in about):
        return []
    more = [f"and {len(leading) - SHOWN_MAX} more"] * (len(leading) > SHOWN_MAX)
    return [words_of_condition(each)[2] for each in leading[:SHOWN_MAX]] + more or ["never"]


def shortened(text: str, most: int = CHARS_MAX) -> str:
    """The text, its middle left out if it is long."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:most - 1 - half]}…{text[-half:]}"


def _source(source: Source) -> str:
    match source:
        case Files(globs):
            return globs[0] + (f" and {len(globs) - 1} more" if len(globs) > 1 else "")
        case Jdbc() as jdbc:
            return f"{jdbc.table} of {jdbc.url}" + (f", {jdbc.partitions} parts" if jdbc.partitions > 1 else "")
        case Offsets(adapter):
            return f"offsets of {adapter}"
        case Outputs(workflow, step) as outputs:
            of = [f"workflow {workflow}"] * bool(workflow) + [f"step {step}"] * bool(step)
            return ", ".join(of) + ", together" * outputs.together
        case Queue(name):
            return f"queue {name}"
        case Values(function):
            return function


def _predicate(tree: Predicate) -> str:
    if not isinstance(tree, Combined):
        return tree.name + (f"({', '.join(tree.keys)})" if tree.keys else "")
    if tree.operator is Operator.NOT:
        return f"not {_predicate(tree.parts[0])}"
    return "(" + f" {tree.operator.value} ".join(map(_predicate, tree.parts)) + ")"
