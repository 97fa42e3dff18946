"""A real cluster with keys: what an owner of a key may do is done, and who has none, or another's role, gets
nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import zmq
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError, NotEmptyError

from skuld_py import Client, Refused
from skuld_py.embedded.local import LocalCluster
from skuld_py.keys.files import ClientKey, read_client_key, read_cluster_key
from skuld_py.keys.pair import fresh
from skuld_py.model import messages as m
from skuld_py.model.messages.message import ROLE_CLIENT
from skuld_py.model.proofs import proofs_of, with_new_key
from skuld_py.model.roster import NODE_ROLE, ROLES
from skuld_py.runtime.clearance import MAY
from skuld_py.runtime.zookeeper.clusters import change_parameters
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.wire.codec import Envelope, MalformedRequest, decode, encode
from system.conftest import LONG_SESSION_MS, SKEW_MS, await_leaders, linger
from tests import strategies

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def await_homecoming(client: Client, timeout_s: float = 60) -> None:
    """Return once each partition is led by the node that it is led by while nothing happens: then no leadership
    moves by itself."""
    deadline = time.monotonic() + timeout_s
    while not all(row.leader == row.cohort[0] for row in client.status().partitions):
        assert time.monotonic() < deadline, client.status()
        linger(client)


CLIENT_ROLES = [role for role in ROLES if role != NODE_ROLE]


def skuld(cluster: LocalCluster, *arguments: str) -> Any:
    """What a verb of operators says."""
    done = subprocess.run(
        [sys.executable, "-m", "skuld_py", *arguments, "--cluster-key", str(cluster.cluster_key), "--zookeeper",
         cluster.zookeeper_hosts, "--json"], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "SKULD_CLUSTER": cluster.name})
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("keyed")
    with LocalCluster(directory, skew_ms=SKEW_MS, session_ms=LONG_SESSION_MS, is_keyed=True) as made:
        with Client(made.addresses, timeout_s=30, key=made.key) as client:
            await_leaders(client)
        for role in CLIENT_ROLES:
            skuld(made, "keys", "make", role, "--role", role, "--to", str(directory / f"{role}.key"))
        yield made


def key_of(cluster: LocalCluster, role: str) -> ClientKey:
    assert cluster.key is not None
    return read_client_key(cluster.key.with_name(f"{role}.key"))


@contextlib.contextmanager
def dealer(cluster: LocalCluster, key: ClientKey) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as made:
        made.linger, made.rcvtimeo = 0, 10_000
        made.curve_serverkey = key.cluster.encode()
        made.curve_publickey, made.curve_secretkey = key.pair.public.encode(), key.pair.secret.encode()
        made.connect(f"tcp://{cluster.addresses[0]}")
        yield made


@pytest.mark.smoke
def test_the_life_of_a_task(keyed: LocalCluster) -> None:
    with Client(keyed.addresses, key=key_of(keyed, "producer")) as producer, Client(
            keyed.addresses, key=key_of(keyed, "worker")) as worker:
        ids = producer.enqueue_many("lives", [b"%d" % number for number in range(50)])
        claims = worker.claim("lives", n=50, wait_s=5)
        assert claims and {claim.id for claim in claims} <= {*ids}
        worker.complete_many(claims, [b"done"] * len(claims))
        results = producer.results([claim.id for claim in claims], wait_s=10)
        assert {*results} == {b"done"}


def _of_all_kinds(is_request: bool) -> list[type[m.Message]]:
    return [of for of in m.MESSAGES if bool(of.roles & ROLE_CLIENT) is is_request]


@pytest.mark.parametrize("role", CLIENT_ROLES)
def test_every_message_is_for_the_roles_that_may_send_it_and_refused_to_all_others(
        keyed: LocalCluster, role: str) -> None:
    """As a client; what only nodes send is refused to all. Others may be refused for what they hold."""
    with dealer(keyed, key_of(keyed, role)) as wire:
        for number, of in enumerate(m.MESSAGES, 1):
            message = strategies.make(of, lambda low, high: low)
            if not hasattr(message, "request"):
                continue
            known: dict[str, Any] = {"request": number, **({"wait_ms": 0} if hasattr(message, "wait_ms") else {})}
            asked = attrs.evolve(message, **known)
            wire.send_multipart(encode(Envelope("", keyed.name, (asked,))))
            answer: Any = next(each for each in decode(wire.recv_multipart()).messages)
            assert answer.request == number
            code = answer.code if isinstance(answer, m.Failed) else ""
            if not of.roles & ROLE_CLIENT:
                assert code == "forbidden", of
            else:
                assert (code == "denied") is (role not in MAY[of]), (of, answer)


def forged(cluster: LocalCluster, sender: str, task: bytes) -> list[m.Message]:
    """What would give a task away, take a partition over, or name other voters, if it were believed."""
    partition = int.from_bytes(task[-4:], "big") % 8
    return [strategies.make(of, lambda low, high: low) for of in (m.Grant, m.RequestVote, m.Gossip, m.Cancel)] + [
        m.RequestVote(*_vote(partition))]


def _vote(partition: int) -> tuple[Any, ...]:
    made = strategies.make(m.RequestVote, lambda low, high: low)
    return attrs.astuple(attrs.evolve(made, partition=partition, epoch=(1 << 20)), recurse=False)


@pytest.mark.parametrize("role", CLIENT_ROLES)
def test_nobody_speaks_in_the_name_of_a_node(keyed: LocalCluster, role: str) -> None:
    """Peers' messages under the names of all nodes, over a client's connection, whatever its role."""
    chance = random.Random(role)
    with Client(keyed.addresses, key=keyed.key) as client:
        await_homecoming(client)
        task = client.enqueue("forged", b"x")
        before = {row.partition: (row.epoch, row.leader, row.cohort) for row in client.status().partitions}
        with dealer(keyed, key_of(keyed, role)) as wire:
            for sender in keyed.addresses:
                for message in (*forged(keyed, sender, bytes(task)),
                                *(strategies.random_message(chance, of) for of in _of_all_kinds(False))):
                    wire.send_multipart(encode(Envelope(sender, keyed.name, (message,))))
            wire.send_multipart(encode(Envelope("", keyed.name, (m.Greet(1),))))
            assert isinstance(decode(wire.recv_multipart()).messages[0], m.Greeted), "nothing else was answered"
        assert {row.partition: (row.epoch, row.leader, row.cohort) for row in client.status().partitions} == before
        claim, = client.claim("forged", wait_s=10)
        assert claim.id == task
        client.complete(claim)


def test_strangers_are_shown_nothing_by_nodes_and_by_zookeeper(keyed: LocalCluster) -> None:
    key = read_cluster_key(keyed.cluster_key or Path())
    for stranger, code in ((None, "key_needed"), (ClientKey("eve", fresh(), key.pair.public), "denied"),
                           (ClientKey("eve", fresh(), fresh().public), "wrong_cluster_key")):
        with Client(keyed.addresses, key=stranger, timeout_s=10) as client, pytest.raises(Refused) as refused:
            client.status()
        assert refused.value.code == code
    eve = KazooClient(hosts=keyed.zookeeper_hosts)
    eve.start(10)
    try:
        for path in _all_paths(keyed):
            for touch, *more in ((eve.get,), (eve.set, b""), (eve.get_children,), (eve.delete,)):
                with pytest.raises((NoAuthError, NoNodeError, NotEmptyError)):
                    touch(path, *more)
            with pytest.raises((NoAuthError, NoNodeError)):
                eve.create(f"{path}/x", b"")
    finally:
        eve.stop()
        eve.close()


def _all_paths(cluster: LocalCluster) -> list[str]:
    """Everything that the cluster keeps in ZooKeeper, as its owner sees it."""
    key = read_cluster_key(cluster.cluster_key or Path())
    owner = KazooClient(hosts=cluster.zookeeper_hosts, auth_data=[("digest", key.zookeeper)])
    owner.start(10)
    try:
        found = [f"/skuld/{cluster.name}"]
        for path in found:
            found += [f"{path}/{child}" for child in owner.get_children(path)]
        assert len(found) > 20
        return found
    finally:
        owner.stop()
        owner.close()


def test_a_revoked_key_counts_no_more_on_a_connection_that_stands(keyed: LocalCluster, tmp_path: Path) -> None:
    skuld(keyed, "keys", "make", "gone", "--role", "producer", "--to", str(tmp_path / "gone.key"))
    with Client(keyed.addresses, key=tmp_path / "gone.key") as client:
        client.enqueue("revoked", b"x")
        skuld(keyed, "keys", "revoke", "gone")
        deadline = time.monotonic() + 60
        with pytest.raises(Refused, match="denied"):
            while time.monotonic() < deadline:
                client.enqueue("revoked", b"x")


def test_a_key_is_replaced_without_a_pause(keyed: LocalCluster, tmp_path: Path) -> None:
    skuld(keyed, "keys", "make", "turned", "--role", "producer", "--to", str(tmp_path / "one.key"))
    skuld(keyed, "keys", "rotate", "turned", "--grace", "1h", "--to", str(tmp_path / "two.key"))
    for name in ("one", "two"):
        with Client(keyed.addresses, key=tmp_path / f"{name}.key") as client:
            client.enqueue("rotated", b"x")
    rows = [row for row in skuld(keyed, "keys", "list")["keys"] if row["name"] == "turned"]
    assert [bool(row["until_ms"]) for row in rows] == [True, False]


def test_a_key_of_some_queues_is_for_those_alone(keyed: LocalCluster, tmp_path: Path) -> None:
    path = tmp_path / "some.key"
    skuld(keyed, "keys", "make", "some", "--role", "producer", "--queue", "mail", "--to", str(path))
    with Client(keyed.addresses, key=path) as client:
        client.enqueue("mail-eu", b"x")
        with pytest.raises(Refused, match="limited to those that begin with mail"):
            client.enqueue("shop", b"x")


def test_the_key_of_claims_is_replaced_and_nobody_who_works_notices(keyed: LocalCluster) -> None:
    assert keyed.cluster_key is not None
    login = read_cluster_key(keyed.cluster_key).zookeeper
    hosts, now_ms = Servers(keyed.zookeeper_hosts, lambda: (login,)), time.time_ns() // 1_000_000
    with Client(keyed.addresses, key=keyed.key, timeout_s=20) as client:
        client.enqueue_many("proved", [b"%d" % number for number in range(2_000)])
        held = client.claim("proved", n=20, lease_s=60)
        made = change_parameters(hosts, keyed.name, lambda known: with_new_key(
            known, "7e" * 32, now_ms, 3_600_000, notice_ms=3_000))
        done = 0
        while time.time_ns() // 1_000_000 < made.claim_from_ms + 2_000 or done < 200:
            claims = client.claim("proved", n=10, lease_s=60, wait_s=5)
            client.renew_many(claims)
            client.complete_many(claims, [b"x"] * len(claims))
            done += len(claims)
            client.enqueue_many("proved", [b"more"] * len(claims))
        key, former = bytes.fromhex(made.claim_key), bytes.fromhex(made.former_keys[0].key)
        for claim, by in ((held[0], former), (client.claim("proved", n=1, wait_s=5)[0], key)):
            assert claim.proof == proofs_of(by, [bytes(claim.id)], [claim.token.to_bytes(8, "big")])
        assert all(client.renew_many(held))
        client.complete_many(held, [b"held"] * len(held))


def test_a_node_without_its_directory_comes_back_with_another_key(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, skew_ms=SKEW_MS, session_ms=2_000, is_keyed=True) as made:
        with Client(made.addresses, timeout_s=30, key=made.key) as client:
            await_leaders(client)
        come_back_without_directory(made)


def come_back_without_directory(keyed: LocalCluster) -> None:
    name = keyed.addresses[2]
    before = [row["key"] for row in skuld(keyed, "keys", "list")["keys"] if row["name"] == name]
    keyed.kill_node(2)
    keyed.wipe_node(2)
    keyed.start_node(2)
    with Client(keyed.addresses, key=keyed.key, timeout_s=30) as client:
        await_leaders(client)
        deadline = time.monotonic() + 60
        while not any(row.leader == name for row in client.status().partitions):
            assert time.monotonic() < deadline, "it takes its leaderships back, so the others have let it in"
            client.claim("nothing-here", wait_s=0.2)
    after = [row["key"] for row in skuld(keyed, "keys", "list")["keys"] if row["name"] == name]
    assert len(before) == len(after) == 1 and before != after


def test_a_drain_shows_the_client_s_key_and_says_at_once_when_it_opens_nothing(keyed: LocalCluster,
                                                                               tmp_path: Path) -> None:
    name, stranger = keyed.addresses[2], tmp_path / "eve.key"
    stranger.touch(0o600)
    stranger.write_text(ClientKey("eve", fresh(), read_cluster_key(keyed.cluster_key or Path()).pair.public).text)
    shown = ("--cluster", keyed.name, "--cluster-key", str(keyed.cluster_key), "--zookeeper",
             keyed.zookeeper_hosts)

    def drain(*options: str) -> str:
        return subprocess.run([sys.executable, "-m", "skuld_py", "drain", name, "--out", "--limit", "0s", *shown,
                               *options], capture_output=True, text=True, timeout=60, check=False).stderr
    assert "[key_needed]" in drain()
    assert "[denied]" in drain("--client-key", str(stranger))
    assert "[too_few_nodes]" in drain("--client-key", str(keyed.key)), "the nodes have answered"


def test_random_bytes_of_a_key_s_owner_are_refused_by_name_or_dropped(keyed: LocalCluster) -> None:
    with dealer(keyed, key_of(keyed, "reader")) as wire:
        for frames in ([b""], [b"\xc1"], [b"\x94"], [bytes(40)]):
            wire.send_multipart(frames)
        wire.send_multipart(encode(Envelope("", keyed.name, (m.Greet(5),))))
        with contextlib.suppress(MalformedRequest):
            assert decode(wire.recv_multipart()).messages[0].request == 5  # type: ignore[attr-defined]
