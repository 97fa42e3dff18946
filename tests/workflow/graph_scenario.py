"""Graphs as texts, and how they are drawn: edges, ``condition`` in JSON, ``draws`` for what an input draws from a
step of its own workflow, and the lines of the drawing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.graph.rails import lines

_ENTRIES: dict[str, dict[str, Any]] = {
    "i": {"kind": "input", "files": "/data"}, "f": {"kind": "function", "function": "acme:work"},
    "o": {"kind": "output"}}


@attrs.define
class Scenario:
    """One text, read."""

    name: str
    plain: dict[str, Any]
    expected: list[str]

    def drawn(self) -> list[str]:
        """The graph's lines."""
        return [f"{line.rails} {line.step}".rstrip() for line in lines(self.definition())]

    def definition(self) -> Definition:
        """What is drawn."""
        return read(self.plain)


def scenarios(path: Path) -> Iterator[Scenario]:
    """Those of a file."""
    for text in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name, *rows = [row for row in text.splitlines() if row.strip() and not row.startswith("#")]
        plain: dict[str, Any] = {"id": "w", "edges": [], "catalog": {}, "conditions": []}
        expected = []
        for row in rows:
            if row.startswith("condition "):
                plain["conditions"].append(json.loads(row.removeprefix("condition ")))
            elif row.startswith("draws "):
                step, drawing = row.removeprefix("draws ").split(" >> ")
                plain["catalog"][drawing] = {"kind": "input", "workflow": {"step": step}}
            elif ">>" in row:
                plain["edges"].append(row.split(" >> "))
            else:
                expected.append(row)
        for step in dict.fromkeys(step for edge in plain["edges"] for step in edge):
            place = {"path": f"/{step}"} if step[0] == "o" else {}
            plain["catalog"].setdefault(step, {**_ENTRIES[step[0]], **place})
        yield Scenario(name, plain, expected)
