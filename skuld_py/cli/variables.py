"""The environment: which variables that begin like ours are none of any verb's.

A misspelt one would be a default that was not meant, without a word: so it is refused by name, whatever the verb.
Only where a variable is neither shared nor the verb's own are other verbs loaded to find its owner. Kept free: the
names of a wrong clock (``runtime.wrong_time``), and those with ``SKULD_TEST_`` in front, which no verb shall have.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

import click

from skuld_py.cli.twins import PREFIX, SHARED, options_of, variable
from skuld_py.cli.verbed import inner_of
from skuld_py.errors import Refused

_FREE = (f"{PREFIX}_WRONG_TIME_", f"{PREFIX}_TEST_")


class BadVariable(Refused):
    """A variable that no verb has."""


def check(environment: Iterable[str], commands: Iterable[click.Command | None]) -> None:
    """Refuse names that begin with ``SKULD_`` and are of none of the commands. No more of these are taken than are
    needed to find all owners."""
    known = {variable(key) for key in SHARED}
    left = {name for name in environment if name.startswith(f"{PREFIX}_") and not name.startswith(_FREE)} - known
    for command in commands if left else ():
        if command is not None:
            found = {*_names_of(command)}
            known |= found
            left -= found
        if not left:
            return
    if left:
        name = min(left)
        near = difflib.get_close_matches(name, sorted(known), n=1)
        remedy = f"did you mean {near[0]}?" if near else "unset it, or see 'skuld --help' for how they are named"
        raise BadVariable("bad_variable", f"${name}: no verb has an option of this name; {remedy}", variable=name)


def _names_of(command: click.Command) -> Iterator[str]:
    """The variables of all its options, and of the commands in it that have been loaded."""
    for option in options_of(command).values():
        names = option.envvar or ()
        yield from (names,) if isinstance(names, str) else names
    for inner in inner_of(command).values():
        yield from _names_of(inner)
