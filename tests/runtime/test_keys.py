"""Nodes and clients with keys, on real sockets: who is let in, as whom it is heard, and when that ends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import zmq

from skuld_py.client.connection import Connection
from skuld_py.client.dial import dial
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.keys.pair import Pair, fresh
from skuld_py.model.messages import Acked, Greet, Invite
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.runtime import peeking
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.handshakes import wall_ms
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.transport import Transport
from skuld_py.wire.codec import Envelope, decode, encode

pytestmark = pytest.mark.usefixtures("memory_of_a_node")

CLUSTER, WAIT_S = "test", 10.0


class Town:
    """Nodes with keys: ``anna`` and ``bert``, and a client ``carl``."""

    def __init__(self, held: contextlib.ExitStack) -> None:
        self.cluster, self.pairs = fresh(), {name: fresh() for name in ("anna", "bert", "carl")}
        self.keyrings = {name: Keyring(self.cluster, self.pairs[name]) for name in ("anna", "bert")}
        self.nodes = {name: Transport(name, CLUSTER, "127.0.0.1", 0, keyring=keyring)
                      for name, keyring in self.keyrings.items()}
        for node in self.nodes.values():
            held.callback(node.close)
        rows = [KeyRow(self.pairs[name].public, name, (NODE_ROLE,), address=f"127.0.0.1:{node.peers.port}")
                for name, node in self.nodes.items()]
        self.roster = Roster((*rows, KeyRow(self.pairs["carl"].public, "carl", ("producer",))))
        self.know(self.roster)

    def know(self, roster: Roster) -> None:
        self.roster = roster
        for name, keyring in self.keyrings.items():
            keyring.put(roster)
            self.nodes[name].set_peers({"anna": ("h", 1), "bert": ("h", 1)})

    def send(self, sender: str, receiver: str, limit_s: float = WAIT_S) -> list[Arrival]:
        """Send until it arrives, or the time is over."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            self.nodes[sender].send(receiver, [Invite(0)])
            self.nodes[receiver].wait(20)
            if arrived := self.nodes[receiver].receive(10):
                return arrived
        return []

    @contextlib.contextmanager
    def dealer(self, pair: Pair | None, *, at: str = "anna", server: str = "", port: int = 0
               ) -> Iterator[zmq.Socket[bytes]]:
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            if pair is not None:
                dealer.curve_publickey, dealer.curve_secretkey = pair.public.encode(), pair.secret.encode()
                dealer.curve_serverkey = (server or self.cluster.public).encode()
            dealer.connect(f"tcp://127.0.0.1:{port or self.nodes[at].port}")
            yield dealer

    def hears(self, dealer: zmq.Socket[bytes], limit_s: float = WAIT_S) -> Arrival | None:
        """What anna hears of a message."""
        dealer.send_multipart(encode(Envelope("", CLUSTER, (Greet(1),))))
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            self.nodes["anna"].wait(20)
            for arrival in self.nodes["anna"].receive(10):
                return arrival
        return None


@pytest.fixture
def town() -> Iterator[Town]:
    with contextlib.ExitStack() as held:
        yield Town(held)


def test_each_message_tells_the_key_of_its_sender(town: Town) -> None:
    assert [arrival.key for arrival in town.send("anna", "bert")][:1] == [town.pairs["anna"].public]
    with town.dealer(town.pairs["carl"]) as dealer:
        arrival = town.hears(dealer)
        assert arrival is not None and arrival.key == town.pairs["carl"].public
        town.nodes["anna"].answer(arrival.origin, [Acked(1, 2)])
        assert dealer.poll(10_000)
        assert decode(dealer.recv_multipart()).messages == (Acked(1, 2),)


@pytest.mark.parametrize("who", ["nobody", "unknown", "wrong server", "node among clients", "client among peers",
                                 "unknown among peers"])
def test_who_has_no_key_for_a_door_is_not_let_in(town: Town, who: str) -> None:
    peers, key = town.nodes["anna"].peers.port, town.pairs["anna"].public
    how = {"nobody": town.dealer(None), "unknown": town.dealer(fresh()),
           "wrong server": town.dealer(town.pairs["carl"], server=fresh().public),
           "node among clients": town.dealer(town.pairs["bert"]),
           "client among peers": town.dealer(town.pairs["carl"], port=peers, server=key),
           "unknown among peers": town.dealer(fresh(), port=peers, server=key)}[who]
    with how as dealer:
        assert town.hears(dealer, 0.5) is None
    with town.dealer(town.pairs["carl"]) as dealer:
        assert town.hears(dealer) is not None, "others are"


