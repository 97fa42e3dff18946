"""The scenarios of processes, networks and the registry; those of disks and clocks are beside, in ``hard``.

Each is a story told to a world under load. A fault lasts until what it hit is whole again, so what is counted
as overlapping it includes the way back. Leases last 0.4 to 3 s, sessions 2 s, the skew bound is 0.5 s: a
pause or a cut of 5 s is past all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from faults import registry
from faults.world import World
from machines.network import ring as ring_of
from machines.node import Node
from machines.program import start_all
from machines.town import SESSION_MS

PAST_LEASE_S = 5.0


def named(nodes: Sequence[Node]) -> str:
    """Their names."""
    return " ".join(map(str, nodes))


def kill(world: World) -> None:
    """kill -9 of the busiest leader, three times, and of every node at once, twice."""
    for _ in range(3):
        victim = world.leaders()[0]
        with world.fault("kill", [victim]):
            world.kill([victim])
            world.run(6)
            world.start([victim])
        world.run(2)
    for _ in range(2):
        with world.fault("kill", world.nodes, "all nodes"):
            world.kill(world.nodes)
            world.start(world.nodes)
            world.await_served()
        world.run(4)


def one_kill(world: World) -> None:
    """kill -9 of the busiest leader, once: the shortest story."""
    victim = world.leaders()[0]
    with world.fault("kill", [victim]):
        world.kill([victim])
        world.run(3)
        world.start([victim])
    world.await_served()


def pause(world: World) -> None:
    """SIGSTOP of the busiest leader: shorter than a session, a little longer than its leases, and twice that."""
    for seconds in (SESSION_MS / 1000 - 0.5, PAST_LEASE_S, 3.3, 2 * PAST_LEASE_S):
        victim = world.leaders()[0]
        with world.fault("pause", [victim], f"{victim}, {seconds:.1f} s"):
            victim.pause()
            world.run(seconds)
            victim.resume()
        world.run(2)


def halves(world: World) -> None:
    """A minority with leaders in it cut off: with ZooKeeper within its reach, and without."""
    for has_registry in (True, False):
        minority = world.leaders()[:2]
        cuts = world.apart(minority) + ([] if has_registry else world.from_registry(minority))
        with world.cut("halves", f"{named(minority)} {'with' if has_registry else 'without'} ZooKeeper", cuts):
            world.run(12)
        world.run(4)


def ring(world: World) -> None:
    """Five nodes, each reaching its two neighbours only, so each another majority; and the busiest is killed.

    A leader that its neighbours hear is rightly left in peace, so the ring alone elects nobody.
    """
    for _ in range(2):
        order = [*world.nodes]
        world.random.shuffle(order)
        with world.cut("ring", named(order), ring_of([node.host for node in order])):
            world.run(5)
            _kill_for(world, 5)
            world.run(4)
        world.run(4)


def _kill_for(world: World, seconds: float) -> None:
    victim = world.leaders()[0]
    with world.fault("kill", [victim]):
        world.kill([victim])
        world.run(seconds)
        world.start([victim])


def zookeeper_freeze(world: World) -> None:
    """ZooKeeper stands still: for less than a session, and for several."""
    for seconds in (1.0, 6.0, 12.0):
        with world.fault("ZooKeeper freeze", words=f"of {seconds:.0f} s"), frozen(world):
            world.run(seconds)
        world.await_served()
        world.run(2)


@contextlib.contextmanager
def frozen(world: World) -> Iterator[None]:
    """All of ZooKeeper is paused for as long as the block lasts."""
    for server in world.town.zookeepers:
        server.pause()
    try:
        yield
    finally:
        for server in world.town.zookeepers:
            server.resume()


def one_way(world: World) -> None:
    """Packets of the busiest leader to another node are dropped, not the reverse: within 3 s a cut of the pair."""
    for is_reversed in (False, True):
        victim, other = world.leaders()[:2]
        pair = (victim.host, other.host)
        with world.cut("one way", f"{victim} {'<-' if is_reversed else '->'} {other} dropped",
                       [pair[::-1] if is_reversed else pair]):
            world.run(12)
        world.run(4)


def bridge(world: World) -> None:
    """Two halves that only one node reaches both of; the busiest leader is killed meanwhile."""
    for _ in range(2):
        order = world.leaders()
        left, middle, right = order[:2], order[2], order[3:]
        with world.cut("bridge", f"{named(left)} - {middle} - {named(right)}", world.apart(left, right)):
            world.run(5)
            _kill_for(world, 5)
            world.run(4)
        world.run(4)


def no_registry(world: World) -> None:
    """The busiest leader cut from ZooKeeper only; then another one; then all nodes."""
    for count in (1, 1, len(world.nodes)):
        victims = world.leaders()[:count]
        with world.cut("no ZooKeeper", f"for {named(victims)}", world.from_registry(victims)):
            world.run(8)
        world.await_served()
        world.run(2)


def expiry(world: World) -> None:
    """The session of a leader is ended at the server, while all else is well; four times."""
    for _ in range(4):
        victim = world.leaders()[0]
        with world.fault("session expired", [victim]):
            registry.expire(world.town.registry, victim.name)
            world.run(4)


def zookeeper_kill(world: World) -> None:
    """kill -9 of ZooKeeper, back at once; and for several sessions."""
    for seconds in (0.0, 8.0):
        with world.fault("ZooKeeper killed", words=f"for {seconds:.0f} s"):
            for server in world.town.zookeepers:
                server.kill()
            world.run(seconds)
            start_all(world.town.zookeepers)
            world.await_served()
        world.run(2)


def rolling(world: World) -> None:
    """SIGTERM and start of one node after the other; then once more, not waiting for leaders in between."""
    for is_patient in (True, False):
        for node in world.nodes:
            with world.fault("restart", [node]):
                node.stop()
                node.start()
                if is_patient:
                    world.await_served()
            world.run(1 if is_patient else 0)
    world.await_served()


def flapping(world: World) -> None:
    """The busiest leader cut off from all nodes and back, every 200 ms; then the same with 2 s."""
    for period_s, times in ((0.2, 50), (2.0, 5)):
        victim = world.leaders()[0]
        with world.fault("flapping", words=f"{victim} every {period_s} s"):
            before = world.network.dropped()
            for _ in range(times):
                world.network.cut(world.apart([victim]))
                world.run(period_s)
                world.network.heal()
                world.run(period_s)
            assert world.network.dropped() > before
        world.run(2)
