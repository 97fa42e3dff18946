"""How verbs get at a ZooKeeper that is sealed, or lets in only those it knows: options beside ``--zookeeper``.

All are files and names, and none is a password: what is typed, others on the machine can see.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.twins import SharedOption, key_of, variable

if TYPE_CHECKING:
    from skuld_py.runtime.zookeeper.servers import Servers
    from skuld_py.runtime.zookeeper.tls import Tls

_META = "skuld_py.zookeeper"
"""Where a verb's context keeps what was given, by the option's name."""


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    assert isinstance(param, click.Option)
    ctx.meta.setdefault(_META, {})[key_of(param)] = value


def _option(name: str, words: str, *, is_file: bool) -> Callable[[Any], Any]:
    kind = {"type": click.Path(dir_okay=False, path_type=Path)} if is_file else {}
    return click.option(
        name, metavar="FILE" if is_file else "NAME", default=None, cls=SharedOption, is_eager=True,
        expose_value=False, callback=_note, show_default="none",
        help=f"{words} Also ${variable(name.lstrip('-'))}.", **kind)


OPTIONS = (
    _option("--zookeeper-password-file", "With --zookeeper-user: the file whose only line is the password.",
            is_file=True),
    _option("--zookeeper-user", "By which name ZooKeeper lets this program in (SASL, DIGEST-MD5).", is_file=False),
    _option("--zookeeper-cert-key", "The key of --zookeeper-cert, if it is in another file.", is_file=True),
    _option("--zookeeper-cert", "The certificate to show to ZooKeeper, in PEM, with its key.", is_file=True),
    _option("--zookeeper-ca", "Speak TLS to ZooKeeper: the certificates of the authorities to trust, in PEM.",
            is_file=True),
)
"""The last is the first in the help."""
_ORDER = ("zookeeper-ca", "zookeeper-cert", "zookeeper-cert-key", "zookeeper-user", "zookeeper-password-file")


def words_of(hosts: str) -> str:
    """``--zookeeper`` and the options beside it, as a command that a verb proposes needs them as well."""
    noted = click.get_current_context().meta.get(_META, {})
    given = {key: value for key, value in noted.items() if value is not None}
    return " ".join([f"--zookeeper {hosts}", *(f"--{key} {shlex.quote(str(given[key]))}" for key in _ORDER
                                               if key in given)])


def servers_of(ctx: click.Context, hosts: str) -> Servers:
    """The servers, with what a verb was given for them; none of two that belong together is taken alone."""
    from skuld_py.runtime.zookeeper.servers import Servers

    given = {key: value for key, value in ctx.meta.get(_META, {}).items() if value is not None}
    for option, needed in (("zookeeper-cert", "zookeeper-ca"), ("zookeeper-cert-key", "zookeeper-cert"),
                           ("zookeeper-user", "zookeeper-password-file"),
                           ("zookeeper-password-file", "zookeeper-user")):
        if option in given and needed not in given:
            raise click.UsageError(f"--{option}: give --{needed} as well; one is nothing without the other.")
    return Servers(hosts, tls=_tls(given) if "zookeeper-ca" in given else None,
                   sasl=_sasl(given) if "zookeeper-user" in given else None)


def _tls(given: dict[str, Any]) -> Tls:
    from skuld_py.runtime.zookeeper.tls import Tls

    return Tls(given["zookeeper-ca"], given.get("zookeeper-cert"), given.get("zookeeper-cert-key"))


def _sasl(given: dict[str, Any]) -> Callable[[], tuple[str, str]]:
    from skuld_py.extras import require
    from skuld_py.keys.files import read_password

    require("node", "sasl", who="--zookeeper-user")
    return lambda: (given["zookeeper-user"],
                    read_password("zookeeper-password-file", given["zookeeper-password-file"]))
