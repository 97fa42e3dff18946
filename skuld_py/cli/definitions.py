"""The definition that a command line names: a file of JSON or TOML, standard input, or a name in a Python module.

A name in a module is a ``skuld_py.Workflow``, a definition, or a function that gives one of them. The module is
imported as ``skuld worker --app`` imports it, so it may be in the current directory.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skuld_py.errors import Refused

if TYPE_CHECKING:
    from skuld_py.workflow.definition.definition import Definition
    from skuld_py.workflow.definition.faults import BadWorkflow

FILE_BYTES_MAX = 1 << 20
"""Of a file with its comments and spaces."""

definition_argument = click.argument("file", metavar="FILE")


def definition_of(file: str) -> Definition:
    """The definition, checked; raises ``Refused``."""
    if file == "-":
        return _parsed(sys.stdin.buffer.read(FILE_BYTES_MAX + 1), is_toml=None)
    path = Path(file)
    if not path.exists() and ":" in file:
        return _imported(file)
    try:
        with path.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Refused("no_such_file", f"file: {file} cannot be read: {error.strerror}; name a file of JSON or"
                      " TOML, - for standard input, or MODULE:NAME", file=file) from None
    return _parsed(data, is_toml={".toml": True, ".json": False}.get(path.suffix.lower()))


def _parsed(data: bytes, *, is_toml: bool | None) -> Definition:
    """By the file's name; if that says nothing, JSON begins with a brace."""
    from skuld_py.workflow.definition.reading import parse, read

    if len(data) > FILE_BYTES_MAX:
        raise _bad(f"has more than {FILE_BYTES_MAX} bytes", "put data elsewhere, and name the place")
    if not (data.lstrip()[:1] != b"{" if is_toml is None else is_toml):
        return parse(data)
    try:
        value = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as problem:
        raise _bad(f"is no TOML: {str(problem)[:200]}", "write it as TOML has it") from None
    return read(value)


def _imported(name: str) -> Definition:
    from skuld_py.worker.apps import load_apps
    from skuld_py.workflow.definition.builder import Workflow
    from skuld_py.workflow.definition.definition import Definition

    module, _, attribute = name.partition(":")
    load_apps([module], may_lack=True)
    found: Any = vars(sys.modules[module]).get(attribute)
    if inspect.isfunction(found) and _needs_nothing(found):
        found = found()
    if isinstance(found, Workflow):
        return found.definition()
    if isinstance(found, Definition):
        return found
    raise Refused("no_workflow", f"file: {name} is {'nothing' if found is None else 'a ' + type(found).__name__};"
                  " name a skuld_py.Workflow, or a function without arguments that gives one", file=name)


def _needs_nothing(function: Any) -> bool:
    return all(each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
               for each in inspect.signature(function).parameters.values())


def _bad(problem: str, remedy: str) -> BadWorkflow:
    from skuld_py.workflow.definition.faults import BadWorkflow, Fault

    return BadWorkflow([Fault("", "definition", problem, remedy)])
