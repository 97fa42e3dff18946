"""A rule broken on purpose: a change of the source, and how it must be noticed.

A mutant is data. Its old text must stand in its file exactly once; when the code moves on, the mutant
fails loudly instead of quietly changing nothing.
"""

from __future__ import annotations

import ast
from pathlib import Path

import attrs


class Rotten(Exception):
    """A mutant that no longer fits the source."""


@attrs.frozen
class Edit:
    """``old`` becomes ``new`` in a file of the package."""

    file: str
    old: str
    new: str

    def problem(self, top: Path) -> str:
        """Why it does not fit, or nothing."""
        path = top / "skuld_py" / self.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if self.old == self.new:
            return f"{self.file}: it changes nothing"
        if text.count(self.old) != 1:
            return f"{self.file}: the text stands there {text.count(self.old)} times, not once: {self.old!r}"
        try:
            ast.parse(text.replace(self.old, self.new))
        except SyntaxError as problem:
            return f"{self.file}: what comes of it is no Python: {problem}"
        return ""

    def apply(self, top: Path) -> None:
        """Change the file; raises ``Rotten``."""
        if problem := self.problem(top):
            raise Rotten(problem)
        path = top / "skuld_py" / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")


@attrs.frozen
class Mutant:
    """One broken rule.

    ``invariant``: id of the checker or monitor rule that ought to notice. ``tests``: directed tests, as pytest
    names them, tried first. ``seeds``: how many simulated runs may be tried, 0 for none; ``options``: what the
    simulator is told besides; ``runner``: the module that runs the tests. ``guard``: where a second line would
    hide the breach of a first one from all clients, the rule of ``simulation.guards`` that sees it.
    """

    name: str
    rule: str
    edits: tuple[Edit, ...]
    invariant: str
    tests: tuple[str, ...] = ()
    seeds: int = 100
    options: tuple[str, ...] = ()
    runner: str = "pytest"
    guard: str = ""

    def problems(self, top: Path) -> list[str]:
        """Why it does not fit the source under ``top``."""
        return [f"{self.name}: {problem}" for edit in self.edits if (problem := edit.problem(top))]

    def apply(self, top: Path) -> None:
        """Break the rule in a copy; raises ``Rotten``."""
        for edit in self.edits:
            edit.apply(top)


def mutant(name: str, rule: str, file: str, old: str, new: str, invariant: str, *tests: str, seeds: int = 100,
           options: tuple[str, ...] = (), guard: str = "") -> Mutant:
    """A mutant of one edit."""
    return Mutant(name, rule, (Edit(file, old, new),), invariant, tests, seeds, options, guard=guard)
