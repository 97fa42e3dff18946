"""Is the graph of a workflow one: known steps, no circle, everything reached, and each kind where it belongs?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from skuld_py.workflow.definition.definition import Edge, neighbours, ordered
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.faults import Faults, listed

Shapes = Mapping[str, Kind | None]
"""Each step that has an entry, with its kind where that could be read."""


def check_shape(faults: Faults, kinds: Shapes, edges: Sequence[Edge], *, are_all: bool = True) -> None:
    """Note what is wrong with the graph. Unless these ``are_all`` edges, some having been wrong, it is not told
    what no edge leads to."""
    children, parents = neighbours(kinds, edges), neighbours(kinds, ((to, source) for source, to in edges))
    for step, kind in kinds.items():
        if kind is Kind.INPUT and parents[step]:
            faults.add(step, "kind", f"it is an input, and {listed(sorted(parents[step]))} would send to it",
                       "take that edge out, or make it a function")
        if kind is Kind.OUTPUT and children[step]:
            faults.add(step, "kind", f"it is an output, and would send to {listed(sorted(children[step]))}",
                       "take that edge out, or make it a function")
        if kind is Kind.INPUT and not children[step] and are_all:
            faults.add(step, "", "no edge leads from it, so nobody takes its values", "add an edge to a step, or"
                       " leave it out")
    circled = _circles(faults, kinds, edges, children)
    if are_all:
        _unreached(faults, kinds, children, parents, circled)


def _circles(faults: Faults, kinds: Shapes, edges: Sequence[Edge], children: Mapping[str, Sequence[str]]
             ) -> set[str]:
    """Name a circle, and another one elsewhere; the steps of all of them."""
    left = set(kinds) - set(ordered(kinds, edges))
    backwards = [(to, source) for source, to in edges if source in left and to in left]
    left -= set(ordered(left, backwards))
    named: set[str] = set()
    for first in sorted(left):
        if first in named:
            continue
        path, at = [first], first
        while True:
            at = min(step for step in children[at] if step in left)
            if at in path:
                break
            path.append(at)
        circle = path[path.index(at):]
        if named.isdisjoint(circle):
            faults.add("edges", "", f"{' >> '.join([*circle, at])} leads round in a circle",
                       "take out one of these edges")
        named.update(path)
    return left


def _unreached(faults: Faults, kinds: Shapes, children: Mapping[str, Sequence[str]],
               parents: Mapping[str, Sequence[str]], excused: Collection[str]) -> None:
    reached = [step for step, kind in kinds.items() if kind in (Kind.INPUT, None) or step in excused]
    seen = set(reached)
    for step in reached:
        for to in children[step]:
            if to not in seen:
                seen.add(to)
                reached.append(to)
    for step in kinds:
        if step not in seen:
            faults.add(step, "", "no input leads to it" if parents[step] else "no edge leads to it",
                       "add an edge to it from a step that an input leads to, or leave it out")
