"""Functions and files stay short enough to be read in one go; the exceptions are listed and only shrink."""

from __future__ import annotations

from tidy import rules

# What may be longer, with its length in lines: "skuld_py/room/file.py:Class.method", or
# "skuld_py/room/file.py" for a whole file. An entry must be exact: what has grown fails, and what has shrunk
# fails until its entry follows.
LONGER: dict[str, int] = {}

MODULE = "skuld_py.node.node"
PATH = "skuld_py/node/node.py"


def function(lines: int, *, indent: str = "", docstring: int = 0) -> str:
    """The text of a function `long` of so many lines, plus those of its docstring."""
    body = ['"""Why.', *["more"] * (docstring - 2), '"""'] if docstring else []
    body += ["x = 1"] * (lines - 1)
    return indent + "def long():\n" + "".join(f"{indent}    {line}\n" for line in body)


def test_no_function_and_no_file_is_longer_than_agreed() -> None:
    longer: dict[str, int] = {}
    for module, source in rules.modules():
        longer |= rules.lengths(module, source)

    complaints = rules.ratchet(longer, LONGER)

    assert not complaints, "\n" + "\n".join(complaints)


def test_a_function_of_45_lines_is_fine_and_one_of_46_is_not() -> None:
    assert rules.lengths(MODULE, function(45)) == {}
    assert rules.lengths(MODULE, function(46)) == {f"{PATH}:long": 46}


def test_a_docstring_does_not_count() -> None:
    assert rules.lengths(MODULE, function(45, docstring=30)) == {}
    assert rules.lengths(MODULE, function(46, docstring=30)) == {f"{PATH}:long": 46}


def test_methods_and_coroutines_count_under_their_full_name() -> None:
    method = "class Node:\n" + function(46, indent="    ")
    coroutine = "async " + function(46)

    assert rules.lengths(MODULE, method) == {f"{PATH}:Node.long": 46}
    assert rules.lengths(MODULE, coroutine) == {f"{PATH}:long": 46}


def test_a_file_of_499_lines_is_fine_and_one_of_500_is_not() -> None:
    assert rules.lengths(MODULE, "x = 1\n" * 499) == {}
    assert rules.lengths(MODULE, "x = 1\n" * 500) == {PATH: 500}


def test_what_is_too_long_is_reported_unless_tolerated() -> None:
    longer = {f"{PATH}:long": 46, PATH: 500}

    assert len(rules.ratchet(longer, {})) == 2
    assert rules.ratchet(longer, longer) == []


def test_a_tolerance_may_only_shrink() -> None:
    grown, shrunk, gone = [rules.ratchet(now, {PATH: 550}) for now in ({PATH: 551}, {PATH: 549}, {})]

    assert "has grown" in grown[0]
    assert "lower its entry" in shrunk[0]
    assert "take it out" in gone[0]
