"""The entry point: which verbs there are, and how they fail.

A verb's module is imported when the verb is used (or listed), and imports what is heavy only when it
runs: ``skuld --help`` loads neither ZeroMQ nor Spark.

Exit statuses, for scripts: 0 done; 1 refused, it did not happen; 2 the command line is wrong; 3 uncertain,
it may have happened; 130 Ctrl-C. A failure is one line on standard error, ending in a stable code in
brackets. Anything that is no ``SkuldError`` is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import logging
from importlib import import_module
from typing import IO, Any

import click

from skuld_py import __version__
from skuld_py.errors import SkuldError, Uncertain

PREFIX = "SKULD"
REFUSED, UNCERTAIN, INTERRUPTED = 1, 3, 130

_VERBS = {
    "On one machine": {
        "dev": "dev:dev",
        "demo": "demo:demo",
        "zookeeper": "zookeeper:zookeeper",
    },
    "Clusters": {
        "cluster": "cluster:cluster",
        "node": "node:node",
        "status": "status:status",
        "members": "members:members",
        "ring": "ring:ring",
        "log": "log:log",
    },
    "Tasks": {
        "enqueue": "enqueue:enqueue",
        "claim": "claim:claim",
        "renew": "holding:renew",
        "update": "holding:update",
        "complete": "holding:complete",
        "release": "holding:release",
        "get": "get:get",
        "list": "list:list_tasks",
        "count": "count:count",
    },
    "Workers": {
        "worker": "worker:worker",
    },
}
_PLACES = {verb: place for verbs in _VERBS.values() for verb, place in verbs.items()}


class Failure(click.ClickException):
    """A ``SkuldError`` on its way to the terminal: it did not happen."""

    exit_code = REFUSED

    def __init__(self, error: SkuldError) -> None:
        super().__init__(str(error))

    def show(self, file: IO[Any] | None = None) -> None:
        """One line on standard error."""
        click.echo(f"error: {self.message}", file=file, err=True)


class Doubt(Failure):
    """The same for ``Uncertain``: it may have happened."""

    exit_code = UNCERTAIN


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
        command: click.Command = getattr(import_module(f"skuld_py.cli.{module}"), attribute)
        _name_variables(command, f"{ctx.auto_envvar_prefix or PREFIX}_{cmd_name}".upper())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb meant; a misspelt one is answered with what was probably meant."""
        if args and not args[0].startswith("-") and args[0] not in _PLACES:
            near = difflib.get_close_matches(args[0], _PLACES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see 'skuld --help' for those there are."
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

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; its failure becomes a line and a status."""
        try:
            return super().invoke(ctx)
        except SkuldError as error:
            raise (Doubt if isinstance(error, Uncertain) else Failure)(error) from error
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(INTERRUPTED)


def _name_variables(command: click.Command, prefix: str) -> None:
    """Each option's environment variable by what people type, ``--lease``, and not by the name in the code.

    It goes before one that the option shares with other verbs.
    """
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            _name_variables(inner, f"{prefix}_{name}".upper())
    for option in command.params:
        if isinstance(option, click.Option):
            own = f"{prefix}_{max(option.opts, key=len).lstrip('-').replace('-', '_').upper()}"
            shared = [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())
            option.envvar = [own, *(name for name in shared if name != own)]


@click.group(
    cls=Verbs,
    context_settings={"auto_envvar_prefix": PREFIX, "help_option_names": ["-h", "--help"],
                      "show_default": True, "max_content_width": 110},
)
@click.version_option(__version__, prog_name="skuld", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, show_default=False,
              help="Also log what is going on, to standard error.")
def main(verbose: bool) -> None:
    """Skuld, a replicated task queue whose claims are leases.

    \b
    To see it work on this machine:
      skuld dev                               # ZooKeeper and three nodes, until Ctrl-C
      skuld enqueue reports 2026-11-20        # in another terminal
      skuld claim reports --lease 30s

    'skuld VERB --help' explains a verb with examples. Every option can be given by the environment as well:
    --lease of claim is SKULD_CLAIM_LEASE, --nodes of any verb is SKULD_NODES. Exit status: 0 done, 1 refused
    (it did not happen), 2 wrong command line, 3 uncertain (it may have happened), 130 interrupted.
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING,
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Every lost connection is a warning there; what it means for a verb, the verb says itself.
    logging.getLogger("kazoo").setLevel(logging.INFO if verbose else logging.ERROR)
