"""Proof that the search for walked sets finds them, and leaves alone what is sorted or free of order.

The walk over the package itself is in `test_layers.py`, beside the other rules that keep the machines
deterministic.
"""

from __future__ import annotations

import textwrap

import pytest

from tidy.set_order import set_attributes, set_iteration

MODULE = "skuld_py.node.node"

WALKED = {
    "a display": "for x in {1, 2}: f(x)",
    "a call": "for x in set(xs): f(x)",
    "a frozen one": "for x in frozenset(xs): f(x)",
    "a set comprehension": "for x in {y for y in ys}: f(x)",
    "in a comprehension": "xs = [f(x) for x in {1, 2}]",
    "in a dict comprehension": "xs = {x: 1 for x in set(ys)}",
    "in an inner comprehension": "xs = [f(x, y) for y in ys for x in set(y)]",
    "in a generator": "g(f(x) for x in set(ys))",
    "as a list": "xs = list(set(ys))",
    "as a tuple": "xs = tuple(frozenset(ys))",
    "numbered": "for i, x in enumerate({1, 2}): f(x)",
    "joined": "text = ','.join({'a', 'b'})",
    "as text": "text = f'{set(xs)}'",
    "in repr": "text = repr(set(xs))",
    "spread": "xs = [*set(ys)]",
    "spread in a call": "f(*set(ys))",
    "unpacked": "a, b = {1, 2}",
    "as keys": "d = dict.fromkeys(set(xs))",
    "appended": "xs.extend(set(ys))",
    "one of it": "x = next(iter(set(xs)))",
    "popped": "def f(xs: set[int]):\n    return xs.pop()",
    "first of equals": "x = max(set(xs), key=len)",
    "yielded": "def f():\n    yield from {1, 2}",
    "a union": "for x in a.x | {1}: f(x)",
    "a difference of keys": "for x in a.keys() - b.keys(): f(x)",
    "a method's": "for x in set(a).union(b): f(x)",
    "sorted, then a set again": "for x in set(sorted(xs)): f(x)",
    "one way or the other": "for x in (set(a) if a else set()): f(x)",
    "an argument": "def f(peers: frozenset[str]):\n    for peer in peers: g(peer)",
    "a keyword argument": "def f(*, peers: AbstractSet[str]):\n    return [g(peer) for peer in peers]",
    "an argument in quotes": "def f(peers: 'set[str]'):\n    return tuple(peers)",
    "an argument that may be None": "def f(peers: set[str] | None):\n    for peer in peers or (): g(peer)",
    "an argument, from within": "def f(peers: set[str]):\n    def g():\n        return list(peers)",
    "a name": "peers: set[str] = make()\nfor peer in peers: f(peer)",
    "a name without annotation": "def f():\n    peers = set()\n    for peer in peers: g(peer)",
    "an alias": "Peers = frozenset[str]\ndef f(peers: Peers):\n    for peer in peers: g(peer)",
    "a field": "class A:\n    peers: frozenset[str]\n    def f(self):\n        for x in self.peers: g(x)",
    "an attrs field": (
        "@define\nclass A:\n    peers: set[str] = field(factory=set)\ndef f(a):\n    return list(a.peers)"
    ),
    "an attribute": (
        "class A:\n"
        "    def __init__(self):\n"
        "        self.xs: set[int] = set()\n"
        "    def f(self):\n"
        "        for x in self.xs: g(x)"
    ),
    "a function's answer": "def f() -> set[int]: ...\nfor x in f(): g(x)",
    "a method's answer": (
        "class A:\n    def f(self) -> set[int]: ...\n    def g(self):\n        return tuple(self.f())"
    ),
    "a set in a dict": "def f(d: dict[str, set[int]]):\n    for x in d['a']: g(x)",
    "a set out of a dict": "def f(d: dict[str, set[int]]):\n    for x in d.get('a', ()): g(x)",
    "every set of a dict": (
        "def f(d: dict[str, set[int]]):\n    for k, xs in d.items():\n        for x in xs: g(x)"
    ),
    "every set of a dict, sorted": (
        "def f(d: dict[str, set[int]]):\n    for k, xs in sorted(d.items()):\n        for x in xs: g(x)"
    ),
    "a set in a list": "def f(d: list[set[int]]):\n    return [x for xs in d for x in xs]",
    "two classes, one a set": """
        class A:
            xs: tuple[int, ...]
        class B:
            xs: set[int]
        def f(b: B):
            for x in b.xs: g(x)
        """,
}

