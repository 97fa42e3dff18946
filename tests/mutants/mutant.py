"""A rule broken on purpose: a change of the source, and how it must be noticed.

A mutant is data. It points at a place and at a pattern, which must stand there exactly once (``mutants.source``);
when the code moves on, the mutant fails loudly instead of quietly changing nothing.
"""

from __future__ import annotations

import attrs

from mutants.source import Source


class Rotten(Exception):
    """A mutant that no longer fits the source."""


@attrs.frozen
class Edit:
    """``old`` becomes ``new`` in a place of the package."""

    place: str
    old: str
    new: str

    def problem(self, source: Source) -> str:
        """Why it does not fit, or nothing."""
        return source.problem(self.place, self.old, self.new)

    def apply(self, source: Source) -> None:
        """Change the file; raises ``Rotten``."""
        if problem := self.problem(source):
            raise Rotten(problem)
        source.change(self.place, self.old, self.new)


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

    def problems(self, source: Source) -> list[str]:
        """Why it does not fit."""
        return [f"{self.name}: {problem}" for edit in self.edits if (problem := edit.problem(source))]

    def apply(self, source: Source) -> None:
        """Break the rule in a copy; raises ``Rotten``."""
        for edit in self.edits:
            edit.apply(source)


def mutant(name: str, rule: str, place: str, old: str, new: str, invariant: str, *tests: str, seeds: int = 100,
           options: tuple[str, ...] = (), guard: str = "") -> Mutant:
    """A mutant of one edit."""
    return Mutant(name, rule, (Edit(place, old, new),), invariant, tests, seeds, options, guard=guard)


def script(title: str) -> str:
    """The test of a script for nodes (tests/node/scripts)."""
    return f"tests/node/test_scripts.py::test_it_is_as_the_text_says[{title}]"
