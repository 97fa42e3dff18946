"""The coordination log for an operator: read from any position, followed, and written to.

An operator is no member: a connection of its own, a random id as writer, and the verdict found by playing the log
up to the entry, as every member does. So nothing here needs a running node; nodes that run are told of the entry
(``passing_on``).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.commands import Command, RetireNode
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, play
from skuld_py.cluster.log.replica import FAILED_MAX, Replica
from skuld_py.config import Parameters
from skuld_py.errors import Refused, Uncertain
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.log_reading import BrokenOrigin, LogReader, entry_path, position_of
from skuld_py.runtime.zookeeper.passing_on import pass_on

_BATCH = 256
_POLL_S = 5.0
"""How often a follower looks although its watch is silent."""
_TRIES = 5


def read_origin(hosts: str, cluster: str, timeout_s: float = 10.0) -> tuple[int, str]:
    """The position and the canonical text of the log's origin; -1 and nothing before the first one."""
    with _reader(hosts, cluster, timeout_s) as (_, reader):
        return reader.origin()


def read_replica(hosts: str, parameters: Parameters, timeout_s: float = 10.0) -> Replica:
    """The replica at the end of the log."""
    with _reader(hosts, parameters.cluster, timeout_s) as (_, reader):
        return _latest(reader, Replica.base(parameters))


def read_pulses(hosts: str, cluster: str, timeout_s: float = 10.0) -> tuple[str, ...]:
    """The ids of members that have a pulse now, by name."""
    with _reader(hosts, cluster, timeout_s) as (client, _):
        path = f"{clusters.path_of(cluster)}/members"
        return tuple(sorted(client.get_children_async(path).get(timeout=timeout_s)))


def follow(hosts: str, cluster: str, start: int | None = None, timeout_s: float = 10.0, *,
           is_endless: bool = True, times_ms: dict[int, int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Entries (position, raw) from ``start`` on, by default from the oldest that is there; what was collected or
    never stood is passed over. At the end it waits for more, unless it is not ``is_endless``. ``Refused`` when
    ZooKeeper does not answer within the timeout, also later. ``times_ms`` is given when each was written."""
    with _reader(hosts, cluster, timeout_s) as (client, reader):
        reader.times_ms = times_ms
        position = reader.oldest() if start is None else start
        arrived = threading.Event()
        while True:
            arrived.clear()
            if is_endless:
                path = entry_path(clusters.path_of(cluster), position)
                client.exists_async(path, watch=lambda _: arrived.set()).get(timeout=timeout_s)
            found, _ = reader.entries(position, _BATCH)
            yield from found
            if found:
                position = found[-1][0] + 1
            elif (beyond := reader.beyond(position)) is not None:
                position = max(beyond, reader.origin()[0] + 1 if beyond < 0 else 0)
            elif not is_endless:
                return
            else:
                arrived.wait(_POLL_S)


@attrs.frozen
class Verdict:
    """What became of an operator's entry. ``replica`` is as before it; ``reason`` says why it was refused."""

    position: int
    outcome: Outcome
    reason: str
    replica: Replica


def command(hosts: str, parameters: Parameters, wish: Command, timeout_s: float = 10.0) -> Verdict:
    """Append a command and read what the log makes of it. ``Uncertain`` when that cannot be known."""
    root = clusters.path_of(parameters.cluster)
    writer = f"operator~{secrets.token_hex(8)}"
    with _reader(hosts, parameters.cluster, timeout_s) as (client, reader):
        here, raw = _latest(reader, Replica.base(parameters)), Entry(writer, 0, wish).encode()
        clusters.heed_owners(client, root, timeout_s)
        try:
            answer = client.create_async(f"{root}/log/entry-", raw, sequence=True)
            position = position_of(answer.get(timeout=timeout_s))
        except (KazooException, KazooTimeoutError) as problem:
            raise Uncertain("zookeeper_uncertain", f"the connection to ZooKeeper at {hosts} broke before it"
                            " answered; look whether it happened before you try again",
                            hosts=hosts) from problem
        pass_on(parameters, here.rules, [*here.members.values()], position, raw)
        return _verdict(reader, here, position)


def set_leaving(hosts: str, cluster: str, name: str, is_leaving: bool, timeout_s: float = 10.0) -> bool:
    """Take a node out of the placement, alive or dead, or put it back; False when it was so already.

    ``Refused`` when there is no such node, or too few would be left to hold every copy. The log decides that in
    the order of its entries: of two nodes that are taken out at once the second may be refused.
    """
    parameters = clusters.read_parameters(hosts, cluster, timeout_s / 2)
    verdict = command(hosts, parameters, RetireNode(name, is_leaving), timeout_s / 2)
    if verdict.outcome in (Outcome.APPLIED, Outcome.UNCHANGED):
        return verdict.outcome is Outcome.APPLIED
    if name not in verdict.replica.nodes:
        raise Refused("unknown_node", f"NODE: cluster {cluster} has no node {name}; it has:"
                      f" {', '.join(sorted(verdict.replica.nodes)) or 'none'}", name=name)
    raise Refused("too_few_nodes", f"NODE: {verdict.reason}", name=name)


def _latest(reader: LogReader, fresh: Replica) -> Replica:
    """The replica at the end of the log."""
    here = _jump(reader, fresh)
    while found := reader.entries(here.version + 1, _BATCH)[0]:
        for position, raw in found:
            here = play(here, position, raw).replica
    return here


def _jump(reader: LogReader, here: Replica) -> Replica:
    position, text = reader.origin()
    return from_text(Replica, text) if position > here.version else here


def _verdict(reader: LogReader, here: Replica, wanted: int) -> Verdict:
    """Play on to our entry. If the log is collected meanwhile, its origin knows the verdict, unless so many
    entries failed since that ours may be among the failures it has dropped."""
    for _ in range(_TRIES):
        while here.version < wanted and (found := reader.entries(here.version + 1, _BATCH)[0]):
            for position, raw in found:
                played = play(here, position, raw)
                if position == wanted:
                    return Verdict(position, played.outcome, played.reason, here)
                here = played.replica
        here = _jump(reader, here)
        if here.version >= wanted:
            reasons = [failure.reason for failure in here.failed if failure.position == wanted]
            if not reasons and len(here.failed) == FAILED_MAX and here.failed[0].position > wanted:
                raise Uncertain("log_collected", f"entry {wanted} of the log is written, and was collected before"
                                " it could be read again; look whether it took effect")
            return Verdict(wanted, Outcome.REFUSED if reasons else Outcome.APPLIED, "".join(reasons), here)
    raise Uncertain("log_gap", f"entry {wanted} of the log is written, but entries before it are missing and no"
                    " origin covers them; look whether it took effect")


@contextmanager
def _reader(hosts: str, cluster: str, timeout_s: float) -> Iterator[tuple[Any, LogReader]]:
    root = clusters.path_of(cluster)
    with clusters.connection(hosts, timeout_s, is_write=False) as client:
        try:
            yield client, LogReader(root, lambda: client, lambda answer: answer.get(timeout=timeout_s))
        except NoNodeError:
            raise clusters.unknown(client, hosts, cluster, timeout_s) from None
        except BrokenOrigin as problem:
            raise Refused("broken_origin", f"{root}/origin in ZooKeeper cannot be read: {problem}; upgrade this"
                          " program, or put back what stood there", cluster=cluster) from problem
