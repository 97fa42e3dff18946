"""``skuld cluster restore``: ZooKeeper has lost a cluster, and its nodes' data directories are there."""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.cluster_keys import check_key_of
from skuld_py.cli.options import cluster_key_of, json_option, timeout_option, zookeeper_option
from skuld_py.cli.values import DAY_S, Duration
from skuld_py.cli.zookeeper_access import words_of


@click.command()
@click.argument("name")
@zookeeper_option
@click.option("--from", "directories", type=click.Path(file_okay=False, path_type=Path), multiple=True,
              required=True, metavar="DATA", help="A data directory of the cluster; may be given several times.")
@click.option("--accept-loss", is_flag=True, show_default=False,
              help="Where backups or older copies are the newest there is: go back to them, and lose what came"
                   " since.")
@click.option("--horizon", "horizon_s", type=Duration(least_s=0.001, most_s=DAY_S), metavar="DURATION",
              default="30m", help="The longest --timing-horizon of the nodes, or the longest lease that is asked"
              " for, if that is longer. With --accept-loss, claims that were granted since the backups end within"
              " that time, and nothing is granted before. What else keeps leaders from granting for longer is"
              " warned of.")
@timeout_option("30s", "ZooKeeper's answers")
@json_option
@click.pass_context
def restore(ctx: click.Context, /, name: str, hosts: str, directories: tuple[Path, ...], accept_loss: bool,
            horizon_s: float, timeout_s: float, as_json: bool) -> None:
    """Put the cluster NAME back into a ZooKeeper that has lost it, from the data directories of its nodes.

    Stop all its nodes first, then give the directories that they ran on last, or copies of these: all of them, or
    as many as a majority of each partition's voters have had. Then start the nodes again as before. Every task
    that was acknowledged is there; claims that run are lost to their holders and granted again, with higher
    tokens. What operators held (frozen, solo) and what was written into the log in the last seconds is forgotten.

    Backups ('skuld backup') and older copies of directories are recognised, and named. They are relied on only
    where nothing newer is given, and with --accept-loss: what was acknowledged since they were taken is lost then.

    \b
    Examples:
      skuld cluster restore skuld --from /var/lib/skuld/13000 --from /var/lib/skuld/13001
      skuld cluster restore prod --zookeeper zk1:2181 --from a/data --from b/data --from c/data
      skuld cluster restore prod --accept-loss --from /backups/mon/zk1-13000 --from /backups/mon/zk2-13000
    """
    import secrets

    import attrs

    from skuld_py.cli.showing import now_ms, print_event
    from skuld_py.model.names import check_name
    from skuld_py.node.life.rebuilding import Return, rebuilt
    from skuld_py.runtime.kept_roster import aged, roster_of
    from skuld_py.runtime.remains import remains_in
    from skuld_py.runtime.zookeeper.restoring import shown, write_cluster
    from skuld_py.verbs.words import many, moment

    check_name("cluster", name)
    key = cluster_key_of(ctx)
    roster, forgotten = roster_of(directories, None if key is None else check_key_of(name, key))
    back = Return(now_ms(), round(horizon_s * 1000))
    remains = [remains_in(each) for each in directories]
    made = rebuilt(name, remains, secrets.token_hex(32), back if accept_loss else None, moment,
                   back.now_ms + back.horizon_ms)
    if warning := forgotten or aged(roster, remains):
        made = attrs.evolve(made, warnings=(*made.warnings, warning))
    write_cluster(hosts, made, timeout_s, roster=roster)
    words = (f"cluster {name} is restored: {many(len(made.documents), 'partition')},"
             f" {many(len(made.nodes), 'node')}. Next, on each machine, start its node as before:\n"
             f"  skuld node --cluster {name} {words_of(hosts)} --port PORT --data DIRECTORY"
             f"{'' if key is None else ' --cluster-key FILE'}")
    print_event(as_json, "\n".join((words, *(f"! {each}" for each in made.warnings))), **shown(made))
