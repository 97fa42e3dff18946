"""The coordination log with a real ZooKeeper and real processes: many join, die, and start again together;
sessions end, connections break around every call, and ZooKeeper itself goes away under load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from faults.registry import password_of
from runtime.attending import Events, Told, client_of
from runtime.attending import joined as attended
from skuld_py import Claim, Client
from skuld_py.client.client import Depth
from skuld_py.cluster.log.commands import LeaveSlot
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config import Parameters
from skuld_py.embedded import process
from skuld_py.embedded.local import LocalCluster
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.model import coordination as c
from skuld_py.model.document import Member
from skuld_py.model.events import Session, SessionChanged
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.clusters import create_cluster
from skuld_py.runtime.zookeeper.log_following import read_origin
from skuld_py.runtime.zookeeper.log_reading import LogReader
from skuld_py.runtime.zookeeper.registry import Registry, RegistryEffect
from system.light_member import LightMember
from system.load import PACE_S, Load, at_work
from system.onlooker import Onlooker, is_whole
from system.proxy import Proxy, Side

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MEMBERS = 20
LIVES_AT_ONCE = 4
SESSION_MS = 4_000
PROGRAM = Path(__file__).with_name("light_member.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        yield running


@pytest.fixture
def parameters(server: ZooKeeperServer, request: pytest.FixtureRequest) -> Parameters:
    made = Parameters(f"c{abs(hash(request.node.name))}", "id")
    create_cluster(server.hosts, made)
    return made


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect again at once: here the connection breaks all the time, on purpose."""
    monkeypatch.setattr(clusters, "_RECONNECT",
                        {"max_tries": -1, "delay": 0.02, "max_jitter": 0, "max_delay": 0.1})


# -- many -------------------------------------------------------------------------------------------


def launch(hosts: str, parameters: Parameters, ports: Sequence[int], directory: Path, starts: int) -> dict[
        str, subprocess.Popen[bytes]]:
    """Processes by the names of their nodes."""
    command = [sys.executable, str(PROGRAM), hosts, parameters.cluster]
    path = os.pathsep.join([str(PROGRAM.parents[2]), str(PROGRAM.parents[1])])
    return {f"127.0.0.1:{port}": process.spawn(
        [*command, str(port), str(SESSION_MS), str(starts)], log=directory / f"{port}.log",
        environment={**os.environ, "PYTHONPATH": path}) for port in ports}


def test_twenty_processes_join_lose_two_neighbours_and_start_again_all_at_once(
        server: ZooKeeperServer, parameters: Parameters, tmp_path: Path) -> None:
    onlooker = Onlooker(server.hosts, parameters)
    ports = range(20_001, 20_001 + MEMBERS)
    nodes = [f"127.0.0.1:{port}" for port in ports]
    running = launch(server.hosts, parameters, ports, tmp_path, 1)
    try:
        onlooker.wait(lambda replica: is_whole(replica, nodes), 30)

        ring, members = onlooker.replica.ring, onlooker.replica.members
        first = next(ring.walk())
        dead = [members[each].name for each in (first, ring.after(first))]
        for node in dead:
            process.stop(running.pop(node), grace_s=0)
        left = [node for node in nodes if node not in dead]
        onlooker.wait(lambda replica: is_whole(replica, left), SESSION_MS / 1000 + 10)
        assert sorted(name for name, place in onlooker.replica.nodes.items() if not place.member) == sorted(dead)

        lives = set(onlooker.replica.members)
        for each in running.values():
            each.send_signal(signal.SIGKILL)  # all at once: none sees another one go
        for each in running.values():
            process.stop(each, grace_s=0)
        running = launch(server.hosts, parameters, ports, tmp_path, 2)
        onlooker.wait(lambda replica: is_whole(replica, nodes) and not lives & set(replica.members), 60)
        assert onlooker.failures == []
    finally:
        for each in running.values():
            process.stop(each, grace_s=0)


