"""Entries of forgotten nodes on a real ZooKeeper: which go, which stay, and what a node makes of its own."""

from __future__ import annotations

import queue
import zlib
from collections.abc import Iterator

import attrs
import pytest
from kazoo.client import KazooClient

from runtime.attending import client_of, joined
from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.keys.pair import Pair
from skuld_py.model.coordination import PulsesRead, PulseStands, ReadPulses, SetPulse, SweepEntries
from skuld_py.model.document import Document, Member, seats_of
from skuld_py.model.registration import Registration
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.zookeeper.clusters import create_cluster, read_names, read_registration
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.entry_sweep import EntrySweep
from skuld_py.runtime.zookeeper.rosters import change_roster, drop_node, read_roster

pytestmark = pytest.mark.cluster

SWEEPER = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a", "data-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b", "data-b")
LED = Document(epoch=3, leader=SWEEPER.name, seats=seats_of([SWEEPER.name]), learners=("learner",), write_id="w")
PARTITIONS = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        yield running


@pytest.fixture
def hand(server: ZooKeeperServer) -> Iterator[KazooClient]:
    with client_of(server) as client:
        yield client


@pytest.fixture
def cluster(server: ZooKeeperServer, hand: KazooClient, request: pytest.FixtureRequest) -> str:
    name = f"c{zlib.crc32(request.node.name.encode())}"
    create_cluster(server.hosts, Parameters(name, f"id-of-{name}", PARTITIONS))
    for partition in range(PARTITIONS):
        hand.create(f"/skuld/{name}/partitions/{partition}", LED.encode())
    for node in ("forgotten", "learner", "old", "voter"):
        life = {} if node == "old" else {"life": f"{node}~1"}
        hand.create(f"/skuld/{name}/nodes/{node}", Registration("h", 1, "data", 2, **life).encode())
    return name


def swept(server: ZooKeeperServer, cluster: str, *placed: str) -> list[str]:
    """The entries that are left by a member that plays these nodes."""
    with joined(server.hosts, cluster, SWEEPER) as (registry, events):
        registry.perform(SweepEntries((SWEEPER.name, *placed)))
        for _ in range(8):  # a sweep takes some passes, and what is asked for by then goes before each
            at = len(events.all)
            registry.perform(ReadPulses())
            events.wait(lambda event: isinstance(event, PulsesRead), at)
    return read_names(server.hosts, cluster)


def test_entries_of_nodes_that_are_placed_or_needed_stay_and_the_others_go(
        server: ZooKeeperServer, hand: KazooClient, cluster: str) -> None:
    assert swept(server, cluster, "voter") == [SWEEPER.name, "learner", "voter"]
    hand.set(f"/skuld/{cluster}/partitions/1", attrs.evolve(LED, seats=seats_of(["voter"])).encode())

    assert swept(server, cluster) == [SWEEPER.name, "learner", "voter"]
    for partition in range(PARTITIONS):
        hand.set(f"/skuld/{cluster}/partitions/{partition}", attrs.evolve(LED, learners=()).encode())
    assert swept(server, cluster) == [SWEEPER.name]


@pytest.mark.parametrize("raw", [b"", b"[]", Document(epoch=1).encode()])
def test_nothing_goes_while_a_partition_has_no_voters_that_can_be_read(
        server: ZooKeeperServer, hand: KazooClient, cluster: str, raw: bytes) -> None:
    before = read_names(server.hosts, cluster)
    hand.set(f"/skuld/{cluster}/partitions/1", raw)
    assert swept(server, cluster) == [SWEEPER.name, *before]
    hand.delete(f"/skuld/{cluster}/partitions/1")
    assert swept(server, cluster) == [SWEEPER.name, *before]
    hand.create(f"/skuld/{cluster}/partitions/1", LED.encode())
    hand.set(f"/skuld/{cluster}/parameters", b"[]")
    assert swept(server, cluster) == [SWEEPER.name, *before]


def test_an_entry_whose_life_has_a_pulse_stays(server: ZooKeeperServer, hand: KazooClient, cluster: str) -> None:
    with joined(server.hosts, cluster, BERT) as (registry, events):
        registry.perform(SetPulse("bert~1", BERT))
        events.wait(PulseStands("bert~1"))
        made = hand.exists(f"/skuld/{cluster}/nodes/{BERT.name}").czxid
        assert swept(server, cluster) == [SWEEPER.name, BERT.name, "learner"]
        assert hand.exists(f"/skuld/{cluster}/nodes/{BERT.name}").czxid == made  # not one that was made anew
    assert swept(server, cluster) == [SWEEPER.name, "learner"]


