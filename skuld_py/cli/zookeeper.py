"""``skuld zookeeper``: a real ZooKeeper server without installing one, alone or as one of an ensemble.

It is the one that PySpark's jars contain, for users that have none yet.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import json_option

if TYPE_CHECKING:
    from skuld_py.embedded.zookeeper_tls import ServerTls

ALONE_S, TOGETHER_S = 20.0, 300.0
"""How long it may take to serve; one of several waits for others to be started."""


@click.command()
@click.option("--data", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Where it keeps its data: a directory of its own.")
@click.option("--port", type=click.IntRange(0, 65_535), default=2181,
              help="The port to listen at; 0 for any free one.")
@click.option("--host", default="127.0.0.1", help="The address to listen at.")
@click.option("--ensemble", metavar="HOST,...", default="", show_default="it is alone",
              help="All servers of an ensemble, this one's --host among them: the same list at each.")
@click.option("--tls", type=click.Path(file_okay=False, path_type=Path), metavar="DIRECTORY", default=None,
              show_default="off",
              help="Speak TLS only, with the certificates of this directory: see 'skuld certificates'.")
@click.option("--users", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", default=None,
              show_default="anyone",
              help="Let in only these (SASL, DIGEST-MD5): a file with NAME:PASSWORD in each line.")
@json_option
def zookeeper(data: Path, port: int, host: str, ensemble: str, tls: Path | None, users: Path | None,
              as_json: bool) -> None:
    """Run a ZooKeeper server until SIGTERM or Ctrl-C. Needs Java 17 or later.

    Three servers on three machines go on when one is lost. Each waits until a majority runs. They speak to each
    other at ports 2888 and 3888. Without --tls nothing they say is sealed, nor what their clients say: keep them
    in a network of their own. With it, who has no certificate of their authority gets nothing.

    \b
    Examples:
      skuld zookeeper --data /tmp/zookeeper
      skuld zookeeper --data /tmp/zookeeper --port 2182
      skuld zookeeper --data /var/lib/zookeeper --host 10.0.0.1 --ensemble 10.0.0.1,10.0.0.2,10.0.0.3
      skuld zookeeper --data /var/lib/zookeeper --tls /etc/zookeeper/tls --host zk1 --ensemble zk1,zk2,zk3
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.cli.stopping import until_stopped, watch
    from skuld_py.embedded.process import tail
    from skuld_py.embedded.zookeeper import ZooKeeperServer
    from skuld_py.errors import Refused

    servers = [each.strip() for each in ensemble.split(",") if each.strip()]
    with until_stopped(), contextlib.ExitStack() as held:
        server = ZooKeeperServer(data, port, host=host, ensemble=servers, tls=_tls(tls, host, bool(servers)),
                                 users=_users(users))
        server.start(ALONE_S if not servers else TOGETHER_S)
        held.callback(server.stop)
        print_event(as_json, f"zookeeper is ready at {server.hosts}, its data in {data}", event="ready",
                    hosts=server.hosts, data=str(data))
        watch(lambda: server.is_running)
        raise Refused("zookeeper_ended",
                      f"ZooKeeper ended by itself. The end of {server.log}:\n{tail(server.log)}")


def _tls(directory: Path | None, host: str, is_one_of_several: bool) -> ServerTls | None:
    """The certificates to serve with; ``Refused`` when others may read their keys, or are no use at this host."""
    from skuld_py.embedded.zookeeper_tls import ServerTls
    from skuld_py.keys.files import check_private

    if directory is None:
        return None
    made = ServerTls(directory)
    made.check(host, is_one_of_several=is_one_of_several)
    for file in made.secrets(is_one_of_several=is_one_of_several):
        check_private(file)
    return made


def _users(file: Path | None) -> dict[str, str] | None:
    """Who is let in; ``Refused`` when others may read it."""
    from skuld_py.embedded.zookeeper_users import read
    from skuld_py.errors import Refused
    from skuld_py.keys.files import check_private

    if file is None:
        return None
    try:
        check_private(file, "the passwords")
        return read(file.read_text(encoding="utf-8"), str(file))
    except OSError as problem:
        raise Refused("bad_users", f"users: {file} cannot be read: {problem.strerror}",
                      file=str(file)) from problem
    except ValueError as problem:
        raise Refused("bad_users", f"users: {file} is not UTF-8", file=str(file)) from problem