NOT_WALKED = {
    "sorted": "for x in sorted({1, 2}): f(x)",
    "sorted by": "for x in sorted(set(xs), key=len): f(x)",
    "sorted after": "xs = sorted([f(x) for x in set(xs)])",
    "sorted after a list": "xs = sorted(list(set(xs)))",
    "sorted after map": "xs = sorted(map(f, set(xs)))",
    "membership": "if 'a' in {'a', 'b'}: pass",
    "length": "n = len(set(xs))",
    "a count": "def f(peers: set[str]):\n    return sum(g(peer) for peer in peers)",
    "any and all": (
        "def f(peers: set[str]):\n    return any(g(p) for p in peers) and all(g(p) for p in peers)"
    ),
    "the least": "def f(xs: set[int]):\n    return min(xs, default=0) + max(x + 1 for x in xs)",
    "a set from a set": "xs = {f(x) for x in set(ys)}",
    "a set from a generator": "xs = frozenset(f(x) for x in set(ys))",
    "a set from sets": "xs = {*set(xs), 1}",
    "into a set": "def f(xs: set[int], ys: set[int]):\n    xs.update(g(y) for y in ys)",
    "a dict": "for x in {1: 2}: f(x)",
    "a dict's keys": "for x in d.keys(): f(x)",
    "a dict's pop": "def f(d: dict[str, int]):\n    return d.pop('a')",
    "a tuple": "def f(peers: tuple[str, ...]):\n    for peer in peers: g(peer)",
    "a number": "for x in range(a | b): f(x)",
    "another function's name": "def f(xs: set[int]): ...\ndef g(xs: list[int]):\n    for x in xs: h(x)",
    "keys of a dict of sets": "def f(d: dict[str, set[int]]):\n    for k, xs in d.items(): g(k, sorted(xs))",
    "a sorted set": "def f(xs: set[int]):\n    ys = sorted(xs)\n    for y in ys: g(y)",
    "two classes, the other a set": """
        class A:
            xs: tuple[int, ...]
            def f(self):
                for x in self.xs: g(x)
        class B:
            xs: set[int]
        """,
}


@pytest.mark.parametrize("source", WALKED.values(), ids=WALKED.keys())
def test_a_walked_set_is_reported(source: str) -> None:
    assert len(set_iteration(MODULE, textwrap.dedent(source))) == 1


@pytest.mark.parametrize("source", NOT_WALKED.values(), ids=NOT_WALKED.keys())
def test_what_does_not_depend_on_order_is_left_alone(source: str) -> None:
    assert set_iteration(MODULE, textwrap.dedent(source)) == []


@pytest.mark.parametrize(
    ("module", "is_checked"),
    [
        ("skuld_py.crdt.lattice", True),
        ("skuld_py.simulation.world", True),
        ("skuld_py.runtime.loop", False),
        ("skuld_py.cli.main", False),
    ],
)
def test_only_the_deterministic_rooms_are_searched(module: str, is_checked: bool) -> None:
    assert bool(set_iteration(module, "xs = list({1, 2})")) == is_checked


def test_an_attribute_that_is_a_set_wherever_it_is_annotated_is_one_in_other_modules_too() -> None:
    model = ("skuld_py.model.document", "class Document:\n    cohort: frozenset[str]\n    heirs: set[str]")
    other = ("skuld_py.model.other", "class Other:\n    heirs: tuple[str, ...]")
    attributes = set_attributes([model, other])

    assert attributes == {"cohort"}
    assert set_iteration(MODULE, "for node in document.cohort: f(node)", attributes)
    assert not set_iteration(MODULE, "for node in document.heirs: f(node)", attributes)
