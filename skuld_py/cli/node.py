"""``skuld node``: one node of a cluster, in this process, until a signal.

All it decides is where it listens and where it keeps its data; everything else is the cluster's and
comes from ZooKeeper. SIGTERM and Ctrl-C are the same: leave the cluster, then end.
"""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import click

from skuld_py.cli.cluster_keys import check_key_of
from skuld_py.cli.logs import log_options
from skuld_py.cli.options import cluster_key_of, json_option, metrics_option, zookeeper_option
from skuld_py.cli.timings import TimedCommand, timing_options, timings_of
from skuld_py.cli.twins import SharedOption
from skuld_py.cli.values import DAY_S, Duration

if TYPE_CHECKING:
    from skuld_py.keys.files import ClusterKey
    from skuld_py.runtime.metrics import NodeMetrics

RETENTION_S_MAX = 3_660 * 24 * 3600.0


@click.command(cls=TimedCommand)
@click.option("--cluster", required=True, metavar="NAME", cls=SharedOption,
              help="The cluster to be a node of. Also $SKULD_CLUSTER.")
@zookeeper_option
@click.option("--host", default="127.0.0.1",
              help="The address to listen at. Others than loopback want a cluster with keys (--cluster-key).")
@click.option("--advertise", metavar="HOST", default="", show_default="--host",
              help="The name or address by which clients and other nodes find this one.")
@click.option("--peer-port", type=click.IntRange(0, 65_535), default=0, show_default="any free one",
              help="The port for other nodes, in a cluster with keys.")
