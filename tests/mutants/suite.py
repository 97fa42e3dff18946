"""Runs test files that need nothing of pytest but ``parametrize``, without pytest: a tenth of the time.

For the many mutants of the checkers, whose suite is a table of functions. It stops at the first failure and
prints it as pytest does; the exit code is 1 then. A file with no test ends with 5, as with pytest.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import product
from types import ModuleType
from typing import Any

NO_TESTS = 5


def calls(module: ModuleType) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every test of a module, once for each set of its parameters."""
    for name, test in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(test):
            for arguments in sets(test):
                yield name, lambda test=test, arguments=arguments: test(**arguments)


def sets(test: Any) -> Iterator[dict[str, Any]]:
    """The arguments that ``parametrize`` gives a test."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if {*inspect.signature(test).parameters} - {name for mark in marks for name in named(mark.args[0])}:
        raise SystemExit(f"{test.__name__} needs fixtures, hence pytest")
    for chosen in product(*(mark.args[1] for mark in marks)):
        arguments: dict[str, Any] = {}
        for mark, values in zip(marks, chosen, strict=True):
            names, values = named(mark.args[0]), getattr(values, "values", values)
            if callable(values):
                values = (values,)
            arguments.update(zip(names, values if len(names) > 1 or isinstance(values, tuple) else (values,),
                                 strict=True))
        yield arguments


def named(names: Any) -> list[str]:
    """Argument names, however they were given."""
    return [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)


def main(files: list[str]) -> int:
    """Run files given by path."""
    count = 0
    for file in files:
        module = importlib.import_module(file.removeprefix("tests/").removesuffix(".py").replace("/", "."))
        for name, call in calls(module):
            count += 1
            try:
                call()
            except Exception as problem:
                print(f"FAILED {file}::{name} {type(problem).__name__}")
                return 1
    print(f"{count} passed")
    return 0 if count else NO_TESTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
