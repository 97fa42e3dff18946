"""A town that lives on while its machines fail, one after the other: for as long as it is told to.

Each machine that fails takes its leaderships with it, and leads again in the end what is its by placement. How
long both took is told.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from faults import hard
from faults.world import World
from machines.machine import Machine
from machines.program import Program

FAULT_S = 8.0
"""Past leases and sessions."""


def rounds(world: World) -> None:
    """In rounds: a cable pulled, a standstill, a full disk, an empty machine, a lost server of ZooKeeper."""
    until = time.monotonic() + world.seconds
    for server in itertools.cycle(world.town.zookeepers):
        out_of_reach(world, "cable pulled", Machine.cut, Machine.mend)
        out_of_reach(world, "standstill", Machine.freeze, Machine.thaw)
        hard.full_disk(world)
        hard.wiped_alone(world)
        one_server_of_three(world, server)
        if time.monotonic() >= until:
            break


def out_of_reach(world: World, kind: str, begin: Callable[[Machine], None],
                 end: Callable[[Machine], None]) -> None:
    """The busiest leader is neither heard nor hears, and does not know it."""
    victim = world.leaders()[0]
    with world.fault(kind, [victim]) as fault:
        begin(victim.machine)
        world.await_gone(victim, fault)
        world.run(FAULT_S)
        end(victim.machine)
        world.await_back(victim)


def one_server_of_three(world: World, server: Program) -> None:
    """A server of ZooKeeper is cut off; the two others are enough."""
    with world.fault("ZooKeeper cable pulled", words=str(server)):
        server.machine.cut()
        world.run(FAULT_S)
        world.await_served()
        server.machine.mend()


def replaced(world: World) -> None:
    """A machine is replaced by an empty one, where nodes are found by their IPv6 addresses."""
    hard.wiped_alone(world)
