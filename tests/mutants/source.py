"""The package's source, as mutants point at it: a place by its dotted name, and in it a pattern.

A place is the end of a dotted name: of a function, a class, a value with a name, or a module. ``Vnode.on_grant``
is one wherever ``Vnode`` stands; where two have that end, more of the name tells them apart. Files may be moved
and lines be broken anew without a mutant taking notice. What no longer fits is told, and changes nothing.

Rejected: patterns of syntax trees. Half of the mutants break words of a document, a key or a single operator,
which are shorter to show than to describe.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import attrs


@attrs.frozen
class Found:
    """A place: its file, and where in the text it stands."""

    path: Path
    first: int
    last: int


class Source:
    """The Python of the package ``skuld_py`` under a folder."""

    def __init__(self, top: Path) -> None:
        self._top = top / "skuld_py"
        self._named: dict[Path, list[tuple[str, int, int]]] = {}

    @cached_property
    def _texts(self) -> dict[Path, str]:
        return {path: path.read_text(encoding="utf-8") for path in sorted(self._top.rglob("*.py"))}

    @cached_property
    def _modules(self) -> dict[Path, str]:
        """The dotted name of each file, after a dot."""
        return {path: "." + ".".join(path.relative_to(self._top).with_suffix("").parts).removesuffix(".__init__")
                for path in self._texts}

    def problem(self, place: str, old: str, new: str) -> str:
        """Why a change does not fit, or nothing."""
        if old == new:
            return f"{place}: it changes nothing"
        found = self._find(place)
        if len(found) != 1:
            return f"{place}: there are {len(found)} such places, not one"
        where, count = found[0], len(self._matches(found[0], old))
        if count != 1:
            return f"{place}: the pattern stands there {count} times, not once: {old!r}"
        try:
            ast.parse(self._block(where, old, new))
        except SyntaxError as problem:
            return f"{place}: what comes of it is no Python: {problem}"
        return ""

    def change(self, place: str, old: str, new: str) -> None:
        """Write a change that fits."""
        where, = self._find(place)
        self._texts[where.path] = text = self._changed(where, old, new)
        self._named.pop(where.path, None)
        where.path.write_text(text, encoding="utf-8")

    def _block(self, where: Found, old: str, new: str) -> str:
        """What becomes of the place alone, as statements that can be parsed."""
        text, match = self._texts[where.path], self._matches(where, old)[0]
        block = text[where.first : match.start()] + _without_blanks(old, new) + text[match.end() : where.last]
        return f"if True:\n{block}" if block[:1].isspace() else block

    def _changed(self, where: Found, old: str, new: str) -> str:
        text, (match,) = self._texts[where.path], self._matches(where, old)
        return text[: match.start()] + _without_blanks(old, new) + text[match.end() :]

    def _matches(self, where: Found, old: str) -> list[re.Match[str]]:
        pattern = re.compile(r"\s+".join(map(re.escape, re.split(r"\s+", old.strip()))))
        return [*pattern.finditer(self._texts[where.path], where.first, where.last)]

    def _find(self, place: str) -> list[Found]:
        last, end = place.rpartition(".")[2], f".{place}"
        found = []
        for path, text in self._texts.items():
            module = self._modules[path]
            if module.endswith(end):
                found.append(Found(path, 0, len(text)))
            if last in text:
                found += [Found(path, first, stop) for name, first, stop in self._names(path)
                          if f"{module}.{name}".endswith(end)]
        return found

    def _names(self, path: Path) -> list[tuple[str, int, int]]:
        if path not in self._named:
            text = self._texts[path]
            self._named[path] = list(_named(ast.parse(text), "", _Lines(text)))
        return self._named[path]


class _Lines:
    """Turns lines and columns, which count bytes, into places in the text."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.stmt) -> int:
        """Where the line of a statement begins, with its decorators."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        return self._starts[first - 1]

    def end(self, node: ast.stmt) -> int:
        """Where the line in which it ends does."""
        assert node.end_lineno is not None
        return self._starts[node.end_lineno]


def _named(node: ast.AST, prefix: str, lines: _Lines) -> Iterator[tuple[str, int, int]]:
    """Everything below a node that has a name."""
    for child in ast.iter_child_nodes(node):
        names: list[str] = []
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [child.name + _setter(child)]
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module | ast.ClassDef):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        for name in names:
            assert isinstance(child, ast.stmt)
            yield prefix + name, lines.start(child), lines.end(child)
        if isinstance(child, ast.stmt):
            inner = f"{prefix}{child.name}." if isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else prefix
            yield from _named(child, inner, lines)


def _setter(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    is_setter = any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in node.decorator_list)
    return ".setter" if is_setter else ""


def _without_blanks(old: str, new: str) -> str:
    """What takes the place of the match, in which the blanks around the old text take no part."""
    lead, trail = len(old) - len(old.lstrip()), len(old) - len(old.rstrip())
    begin = _shared(old[:lead], new)
    end = _shared(old[len(old) - trail :][::-1], new[begin:][::-1])
    return new[begin : len(new) - end]


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