# -- sessions ---------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_member_whose_session_expires_comes_back_in_another_life(server: ZooKeeperServer,
                                                                   parameters: Parameters) -> None:
    onlooker = Onlooker(server.hosts, parameters)
    members = [LightMember(server.hosts, parameters.cluster, port, SESSION_MS) for port in (1, 2, 3)]
    for member in members:
        member.start()
    try:
        lives = [member.await_session() for member in members]
        session = members[1].registry._connection.session()
        with client_of(server, client_id=(session, password_of(session))):
            pass
        again = members[1].await_session(after=lives[1])
        onlooker.wait(lambda replica: set(replica.members) == {lives[0], again, lives[2]}
                      and is_whole(replica, [f"127.0.0.1:{port}" for port in (1, 2, 3)]))
        told = [effect.event for effect in members[1].effects if isinstance(effect, c.Announce)
                and isinstance(effect.event, SessionChanged)]
        assert [event.session for event in told[:1] + told[-2:]] == [
            Session.CONNECTED, Session.LOST, Session.CONNECTED]
        assert lives[1] in onlooker.replica.left
    finally:
        for member in members:
            member.stop()


# -- connections ------------------------------------------------------------------------------------


IsAnswer = Callable[[Told], bool]


def drive(registry: Registry, events: Events, wishes: Sequence[tuple[RegistryEffect, IsAnswer]]) -> None:
    """Wish for one thing after the other, each until it is answered; an append in doubt is made again."""
    for wish, is_answer in wishes:
        at = len(events.all)
        registry.perform(wish)
        while True:
            at = events.wait(partial(_ends, is_answer), at)
            if is_answer(events.all[at - 1]):
                break
            registry.perform(wish)


def _ends(is_answer: IsAnswer, event: Told) -> bool:
    return is_answer(event) or isinstance(event, c.AppendUncertain)


def equals(wanted: Told) -> IsAnswer:
    return lambda event: event == wanted


def entry(seq: int) -> bytes:
    return Entry("w", seq, LeaveSlot("s")).encode()


def a_whole_life(registry: Registry, events: Events, me: Member) -> None:
    """Every call there is, and its answer."""
    drive(registry, events, [
        (c.SetPulse("w~1", me), equals(c.PulseStands("w~1"))),
        (c.ReadOrigin(), equals(c.OriginRead(-1, ""))),
        (c.ReadPulses(), equals(c.PulsesRead(("w~1",)))),
        (c.WatchPulses(("none",)), equals(c.PulseGone("none"))),
        *((c.Append(seq, entry(seq)), partial(_is_appended, seq)) for seq in range(3)),
        (c.ReadEntries(0, 10), lambda event: isinstance(event, c.EntriesRead) and bool(event.entries)),
        (c.WriteOrigin(1, "text", 1), equals(c.OriginWritten(1, True))),
        (c.ReadOrigin(), equals(c.OriginRead(1, "text"))),
        (c.ReadEntries(0, 10, is_waiting=False),
         lambda event: isinstance(event, c.EntriesRead) and event.is_missing),
        (c.SetPulse("w~2", me), equals(c.PulseStands("w~2"))),
        (c.WatchPulses(("w~1",)), equals(c.PulseGone("w~1"))),
    ])
    registry.perform(c.DropPulse())
    drive(registry, events, [(c.WatchPulses(("w~2",)), equals(c.PulseGone("w~2")))])


def _is_appended(seq: int, event: Told) -> bool:
    return isinstance(event, c.Appended) and event.seq == seq


@pytest.mark.parametrize("side", Side)
def test_whatever_call_the_connection_breaks_at_is_made_good(server: ZooKeeperServer, side: Side,
                                                             brisk: None) -> None:
    """At every call once, each in a life of its own. A life mostly waits, so there are several at a time."""
    with client_of(server) as hand, ThreadPoolExecutor(LIVES_AT_ONCE) as pool:
        number = 1
        while not any([*pool.map(partial(lives_through_a_break, server, hand, side),
                                 range(number, number + LIVES_AT_ONCE))]):
            number += LIVES_AT_ONCE
    assert number > 20


