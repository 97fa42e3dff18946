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
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.writing import digest_of
from skuld_py.workflow.graph.layers import Graph, Layout, Place, layout
from skuld_py.workflow.graph.whole import conditions_of_lines, whole
from skuld_py.workflow.graph.words import (
    Standing,
    Standings,
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

_INK, _SOFT, _LINE, _PAPER = "#1c2733", "#5b6b7b", "#8796a5", "#ffffff"
_FILLS = {Kind.INPUT: "#e3f1e7", Kind.FUNCTION: "#e6eefb", Kind.OUTPUT: "#fbeede"}
_STROKES = {"running": 'stroke="#2f6fde" stroke-width="2"', "done": 'stroke="#2e8b57" stroke-width="2"',
            "failed": 'stroke="#c8372d" stroke-width="2"', "waiting": f'stroke="{_LINE}" stroke-dasharray="3 3"'}
STYLE = (
    "@media (prefers-color-scheme:dark){.skuld .paper{fill:#151b22}.skuld text{fill:#e8edf2}"
    ".skuld .small{fill:#a9b6c3}.skuld .input .box{fill:#1f3a2a}.skuld .function .box{fill:#1e2f4d}"
    ".skuld .output .box{fill:#45321a}}")
"""Colours are attributes, which every viewer knows; browsers, which know schemes, change some of them by these.
A page that allows no style within its text allows this one by its hash."""
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_FURTHEST = 0xFFFD


@attrs.frozen
class Sign:
    """What a box shows: two lines, what is said where the pointer rests on it, and where it leads, if anywhere."""

    kind: Kind
    name: str
    below: str = ""
    said: str = ""
    state: str = ""
    href: str = ""


def svg(definition: Definition, standings: Standings | None = None) -> str:
    """The whole picture of a workflow."""
    known = standings or {}
    signs = {step: _sign(definition, step, known.get(step)) for step in definition.order}
    steps = len(signs)
    title = f"workflow {definition.id}: {steps} step{'' if steps == 1 else 's'}"
    return picture(whole(definition), signs, title, f"skuld-{digest_of(definition)[:8]}",
                   conditions_of_lines(definition))


def picture(graph: Graph, signs: Mapping[str, Sign], title: str, name: str,
            dashed: Mapping[Edge, Sequence[str]] | None = None) -> str:
    """The picture of any graph whose steps have signs. ``name`` sets its parts apart from those of other
    pictures on a page; ``dashed``: of each edge under which conditions values go along it."""
    return _Picture(graph, signs, title, name, dashed or {}).text()


def _sign(definition: Definition, step: str, standing: Standing | None) -> Sign:
    entry = definition.entries[step]
    lines = [f"{entry.name} ({entry.kind.value})", entry.doc, work_of(entry), run_of(entry), str(standing or "")]
    lines += [f"to {to} {when}" for source, to, when in map(words_of_condition, definition.conditions)
              if source == entry.name]
    return Sign(entry.kind, step, work_of(entry) if standing is None else str(standing),
                "\n".join(filter(None, lines)), "" if standing is None else standing.state)


def escaped(text: str) -> str:
    """A text as it stands between tags, or in an attribute: what XML cannot hold is a question mark in a box."""
    return "".join(_ESCAPES.get(char, char if _is_held(ord(char)) else "�") for char in text)


def _is_held(code: int) -> bool:
    return (code >= 0x20 or code == 0x0A) and not 0xD800 <= code < 0xE000 and not _FURTHEST < code < 0x10000


@attrs.frozen
class _Box:
    left: float
    top: float
    width: float

    @property
    def middle(self) -> float:
        return self.top + BOX_HEIGHT / 2


class _Picture:
    def __init__(self, graph: Graph, signs: Mapping[str, Sign], title: str, name: str,
                 dashed: Mapping[Edge, Sequence[str]]) -> None:
        self._graph = graph
        self._signs = signs
        self._title = title
        self._layout: Layout = layout(graph)
        self._numbers = {place: number for number, column in enumerate(self._layout.columns) for place in column}
        self._lefts, self._widths = self._columns()
        self._name = name
        self._dashed = dashed

    def text(self) -> str:
        edges = [self._edge(edge) for edge in self._graph.edges]
        boxes = [self._step(step) for step in self._graph.order]
        bottom = MARGIN + (1 + max(self._layout.rows.values())) * ROW_HEIGHT
        legend, legend_width, height = self._legend(bottom)
        width = max(self._lefts[-1] + self._widths[-1] + MARGIN, legend_width + MARGIN)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" class="skuld" role="img" font-family="system-ui, sans-serif"'
            f' font-size="13" width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">',
            f"<title>{escaped(self._title)}</title>", f"<style>{STYLE}</style>",
            f'<defs><marker id="{self._name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            f' orient="auto"><path fill="{_LINE}" d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<rect class="paper" fill="{_PAPER}" width="{_n(width)}" height="{_n(height)}"/>',
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
        sign = self._signs[step]
        return [shortened(sign.name, LINE_CHARS), shortened(sign.below, LINE_CHARS)]

    def _box(self, place: Place) -> _Box:
        number = self._numbers[place]
        return _Box(self._lefts[number], MARGIN + self._layout.rows[place] * ROW_HEIGHT, self._widths[number])

    def _step(self, step: str) -> str:
        sign, box = self._signs[step], self._box((step,))
        name, below = self._texts(step)
        drawn = (f'<g class="{sign.kind.value}"><title>{escaped(sign.said)}</title>'
                 f"{_shape(sign.kind, box, state=sign.state)}"
                 f'<text fill="{_INK}" font-weight="600" x="{_n(box.left + 20)}" y="{_n(box.top + 19)}">'
                 f"{escaped(name)}</text>{_small(box.left + 20, box.top + 34, below)}</g>")
        return f'<a href="{escaped(sign.href)}">{drawn}</a>' if sign.href else drawn

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
        when = self._dashed.get(edge, ())
        said = " → ".join(self._signs[step].name for step in edge) + "".join(f"\n{each}" for each in when)
        return f'{_line(path, is_dashed=bool(when), end=self._name)}<title>{escaped(said)}</title></path>'

    def _legend(self, top: float) -> tuple[list[str], float, float]:
        """Its parts, how wide it is, and where it ends."""
        signs: list[tuple[str, str]] = []
        if self._dashed:
            signs = [(_in_group(kind, _shape(kind, _Box(0, 4, 28), 18)), kind.value) for kind in Kind]
            signs.append((_line("M0 13h28") + "</path>", "all values"))
        if any(self._dashed.values()):
            signs.append((_line("M0 13h28", is_dashed=True) + "</path>", "under conditions"))
        states = {each.state for each in self._signs.values()}
        signs += [(_in_group(Kind.FUNCTION, _shape(Kind.FUNCTION, _Box(0, 4, 28), 18, state)), state)
                  for state in STATES if state in states]
        made, left = [], float(MARGIN)
        for sign, words in signs:
            made.append(f'<g transform="translate({_n(left)} {_n(top)})">{sign}{_small(34, 17, words)}</g>')
            left += 54 + len(words) * CHAR_WIDTH
        return made, left, top + 30


def _in_group(kind: Kind, shape: str) -> str:
    return f'<g class="{kind.value}">{shape}</g>'


def _line(path: str, *, is_dashed: bool = False, end: str = "") -> str:
    """The beginning of a line; what is said of it may follow."""
    dashes, marker = ' stroke-dasharray="5 4"' * is_dashed, f' marker-end="url(#{end})"' if end else ""
    return f'<path fill="none" stroke="{_LINE}" stroke-width="1.4"{dashes}{marker} d="{path}">'


def _small(left: float, top: float, words: str) -> str:
    return (f'<text class="small" fill="{_SOFT}" font-size="11" x="{_n(left)}" y="{_n(top)}">'
            f"{escaped(words)}</text>")


def _shape(kind: Kind, box: _Box, height: float = BOX_HEIGHT, state: str = "") -> str:
    """An input begins with a notch, an output ends in a point; what is between is round."""
    colours = f'class="box" fill="{_FILLS[kind]}" ' + _STROKES.get(state, f'stroke="{_LINE}"')
    left, top, right, bottom = box.left, box.top, box.left + box.width, box.top + height
    middle, point = (top + bottom) / 2, height / 4
    if kind is Kind.FUNCTION:
        return (f'<rect {colours} x="{_n(left)}" y="{_n(top)}" width="{_n(box.width)}" height="{_n(height)}"'
                f' rx="{_n(height / 5)}"/>')
    corners = ([(left, top), (right, top), (right, bottom), (left, bottom), (left + point, middle)]
               if kind is Kind.INPUT else
               [(left, top), (right - point, top), (right, middle), (right - point, bottom), (left, bottom)])
    return f'<polygon {colours} points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in corners)}"/>'


def _n(value: float) -> str:
    """A number, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
