"""No test fails because the machine is busy: examples have no limit by the clock."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]


def test_examples_may_take_their_time() -> None:
    assert settings().deadline is None


def test_no_test_sets_a_limit_for_examples() -> None:
    limits = [f"{path.name}:{call.lineno}" for path in TESTS.rglob("*.py")
              for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
              if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "settings"
              for keyword in call.keywords if keyword.arg == "deadline" and ast.unparse(keyword.value) != "None"]
    assert limits == []
