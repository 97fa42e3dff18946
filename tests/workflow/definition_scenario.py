"""Definitions with something wrong, as texts, and exactly what is said of them.

    == an edge leads to a step that there is not
    words >> cuont
    ! edges[2]: 'cuont' is no step of the catalog; did you mean count?

Each begins with the words that are counted: ``lines`` (an input), ``words`` (a function), ``count`` (an output),
and the edges between them. ``a >> b`` is one more edge. ``words: most=3 tags=["x"]`` sets keys of an entry, as
JSON or as a text; ``-`` takes a key away. ``condition`` and ``lifecycle`` are followed by one in JSON, ``set`` by
keys of the whole, ``only`` by JSON that stands for everything. ``!`` are the faults, in order; without one it is
right.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.faults import BadWorkflow
from skuld_py.workflow.definition.reading import read


def begun() -> dict[str, Any]:
    """What each scenario begins with."""
    return {"id": "census", "edges": [["lines", "words"], ["words", "count"]], "catalog": {
        "lines": {"kind": "input", "files": "/data/*.txt"},
        "words": {"kind": "function", "function": "acme:words"},
        "count": {"kind": "output", "path": "/data/count"}}}


@attrs.define
class Scenario:
    """One text, read."""

    name: str
    plain: Any = attrs.field(factory=begun)
    expected: list[str] = attrs.field(factory=list)

    def made(self) -> Definition | list[str]:
        """The definition, or what is wrong."""
        try:
            return read(self.plain)
        except BadWorkflow as error:
            return [str(fault) for fault in error.faults] + ([f"{error.left_out} more"] if error.left_out else [])


def scenarios(path: Path) -> Iterator[Scenario]:
    """Those of a file."""
    for text in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        name, *lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        scenario = Scenario(name)
        for line in lines:
            if line.startswith("!"):
                scenario.expected.append(line[2:])
            elif line.startswith("only "):
                scenario.plain = json.loads(line[5:])
            else:
                take(scenario.plain, line)
        yield scenario


def take(plain: dict[str, Any], line: str) -> None:
    """One line about a definition."""
    word, _, rest = line.partition(" ")
    if word in ("condition", "lifecycle"):
        plain.setdefault(f"{word}s", []).append(json.loads(rest))
    elif word == "set":
        _set(plain, rest)
    elif ">>" in line:
        plain["edges"].append([step.strip() for step in line.split(">>")])
    else:
        name, _, keys = line.partition(":")
        _set(plain["catalog"].setdefault(name, {}), keys)


def _set(table: dict[str, Any], text: str) -> None:
    for pair in shlex.split(text.replace('"', r"\"")):
        if pair.startswith("-"):
            del table[pair[1:]]
            continue
        key, _, value = pair.partition("=")
        try:
            table[key] = json.loads(value)
        except ValueError:
            table[key] = value
