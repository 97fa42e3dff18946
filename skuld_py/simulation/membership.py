"""What the coordination log still lacks to be at rest, once all faults are over.

Every running process is a member, once, and has its node's place; every member has a pulse and is watched by
exactly one; no join is under way; all have played the whole log, and have told their nodes what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skuld_py.cluster.log.replica import Place
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.member.news import members_of
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.zookeeper.reference import same
from skuld_py.simulation.world.zookeeper.registry import Registry

Machines = Mapping[str, Membership]


def unsettled(processes: Mapping[str, Process], registry: Registry) -> list[str]:
    """What is still to come; nothing where no process is up that could notice anything."""
    live = {name: process.membership for name, process in processes.items() if process.membership is not None}
    return [*_of_the_log(live, registry), *_of_pulses(live, processes, registry)] if live else []


def _of_the_log(live: Machines, registry: Registry) -> Iterator[str]:
    newest, lives = registry.replica, {machine.me for machine in live.values()}
    yield from (f"{member} is in and dead" for member in newest.members if member not in lives)
    yield from (f"{observer} still lets {joiner} in" for joiner, observer in newest.joins.observers.items())
    for name, machine in live.items():
        holder = newest.nodes.get(name, Place()).member
        if machine.me not in newest.members or holder != machine.me:
            yield f"{name} lives as {machine.me or 'nobody'}, and its place says {holder or 'nobody'}"
        if not same(machine.replica, newest):
            yield f"{name} is at {machine.replica.version} of {newest.version}"


def _of_pulses(live: Machines, processes: Mapping[str, Process], registry: Registry) -> Iterator[str]:
    lives, pulses = {machine.me: name for name, machine in live.items()}, registry.log.pulses
    yield from (f"{life} has a pulse and is dead" for life in pulses if life not in lives)
    if len(live) < 2:
        return  # no member sees the pulse of a lone one go
    yield from (f"{life} has no pulse" for life in lives if life not in pulses)
    watchers: dict[str, list[str]] = {}
    for name in live:
        connection = processes[name].connection
        for life in connection.wishes.armed if connection is not None else ():
            watchers.setdefault(life, []).append(name)
    for life in lives:
        if len(watchers.get(life, [])) != 1:
            yield f"{life} is watched by {' and '.join(watchers.get(life, [])) or 'nobody'}"
    told = dict.fromkeys(member.name for member in members_of(registry.replica))
    yield from (f"{name} knows {[*processes[name].members]}" for name in live
                if processes[name].members.keys() != told.keys())
