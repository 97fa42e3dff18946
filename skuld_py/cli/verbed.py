"""A verb that has verbs of its own beside what it does by itself: ``archive ROOT``, and ``archive compact ROOT``.

It is no group: click's take a first word for an argument where they have one. Here the first word decides. A root
that is called as one of the verbs is written ``./compact``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


class Verbed(click.Command):
    """A command with others below it."""

    def __init__(self, *args: Any, others: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands: dict[str, click.Command] = {}
        self.others = others
        """Words that are verbs of other commands, which are told, as they are typed, to who says them here."""

    def add_command(self, command: click.Command) -> None:
        """One more verb."""
        self.commands[command.name or ""] = command

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None,
                     **extra: Any) -> click.Context:
        """Of the verb below if the first word names one, else of this one."""
        if args and args[0] in self.commands:
            # not of this one, whose ROOT would stand in the usage of the verb below
            own = click.Context(click.Command(self.name), info_name=info_name, parent=parent)
            return self.commands[args[0]].make_context(args[0], args[1:], parent=own)
        first = args[0] if args else ""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if first not in self.others:
                raise
            said = error.format_message()
            raise click.UsageError(f"{said}{'' if said.endswith(('.', '?')) else '.'} Did you mean"
                                   f" {self.others[first]}?", error.ctx) from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs below."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, each.get_short_help_str(90)) for name, each in self.commands.items()])


def inner_of(command: click.Command) -> Mapping[str, click.Command]:
    """The commands below one, as far as they are loaded."""
    return command.commands if isinstance(command, click.Group | Verbed) else {}