def lives_through_a_break(server: ZooKeeperServer, hand: KazooClient, side: Side, number: int) -> bool:
    """Whether a life has fewer calls than so many; checks that all is as it would be without the break."""
    name = f"{side.value}{number}"
    create_cluster(server.hosts, Parameters(name, "id"))
    proxy = Proxy(server.hosts)
    me = Member("127.0.0.1:9", "127.0.0.1", 9, "boot")
    with attended(proxy.hosts, name, me, 10_000) as (registry, events):
        proxy.arm(side, proxy.counts[side] + number)
        a_whole_life(registry, events, me)
        assert SessionChanged(Session.LOST) not in events.all
    proxy.close()
    reader = LogReader(f"/skuld/{name}", lambda: hand, lambda answer: answer.get(10))
    raws = [raw for _, raw in reader.entries(1, 10)[0]]
    assert list(dict.fromkeys(raws))[-2:] == [entry(1), entry(2)], "in order, perhaps more than once"
    assert reader.origin() == (1, "text")
    return proxy.breaks_left > 0


@pytest.mark.parametrize("side", Side)
def test_a_member_lives_through_connections_that_break_time_and_again(server: ZooKeeperServer, side: Side,
                                                                      parameters: Parameters, brisk: None) -> None:
    """At every frame once: each life is broken at every 11th one, beginning with another."""
    settings = LogSettings(length_max=6, grace=2, back_off_ms=50, repeat_ms=500)
    onlooker = Onlooker(server.hosts, parameters)
    rocks = [LightMember(server.hosts, parameters.cluster, port, SESSION_MS, settings=settings) for port in (1, 2)]
    for rock in rocks:
        rock.start()
        rock.await_session()
    try:
        for first in range(1, 12):
            proxy = Proxy(server.hosts)
            member = LightMember(proxy.hosts, parameters.cluster, 3, 10_000, first, settings)
            member.registry.start()
            proxy.arm(side, proxy.counts[side] + first, every=11, times=4)
            member._thread.start()
            life = member.await_session()
            onlooker.wait(lambda replica, life=life: life in replica.members)  # type: ignore[misc]
            member.stop()
            proxy.close()
            onlooker.wait(lambda replica: is_whole(replica, ["127.0.0.1:1", "127.0.0.1:2"]))
            assert not any(isinstance(event, SessionChanged) and event.session is Session.LOST
                           for event in member.events)
        assert onlooker.replica.collected
        assert read_origin(server.hosts, parameters.cluster)[0] > 0
    finally:
        for rock in rocks:
            rock.stop()


# -- ZooKeeper goes away ----------------------------------------------------------------------------


def test_enqueueing_and_completing_never_stop_while_zookeeper_is_away(cluster: LocalCluster) -> None:
    zookeeper = cluster._zookeeper
    assert zookeeper is not None
    with at_work(cluster.addresses, workers=2) as (load, client):
        client.enqueue_many("held", [b"x"] * 60)
        claims: list[Claim] = []
        while len(claims) < 60:
            claims += client.claim("held", n=60, lease_s=120, wait_s=5)
        for _ in range(2):
            zookeeper.kill()
            stay_at_work(load, client, [claims.pop() for _ in range(30)])
            zookeeper.start()
            assert client.claim("load", lease_s=1, wait_s=30), "no claim is granted after ZooKeeper is back"
        assert client.depths()["held"] == Depth(0, 0, 60)


def stay_at_work(load: Load, client: Client, claims: list[Claim]) -> None:
    """Complete the claims, one after the other, and enqueue all the time, for two sessions."""
    over = time.monotonic() + 2 * 2.0
    while time.monotonic() < over or claims:
        acked, started = len(load.acked), time.monotonic()
        client.complete_many(claims[-1:])
        del claims[-1:]
        while len(load.acked) == acked:
            client.count("held")
            load.is_over.wait(PACE_S / 4)
            assert time.monotonic() - started < 30, "nothing was enqueued"
    assert not load.errors
