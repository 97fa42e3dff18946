"""Definitions of any shape, as plain data, for tests that draw them.

A definition is a function of a seed: drawing each of its hundred choices by itself takes ten times as long.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import strategies as st

Plain = dict[str, Any]
Edges = list[tuple[str, str]]
SCALARS = (st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
           | st.text(max_size=5))
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=3)
SOURCES: tuple[Plain, ...] = (
    {"files": "/data/*.txt"}, {"files": ["/data/a", "s3a://b/c*"]}, {"queue": "others"}, {"function": "acme:days"},
    {"offsets": "acme:topic"}, {"workflow": "former"}, {"workflow": {"id": "former", "step": "x"}},
    {"workflow": {"id": "former", "step": "x", "routed": True, "content": "0f" * 32}},
    {"workflow": {"id": "former", "together": True}},
    {"jdbc": {"url": "jdbc:postgresql://db/shop", "table": "t"}},
    {"jdbc": {"url": "jdbc:postgresql://db/shop", "table": "t", "column": "id", "upper": 99, "partitions": 3,
              "options": {"fetchsize": "10"}, "credentials": "shop"}})
RUNNING: dict[str, tuple[Any, ...]] = {
    "least": (1, 3), "most": (3, 9), "percentage": (0, 30, 100), "flux": ("continue", "kill", "recover"),
    "batch": (1, 1000), "timeout_s": (0.001, 2.5, 60), "attempts": (1, 5, 1000)}
COMMON: dict[str, tuple[Any, ...]] = {"tags": (["gpu"], ["ssd", "gpu"]), "doc": ("What it does.",)}
DRAWING: dict[str, tuple[Any, ...]] = {"max_pending": (1, 10_000), "root_timeout_s": (1, 60, 0.5)}
PARAMETERS: tuple[Plain, ...] = ({}, {"n": 1}, {"m": [None, True, {"é": 1.5}], "k": "text"})


def plain_definitions() -> st.SearchStrategy[Plain]:
    """Those that are right."""
    metadata = st.dictionaries(st.text(max_size=5), JSON, max_size=1)
    return st.builds(plain_definition, st.integers(0, 1 << 32), metadata)


def plain_definition(seed: int, metadata: Plain) -> Plain:
    """The one of a seed."""
    random = Random(seed)
    names = [f"s{number}" for number in range(random.randint(2, 7))]
    random.shuffle(names)
    inputs = random.randint(1, len(names) - 1)
    edges = _edges(random, names, inputs)
    catalog: Plain = {}
    for at, name in enumerate(names):
        common = _some(random, COMMON)
        if at < inputs:
            catalog[name] = {"kind": "input", **random.choice(SOURCES), **_some(random, DRAWING), **common}
        elif random.random() < 0.5 and all(source != name for source, _ in edges):
            catalog[name] = {"kind": "output", "path": f"/data/{name}", **_some(random, RUNNING), **common,
                             "format": random.choice(["json", "parquet"])}
        else:
            catalog[name] = {"kind": "function", "function": "acme:work", **_some(random, RUNNING), **common,
                             "parameters": random.choice(PARAMETERS)}
    return deepcopy({
        "id": "census", "edges": [[*edge] for edge in edges], "catalog": catalog,
        "conditions": _conditions(random, edges),
        "lifecycles": [_lifecycle(random, names) for _ in range(random.randint(0, 2))],
        "spreading": random.choice(["balanced", "percentage", "colocated"]),
        "percentage": random.choice([0, 100]), "metadata": metadata})


def _some(random: Random, options: dict[str, tuple[Any, ...]]) -> Plain:
    return {key: random.choice(values) for key, values in options.items() if random.random() < 0.5}


def _edges(random: Random, names: list[str], inputs: int) -> Edges:
    """Each step has a parent before it, or is an input; and some more."""
    edges = [(random.choice(names[:at]), names[at]) for at in range(inputs, len(names))]
    edges += [(name, random.choice(names[inputs:])) for name in names[:inputs]]
    edges += [(names[source], names[to]) for source in range(len(names))
              for to in range(max(inputs, source + 1), len(names)) if random.random() < 0.4]
    edges = list(dict.fromkeys(edges))
    random.shuffle(edges)
    return edges


def _conditions(random: Random, edges: Edges) -> list[Plain]:
    """Conditions that fit the edges: those that short-circuit first."""
    first, last = [], []
    for source, to in random.choices(edges, k=random.randint(0, 3)):
        row: Plain = {"from": random.choice([source, "all"]), "to": random.choice([to, [to], "all", "none"]),
                      "when": _predicate(random, 3), "parameters": {"n": 1, **random.choice(PARAMETERS)}}
        is_alone = row["to"] in ("all", "none")
        if random.random() < 0.5 and row["to"] != "none":
            row["exclude"] = ["key"]
        if random.random() < 0.5:
            row["short_circuit"] = is_alone = True
        (first if is_alone else last).append(row)
    return first + last


def _predicate(random: Random, depth: int) -> Any:
    word = random.choice(["and", "or", "not", *("name" for _ in range(4 - depth))]) if depth else "name"
    if word == "name":
        return random.choice(["acme:is_word", ["acme:is_longer", "n", "given"], "skuld:always", ["acme:plain"]])
    return [word, *(_predicate(random, depth - 1) for _ in range(1 if word == "not" else random.randint(1, 3)))]


def _lifecycle(random: Random, names: list[str]) -> Plain:
    made: Plain = {"step": random.choice([*names, "all"]), "before_start": "acme:begin"}
    if random.random() < 0.5:
        made |= {"after_batch": "acme:end", "parameters": random.choice(PARAMETERS)}
    if random.random() < 0.5:
        made["on_exception"] = random.choice(["kill", "restart", "defer", "acme:judge"])
    return made
