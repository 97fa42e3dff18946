"""``skuld zookeeper``: a real ZooKeeper server without installing one, for a laptop or a single machine.

It is the one that PySpark's jars contain. A production cluster has three of its own; this verb is for users that
have none yet.
"""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.options import json_option


@click.command()
@click.option("--data", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Where it keeps its data: a directory of its own.")
@click.option("--port", type=click.IntRange(0, 65_535), default=2181,
              help="The port to listen at, on this machine only; 0 for any free one.")
@json_option
def zookeeper(data: Path, port: int, as_json: bool) -> None:
    """Run a ZooKeeper server on this machine until SIGTERM or Ctrl-C. Needs Java 17 or later.

    \b
    Examples:
      skuld zookeeper --data /tmp/zookeeper
      skuld zookeeper --data /tmp/zookeeper --port 2182
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.cli.stopping import until_stopped, watch
    from skuld_py.embedded.process import tail
    from skuld_py.embedded.zookeeper import ZooKeeperServer
    from skuld_py.errors import Refused

    with until_stopped(), ZooKeeperServer(data, port) as server:
        print_event(as_json, f"zookeeper is ready at {server.hosts}, its data in {data}", event="ready",
                    hosts=server.hosts, data=str(data))
        watch(lambda: server.is_running)
        raise Refused("zookeeper_ended",
                      f"ZooKeeper ended by itself. The end of {server.log}:\n{tail(server.log)}")
