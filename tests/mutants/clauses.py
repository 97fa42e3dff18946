"""Mutants of the checkers: every clause dropped or bent, so that a clause that no planted story needs is seen.

They are made by a program: each condition becomes true and false, each operand of an ``and`` or ``or`` is
left out, each comparison moves by its edge, each report of a violation is not made, each count that tells a
test from a vacuous run is constant. All are tried against the planted stories and the monitor's tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mutants.mutant import Edit, Mutant

SUITE = ("tests/simulation/test_checkers.py", "tests/simulation/test_monitor.py")
MUTATED = ("claims", "convergence", "durability", "epochs", "evidence", "indexes", "interface",
           "limits", "order", "reading", "settings", "survival")
BENT: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
Change = tuple[ast.expr | ast.stmt, str, str]
"""A node of the tree, what is said of its change, and the text that takes its place."""


def mutants(top: Path) -> list[Mutant]:
    """All mutants of the checkers and of the monitor under a tree."""
    files = [f"simulation/checkers/{name}.py" for name in MUTATED] + ["simulation/monitor.py"]
    return [each for file in files for each in mutants_of(file, (top / "skuld_py" / file).read_text("utf-8"))]


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """The mutants of one file; each writes it whole, for the same condition may stand in it twice."""
    place = file.removesuffix(".py").replace("/", ".")
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node, what, text in changes(function):
            if _owner(function, node):
                changed = _replace(source, node, text)
                name = f"{Path(file).stem}:{node.lineno}:{node.col_offset} {what}"
                yield Mutant(name, f"{function.name}: {what}", (Edit(place, source, changed),), "", SUITE, 0,
                             runner="mutants.suite")


def _owner(function: ast.FunctionDef, node: ast.AST) -> bool:
    """Whether no inner function holds the node, which will be visited by itself."""
    inner = [each for each in ast.walk(function) if isinstance(each, ast.FunctionDef) and each is not function]
    return not any(node in ast.walk(each) for each in inner)


def changes(function: ast.FunctionDef) -> Iterator[Change]:
    """Everything that may be bent in a function."""
    said = {part for text in ast.walk(function) if isinstance(text, ast.JoinedStr | ast.Assert)
            for part in ast.walk(text)}
    for node in ast.walk(function):
        if node in said:
            continue  # what evidence says is for people; what is asserted is for the type checker
        if isinstance(node, ast.If | ast.IfExp):
            yield node.test, "condition true", "True"
            yield node.test, "condition false", "False"
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, "filter dropped", "True"
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                kept = [other for other in node.values if other is not value]
                joined = (" and " if isinstance(node.op, ast.And) else " or ").join(map(ast.unparse, kept))
                yield node, f"without {ast.unparse(value)[:40]}", f"({joined})"
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            bent = ast.Compare(node.left, [BENT[type(node.ops[0])]()], node.comparators)
            yield node, "comparison bent", f"({ast.unparse(bent)})"
        elif isinstance(node, ast.Expr) and _is_report(node.value):
            yield node, "nothing reported", "None; yield from ()" if _yields(node.value) else "None"


def _is_report(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return _yields(value) or (isinstance(called, ast.Attribute) and called.attr in ("append", "blame"))


def _yields(value: ast.expr) -> bool:
    return isinstance(value, ast.Yield | ast.YieldFrom)


def _replace(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