@click.option("--port", type=click.IntRange(1, 65_535), default=13000, help="The port to listen at.")
@click.option("--data", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Where the tasks are kept: a directory of this node's own.")
@click.option("--session", "session_s", type=Duration(least_s=1, most_s=60), metavar="DURATION", default="4s",
              help="Silent for so long, a node counts as gone.")
@click.option("--partitions", type=int, default=None, show_default="any",
              help="Refuse to start unless the cluster was created with so many partitions.")
@click.option("--replicas", type=int, default=None, show_default="any",
              help="Refuse to start unless the cluster keeps so many copies of each task, or was created to.")
@click.option("--skew", "skew_s", type=Duration(least_s=0.001, most_s=3600), metavar="DURATION", default=None,
              show_default="any", help="Refuse to start unless the cluster's clocks may differ by this.")
@click.option("--retention", "retention_s", type=Duration(least_s=1, most_s=RETENTION_S_MAX), metavar="DURATION",
              default=None, show_default="for ever", envvar="SKULD_RETENTION",
              help="Delete tasks that ended longer ago, once every replica knows it. Say the same on every node:"
                   " the longest one counts, and a node without it keeps everything on all.")
@click.option("--archive", is_flag=True, envvar="SKULD_ARCHIVE",
              help="With --retention: delete only what 'skuld archive' has written to an archive. Say it on every"
                   " node: what one that says so keeps is deleted by none that does not.")
@click.option("--refuse-unled", "unled_s", type=Duration(least_s=1, most_s=DAY_S), metavar="DURATION",
              default=None, show_default="never",
              help="Refuse tasks for a partition that has had no leader for so long. Without, they are stored, and"
                   " wait until it has one. Say the same on every node.")
@click.option("--direct-join", is_flag=True, envvar="SKULD_DIRECT_JOIN",
              help="Ask a member to be let in, and let others in, with one entry in the log for many.")
@click.option("--transfer", is_flag=True, envvar="SKULD_TRANSFER",
              help="Begin with the replica of another node instead of reading the log, and lend one's own.")
@click.option("--sharing", is_flag=True, envvar="SKULD_SHARING",
              help="Pass entries of the log on among the nodes, instead of reading each from ZooKeeper.")
@click.option("--versions", is_flag=True, envvar="SKULD_VERSIONS",
              help="Go on with the log while a placement is worked out, beside everything else.")
@click.option("--scheduler", "schedulers", multiple=True, metavar="HOST:PORT", envvar="SKULD_SCHEDULERS",
              help="A node that works out the placement for all; say it for each of them, on every node."
                   " Implies --versions.")
@metrics_option
@log_options
@timing_options
@json_option
@click.pass_context
def node(ctx: click.Context, /, cluster: str, hosts: str, host: str, advertise: str, peer_port: int, port: int,
         data: Path, session_s: float, partitions: int | None,
         replicas: int | None, skew_s: float | None, retention_s: float | None, archive: bool,
         unled_s: float | None, direct_join: bool,
         transfer: bool, sharing: bool, versions: bool, schedulers: tuple[str, ...], metrics: str | None,
         log_level: str, log_format: str | None, as_json: bool, **timings: float) -> None:
    """Run a node of a cluster until SIGTERM or Ctrl-C.

    It says "node HOST:PORT of cluster NAME is ready" once it takes requests. Its name is HOST:PORT: started
    again with the same address and directory it is the same node. What the cluster is comes from ZooKeeper, and
    the directory remembers it; where one of them, or an option here, says otherwise, the node does not start.

    The five options from --direct-join to --scheduler are for clusters of hundreds of nodes and more; nodes with
    and without them work together. With --metrics Prometheus can read what the node does; see 'skuld manual
    operating'.

    \b
    Examples:
      skuld node --cluster skuld --zookeeper 127.0.0.1:2181 --port 13000 --data /var/lib/skuld/13000
      skuld node --cluster skuld --zookeeper 127.0.0.1:2181 --port 13001 --data /var/lib/skuld/13001
    """
    from contextlib import nullcontext

    import attrs

    from skuld_py.cli.showing import print_event
    from skuld_py.config.scaling import Scaling
    from skuld_py.config.timing import DEFAULT_TIMING, Retention, check_timing
    from skuld_py.exposition import exposed
    from skuld_py.model.names import WIDE_NAME, check_name
    from skuld_py.runtime.server import Place, serve

    def say_ready(name: str) -> None:
        print_event(as_json, f"node {name} of cluster {cluster} is ready", event="ready", node=name,
                    cluster=cluster)

    check_name("cluster", cluster)
    if archive and retention_s is None:
        raise click.UsageError("--archive: without --retention nothing is deleted; say both, or neither.")
    for scheduler in schedulers:
        check_name("scheduler", scheduler, WIDE_NAME)
    timing = attrs.evolve(DEFAULT_TIMING, **timings_of(timings), refuse_unled=round((unled_s or 0) * 1000))
    check_timing(timing, 0)
    expected = {"partitions": partitions, "replicas": replicas,
                "skew_ms": None if skew_s is None else round(skew_s * 1000)}
    place = Place(host, port, advertise, peer_port)
    shown = node_metrics() if metrics is not None else None
    with nullcontext() if metrics is None else exposed(metrics, shown):
        serve(hosts, cluster, place, data, session_ms=round(session_s * 1000), on_ready=say_ready,
              expected=expected, scaling=Scaling(direct_join, transfer, sharing, schedulers, versions),
              retention=Retention(round((retention_s or 0) * 1000), archives=archive), metrics=shown,
              key=_key(ctx, cluster), timing=timing)


def _key(ctx: click.Context, cluster: str) -> ClusterKey | None:
    """The cluster's key, if one is given; one of another cluster is refused."""
    key = cluster_key_of(ctx)
    return None if key is None else check_key_of(cluster, key)


def node_metrics() -> NodeMetrics:
    """The metrics of a node, which judges the cluster as ``skuld status`` does."""
    from skuld_py.runtime.metrics import NodeMetrics
    from skuld_py.verbs.attention import KINDS, Facts, concerns

    return NodeMetrics(lambda greeted, described: [concern.kind for concern in concerns(
        Facts(greeted.cluster, greeted.replicas, greeted.skew_ms, described, now_ms=round(time() * 1000)))], KINDS)