def test_a_peer_is_let_in_soon_after_the_roster_names_it(town: Town) -> None:
    whole = town.roster
    town.know(whole.revoking(town.pairs["anna"].public))
    town.keyrings["anna"].put(whole)
    town.nodes["anna"].set_peers({})  # a connection from before would stand
    town.nodes["anna"].set_peers({"bert": ("h", 1)})
    assert town.send("anna", "bert", 0.5) == []
    town.keyrings["bert"].put(whole)
    assert town.send("anna", "bert")


def test_a_peer_must_show_the_key_that_the_roster_has_for_it(town: Town) -> None:
    """Who sits at a node's address without its key is told nothing."""
    bert = next(row for row in town.roster.rows if row.name == "bert")
    false = KeyRow(fresh().public, "bert", (NODE_ROLE,), address=bert.address)
    others = tuple(row for row in town.roster.rows if row.name != "bert")
    town.keyrings["anna"].put(Roster(others).authorised(false))
    town.nodes["anna"].set_peers({"bert": ("h", 1)})
    assert town.send("anna", "bert", 0.5) == []


def test_a_node_is_dialled_by_its_newest_key() -> None:
    rows = [KeyRow(letter * 40, "bert", (NODE_ROLE,), address=address)
            for letter, address in (("a", "h:1"), ("b", "h:2"), ("c", ""))]
    keyring = Keyring(fresh(), fresh(), Roster((*rows, KeyRow("d" * 40, "bert", ("reader",), address="h:4"))))
    assert keyring.place("bert") == ("b" * 40, "h", 2), "one that has not said where it is cannot be dialled"
    assert keyring.place("dora") is None


def test_a_key_ends_when_its_time_is_over(town: Town) -> None:
    keyring, carl = town.keyrings["anna"], town.pairs["carl"].public
    keyring.put(Roster((KeyRow(carl, "carl", ("reader",), until_ms=1_000),)))
    assert keyring.owner(carl, lambda: 999) is not None
    assert keyring.owner(carl, lambda: 1_000) is None
    with town.dealer(town.pairs["carl"]) as dealer:
        assert town.hears(dealer, 0.5) is None


def test_one_thread_watches_the_connections_of_both_doors(town: Town) -> None:
    anna = town.nodes["anna"]
    with contextlib.ExitStack() as held:
        for door in (anna.peers, anna.clients):
            raw = held.enter_context(socket.create_connection(("127.0.0.1", door.port), WAIT_S))
            known, end = door.connections, time.monotonic() + WAIT_S
            while raw.getsockname() not in [_peer_of(number) for number in [*known._open]]:
                assert time.monotonic() < end, "it was heard of"
                time.sleep(0.005)
    watchers = [thread.name for thread in threading.enumerate() if "connections" in thread.name]
    assert sorted(watchers) == sorted(f"skuld-connections-{node.peers.port}" for node in town.nodes.values())


def _peer_of(number: int) -> object:
    with contextlib.suppress(OSError), peeking.borrowed(number) as found:
        return found.getpeername()
    return None


def test_what_a_wait_has_seen_is_taken_once_and_what_it_has_not_seen_by_the_next(town: Town) -> None:
    anna = town.nodes["anna"]
    with town.dealer(town.pairs["carl"]) as dealer:
        assert town.hears(dealer) is not None
        for _ in range(2):
            dealer.send_multipart(encode(Envelope("", CLUSTER, (Greet(1),))))
        end, taken = time.monotonic() + WAIT_S, 0
        while taken < 2:
            assert time.monotonic() < end
            anna.wait(20)
            taken += len(anna.receive(1))
        assert anna.receive(10) == [] and anna.receive(10) == []
        dealer.send_multipart(encode(Envelope("", CLUSTER, (Greet(2),))))
        while not (arrived := anna.receive(10)):  # without a wait, too
            assert time.monotonic() < end
        assert decode(arrived[0].frames).messages == (Greet(2),)


