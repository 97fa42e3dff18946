"""``skuld keys``: who may speak to a cluster that has keys, and as what.

All of it is in the roster, in ZooKeeper, which shows it to the holder of the cluster's key alone; nodes heed a
change within a moment. Nodes authorise themselves. A secret is made here, written to a file, and never shown or
kept.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.groups import Words
from skuld_py.cli.options import cluster_key_of, cluster_option, json_option, timeout_option, zookeeper_option
from skuld_py.cli.values import KEY_FILE, Duration

if TYPE_CHECKING:
    from skuld_py.keys.files import ClusterKey
    from skuld_py.keys.pair import Pair
    from skuld_py.model.roster import KeyRow, Roster

LIFE_S_MAX = 3_660 * 24 * 3600.0
ROLES = click.Choice(["worker", "producer", "reader", "archiver", "admin"])

role_option = click.option(
    "--role", "roles", multiple=True, required=True, type=ROLES,
    help="What its owner may do; may be given several times. worker: claim, and all that follows. producer:"
         " enqueue, wait for results, and cancel. reader: look at everything. archiver: take ended tasks away."
         " admin: all but that.")
queue_option = click.option(
    "--queue", "queues", multiple=True, metavar="BEGINNING",
    help="Only with queues that begin so; may be given several times.")
lasting_option = click.option(
    "--lasting", "life_s", type=Duration(least_s=60, most_s=LIFE_S_MAX), metavar="DURATION", default=None,
    show_default="for ever", help="When the key ends by itself.")
file_option = click.option(
    "--to", "path", type=KEY_FILE, metavar="FILE", default=None,
    show_default="NAME.key", help="Where to write the key; the file must not exist.")


@click.group(cls=Words)
def keys() -> None:
    """Make, list, replace and revoke the keys of a cluster's clients."""


