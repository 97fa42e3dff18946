"""Options that several verbs take, each defined once, and the client they lead to.

Those that mean the same everywhere have one environment variable for all verbs (``SKULD_NODES``,
``SKULD_ZOOKEEPER``), besides the one of each verb (``SKULD_CLAIM_NODES``), which goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skuld_py.cli.values import PATIENCE

if TYPE_CHECKING:
    from skuld_py.client.client import Client

F = TypeVar("F", bound=Callable[..., Any])

NODES = "127.0.0.1:13000"
ZOOKEEPER = "127.0.0.1:2181"

nodes_option = click.option(
    "--nodes", metavar="HOST:PORT,...", default=NODES, envvar="SKULD_NODES",
    help="Any nodes of the cluster; one that runs is enough. Also $SKULD_NODES.")

json_option = click.option(
    "--json", "as_json", is_flag=True, show_default=False, help="Print JSON, for programs.")

copies_option = click.option(
    "--w", "copies", type=click.IntRange(1), default=None, show_default="a majority",
    help="Answer when this many nodes have it on disk.")

zookeeper_option = click.option(
    "--zookeeper", "hosts", metavar="HOST:PORT,...", default=ZOOKEEPER, envvar="SKULD_ZOOKEEPER",
    help="The ZooKeeper servers. Also $SKULD_ZOOKEEPER.")

cluster_option = click.option(
    "--cluster", required=True, metavar="NAME", envvar="SKULD_CLUSTER",
    help="The cluster that is meant. Also $SKULD_CLUSTER.")


def timeout_option(default: str = "5s", what: str = "an answer") -> Callable[[F], F]:
    """``--timeout``: how long a verb tries before it fails."""
    return click.option(
        "--timeout", "timeout_s", type=PATIENCE, metavar="DURATION", default=default, envvar="SKULD_TIMEOUT",
        help=f"How long to try for {what}. Also $SKULD_TIMEOUT.")


def client_options(function: F) -> F:
    """What every verb takes that talks to nodes: ``--nodes``, ``--timeout``, ``--json``."""
    return nodes_option(timeout_option()(json_option(function)))


def addresses_of(nodes: str) -> list[str]:
    """The nodes named, each checked before any is contacted."""
    from skuld_py.client.connection import parse_address

    addresses = [address.strip() for address in nodes.split(",") if address.strip()]
    for address in addresses:
        parse_address(address)
    return addresses


@contextmanager
def connected(nodes: str, timeout_s: float, holder: str | None = None) -> Iterator[Client]:
    """A client; its sockets are closed whatever happens."""
    from skuld_py.client.client import Client

    with Client(addresses_of(nodes), holder=holder, timeout_s=timeout_s) as client:
        yield client
