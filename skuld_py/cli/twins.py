"""Every option's twins: what it is called in the environment and in the configuration file.

One rule for all, so that no name must be looked up: ``--lease`` of ``skuld claim`` is ``SKULD_CLAIM_LEASE`` and
the key ``lease`` of the table ``[claim]``. Options that mean the same for every verb that has them
(``SharedOption``) are ``SKULD_NODES`` and ``nodes`` of the table ``[all]`` besides; a verb's own twin goes first.

The names are made from what people type, never from names in the code; a verb declares nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from skuld_py.cli.verbed import inner_of

PREFIX = "SKULD"
ALL = "all"
"""The table of the shared options."""
TIMING = "timing"
"""A table within that of a verb: ``gossip`` of ``[node.timing]`` is ``--timing-gossip``."""
SHARED = ("nodes", "timeout", "json", "zookeeper", "cluster", "client-key", "cluster-key",
          "zookeeper-ca", "zookeeper-cert", "zookeeper-cert-key", "zookeeper-user", "zookeeper-password-file")

Path = tuple[str, ...]
"""Where a key stands in the file: ``("claim", "lease")``."""


class SharedOption(click.Option):
    """An option that means the same for every verb that has it; its key is one of ``SHARED``."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its help, with the file's value instead of words for none."""
        words = self.show_default
        if isinstance(words, str) and ctx.lookup_default(self.name or "", call=False) is not None:
            self.show_default = True
        try:
            return super().get_help_record(ctx)
        finally:
            self.show_default = words


class SettingsOption(click.Option):
    """An option for settings of another program, ``NAME=VALUE``; in the file it may be a table of them. What is
    given in several places is taken together, and of one name the value of the place that goes first."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """All there are, the weightiest last."""
        value, source = super().consume_value(ctx, opts)
        typed = [] if source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP) else [*value]
        told = [] if source is ParameterSource.ENVIRONMENT else self.value_from_envvar(ctx) or []
        filed = ctx.lookup_default(self.name or "")
        every = [*(filed if isinstance(filed, list) else []), *told, *typed]
        return (every, source) if every else (value, source)


def key_of(option: click.Option) -> str:
    """The longest of its names, without the dashes."""
    return max(option.opts, key=len).lstrip("-")


def options_of(command: click.Command) -> dict[str, click.Option]:
    """A verb's options by key; not those that only print something, such as ``--version``."""
    return {key_of(param): param for param in command.params
            if isinstance(param, click.Option) and (param.expose_value or isinstance(param, SharedOption))}


def name_variables(command: click.Command, path: Path = ()) -> None:
    """Give each option of a verb, and of the verbs in it, its environment variables."""
    if path:
        for name, inner in inner_of(command).items():
            name_variables(inner, (*path, name))
    for key, option in options_of(command).items():
        declared = [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())
        shared = [variable(key)] if isinstance(option, SharedOption) else []
        option.envvar = list(dict.fromkeys([variable(*path, key), *declared, *shared]))


def variable(*words: str) -> str:
    """``SKULD_CLAIM_LEASE`` for claim and lease."""
    return "_".join((PREFIX, *words)).replace("-", "_").upper()


def variable_in_use(option: click.Option) -> str:
    """Which of its variables gives an option's value; an empty one gives none."""
    names: Sequence[str] = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
    return next((name for name in names if os.environ.get(name)), "")