def test_what_is_sealed_is_counted_as_it_is_on_the_wire(town: Town) -> None:
    """Otherwise an honest client would be cut for bytes that seem to make no message."""
    anna, count = town.nodes["anna"], 2_000
    with town.dealer(town.pairs["carl"]) as dealer:
        arrival = town.hears(dealer)
        assert arrival is not None
        for length in (0, 100, 221, 222, 223, 1_000):
            frames = [bytes(length)] * 3
            for _ in range(count // 6):
                dealer.send_multipart(frames)
        taken = 0
        while taken < 6 * (count // 6):
            anna.wait(1_000)
            taken += len(anna.receive(100))
        connection = anna.connections._clients[arrival.origin]
        flow = peeking.flow_of(connection.number, connection.cookie)
        assert flow is not None
        assert 0 <= flow.brought - connection.taken < 2_000, "the handshake, and heartbeats"


@pytest.mark.parametrize(("key", "code"), [
    ("none", "key_needed"), ("unknown", "denied"), ("other cluster", "wrong_cluster_key")])
def test_a_client_that_is_not_let_in_is_told_why(town: Town, key: str, code: str) -> None:
    given = {"none": None, "unknown": ClientKey("dora", fresh(), town.cluster.public),
             "other cluster": ClientKey("carl", town.pairs["carl"], fresh().public)}[key]
    connection = Connection([f"127.0.0.1:{town.nodes['anna'].port}"], key=given)
    with pytest.raises(Refused) as refused:
        connection.greet(0.3)
    connection.close()
    assert refused.value.code == code
    assert "key" in refused.value.message


def begun_again(town: Town, cluster: Pair) -> None:
    """Anna starts again at the same port and shows another key of the cluster."""
    before = town.nodes["anna"]
    port = before.port
    before.close()
    keyring = Keyring(cluster, town.pairs["anna"], town.roster)
    town.nodes["anna"] = Transport("anna", CLUSTER, "127.0.0.1", port, keyring=keyring)


def test_a_client_that_knows_two_keys_of_the_cluster_follows_a_node_from_one_to_the_other(town: Town) -> None:
    newer, carl = fresh(), town.pairs["carl"]
    address = f"127.0.0.1:{town.nodes['anna'].port}"
    with zmq.Context() as context, context.socket(zmq.DEALER) as both, context.socket(zmq.DEALER) as old:
        dial(both, address, DEFAULT_LIMITS, ClientKey("carl", carl, newer.public, town.cluster.public))
        dial(old, address, DEFAULT_LIMITS, ClientKey("carl", carl, town.cluster.public))
        both.sndtimeo = old.sndtimeo = int(WAIT_S * 1_000)
        for each in (both, old):
            assert town.hears(each) is not None
        begun_again(town, newer)
        try:
            old.sndtimeo = 100
            tries = range(int(WAIT_S))  # what goes to a connection that is not known yet to have ended is lost
            assert any(town.hears(both, 1.0) for _ in tries)
            with pytest.raises(zmq.Again):
                for _ in tries:
                    town.hears(old, 0.1)
        finally:
            town.nodes["anna"].close()


@pytest.mark.parametrize("order", ["new first", "old first"])
def test_a_client_that_knows_two_keys_is_told_of_its_own_that_it_is_not_let_in(town: Town, order: str) -> None:
    newer = fresh().public
    clusters = (newer, town.cluster.public) if order == "new first" else (town.cluster.public, newer)
    address = f"127.0.0.1:{town.nodes['anna'].port}"
    for key, code in ((ClientKey("dora", fresh(), *clusters), "denied"),
                      (ClientKey("carl", town.pairs["carl"], newer, fresh().public), "wrong_cluster_key"),
                      (ClientKey("carl", town.pairs["carl"], *clusters), "deadline")):  # let in, and not answered
        connection = Connection([address], key=key)
        with pytest.raises((Refused, Uncertain)) as refused:
            connection.greet(1.0)
        connection.close()
        assert refused.value.code == code


def test_a_client_with_a_key_for_nodes_without_is_told_so() -> None:
    node = Transport("anna", CLUSTER, "127.0.0.1", 0)
    connection = Connection([f"127.0.0.1:{node.port}"], key=ClientKey("carl", fresh(), fresh().public))
    with pytest.raises(Refused, match="wrong_cluster_key"):
        connection.greet(0.3)
    connection.close()
    node.close()


def test_time_is_that_of_the_wall() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= wall_ms() <= time.time_ns() // 1_000_000
