"""A definition as it is drawn: where an input draws what a step of the same workflow returned, a line leads there.

No edge does, since no segment goes along it: the step's values meet in the input once the step is finished. But
who looks at a picture without it sees two workflows, and the later one may stand first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.workflow.definition.definition import Definition, Edge, neighbours, ordered
from skuld_py.workflow.graph.layers import Graph
from skuld_py.workflow.graph.words import conditions_of_edges


@attrs.frozen
class Whole:
    """``inputs`` are those that draw from elsewhere; the others stand behind what they draw from."""

    order: Sequence[str]
    edges: Sequence[Edge]
    inputs: Sequence[str]
    parents: Mapping[str, Sequence[str]]
    children: Mapping[str, Sequence[str]]


def whole(definition: Definition) -> Graph:
    """With the lines to inputs that draw from steps of their own workflow."""
    edges = [*definition.edges, *definition.own_draws]
    steps, drawing = definition.order, {step for _, step in definition.own_draws}
    first = tuple(each for each in definition.inputs if each not in drawing)
    return Whole(tuple(ordered(steps, edges)), edges, first,
                 neighbours(steps, ((to, source) for source, to in edges)), neighbours(steps, edges))


def conditions_of_lines(definition: Definition) -> dict[Edge, list[str]]:
    """Of each line when values go along it; nothing where all do."""
    finished = {edge: [f"once {edge[0]} is finished"] for edge in definition.own_draws}
    return {**conditions_of_edges(definition), **finished}
