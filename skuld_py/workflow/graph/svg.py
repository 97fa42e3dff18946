"""The graph as SVG: one text, which needs no other file, program or script.

    picture = svg(definition, {"words": Standing("running", {"waiting": 3})})

Boxes say by their shape what kind of step they are; a dashed line is one on which values go under a condition, and
says which where the pointer rests on it. Colours follow the viewer's light or dark scheme.

Invariant: whatever a definition holds, the text is well-formed, and holds no markup but that of this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import attrs

from skuld_py.workflow.definition.definition import Definition, Edge
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.writing import digest_of
from skuld_py.workflow.graph.layers import Layout, Place, layout
from skuld_py.workflow.graph.words import (
    Standing,
    Standings,
    conditions_of_edge,
    run_of,
    shortened,
    words_of_condition,
    work_of,
)

BOX_HEIGHT, ROW_HEIGHT, GAP, MARGIN = 44, 64, 56, 16
CHAR_WIDTH = 6.4
"""Of the small letters in boxes, about."""
LINE_CHARS = 30
STATES = ("waiting", "running", "done", "failed")
"""States that have a colour of their own; any other is shown without."""

_LIGHT = {"ink": "#1c2733", "soft": "#5b6b7b", "line": "#8796a5", "paper": "#fff", "input": "#e3f1e7",
          "function": "#e6eefb", "output": "#fbeede"}
_DARK = {"ink": "#e8edf2", "soft": "#a9b6c3", "line": "#71808f", "paper": "#151b22", "input": "#1f3a2a",
         "function": "#1e2f4d", "output": "#45321a"}
_COLOURED = (
    ".skuld .paper{{fill:{paper}}}.skuld text{{fill:{ink}}}.skuld .small{{fill:{soft}}}.skuld .box{{stroke:{line}}}"
    ".skuld .edge{{stroke:{line}}}.skuld .head{{fill:{line}}}.skuld .input .box{{fill:{input}}}"
    ".skuld .function .box{{fill:{function}}}.skuld .output .box{{fill:{output}}}")
_STATES = (".skuld .running .box{stroke:#2f6fde;stroke-width:2}.skuld .done .box{stroke:#2e8b57;stroke-width:2}"
           ".skuld .failed .box{stroke:#c8372d;stroke-width:2}.skuld .waiting .box{stroke-dasharray:3 3}")
_STYLE = (".skuld{font-family:system-ui,sans-serif}.skuld text{font-size:13px}.skuld .small{font-size:11px}"
          ".skuld .name{font-weight:600}.skuld .box{stroke-width:1.2}.skuld .edge{fill:none;stroke-width:1.4}"
          ".skuld .dashed{stroke-dasharray:5 4}" + _COLOURED.format(**_LIGHT)
          + f"@media (prefers-color-scheme:dark){{{_COLOURED.format(**_DARK)}}}" + _STATES)
"""Written out for both schemes: most viewers other than browsers know no variables."""
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_FURTHEST = 0xFFFD


def svg(definition: Definition, standings: Standings | None = None) -> str:
    """The whole picture."""
    return _Picture(definition, standings or {}).text()


def escaped(text: str) -> str:
    """A text as it stands between tags, or in an attribute: what XML cannot hold is a question mark in a box."""
    return "".join(_ESCAPES.get(char, char if _is_held(ord(char)) else "�") for char in text)


def _is_held(code: int) -> bool:
    return code >= 0x20 and not 0xD800 <= code < 0xE000 and not _FURTHEST < code < 0x10000


@attrs.frozen
class _Box:
    left: float
    top: float
    width: float

    @property
    def middle(self) -> float:
        return self.top + BOX_HEIGHT / 2


class _Picture:
    def __init__(self, definition: Definition, standings: Standings) -> None:
        self._definition = definition
        self._standings = standings
        self._layout: Layout = layout(definition)
        self._numbers = {place: number for number, column in enumerate(self._layout.columns) for place in column}
        self._lefts, self._widths = self._columns()
        self._name = f"skuld-{digest_of(definition)[:8]}"
        self._dashed: Mapping[Edge, Sequence[str]] = {
            edge: conditions_of_edge(definition, *edge) for edge in definition.edges}

    def text(self) -> str:
        edges = [self._edge(edge) for edge in self._definition.edges]
        boxes = [self._step(step) for step in self._definition.order]
        bottom = MARGIN + (1 + max(self._layout.rows.values())) * ROW_HEIGHT
        legend, legend_width, height = self._legend(bottom)
        width = max(self._lefts[-1] + self._widths[-1] + MARGIN, legend_width + MARGIN)
        steps = len(boxes)
        title = f"workflow {self._definition.id}: {steps} step{'' if steps == 1 else 's'}"
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" class="skuld" role="img" width="{_n(width)}"'
            f' height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">',
            f"<title>{escaped(title)}</title>", f"<style>{_STYLE}</style>",
            f'<defs><marker id="{self._name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            ' orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<rect class="paper" width="{_n(width)}" height="{_n(height)}"/>',
            *edges, *boxes, *legend, "</svg>", ""])

    def _columns(self) -> tuple[list[float], list[float]]:
        """The left side and the width of each column."""
        lefts, widths, left = [], [], float(MARGIN)
        for column in self._layout.columns:
            texts = [text for place in column if len(place) == 1 for text in self._texts(place[0])]
            widths.append(max((len(text) for text in texts), default=0) * CHAR_WIDTH + 40 if texts else 12)
            lefts.append(left)
            left += widths[-1] + GAP
        return lefts, widths

    def _texts(self, step: str) -> list[str]:
        entry = self._definition.entries[step]
        standing = self._standings.get(step)
        below = str(standing) if standing is not None else work_of(entry)
        return [shortened(step, LINE_CHARS), shortened(below, LINE_CHARS)]

    def _box(self, place: Place) -> _Box:
        number = self._numbers[place]
        return _Box(self._lefts[number], MARGIN + self._layout.rows[place] * ROW_HEIGHT, self._widths[number])

    def _step(self, step: str) -> str:
        entry, box = self._definition.entries[step], self._box((step,))
        name, below = self._texts(step)
        state = self._standings.get(step, Standing()).state
        kinds = " ".join([entry.kind.value, *([state] if state in STATES else [])])
        return (f'<g class="{kinds}"><title>{escaped(self._said(entry))}</title>'
                f"{_shape(entry.kind, box)}"
                f'<text class="name" x="{_n(box.left + 20)}" y="{_n(box.top + 19)}">{escaped(name)}</text>'
                f'<text class="small" x="{_n(box.left + 20)}" y="{_n(box.top + 34)}">{escaped(below)}</text></g>')

    def _said(self, entry: Entry) -> str:
        lines = [f"{entry.name} ({entry.kind.value})", entry.doc, work_of(entry), run_of(entry),
                 str(self._standings.get(entry.name, ""))]
        lines += [f"to {to} {when}" for source, to, when in map(words_of_condition, self._definition.conditions)
                  if source == entry.name]
        return "\n".join(filter(None, lines))

    def _edge(self, edge: Edge) -> str:
        boxes = [self._box(place) for place in self._layout.ways[edge]]
        path = f"M{_n(boxes[0].left + boxes[0].width)} {_n(boxes[0].middle)}"
        for number, (one, other) in enumerate(pairwise(boxes), 1):
            start, end = one.left + one.width, other.left
            between = (start + end) / 2
            path += (f"C{_n(between)} {_n(one.middle)} {_n(between)} {_n(other.middle)}"
                     f" {_n(end)} {_n(other.middle)}")
            if number < len(boxes) - 1:
                path += f"H{_n(other.left + other.width)}"
        when = self._dashed[edge]
        said = " → ".join(edge) + "".join(f"\n{each}" for each in when)
        return (f'<path class="edge{" dashed" if when else ""}" marker-end="url(#{self._name})" d="{path}">'
                f"<title>{escaped(said)}</title></path>")

    def _legend(self, top: float) -> tuple[list[str], float, float]:
        """Its parts, how wide it is, and where it ends."""
        made, left = [], float(MARGIN)
        for kind in Kind:
            box = _Box(left, top + 4, 28)
            made.append(f'<g class="{kind.value}">{_shape(kind, box, 18)}</g>'
                        f"{_small(left + 34, top + 17, kind.value)}")
            left += 40 + len(kind.value) * CHAR_WIDTH + 14
        lines = [("", "all values")] + [(" dashed", "under conditions")] * any(self._dashed.values())
        for kind_of_line, words in lines:
            made.append(f'<path class="edge{kind_of_line}" d="M{_n(left)} {_n(top + 13)}h28"/>'
                        f"{_small(left + 34, top + 17, words)}")
            left += 40 + len(words) * CHAR_WIDTH + 14
        states = [state for state in STATES if any(each.state == state for each in self._standings.values())]
        for state in states:
            box = _Box(left, top + 4, 28)
            made.append(f'<g class="function {state}">{_shape(Kind.FUNCTION, box, 18)}</g>'
                        f"{_small(left + 34, top + 17, state)}")
            left += 40 + len(state) * CHAR_WIDTH + 14
        return [f'<g class="legend">{"".join(made)}</g>'], left, top + 30


def _small(left: float, top: float, words: str) -> str:
    return f'<text class="small" x="{_n(left)}" y="{_n(top)}">{escaped(words)}</text>'


def _shape(kind: Kind, box: _Box, height: float = BOX_HEIGHT) -> str:
    """An input begins with a point, an output ends in one; what is between is round."""
    left, top, right, bottom = box.left, box.top, box.left + box.width, box.top + height
    middle, point = (top + bottom) / 2, height / 4
    if kind is Kind.FUNCTION:
        return (f'<rect class="box" x="{_n(left)}" y="{_n(top)}" width="{_n(box.width)}" height="{_n(height)}"'
                f' rx="{_n(height / 5)}"/>')
    corners = ([(left, top), (right, top), (right, bottom), (left, bottom), (left + point, middle)]
               if kind is Kind.INPUT else
               [(left, top), (right - point, top), (right, middle), (right - point, bottom), (left, bottom)])
    return f'<polygon class="box" points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in corners)}"/>'


def _n(value: float) -> str:
    """A number, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
