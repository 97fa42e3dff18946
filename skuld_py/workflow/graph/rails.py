"""The graph as text: one line for each step, and rails that lead down from it to its children.

    ▷ archives  input     /data/*.gz
    ● words     function  acme.jobs:words, 1..4 slots
    ├─╮
    ■ │ long    output    /data/long (parquet)
      ● seen    function  acme.jobs:seen

A rail leads to one step, and all edges to that step run together on it. So there are never more rails than steps
that are still to come, and what is said of a step has its place beside it. A rail on which values go under a
condition only is dashed.

Rejected: boxes in rows, which no terminal is wide enough for once a step has ten children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.workflow.definition.definition import Definition, Edge
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.graph.layers import depths
from skuld_py.workflow.graph.whole import conditions_of_lines, whole
from skuld_py.workflow.graph.words import (
    Standings,
    run_of,
    words_of_condition,
    words_of_lifecycle,
    work_of,
)

SYMBOLS = {Kind.INPUT: "▷", Kind.FUNCTION: "●", Kind.OUTPUT: "■"}
_ASCII = str.maketrans({"▷": ">", "●": "o", "■": "#", "│": "|", "╎": ":", "─": "-", "├": "+", "┤": "+", "┼": "+",
                        "╰": "`", "╯": "'", "┴": "+", "╭": ".", "╮": ".", "┬": "+", "→": "->", "…": "~"})


@attrs.define
class _Rail:
    to: str
    is_dashed: bool


@attrs.frozen
class Line:
    """``rails``: what stands left. ``step``: whose line it is; empty for one between."""

    rails: str
    step: str = ""


def drawing(definition: Definition, standings: Standings | None = None, *, is_ascii: bool = False) -> str:
    """The whole: the graph, its conditions and lifecycles, and what the signs mean."""
    parts = [*_graph(definition, standings or {})]
    if definition.conditions:
        told = map(words_of_condition, definition.conditions)
        parts += ["", "conditions", *columns([(f"  {source} → {to}", when) for source, to, when in told])]
    if definition.lifecycles:
        said = map(words_of_lifecycle, definition.lifecycles)
        parts += ["", "lifecycles", *columns([(f"  {step}", what) for step, what in said])]
    parts += ["", "  ".join(f"{sign} {kind.value}" for kind, sign in SYMBOLS.items()) + "  │ all values"
              + "  ╎ under conditions" * any(conditions_of_lines(definition).values())]
    text = "\n".join(parts) + "\n"
    return text.translate(_ASCII) if is_ascii else text


def _graph(definition: Definition, standings: Standings) -> list[str]:
    drawn = lines(definition)
    width = max(len(line.rails) for line in drawn)
    rows: list[tuple[str, ...]] = []
    for line in drawn:
        entry = definition.entries.get(line.step)
        if entry is None:
            rows.append((line.rails,))
            continue
        said = ", ".join(filter(None, (work_of(entry), run_of(entry))))
        standing = standings.get(line.step)
        rows.append((f"{line.rails:<{width}} {line.step}", entry.kind.value, said, str(standing or "")))
    return columns(rows)


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of cells, one below the other; a row of one cell may be longer."""
    widths: dict[int, int] = {}
    for row in rows:
        for at, cell in enumerate(row if len(row) > 1 else ()):
            widths[at] = max(widths.get(at, 0), len(cell))
    return ["  ".join(f"{cell:<{widths.get(at, 0)}}" for at, cell in enumerate(row)).rstrip() for row in rows]


def lines(definition: Definition) -> list[Line]:
    """The lines of the graph: those of steps in their order, and those between where rails branch."""
    dashed, graph = conditions_of_lines(definition), whole(definition)
    rails: list[_Rail | None] = []
    made = []
    depth = depths(graph)
    for step in sorted(graph.order, key=depth.__getitem__):
        at = next((at for at, rail in enumerate(rails) if rail is not None and rail.to == step), None)
        if at is None:
            at = _free(rails, 0)
        rails[at] = None
        sign = SYMBOLS[definition.entries[step].kind]
        signs = [sign if here == at else _upright(rail) for here, rail in enumerate(rails)]
        made.append(Line(_joined(signs), step))
        before = list(rails)
        ends = _lead_on(rails, at, step, graph.children[step], dashed)
        if any(here != at for here in ends):
            made.append(Line(_branch(before, rails, at, ends)))
        while rails and rails[-1] is None:
            rails.pop()
    return made


def _free(rails: list[_Rail | None], first: int) -> int:
    """The nearest free place, from one on; a new one at the end, if there is none."""
    for at in range(first, len(rails)):
        if rails[at] is None:
            return at
    rails.append(None)
    return len(rails) - 1


def _lead_on(rails: list[_Rail | None], at: int, step: str, children: Sequence[str],
             dashed: Mapping[Edge, Sequence[str]]) -> list[int]:
    """Rails to the children of a step that stands at a place: those that there are, or new ones. Their places."""
    ends = []
    for child in children:
        is_dashed = bool(dashed[step, child])
        known = next((here for here, rail in enumerate(rails) if rail is not None and rail.to == child), None)
        if known is None:
            known = _free(rails, at)
            rails[known] = _Rail(child, is_dashed)
        else:
            rail = rails[known]
            assert rail is not None
            rails[known] = _Rail(child, rail.is_dashed and is_dashed)
        ends.append(known)
    return ends


def _branch(before: Sequence[_Rail | None], after: Sequence[_Rail | None], at: int, ends: Sequence[int]) -> str:
    """The line below a step from which rails branch to the left or to the right."""
    left, right = min(at, *ends), max(at, *ends)
    signs = []
    for here in range(len(after)):
        was = here < len(before) and before[here] is not None
        if here == at:
            signs.append(_foot(is_on=here in ends, is_left=left < at, is_right=right > at))
        elif here in ends:
            signs.append(_end(is_left=here < at, is_joined=was, is_last=here in (left, right)))
        elif was or not left < here < right:
            signs.append(_upright(after[here]))
        else:
            signs.append("─")
    return _joined(signs, left, right)


def _foot(*, is_on: bool, is_left: bool, is_right: bool) -> str:
    if is_on:
        return "┼" if is_left and is_right else "┤" if is_left else "├"
    return "┴" if is_left and is_right else "╯" if is_left else "╰"


def _end(*, is_left: bool, is_joined: bool, is_last: bool) -> str:
    if not is_last:
        return "┼" if is_joined else "┬"
    if is_joined:
        return "├" if is_left else "┤"
    return "╭" if is_left else "╮"


def _upright(rail: _Rail | None) -> str:
    return " " if rail is None else "╎" if rail.is_dashed else "│"


def _joined(signs: Sequence[str], left: int = 0, right: int = 0) -> str:
    """Signs side by side, with a line between those from left to right."""
    made = ""
    for here, sign in enumerate(signs):
        made += sign + ("─" if left <= here < right else " ")
    return made.rstrip()
