"""A definition out of plain data, or out of text, checked whole.

    definition = read({"id": "words", "edges": [["lines", "words"]], "catalog": {...}})
    definition = parse(text)                # JSON, as ``writing`` gives it
    definition = parse(text, is_stored=True)

Plain data are what JSON and TOML have: tables, lists, texts, numbers, true and false.

A definition that is stored was right for the release that submitted it, and its workflow may live. So a rule that
later releases add, for something that runs all the same, holds for new definitions only.

Invariant: any bytes give a ``Definition`` or ``BadWorkflow``, in time and memory bounded by the limits of
``names``; and ``BadWorkflow`` has everything that is wrong. What depends on something that is wrong itself is not
told.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from skuld_py.workflow.definition.catalog import entry_of, workflow_id
from skuld_py.workflow.definition.definition import Condition, Definition, Edge, neighbours, own_draws
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.faults import BadWorkflow, Fault, Faults, meant, quoted
from skuld_py.workflow.definition.fields import Table, choice, plain, whole
from skuld_py.workflow.definition.names import CONDITIONS_MAX, EDGES_MAX, LIFECYCLES_MAX, STEPS_MAX, TEXT_BYTES_MAX
from skuld_py.workflow.definition.rules import check_conditions, condition_of, lifecycle_of
from skuld_py.workflow.definition.shape import check_shape
from skuld_py.workflow.definition.sources import Outputs, Queue
from skuld_py.workflow.definition.writing import text_of
from skuld_py.workflow.scheduling.demand import Spreading

_TOO_LARGE = f"{TEXT_BYTES_MAX} are the most; put data elsewhere, and name the place"


def read(value: Any, *, is_stored: bool = False) -> Definition:
    """The definition that plain data stand for; raises ``BadWorkflow``."""
    return _Reading(value, is_stored).definition()


def parse(text: str | bytes, *, is_stored: bool = False) -> Definition:
    """The definition of a JSON text; raises ``BadWorkflow``. ``is_stored``: it is a plan task's payload."""
    if len(text) > TEXT_BYTES_MAX:
        raise _bad(f"has {len(text)} bytes", _TOO_LARGE)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise _bad(f"is no JSON: {str(problem)[:200]}", "write it as JSON has it") from None
    return read(value, is_stored=is_stored)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {quoted(twice)} stands twice in a table")
    return made


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _bad(problem: str, remedy: str) -> BadWorkflow:
    return BadWorkflow([Fault("", "definition", problem, remedy)])


