"""The environment: which variables that begin like ours are none of any verb's.

A misspelt one is refused by name, whatever the verb (``variables`` says why, and what is kept free). Only
where a variable is neither shared nor the verb's own are other verbs loaded to find its owner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import click

from skuld_py.cli.twins import SHARED, options_of, variable
from skuld_py.cli.verbed import inner_of
from skuld_py.errors import Refused
from skuld_py.variables import doubtful, remedy


class BadVariable(Refused):
    """A variable that no verb has."""


def check(environment: Collection[str], commands: Iterable[click.Command | None]) -> None:
    """Refuse names that begin with ``SKULD_`` and are of none of the commands. No more of these are taken than are
    needed to find all owners."""
    known, left = {variable(key) for key in SHARED}, doubtful(environment)
    for command in commands if left else ():
        if command is not None:
            found = {*_names_of(command)}
            known |= found
            left -= found
        if not left:
            return
    if left:
        name = min(left)
        todo = remedy(name, known, "unset it, or see 'skuld --help' for how they are named")
        raise BadVariable("bad_variable", f"${name}: no verb has an option of this name; {todo}", variable=name)


def _names_of(command: click.Command) -> Iterator[str]:
    """The variables of all its options, and of the commands in it that have been loaded."""
    for option in options_of(command).values():
        names = option.envvar or ()
        yield from (names,) if isinstance(names, str) else names
    for inner in inner_of(command).values():
        yield from _names_of(inner)