@keys.command()
@click.argument("name")
@cluster_option
@role_option
@queue_option
@lasting_option
@file_option
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
@click.pass_context
def make(ctx: click.Context, name: str, cluster: str, roles: tuple[str, ...], queues: tuple[str, ...],
         life_s: float | None, path: Path | None, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Make a key for the client NAME, authorise it, and write it to a file for that client.

    \b
    Examples:
      skuld keys make shop --role producer --cluster prod --cluster-key prod.key
      skuld keys make night-jobs --role worker --role reader --queue reports --lasting 90d --cluster prod
    """
    from skuld_py.keys.pair import fresh
    from skuld_py.model.roster import make_row

    key, pair, path = _needed(ctx), fresh(), path or Path(f"{name}.key")
    row = make_row(pair.public, name, roles, queues, _until_ms(life_s))
    _write_and_change(hosts, key, pair, row, path, timeout_s, lambda roster: roster.authorised(row))
    _say(as_json, row, path, "may now act as " + ", ".join(roles) + _until(row))


@keys.command()
@click.argument("name")
@click.argument("public", metavar="PUBLIC-KEY")
@cluster_option
@role_option
@queue_option
@lasting_option
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def authorise(name: str, public: str, cluster: str, roles: tuple[str, ...], queues: tuple[str, ...],
              life_s: float | None, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Let the owner of PUBLIC-KEY act under NAME, or change what it may do.

    For a key that its owner has made, whose secret nobody else should ever see; 'skuld manual keys' tells how.

    \b
    Examples:
      skuld keys authorise shop 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7' --role producer --cluster prod
    """
    from skuld_py.model.roster import make_row
    from skuld_py.runtime.zookeeper.rosters import change_roster

    row = make_row(public, name, roles, queues, _until_ms(life_s))
    change_roster(hosts, cluster, lambda roster: roster.authorised(row), timeout_s)
    _say(as_json, row, None, "may now act as " + ", ".join(roles) + _until(row))


@keys.command()
@click.argument("name")
@cluster_option
@click.option("--grace", "grace_s", type=Duration(most_s=LIFE_S_MAX), metavar="DURATION", default="24h",
              help="How long the keys that it had go on counting.")
@click.option(
    "--lasting", "life_s", type=Duration(least_s=60, most_s=LIFE_S_MAX), metavar="DURATION", default=None,
    show_default="until the key before would have ended", help="When the new key ends by itself.")
@click.option("--to", "path", type=KEY_FILE, metavar="FILE", default=None,
              show_default="NAME-2.key, or the next number that is free", help="Where to write the key; the file"
              " must not exist.")
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
@click.pass_context
def rotate(ctx: click.Context, name: str, cluster: str, grace_s: float, life_s: float | None, path: Path | None,
           hosts: str, timeout_s: float, as_json: bool) -> None:
    """Make another key for the client NAME; those it has count for --grace more, so that nothing stops.

    It may do what the newest of them may, and ends when that would have, unless --lasting says otherwise. A node's
    key is replaced by removing node.key from its data directory and starting it again.

    \b
    Examples:
      skuld keys rotate shop --cluster prod --cluster-key prod.key
      skuld keys rotate night-jobs --lasting 90d --cluster prod --cluster-key prod.key
      skuld keys rotate shop --grace 1h --to /etc/skuld/shop.new --cluster prod --cluster-key prod.key
    """
    import attrs

    from skuld_py.keys.pair import fresh
    from skuld_py.runtime.zookeeper.rosters import read_roster

    key, path = _needed(ctx), path or _next_file(name)
    known = _rows(read_roster(hosts, cluster, timeout_s), name, cluster)
    pair, until_ms = fresh(), _until_ms(grace_s)
    row = attrs.evolve(known[-1], key=pair.public, until_ms=_end_of_next(known[-1], life_s))

    def replaced(roster: Roster) -> Roster:
        ended = tuple(attrs.evolve(each, until_ms=min(each.until_ms or until_ms, until_ms))
                      if each.name == name and not each.is_node else each for each in roster.rows)
        return attrs.evolve(roster, rows=ended).authorised(row)
    _write_and_change(hosts, key, pair, row, path, timeout_s, replaced)
    _say(as_json, row, path, "has another key" + _until(row))


@keys.command()
@click.argument("name", metavar="NAME|PUBLIC-KEY")
@cluster_option
@click.option("--node", "is_for_node", is_flag=True, show_default=False,
              help="Also if it is that of a node, which ends then.")
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def revoke(name: str, cluster: str, is_for_node: bool, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Let all keys of NAME, or one key, count no more, at once and for good, also on connections that stand.

    A node whose key is revoked ends. It starts again with another one once node.key is removed from its data
    directory. A key that begins with - goes behind -- at the end of the line.

    \b
    Examples:
      skuld keys revoke shop --cluster prod --cluster-key prod.key
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.errors import Refused
    from skuld_py.runtime.zookeeper.rosters import change_roster
    from skuld_py.verbs.words import many

    gone: list[str] = []

    def without(roster: Roster) -> Roster:
        rows = [row for row in roster.rows if name in (row.name, row.key)]
        if any(row.is_node for row in rows) and not is_for_node:
            raise Refused("not_confirmed", f"NAME: {rows[0].name} is a node of cluster {cluster}, and would end;"
                          " with --node it is revoked all the same", name=name)
        gone[:] = [row.key for row in rows]
        for key in gone:
            roster = roster.revoking(key)
        return roster
    change_roster(hosts, cluster, without, timeout_s)
    if not gone:
        raise _unknown(name, cluster)
    print_event(as_json, f"{many(len(gone), 'key')} of {name} revoked", cluster=cluster, name=name, revoked=gone)


@keys.command("list")
@cluster_option
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def list_(cluster: str, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show the keys that a cluster knows: whose they are, what they may do, and until when.

    \b
    Examples:
      skuld keys list --cluster prod --cluster-key prod.key
    """
    import attrs

    from skuld_py.cli.showing import print_json, print_table, table
    from skuld_py.runtime.zookeeper.rosters import no_keys, read_roster
    from skuld_py.verbs.words import moment

    roster = read_roster(hosts, cluster, timeout_s)
    if roster is None:
        raise no_keys(cluster)
    if as_json:
        print_json({"cluster": cluster, "keys": [attrs.asdict(row) for row in roster.rows],
                    "revoked": list(roster.revoked)})
        return
    shown, now_ms = table("name", "roles", "queues", "until", "key"), round(time.time() * 1000)
    for row in sorted(roster.rows, key=lambda row: (not row.is_node, row.name)):
        until = "for ever" if not row.until_ms else moment(row.until_ms)
        shown.add_row(row.name, ", ".join(row.roles), ", ".join(row.queues) or "all",
                      until if row.is_valid(now_ms) else f"over since {until}", row.key)
    print_table(shown)
    click.echo(f"{len(roster.revoked)} revoked")


def _needed(ctx: click.Context) -> ClusterKey:
    """The cluster's key, which a client's file must name."""
    key = cluster_key_of(ctx)
    if key is None:
        raise click.UsageError("--cluster-key: the client must know its cluster by it; give the key file that"
                               " 'skuld cluster create --secure' has written.")
    return key


def _next_file(name: str) -> Path:
    """Where another key of this name goes, beside those that lie here."""
    return next(path for number in itertools.count(2) if not (path := Path(f"{name}-{number}.key")).exists())


def _until_ms(life_s: float | None) -> int:
    return 0 if life_s is None else round((time.time() + life_s) * 1000)


def _end_of_next(row: KeyRow, life_s: float | None) -> int:
    """When the key ends that takes this one's place; ``Refused`` where that is over already."""
    from skuld_py.errors import Refused

    if life_s is None and not row.is_valid(round(time.time() * 1000)):
        raise Refused("key_over", f"lasting: the newest key of {row.name} has ended by itself; say for how long"
                      " another one is to last (--lasting)", name=row.name)
    return row.until_ms if life_s is None else _until_ms(life_s)


def _until(row: KeyRow) -> str:
    from skuld_py.verbs.words import moment

    return f" until {moment(row.until_ms)}" if row.until_ms else ""


def _rows(roster: Roster | None, name: str, cluster: str) -> list[KeyRow]:
    known = [row for row in roster.rows if row.name == name and not row.is_node] if roster is not None else []
    if not known:
        raise _unknown(name, cluster)
    return known


def _unknown(name: str, cluster: str) -> Exception:
    from skuld_py.errors import Refused

    return Refused("unknown_key", f"NAME: cluster {cluster} knows no key of a client {name}; 'skuld keys list'"
                   " shows those that there are", name=name)


def _write_and_change(hosts: str, key: ClusterKey, pair: Pair, row: KeyRow, path: Path, timeout_s: float,
                      change: Callable[[Roster], Roster]) -> None:
    """Write the file first: a key that counts and is nowhere would be of no use."""
    from skuld_py.errors import Refused
    from skuld_py.keys.files import ClientKey, write_where_told
    from skuld_py.runtime.zookeeper.rosters import change_roster, no_keys, read_roster

    known = read_roster(hosts, key.cluster, timeout_s)
    if known is None:
        raise no_keys(key.cluster)
    known.check_newest(key.pair.public)
    also = known.cluster[1] if len(known.cluster) > 1 else ""
    write_where_told(path, ClientKey(row.name, pair, key.pair.public, also).text)
    try:
        change_roster(hosts, key.cluster, change, timeout_s)
    except Refused:
        path.unlink()
        raise


def _say(as_json: bool, row: KeyRow, path: Path | None, what: str) -> None:
    from skuld_py.cli.showing import print_event

    where = "" if path is None else f"; its key is in {path}: hand it over, and keep no copy"
    print_event(as_json, f"{row.name} {what}{where}", name=row.name, key=row.key, roles=list(row.roles),
                queues=list(row.queues), until_ms=row.until_ms)
