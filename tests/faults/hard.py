"""The scenarios of disks, clocks and bad coincidences.

The two recipes are Jepsen's for NATS: a write acknowledged by a majority must outlive that one of them loses
power while the other is away, with the one that missed it back in its place. They pause, or cut off, where
the cluster cannot know the difference.
"""

from __future__ import annotations

import subprocess

from faults.world import World
from machines.node import Node
from machines.town import SKEW_MS
from skuld_py.embedded import process

END_S = 40.0
WHY = "its disk is full: make room there"


def power_cut(world: World) -> None:
    """All nodes lose power at once, four times, and start on what their disks kept."""
    for _ in range(4):
        with world.fault("power cut", world.nodes, "all nodes"):
            world.cut_power(world.nodes)
            world.restore_power(world.nodes)
            world.await_served()
        world.run(5)


def wiped(world: World) -> None:
    """A node loses its data while one that missed all recent writes is back and the only other one is away.

    The first is cut off, the others go on. Then it is back, one of those is wiped, the other one killed: the
    two that are left are a majority of which none remembers. They must wait for the third.
    """
    stale, forgetful, away = world.nodes
    with world.fault("cut off", [stale]):
        world.network.cut(world.apart([stale]) + world.from_registry([stale]))
        world.run(8)
        with world.fault("kill", [away]), world.fault("wipe", [forgetful]):
            world.kill([forgetful, away])
            forgetful.wipe()
            world.network.heal()
            world.start([forgetful])
            world.run(10)
            world.start([away])
            world.await_served()
    world.run(4)


def wiped_alone(world: World) -> None:
    """One node loses its data, comes back under its old name, and all others are there to fill it."""
    victim = world.leaders()[0]
    with world.fault("wipe", [victim]) as fault:
        world.kill([victim])
        victim.wipe()
        world.await_gone(victim, fault)
        world.run(3)
        world.start([victim])
        world.await_served()
    world.await_back(victim)
    world.run(6)


def full_disk(world: World) -> None:
    """The busiest leader's disk is full: it may end, must not lie, and goes on once there is space."""
    victim = world.leaders()[0]
    assert victim.disk is not None
    with world.fault("disk full", [victim]) as fault:
        victim.may_end = True
        victim.disk.fill()
        has_ended = victim.await_end(END_S)
        world.say(f"{victim} {'ended' if has_ended else 'goes on'}")
        if has_ended:
            if WHY not in victim.said():
                victim.ended.append(f"{victim} does not say why it ends:\n{process.tail(victim.log)}")
            world.await_gone(victim, fault)
            victim.launch()
            world.run(3)
            victim.kill()
        victim.disk.free()
        if not victim.is_running():
            world.start([victim])
        victim.may_end = False
        world.await_served()
    world.await_back(victim)
    world.run(4)


def failing_fsync(world: World) -> None:
    """Every fsync of the busiest leader fails from now on: it must end at the first, and restart well."""
    for _ in range(2):
        victim = world.leaders()[0]
        with world.fault("failing fsync", [victim]):
            victim.may_end = True
            tracer = _fail_fsync(world, victim)
            try:
                if not victim.await_end(END_S):
                    victim.ended.append(f"{victim} goes on {END_S:.0f} s after its fsync began to fail")
                    victim.kill()
            finally:
                process.stop(tracer, grace_s=2)
            world.start([victim])
            victim.may_end = False
            world.await_served()
        world.run(3)


def _fail_fsync(world: World, victim: Node) -> subprocess.Popen[bytes]:
    assert victim.process is not None
    calls = "fsync,fdatasync,msync"
    return process.spawn(["strace", "-f", "-q", "-p", str(victim.process.pid), "-e", f"trace={calls}", "-e",
                          f"inject={calls}:error=EIO"], log=world.town.place / "strace.log")


def clocks(world: World) -> None:
    """Clocks that differ and drift, together within the skew bound; steps of the wall clock besides."""
    part_ms = SKEW_MS * 2 // 5
    for number, node in enumerate(world.nodes):
        offset_ms = (-part_ms, 0, part_ms)[number % 3]
        with world.fault("clock off", [node], f"{node} by {offset_ms} ms"):
            node.stop()
            node.set_clock(offset_ms, 0)
            node.start()
            world.await_served()
    with world.fault("clocks drift", world.nodes, "all nodes, and steps of a minute"):
        for node in world.nodes:
            node.set_clock(world.random.choice((-60_000, 60_000)), world.random.choice((-500, 500)))
        world.run(12)
        for node in world.nodes:
            node.set_clock(0, 0)
        world.kill(world.leaders()[:1])
        world.start(node for node in world.nodes if not node.is_running())
        world.await_served()
    _restart_all(world)


def clock_ahead(world: World) -> None:
    """A node that is ahead by ten times the skew bound, and then behind: it may serve no claim wrongly."""
    for factor in (10, -10):
        victim = world.leaders()[0]
        with world.fault("clock off", [victim], f"{victim} by {factor * SKEW_MS} ms"):
            world.kill([victim])
            victim.set_clock(factor * SKEW_MS, 0)
            world.start([victim])
            world.run(6)
            world.kill(node for node in world.leaders()[:1] if node is not victim)
            world.start(node for node in world.nodes if not node.is_running())
            world.run(6)
            victim.stop()
            victim.clock_file.unlink()
            world.start([victim])
            world.await_served()
        world.run(2)


def _restart_all(world: World) -> None:
    """Right clocks again, which takes a start."""
    for node in world.nodes:
        node.clock_file.unlink(missing_ok=True)
        node.stop()
        node.start()
    world.await_served()


def pause_kill(world: World) -> None:
    """[P8] One is paused and misses writes; the second loses power; the third is paused, the first goes on."""
    first, second, third = world.nodes
    with world.fault("power cut", [second], f"of {second} while {first}, then {third} is paused"):
        first.pause()
        world.run(10)
        world.cut_power([second])
        third.pause()
        first.resume()
        world.restore_power([second])
        world.run(15)
        third.resume()
        world.await_served()
    world.run(4)


def part_kill(world: World) -> None:
    """[P9] The same with cuts in the place of pauses."""
    first, second, third = world.nodes

    def isolate(node: Node) -> None:
        world.network.heal()
        world.network.cut(world.apart([node]) + world.from_registry([node]))

    with world.fault("power cut", [second], f"of {second} while {first}, then {third} is cut off"):
        isolate(first)
        world.run(10)
        world.cut_power([second])
        isolate(third)
        world.restore_power([second])
        world.run(15)
        world.network.heal()
        world.await_served()
    world.run(4)