def test_an_entry_that_a_start_changed_meanwhile_stays(server: ZooKeeperServer, hand: KazooClient,
                                                       cluster: str) -> None:
    path = f"/skuld/{cluster}/nodes/forgotten"
    connection = Connection(server.hosts, 10.0, lambda session: None, lambda jobs: 1.0, lambda problem: None)
    connection.open(10.0)
    try:
        sweep = EntrySweep(connection, f"/skuld/{cluster}", SweepEntries(()))
        assert not sweep.step()
        hand.set(path, Registration("h", 1, "data", 3).encode())
        while not sweep.step():
            pass
    finally:
        connection.close()
    assert read_names(server.hosts, cluster) == ["forgotten", "learner"]


def row(key: str, name: str, *roles: str) -> KeyRow:
    return KeyRow(key * 40, name, roles or (NODE_ROLE,))


def test_keys_of_nodes_that_are_neither_placed_nor_have_an_entry_go(server: ZooKeeperServer, hand: KazooClient,
                                                                    cluster: str) -> None:
    """That is as well those of a node that an earlier release has forgotten."""
    stay = (row("a", SWEEPER.name), row("b", "learner"), row("c", "voter"), row("d", "shop", "reader"))
    gone = (row("e", "forgotten"), row("f", "long-ago"), row("g", "forgotten"))
    hand.create(f"/skuld/{cluster}/roster", Roster((*gone, *stay), ("r" * 40,), ("s" * 40,)).encode())
    assert swept(server, cluster, "voter") == [SWEEPER.name, "learner", "voter"]
    assert read_roster(server.hosts, cluster) == Roster(stay, ("r" * 40,), ("s" * 40,))


def test_a_key_that_came_meanwhile_stays(server: ZooKeeperServer, hand: KazooClient, cluster: str) -> None:
    """As that of a node that starts, and has no entry yet."""
    hand.create(f"/skuld/{cluster}/roster", Roster((row("f", "long-ago"),)).encode())
    connection = Connection(server.hosts, 10.0, lambda session: None, lambda jobs: 1.0, lambda problem: None)
    connection.open(10.0)
    try:
        sweep = EntrySweep(connection, f"/skuld/{cluster}", SweepEntries(()))
        assert not sweep.step()
        change_roster(server.hosts, cluster, lambda known: known.authorised(row("e", "forgotten")))
        while not sweep.step():
            pass
    finally:
        connection.close()
    assert read_names(server.hosts, cluster) == ["learner"]
    assert read_roster(server.hosts, cluster) == Roster((row("f", "long-ago"), row("e", "forgotten")))


def test_a_node_that_lives_puts_its_key_back(server: ZooKeeperServer, hand: KazooClient, cluster: str) -> None:
    keyring = Keyring(Pair("", ""), Pair("", ""))
    keyring.mine = row("b", BERT.name)
    heard: queue.Queue[Roster] = queue.Queue()
    keyring.on_change = lambda: heard.put(keyring.roster)
    whole = Roster((keyring.mine,), cluster=("s" * 40,))
    hand.create(f"/skuld/{cluster}/roster", whole.encode())
    with joined(server.hosts, cluster, BERT, put_roster=keyring.put):
        assert heard.get(timeout=60) == whole
        drop_node(server.hosts, cluster, BERT.name)
        assert [heard.get(timeout=60) for _ in range(2)] == [whole.without_nodes((BERT.name,)), whole]
        for other in (Roster((row("e", BERT.name),)), Roster((), ("b" * 40,))):  # another has its place, or none
            change_roster(server.hosts, cluster, lambda known, other=other: other)
            assert heard.get(timeout=60) == other
    assert keyring.put(keyring.roster) is None and heard.empty()


def test_a_node_that_goes_on_makes_its_entry_anew_with_its_life(server: ZooKeeperServer, hand: KazooClient,
                                                                cluster: str) -> None:
    with joined(server.hosts, cluster, BERT, starts=4) as (registry, events):
        registry.perform(SetPulse("bert~7", BERT))
        at = events.wait(PulseStands("bert~7"))
        was = read_registration(server.hosts, cluster, BERT.name)
        hand.delete(f"/skuld/{cluster}/nodes/{BERT.name}")
        while read_registration(server.hosts, cluster, BERT.name) is None:
            registry.perform(ReadPulses())
            at = events.wait(lambda event: isinstance(event, PulsesRead), at)
        assert read_registration(server.hosts, cluster, BERT.name) == was
        hand.delete(f"/skuld/{cluster}/nodes/{BERT.name}")
        registry.perform(SetPulse("bert~8", BERT))
        events.wait(PulseStands("bert~8"))
        again = read_registration(server.hosts, cluster, BERT.name)
        assert again is not None and again.life == "bert~8"