class _Reading:
    def __init__(self, value: Any, is_stored: bool) -> None:
        if not isinstance(value, Mapping):
            raise _bad(f"{quoted(value)} is no table", "write id, edges and catalog")
        self._faults = Faults()
        self._table = Table(self._faults, "", value)
        self._is_stored = is_stored
        self._are_all = True

    def definition(self) -> Definition:
        table = self._table
        named = table.need("id", workflow_id, "", "give the workflow a name of its own, as census-2026")
        entries = self._entries()
        edges = self._edges(entries)
        kinds = {step: None if entry is None else entry.kind for step, entry in entries.items()}
        children = {step: tuple(sorted(to)) for step, to in neighbours(kinds, edges).items()}
        check_shape(self._faults, kinds, edges, are_all=self._are_all)
        self._check_places(entries)
        self._check_draws(named, entries, edges)
        inputs = [step for step, kind in kinds.items() if kind is Kind.INPUT]
        conditions = self._conditions(children, inputs)
        lifecycles = tuple(lifecycle_of(each, children) for each in self._rows("lifecycles", LIFECYCLES_MAX))
        spreading = table.take("spreading", choice(Spreading), Spreading.BALANCED)
        percentage = table.take("percentage", whole(0, 100), 0)
        metadata = table.take("metadata", plain, {})
        table.end()
        self._faults.refuse()
        found = {step: entry for step, entry in sorted(entries.items()) if entry is not None}
        made = Definition(named, tuple(sorted(edges)), found, tuple(conditions), lifecycles, spreading, percentage,
                          metadata)
        size = len(text_of(made).encode())
        if size > TEXT_BYTES_MAX:
            raise _bad(f"has {size} bytes as text", _TOO_LARGE)
        return made

    def _entries(self) -> dict[str, Entry | None]:
        catalog = self._table.raw("catalog")
        if not isinstance(catalog, Mapping) or not catalog:
            self._table.fault("catalog", "is missing" if catalog is None else f"{quoted(catalog)} says of no step"
                              " what it is", "write a table for each step")
            return {}
        if len(catalog) > STEPS_MAX:
            self._table.fault("catalog", f"has {len(catalog)} steps", f"{STEPS_MAX} are the most; let one step do"
                              " more, told by its values what")
            return {}
        return {str(step): entry_of(self._faults, str(step), value, is_stored=self._is_stored)
                for step, value in catalog.items()}

    def _edges(self, steps: Mapping[str, Any]) -> list[Edge]:
        """Pairs, of lists that may be longer: each step of a list leads to the next one."""
        rows = self._table.raw("edges")
        if not isinstance(rows, list | tuple) or not rows:
            self._table.fault("edges", "is missing" if rows is None else f"{quoted(rows)} is no list of edges",
                              'write [["lines", "words"], ["words", "count"]]')
            self._are_all = False
            return []
        pairs: list[Edge] = []
        known: set[Edge] = set()
        for index, row in enumerate(rows):
            place = f"edges[{index}]"
            if not isinstance(row, list | tuple) or len(row) < 2:
                self._faults.add(place, "", f"{quoted(row)} is no edge", 'write ["lines", "words"]')
                self._are_all = False
                continue
            pairs += self._pairs(place, row, steps, known)
            if len(pairs) > EDGES_MAX:
                self._faults.add("", "edges", f"there are more than {EDGES_MAX}", "let steps do more")
                break
        return pairs

    def _pairs(self, place: str, row: Any, steps: Mapping[str, Any], known: set[Edge]) -> list[Edge]:
        unknown = [step for step in row if not isinstance(step, str) or step not in steps]
        for step in unknown if steps else ():
            self._faults.add(place, "", f"{quoted(step)} is no step of the catalog", meant(str(step), steps))
        found: list[Edge] = []
        for source, to in pairwise(row):
            if source in unknown or to in unknown:
                self._are_all = False
            elif source == to:
                self._faults.add(place, "", f"{source} >> {to} leads to the step itself", "take it out")
            elif (source, to) in known:
                self._faults.add(place, "", f"{source} >> {to} stands there twice", "take one of them out")
            else:
                found.append((source, to))
                known.add((source, to))
        return found

    def _rows(self, key: str, most: int) -> list[Table]:
        rows = self._table.raw(key)
        if rows is None:
            return []
        if not isinstance(rows, list | tuple) or len(rows) > most:
            self._table.fault(key, f"{quoted(rows)} is no list" if not isinstance(rows, list | tuple)
                              else f"there are {len(rows)}", f"write a list of at most {most} tables")
            return []
        tables = [Table(self._faults, f"{key}[{index}]", row) for index, row in enumerate(rows)]
        return [table for table in tables if table.is_table]

    def _conditions(self, children: Mapping[str, tuple[str, ...]], inputs: Collection[str]) -> list[Condition]:
        made: list[Condition] = []
        sound: list[tuple[str, Condition]] = []
        for table in self._rows("conditions", CONDITIONS_MAX):
            before = self._faults.count
            made.append(condition_of(table, children))
            if self._faults.count == before:
                sound.append((table.entry, made[-1]))
        if self._are_all:
            check_conditions(self._faults, sound, children, inputs)
        return made

    def _check_draws(self, named: str, entries: Mapping[str, Entry | None], edges: list[Edge]) -> None:
        """An input that draws from this same workflow waits until the step is finished, so not for itself."""
        sources = {step: entry.source for step, entry in entries.items() if entry is not None}
        for step, source in sources.items():
            if isinstance(source, Outputs) and source.workflow == named != "":
                self._faults.add(step, "workflow.id", f"{named} is this workflow", "leave the id out, and name a"
                                 " step")
        drawn = own_draws(entries)
        for of, step in drawn:
            if of not in entries:
                self._faults.add(step, "workflow.step", f"{quoted(of)} is no step of the catalog",
                                 meant(of, entries))
        known = [(of, step) for of, step in drawn if of in entries]
        after = neighbours(entries, [*edges, *known])
        before = neighbours(entries, [(to, source) for source, to in edges])
        for of, step in known:
            if of in reached_from(step, after):
                self._faults.add(step, "workflow.step", f"{of} comes after {step}, which would wait for its own"
                                 " end", "name a step that other inputs lead to")
            for each in reached_from(of, before):
                if isinstance(sources.get(each), Queue):
                    self._faults.add(step, "workflow.step", f"{of} gets what {each} draws from a queue, which has"
                                     " no end", "name a step that no queue leads to")

    def _check_places(self, entries: Mapping[str, Entry | None]) -> None:
        """Two outputs at one place would each take the other's files for its own."""
        places: dict[str, str] = {}
        for step, entry in entries.items():
            if entry is None or entry.target is None or not entry.target.path:
                continue
            other = places.setdefault(entry.target.path, step)
            if other != step:
                self._faults.add(step, "path", f"{quoted(entry.target.path)} is that of {other}, too", "write to"
                                 " another one, or let one output take the values of both")


def reached_from(step: str, ways: Mapping[str, Sequence[str]]) -> Collection[str]:
    """A step, and all to which ways lead from it."""
    reached, left = {step: None}, [step]
    while left:
        fresh = [to for to in ways[left.pop()] if to not in reached]
        reached |= dict.fromkeys(fresh)
        left += fresh
    return reached
