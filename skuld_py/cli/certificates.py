"""``skuld certificates``: authorities and certificates for a ZooKeeper that speaks TLS."""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.options import json_option
from skuld_py.cli.values import DAY_S, Duration

LASTING_S_MAX = 3_650 * DAY_S


@click.command()
@click.option("--to", "directory", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="The directory to make them in: the authorities that are there are used again.")
@click.option("--host", "hosts", required=True, metavar="HOST,...",
              help="The hosts of all ZooKeeper servers, as clients and --ensemble name them.")
@click.option("--lasting", "lasting_s", type=Duration(least_s=DAY_S, most_s=LASTING_S_MAX), metavar="DURATION",
              default="730d", help="How long the certificates hold. Those of the authorities hold ten years.")
@json_option
def certificates(directory: Path, hosts: str, lasting_s: float, as_json: bool) -> None:
    """Make certificates for ZooKeeper over TLS: a directory for each server, and one for all its clients.

    Copy a server's to its machine, for 'skuld zookeeper --tls'; and that of the clients to those of nodes, and to
    the desk, for --zookeeper-ca and --zookeeper-cert. The directory 'authority' signs new ones: keep it to
    yourself. Run it again, before they are over or with more hosts; copy, and restart the servers one by one.

    \b
    Examples:
      skuld certificates --to tls --host zk1,zk2,zk3
      skuld certificates --to tls --host 10.0.0.1,10.0.0.2,10.0.0.3 --lasting 90d
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.embedded.certificates import CLIENT, KEPT, make

    named = [each.strip() for each in hosts.split(",") if each.strip()]
    if not named:
        raise click.UsageError("--host: name at least one host.")
    made = make(directory, named, round(lasting_s / DAY_S))
    print_event(as_json, f"certificates are in {', '.join(str(each) for each in made)}.\nCopy each to where it is"
                f" used, the last ({CLIENT}) to all nodes, and keep {directory / KEPT} to yourself",
                directories=[str(each) for each in made])
