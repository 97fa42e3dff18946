"""The entry point: which verbs there are, and what holds for all of them.

A verb's module is imported when the verb is used (or listed, or named in the configuration file), and imports what
is heavy only when it runs: ``skuld --help`` loads neither ZeroMQ nor Spark. How verbs fail is ``failures``, what
their options are called elsewhere ``twins``, and what the configuration file says ``settings``.
"""

from __future__ import annotations

import difflib
import io
import os
import sys
from importlib import import_module
from itertools import chain
from typing import Any

import click

from skuld_py import __version__
from skuld_py.cli import failures, logs, variables
from skuld_py.cli.acting import command_of
from skuld_py.cli.settings import DEFAULT_FILE, BadConfig, Settings, read
from skuld_py.cli.twins import name_variables
from skuld_py.verbs.table import VERBS

_VERBS = {
    "On one machine": {
        "dev": "dev:dev",
        "demo": "demo:demo",
        "zookeeper": "zookeeper:zookeeper",
    },
    "Clusters": {
        "cluster": "cluster:cluster",
        "keys": "keys:keys",
        "certificates": "certificates:certificates",
        "node": "node:node",
        "backup": "backup:backup",
        "drain": "drain:drain",
        "status": "status:status",
        "verify": "verify:verify",
        "top": "top:top",
        "members": "members:members",
        "ring": "ring:ring",
    },
    "Tasks": {verb.command.split()[0]: f"{verb.command}:{verb.name}" if verb.act is None else ""
              for verb in VERBS if verb.command and verb.name != "workers"},
    "Workers": {
        "worker": "worker:worker",
        "workers": "workers:workers",
    },
    "Workflows": {
        "workflow": "workflow:workflow",
        "scheduler": "scheduler:scheduler",
    },
    "Archive": {
        "archive": "archive:archive",
        "history": "history:history",
    },
    "HTTP": {
        "gateway": "gateway:gateway",
        "token": "gateway:token",
    },
    "Reading": {
        "manual": "manual:manual",
        "config": "config:config",
    },
    "Shells": {
        "completion": "completion:completion",
    },
}
_PLACES = {verb: place for verbs in _VERBS.values() for verb, place in verbs.items()}
"""Where each verb's command stands; nowhere, if the table makes it."""


_MEANT = {"help": "'--help' or 'manual'", "version": "'--version'", "tasks": "'list'", "queues": "'status'",
          "attention": "'status'", "info": "'status'", "show": "'get'", "start": "'dev'",
          "call": "'enqueue --call'"}
"""What else is asked for as a verb, and the word that does it."""


class Verbs(click.Group):
    """The group of all verbs; each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the help, not of the alphabet."""
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb."""
        if cmd_name not in _PLACES:
            return None
        module, _, attribute = _PLACES[cmd_name].partition(":")
        command: click.Command = (getattr(import_module(f"skuld_py.cli.{module}"), attribute) if module
                                  else command_of(cmd_name))
        name_variables(command, (cmd_name,))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb meant; a misspelt one is answered with what was probably meant."""
        is_asked = not ctx.resilient_parsing  # and not for completion, which takes no answer
        if is_asked and args and not args[0].startswith("-") and args[0] not in _PLACES:
            meant = _MEANT.get(args[0]) or next(map(repr, difflib.get_close_matches(args[0], _PLACES, n=1)), "")
            hint = f"did you mean {meant}?" if meant else "see 'skuld --help' for those there are."
            ctx.fail(f"there is no verb {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by what they are about."""
        widest = max(map(len, _PLACES))
        for title, verbs in _VERBS.items():
            rows = [(verb.ljust(widest), command.get_short_help_str(90))
                    for verb in verbs if (command := self.get_command(ctx, verb)) is not None]
            with formatter.section(title):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the program's own options."""
        failures.note_arguments(ctx, args)
        with failures.told(ctx):
            try:
                return super().parse_args(ctx, args)
            except click.NoSuchOption as error:
                ctx.fail(f"no such option here: {error.option_name}; options of a verb stand behind the verb.")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; its failure becomes a line and a status."""
        try:
            with failures.told(ctx):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            failures.tell_interrupt(ctx)
            ctx.exit(failures.INTERRUPTED)


def _spell_out() -> None:
    """Show what a terminal's encoding lacks as escapes; a payload may hold any character."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _settings(ctx: click.Context, verbs: Verbs, config: str | None) -> Settings:
    """The configuration file, checked; help is given even when it is wrong."""
    try:
        settings = read(config)
        settings.check(_PLACES, lambda name: verbs.get_command(ctx, name))
    except BadConfig:
        if not failures.is_about_help(ctx):
            raise
        return Settings()
    return settings


def _check_variables(ctx: click.Context, verbs: Verbs) -> None:
    """The environment, checked; help is given even when it is wrong. The verb that was asked for goes first: most
    often no other one is loaded."""
    if not failures.is_about_help(ctx):
        every = (verbs.get_command(ctx, verb) for verb in (ctx.invoked_subcommand or "", *_PLACES))
        variables.check(os.environ, chain([verbs], every))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
)
@click.version_option(__version__, prog_name="skuld", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, show_default=False,
              help="Also log what is going on, to standard error.")
@click.option("--config", metavar="FILE", default=None, show_default=f"{DEFAULT_FILE}, if it is here",
              help="Defaults for options, in TOML.")
@click.pass_context
def main(ctx: click.Context, verbose: bool, config: str | None) -> None:
    """Skuld, a replicated task queue whose claims are leases.

    \b
    To see it work on this machine:
      skuld dev                               # ZooKeeper and three nodes, until Ctrl-C
      skuld enqueue reports 2026-11-20        # in another terminal
      skuld claim reports --lease 30s

    'skuld VERB --help' explains a verb with examples, 'skuld manual' what is behind them. Every option has twins:
    --lease of claim is also SKULD_CLAIM_LEASE in the environment and lease in the table [claim] of the
    configuration file. --nodes, --timeout, --json, --zookeeper and --cluster are besides SKULD_NODES and so on,
    and keys of the table [all]. The command line goes first, then the environment, then the file. 'skuld config
    show VERB' says what each is now, and where that comes from.

    \b
    Exit status: 0 done, 1 refused (it did not happen), 2 wrong command line or configuration (nothing was
    tried), 3 uncertain (it may have happened), 4 refused to a node, a gateway or a worker that will not start
    until something here is changed, 130 interrupted. With --json an error is a JSON document, too.
    """
    _spell_out()
    verbs = ctx.command
    assert isinstance(verbs, Verbs)
    _check_variables(ctx, verbs)
    settings = _settings(ctx, verbs, config)
    failures.note_settings(ctx, settings)
    logs.begin(verbose or settings.is_verbose)
    name = ctx.invoked_subcommand or ""
    command = verbs.get_command(ctx, name)
    ctx.default_map = {name: settings.defaults((name,), command)} if command is not None else {}


name_variables(main)
