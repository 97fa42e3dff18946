"""``skuld scheduler``: work out expensive decisions beside the nodes, until a signal.

This file only reads the command line; what a scheduler does is ``skuld_py.runtime.scheduling``.
"""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.cluster_keys import check_key_of
from skuld_py.cli.logs import log_options
from skuld_py.cli.options import cluster_key_of, json_option, zookeeper_option
from skuld_py.cli.twins import SharedOption


@click.command()
@click.option("--cluster", required=True, metavar="NAME", cls=SharedOption,
              help="The cluster to work for. Also $SKULD_CLUSTER.")
@zookeeper_option
@click.option("--host", default="127.0.0.1",
              help="The address to listen at. Others than loopback want a cluster with keys (--cluster-key).")
@click.option("--advertise", metavar="HOST", default="", show_default="--host",
              help="The name or address by which nodes find it.")
@click.option("--peer-port", type=click.IntRange(0, 65_535), default=0, show_default="any free one",
              help="The port for nodes, in a cluster with keys.")
@click.option("--port", type=click.IntRange(1, 65_535), default=13900,
              help="The port to listen at; it is part of its name.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=None, show_default="none",
              help="In a cluster with keys: where it keeps its own. Nothing else is kept.")
@log_options
@json_option
@click.pass_context
def scheduler(ctx: click.Context, cluster: str, hosts: str, host: str, advertise: str, peer_port: int, port: int,
              data: Path | None, log_level: str, log_format: str | None, as_json: bool) -> None:
    """Work out placements and seats of workflows for the nodes that name this scheduler, until SIGTERM or Ctrl-C.

    For clusters of hundreds of nodes: without it each of them works out the same by itself, 10,000 slots among
    1,000 workflows in about a second. Start two or more, and every node with --scheduler HOST:PORT for each of
    them. Nodes use what two say alike. They ask nobody for what fewer than two answer, and decide by themselves:
    so a scheduler keeps nothing, and may be killed at any time. What it decides it says in its log.

    \b
    Examples:
      skuld scheduler --cluster skuld --zookeeper 127.0.0.1:2181 --port 13900
      skuld scheduler --cluster skuld --zookeeper 127.0.0.1:2181 --port 13901
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.runtime.scheduling import serve_scheduler
    from skuld_py.runtime.server import Place

    def say_ready(name: str) -> None:
        print_event(as_json, f"scheduler {name} of cluster {cluster} is ready", event="ready", scheduler=name,
                    cluster=cluster)

    key = cluster_key_of(ctx)
    serve_scheduler(hosts, cluster, Place(host, port, advertise, peer_port), data=data, on_ready=say_ready,
                    key=None if key is None else check_key_of(cluster, key))
