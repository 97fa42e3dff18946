"""Options about Spark, for every verb that starts one; what they mean is ``skuld_py.worker.spark_conf``.

A verb gets them folded into settings, ``conf``; of a verb that runs an application's code ``is_ml`` besides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from skuld_py.cli.twins import SettingsOption
from skuld_py.cli.values import SETTING

F = TypeVar("F", bound=Callable[..., Any])

_PLACES = "local[N], spark://HOST:PORT, yarn or k8s://https://HOST:PORT"


def _conf_option(function: F) -> F:
    return click.option(
        "--conf", "conf", type=SETTING, multiple=True, metavar="NAME=VALUE", cls=SettingsOption,
        help="A setting for Spark; may be given several times.")(function)


def _master_option(default: str) -> Callable[[F], F]:
    return click.option("--master", metavar="MASTER", default=None, show_default=default,
                        help=f"Where Spark runs: {_PLACES}.")


_OF_APPLICATIONS = (
    click.option("--driver-memory", metavar="SIZE", default=None, show_default="1g",
                 help="Memory of Spark's driver, as 2g; with a local master tasks run in it, too."),
    click.option("--packages", metavar="GROUP:NAME:VERSION,...", default=None, show_default="none",
                 help="Packages of Maven for driver and executors."),
    click.option("--py-files", metavar="FILE,...", default=None, show_default="none",
                 help="Modules and archives of them (.py, .zip, .egg) for the worker and the executors."),
    click.option("--archives", metavar="FILE[#NAME],...", default=None, show_default="none",
                 help="Archives to be unpacked at each executor, as NAME."),
    click.option("--ml", "is_ml", is_flag=True, show_default=False,
                 help="Load Spark's jars for machine learning (pyspark.ml), too; the start takes longer."),
)


def master_options(default: str) -> Callable[[F], F]:
    """``--master`` and ``--conf``; the verb gets ``conf``."""
    def take(function: F) -> F:
        @functools.wraps(function)
        def folding(*args: Any, master: str | None, conf: tuple[tuple[str, str], ...], **options: Any) -> Any:
            return function(*args, conf=_folded(conf, {"master": master}), **options)
        return _master_option(default)(_conf_option(cast(F, folding)))
    return take


def spark_options(function: F) -> F:
    """All of them; the verb gets ``conf`` and ``is_ml``."""
    @functools.wraps(function)
    def folding(*args: Any, master: str | None, conf: tuple[tuple[str, str], ...], driver_memory: str | None,
                packages: str | None, py_files: str | None, archives: str | None, **options: Any) -> Any:
        given = {"master": master, "driver-memory": driver_memory, "packages": packages, "py-files": py_files,
                 "archives": archives}
        return function(*args, conf=_folded(conf, given), **options)
    made = cast(F, folding)
    for option in reversed(_OF_APPLICATIONS):
        made = option(made)
    return _master_option("local, one Spark task a core")(_conf_option(made))


def _folded(conf: tuple[tuple[str, str], ...], options: dict[str, str | None]) -> dict[str, str]:
    from skuld_py.worker.spark_conf import folded

    return folded(conf, options)


def typed(ctx: click.Context) -> list[str]:
    """Which of them stand on the command line."""
    names = ("master", "conf", "driver_memory", "packages", "py_files", "archives", "is_ml")
    return [f"--{name.removeprefix('is_').replace('_', '-')}" for name in names
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def words_of(conf: dict[str, str], is_ml: bool) -> list[str]:
    """The options again, for the command line of a worker."""
    return [*(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
            *(["--ml"] if is_ml else [])]
