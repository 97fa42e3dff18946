"""Mutants of how nodes are named by people."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

MUTANTS: tuple[Mutant, ...] = (
    mutant("names-in-brackets", "a node at an IPv6 address may be named with brackets", "node_names.node_name",
           "match := _IPV6.fullmatch(text)", "match := None", "A1",
           "tests/client/test_node_names.py::test_brackets_or_none", seeds=0),
    mutant("names-as-typed", "an IPv6 address is one name however it is written", "node_names.node_name",
           "str(IPv6Address(match[1] or match[2]))", "match[1] or match[2]", "A1",
           "tests/client/test_node_names.py::test_brackets_or_none", seeds=0),
)
