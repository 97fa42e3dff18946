"""Definitions of any shape, as plain data, for tests that draw them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SCALARS = (st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
           | st.text(max_size=5))
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=3)
PARAMETERS = st.dictionaries(st.sampled_from("nmk"), JSON, max_size=2)
SOURCES = st.sampled_from([
    {"files": "/data/*.txt"}, {"files": ["/data/a", "s3a://b/c*"]}, {"queue": "others"}, {"function": "acme:days"},
    {"offsets": "acme:topic"}, {"workflow": "former"}, {"workflow": {"id": "former", "step": "x"}},
    {"workflow": {"id": "former", "step": "x", "routed": True, "content": "0f" * 32}},
    {"jdbc": {"url": "jdbc:postgresql://db/shop", "table": "t"}},
    {"jdbc": {"url": "jdbc:postgresql://db/shop", "table": "t", "column": "id", "upper": 99, "partitions": 3,
              "options": {"fetchsize": "10"}, "credentials": "shop"}}])
RUNNING = st.fixed_dictionaries({}, optional={
    "least": st.integers(1, 3), "most": st.integers(3, 9), "percentage": st.integers(0, 100),
    "flux": st.sampled_from(["continue", "kill", "recover"]), "batch": st.integers(1, 1000),
    "timeout_s": st.floats(0.001, 100) | st.integers(1, 100), "attempts": st.integers(1, 1000)})
COMMON = st.fixed_dictionaries({}, optional={
    "tags": st.lists(st.sampled_from(["gpu", "ssd"]), unique=True, min_size=1), "doc": st.just("What it does.")})
DRAWING = st.fixed_dictionaries({}, optional={
    "max_pending": st.integers(1, 99), "root_timeout_s": st.integers(1, 99), "parameters": PARAMETERS})


@st.composite
def plain_definitions(draw: st.DrawFn) -> dict[str, Any]:
    """One that is right."""
    names = draw(st.permutations([f"s{number}" for number in range(draw(st.integers(2, 7)))]))
    inputs = draw(st.integers(1, len(names) - 1))
    edges = [(draw(st.sampled_from(names[:at])), names[at]) for at in range(inputs, len(names))]
    for at in range(inputs):
        if not any(source == names[at] for source, _ in edges):
            edges.append((names[at], draw(st.sampled_from(names[inputs:]))))
    for source in range(len(names)):
        for to in range(max(inputs, source + 1), len(names)):
            if draw(st.booleans()):
                edges.append((names[source], names[to]))
    edges = list(dict.fromkeys(edges))
    catalog = {}
    for at, name in enumerate(names):
        if at < inputs:
            catalog[name] = {"kind": "input", **draw(SOURCES), **draw(DRAWING), **draw(COMMON)}
        elif draw(st.booleans()) and all(source != name for source, _ in edges):
            catalog[name] = {"kind": "output", "path": f"/data/{name}", **draw(RUNNING), **draw(COMMON),
                             "format": draw(st.sampled_from(["json", "parquet"]))}
        else:
            catalog[name] = {"kind": "function", "function": "acme:work", **draw(RUNNING), **draw(COMMON),
                             "parameters": draw(PARAMETERS)}
    return {"id": "census", "edges": [[*edge] for edge in draw(st.permutations(edges))], "catalog": catalog,
            "conditions": draw(conditions(edges)), "lifecycles": draw(st.lists(lifecycles(names), max_size=2)),
            "spreading": draw(st.sampled_from(["balanced", "percentage", "colocated"])),
            "percentage": draw(st.integers(0, 100)), "metadata": draw(PARAMETERS)}


PREDICATES = st.recursive(
    st.sampled_from(["acme:is_word", ["acme:is_longer", "n", "given"], "skuld:always", ["acme:plain"]]),
    lambda inner: st.builds(lambda first, rest: [first, *rest], st.sampled_from(["and", "or"]),
                            st.lists(inner, min_size=1, max_size=3)) | st.builds(lambda one: ["not", one], inner),
    max_leaves=4)


@st.composite
def conditions(draw: st.DrawFn, edges: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Conditions that fit the edges: those that short-circuit first."""
    first, last = [], []
    for source, to in draw(st.lists(st.sampled_from(edges), max_size=3)):
        row = {"from": draw(st.sampled_from([source, "all"])),
               "to": draw(st.sampled_from([to, [to], "all", "none"])),
               "when": draw(PREDICATES), "parameters": {"n": 1, **draw(PARAMETERS)}}
        is_alone = row["to"] in ("all", "none")
        if draw(st.booleans()) and row["to"] != "none":
            row["exclude"] = ["key"]
        if draw(st.booleans()):
            row["short_circuit"] = is_alone = True
        (first if is_alone else last).append(row)
    return first + last


@st.composite
def lifecycles(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """A lifecycle of a step, or of all."""
    made = {"step": draw(st.sampled_from([*names, "all"])), "before_start": "acme:begin"}
    if draw(st.booleans()):
        made |= {"after_batch": "acme:end", "parameters": draw(PARAMETERS)}
    return made | ({"on_exception": draw(st.sampled_from(["kill", "restart", "defer", "acme:judge"]))}
                   if draw(st.booleans()) else {})
