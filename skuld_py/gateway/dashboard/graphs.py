"""Drawings on pages, by the code that draws workflows.

Tasks that wait for each other are a graph as steps are. Those whose ids somebody chose may wait round in a circle,
which cannot be put in columns: then the task alone is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from skuld_py.gateway.dashboard.rendering import link
from skuld_py.workflow.definition.definition import Definition, Edge, neighbours, ordered
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.graph.svg import Sign, picture, svg
from skuld_py.workflow.graph.words import standing_of

STATE_SIGNS = {"claimed": "running", "completed": "done", "dead": "failed", "cancelled": "failed",
               "waiting": "waiting", "scheduled": "waiting", "blocked": "waiting"}
ID_TAIL = 8


@attrs.frozen
class _Tasks:
    """Tasks and what they wait for, as ``layers`` wants them."""

    order: Sequence[str]
    edges: Sequence[Edge]
    inputs: Sequence[str] = ()

    @property
    def parents(self) -> Mapping[str, Sequence[str]]:
        """What each waits for."""
        return neighbours(self.order, [(to, source) for source, to in self.edges])

    @property
    def children(self) -> Mapping[str, Sequence[str]]:
        """What waits for each."""
        return neighbours(self.order, self.edges)


def dependencies(centre: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """A task, and what is known of those it waits for; of others only that there are some."""
    named = dict.fromkeys(known)
    for row in known.values():
        named |= dict.fromkeys(row["deps"] + row["blocked_by"])
    edges = {(dep, task) for task, row in known.items() for dep in row["deps"] + row["blocked_by"] if dep != task}
    order = ordered(named, sorted(edges))
    kept = frozenset(order)
    graph = _Tasks(order, sorted(edge for edge in edges if kept.issuperset(edge)))
    if centre not in kept:  # they wait for each other, which whoever chose ids can bring about
        graph = _Tasks([centre], [])
    signs = {task: _sign(task, known.get(task), is_centre=task == centre) for task in graph.order}
    return picture(graph, signs, f"task {centre} and what it waits for", "tasks")


def _sign(task: str, row: Mapping[str, Any] | None, *, is_centre: bool) -> Sign:
    short = f"…{task[-ID_TAIL:]}"
    href = "" if is_centre else link(f"/tasks/{task}")
    if row is None:
        return Sign(Kind.FUNCTION, "not looked at", short, task, href=href)
    name = row["call"] or row["queue"]
    return Sign(Kind.OUTPUT if is_centre else Kind.FUNCTION, name, f"{row['state']} {short}",
                f"{task}\n{row['queue']}: {name}\n{row['state']}", STATE_SIGNS.get(row["state"], ""), href)


def workflow(definition: Definition, depths: Mapping[str, Mapping[str, int]], sealed: Sequence[str],
             is_live: bool) -> str:
    """A workflow with what is in the queues of its steps; ``depths``: by queue."""
    return svg(definition, {step: standing_of(depths.get(definition.queue(step)), is_sealed=step in sealed)
                            for step in definition.order if step not in definition.inputs} if is_live else None)
