"""``skuld config show``: what every option of a verb would be now, and where that comes from.

Nothing is run and nothing is contacted: a value is what was typed in the environment or in the file, or the
option's own default, in the order in which the verb would look.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource

from skuld_py.cli import failures
from skuld_py.cli.groups import Words
from skuld_py.cli.options import json_option
from skuld_py.cli.settings import Settings
from skuld_py.cli.twins import ALL, Path, options_of, variable, variable_in_use
from skuld_py.cli.verbed import inner_of


@click.group(cls=Words)
def config() -> None:
    """Look at what options are, and where that comes from."""


@config.command()
@click.argument("verb", nargs=-1)
@click.option("--changed", is_flag=True, show_default=False, help="Only what is no default.")
@json_option
@click.pass_context
def show(ctx: click.Context, verb: tuple[str, ...], changed: bool, as_json: bool) -> None:
    """Print every setting of VERB, or of all verbs: its value, and where that comes from: a variable of the
    environment, a line of the configuration file, or the default.

    A key is what stands in the file, under the table of the verb; a variable is shown where it is set.

    \b
    Examples:
      skuld config show node
      skuld config show cluster create
      skuld config show --changed
    """
    from skuld_py.cli.showing import print_json, print_table, table

    rows = [row for path, command in _commands(ctx, verb) for row in _rows(ctx, path, command)
            if not changed or row["from"] != "default"]
    if as_json:
        print_json(rows)
        return
    made = table("setting", "value", "from")
    for line in dict.fromkeys(_line(row, is_of_all=not verb) for row in rows):
        made.add_row(*line)
    print_table(made)


def _line(row: dict[str, Any], *, is_of_all: bool) -> tuple[str, str, str]:
    """A row for people. Where all verbs are shown, what they share is one line, and not one for each."""
    shared = (f"${variable(row['key'])}", f": {ALL}.{row['key']}")
    table = ALL if is_of_all and row["from"].endswith(shared) else row["verb"]
    return f"{table}.{row['key']}", "-" if row["value"] is None else str(row["value"]), row["from"]


def _commands(ctx: click.Context, words: tuple[str, ...]) -> Iterator[tuple[Path, click.Command]]:
    """The verbs named, or all, those of groups one by one."""
    program = ctx.find_root().command
    assert isinstance(program, click.Group)
    for name in words[:1] or program.list_commands(ctx):
        found = program.get_command(ctx, name)
        path: Path = (name,)
        for word in words[1:]:
            found = None if found is None else inner_of(found).get(word)
            path = (*path, word)
        if found is None:
            raise click.UsageError(f"there is no verb {shlex.join(words)!r}; see 'skuld --help' for those there"
                                   " are.")
        yield from _inner(path, found)


def _inner(path: Path, command: click.Command) -> Iterator[tuple[Path, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
    for name, inner in inner_of(command).items():
        yield from _inner((*path, name), inner)


def _rows(ctx: click.Context, path: Path, command: click.Command) -> Iterator[dict[str, Any]]:
    settings = failures.settings_of(ctx)
    looking = click.Context(command, info_name=path[-1], default_map=settings.defaults(path, command))
    for key, option in options_of(command).items():
        value, source = option.consume_value(looking, {})
        if value is None or callable(value) or not isinstance(value, str | int | float | bool | list | tuple):
            value = None if not isinstance(option.show_default, str) else option.show_default
        yield {"verb": " ".join(path), "key": key, "value": list(value) if isinstance(value, tuple) else value,
               "variable": variable(*path, key), "from": _origin(settings, path, key, option, source)}


def _origin(settings: Settings, path: Path, key: str, option: click.Option, source: ParameterSource) -> str:
    if source is ParameterSource.ENVIRONMENT:
        return f"${variable_in_use(option)}"
    if source is ParameterSource.DEFAULT_MAP:
        found = settings.path_of(path, key)
        return f"{settings.where(found)}: {'.'.join(found)}"
    return "default"
