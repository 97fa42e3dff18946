"""Options about what tasks may bring besides arguments, for every verb that starts a worker (``worker.kinds``).

A verb gets them as ``kinds``, ``scripts`` and ``adopt_s``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from skuld_py.cli.values import Duration

if TYPE_CHECKING:
    from skuld_py.worker.kinds.allowed import Allowed

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--kinds", metavar="KIND,...", default="", show_default="none",
                 help="What tasks may bring besides calls of functions: sql, stream."),
    click.option("--scripts", type=click.Path(file_okay=False, path_type=Path), default=None, show_default="none",
                 help="The directory out of which tasks may name application files to run."),
    click.option("--adopt", "adopt_s", type=Duration(least_s=5), metavar="DURATION", default="30s",
                 help="How long the driver of a script outlives its claim, for the next claim to go on with it."),
)


def kinds_options(function: F) -> F:
    """All of them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def allowed_by(kinds: str, scripts: Path | None, adopt_s: float) -> Allowed:
    """What they allow; ``Refused`` if they cannot be meant."""
    from skuld_py.worker.kinds.allowed import Allowed, directory_of, kinds_of

    return Allowed(kinds_of(kinds), directory_of(scripts), adopt_s=adopt_s)


def typed_kinds(ctx: click.Context) -> list[str]:
    """Which of them stand on the command line."""
    return [option for option, name in (("--kinds", "kinds"), ("--scripts", "scripts"), ("--adopt", "adopt_s"),
                                         ("--slots", "slots"))
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def kinds_words(kinds: str, scripts: Path | None, adopt_s: float) -> list[str]:
    """The options again, for the command line of a worker."""
    return [*(["--kinds", kinds] if kinds else []),
            *(["--scripts", str(scripts.absolute()), "--adopt", f"{adopt_s:g}s"] if scripts is not None else [])]
