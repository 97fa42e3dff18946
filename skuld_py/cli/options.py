"""Options that several verbs take, each defined once, and the client they lead to.

What they are called in the environment and in the configuration file is for ``twins`` to say.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from skuld_py.cli import failures, logs, zookeeper_access
from skuld_py.cli.twins import SharedOption
from skuld_py.cli.values import PATIENCE

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.keys.files import ClusterKey

F = TypeVar("F", bound=Callable[..., Any])

NODES = "127.0.0.1:13000"
ZOOKEEPER = "127.0.0.1:2181"
KEY_VARIABLE = "SKULD_CLIENT_KEY"
"""Where clients look for a key that they were not given."""


def _note_json(ctx: click.Context, param: click.Parameter, is_json: bool) -> bool:
    """Note which verb runs and how its failures are to look: every verb has this option."""
    failures.note_verb(ctx, is_json)
    if is_json:
        logs.as_documents()
    return is_json


def nodes_option(function: F) -> F:
    """``--nodes``, and the key that these may want to see."""
    nodes = click.option(
        "--nodes", metavar="HOST:PORT,...", default=NODES, cls=SharedOption,
        help="Any nodes of the cluster; one that runs is enough. Also $SKULD_NODES.")
    return nodes(key_option(function))


json_option = click.option(
    "--json", "as_json", is_flag=True, show_default=False, is_eager=True, callback=_note_json,
    cls=SharedOption,
    help="Print JSON, for programs: one document, or one a line; failures as well, on standard error.")

_CLUSTER_KEY = "skuld_py.cluster_key"
"""Where a verb's context keeps the key that was given."""


def _note_cluster_key(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    ctx.meta[_CLUSTER_KEY] = path
    return path


def cluster_key_of(ctx: click.Context) -> ClusterKey | None:
    """The cluster's key that was given to a verb."""
    from skuld_py.keys.files import read_cluster_key

    path = ctx.meta.get(_CLUSTER_KEY)
    return None if path is None else read_cluster_key(path)


def zookeeper_option(function: F) -> F:
    """``--zookeeper``, and the key of a cluster whose nodes alone ZooKeeper shows it to."""
    key = click.option(
        "--cluster-key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", default=None,
        cls=SharedOption, is_eager=True, expose_value=False, callback=_note_cluster_key, show_default="none",
        help="The key file of a cluster with keys. Also $SKULD_CLUSTER_KEY.")
    return servers_option(key(function))


def servers_option(function: F) -> F:
    """``--zookeeper``, and what its servers are to be shown, but for the key of a cluster."""
    for added in zookeeper_access.OPTIONS:
        function = added(function)
    return click.option(
        "--zookeeper", "hosts", metavar="HOST:PORT,...", default=ZOOKEEPER, cls=SharedOption, callback=_servers,
        help="The ZooKeeper servers, perhaps with /PATH behind the last: all is kept below it. Also"
             " $SKULD_ZOOKEEPER.")(function)


def _servers(ctx: click.Context, param: click.Parameter, hosts: str) -> str:
    """The servers, with the login that the cluster's key holds, and what else was given for them."""
    from skuld_py.keys.files import read_cluster_key

    servers, path = zookeeper_access.servers_of(ctx, hosts), ctx.meta.get(_CLUSTER_KEY)
    return servers if path is None else servers.owned(lambda: read_cluster_key(path).logins)


_CLIENT_KEY = "skuld_py.client_key"
"""Where a verb's context keeps the key that clients show."""


def _note_key(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    ctx.meta[_CLIENT_KEY] = path


@contextmanager
def _key_shown() -> Iterator[None]:
    """Have every client of this process, and of those that it starts, show the key that the verb was given."""
    path, before = click.get_current_context().meta.get(_CLIENT_KEY), os.environ.get(KEY_VARIABLE)
    if path is not None:
        os.environ[KEY_VARIABLE] = str(path)
    try:
        yield
    finally:
        if before is not None:
            os.environ[KEY_VARIABLE] = before
        elif path is not None:
            os.environ.pop(KEY_VARIABLE, None)



def key_option(function: F) -> F:
    """``--client-key``: what nodes are shown, by every client that the verb makes."""
    key = click.option(
        "--client-key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", default=None,
        cls=SharedOption, expose_value=False, callback=_note_key, show_default="none",
        help="The key file to show to the nodes, if they want one; that of 'skuld dev' is found. Also"
             " $SKULD_CLIENT_KEY.")

    @functools.wraps(function)
    def showing_the_key(*args: Any, **options: Any) -> Any:
        with _key_shown():
            return function(*args, **options)
    return key(cast(F, showing_the_key))


cluster_option = click.option(
    "--cluster", required=True, metavar="NAME", cls=SharedOption,
    help="The cluster that is meant. Also $SKULD_CLUSTER.")


metrics_option = click.option(
    "--metrics", metavar="HOST:PORT", default=None, show_default="off",
    help="Show metrics for Prometheus at this address of their own; a port alone is on loopback.")


def timeout_option(default: str = "5s", what: str = "an answer") -> Callable[[F], F]:
    """``--timeout``: how long a verb tries before it fails."""
    return click.option(
        "--timeout", "timeout_s", type=PATIENCE, metavar="DURATION", default=default, cls=SharedOption,
        help=f"How long to try for {what}. Also $SKULD_TIMEOUT.")


def client_options(function: F) -> F:
    """What every verb takes that talks to nodes: ``--nodes``, ``--client-key``, ``--timeout``, ``--json``."""
    return nodes_option(timeout_option()(json_option(function)))


def addresses_of(nodes: str) -> list[str]:
    """The nodes named, each checked before any is contacted."""
    from skuld_py.client.dial import parse_address

    addresses = [address.strip() for address in nodes.split(",") if address.strip()]
    for address in addresses:
        parse_address(address)
    return addresses


@contextmanager
def connected(nodes: str, timeout_s: float, holder: str | None = None) -> Iterator[Client]:
    """A client; its sockets are closed whatever happens."""
    from skuld_py.client.client import Client

    addresses = addresses_of(nodes)
    with naming_unknown_hosts(addresses), Client(addresses, holder=holder, timeout_s=timeout_s) as client:
        yield client


@contextmanager
def naming_unknown_hosts(addresses: list[str]) -> Iterator[None]:
    """When no node can be reached, say which of their names this machine cannot resolve."""
    import socket

    from skuld_py.errors import Refused

    try:
        yield
    except Refused as refusal:
        unknown: list[str] = []
        for address in addresses if refusal.code == "unreachable" else ():
            try:
                socket.getaddrinfo(address.rpartition(":")[0].strip("[]"), None)
            except OSError:
                unknown.append(address)
        if not unknown:
            raise
        listed = ", ".join(unknown)
        raise Refused("unreachable", f"nodes: no address is known by the name in {listed}; check how it is spelt,"
                      " and this machine's name service", **refusal.facts) from refusal
