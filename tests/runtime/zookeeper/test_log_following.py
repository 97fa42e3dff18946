"""The log as an operator meets it: read, followed, and written to, on a real ZooKeeper."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterator
from itertools import islice

import attrs
import pytest
from kazoo.client import KazooClient

from skuld_py.cluster.log.commands import Leave, LeaveSlot, PrepareJoin, RetireNode
from skuld_py.cluster.log.commands.command import Command
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome
from skuld_py.cluster.log.replica import FAILED_MAX, Failure, Replica
from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.columns import unpack_u64
from skuld_py.model.document import Member
from skuld_py.model.messages.membership import Share
from skuld_py.runtime.transport import Transport
from skuld_py.runtime.zookeeper import log_following
from skuld_py.runtime.zookeeper.clusters import create_cluster
from skuld_py.runtime.zookeeper.log_following import _verdict, command, follow, read_origin, set_leaving
from skuld_py.runtime.zookeeper.log_reading import Header, chunk_path, digest_of, entry_path
from skuld_py.wire.codec import decode

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KazooClient]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        client = KazooClient(hosts=running.hosts, timeout=10.0)
        client.start(timeout=60)
        yield client
        client.stop()
        client.close()


@pytest.fixture
def hosts(hand: KazooClient) -> str:
    return ",".join(f"{host}:{port}" for host, port in hand.hosts)


@pytest.fixture
def parameters(hosts: str, request: pytest.FixtureRequest) -> Parameters:
    name = f"c{zlib.crc32(request.node.name.encode())}"
    made = Parameters(name, f"id-of-{name}")
    create_cluster(hosts, made)
    return made


def append(hand: KazooClient, cluster: str, *raws: bytes) -> None:
    for raw in raws:
        hand.create(f"/skuld/{cluster}/log/entry-", raw, sequence=True)


def append_command(hand: KazooClient, cluster: str, writer: str, *commands: Command) -> None:
    append(hand, cluster, *(Entry(writer, seq, each).encode() for seq, each in enumerate(commands)))


def put_origin(hand: KazooClient, cluster: str, position: int, text: str) -> None:
    raw = text.encode()
    hand.create(chunk_path(f"/skuld/{cluster}", position, 0), raw)
    hand.set(f"/skuld/{cluster}/origin", Header(position, 1, digest_of(raw)).encode())


def test_a_log_is_read_from_its_oldest_entry_or_any_other_over_gaps(hand: KazooClient, hosts: str,
                                                                    parameters: Parameters) -> None:
    assert list(follow(hosts, parameters.cluster, is_endless=False)) == []
    append(hand, parameters.cluster, *(b"%d" % number for number in range(600)))
    for position in (0, 1, 7, 8):
        hand.delete(entry_path(f"/skuld/{parameters.cluster}", position))
    wanted = [(number, b"%d" % number) for number in range(2, 600) if number not in (7, 8)]
    assert list(follow(hosts, parameters.cluster, is_endless=False)) == wanted
    assert list(follow(hosts, parameters.cluster, 7, is_endless=False)) == wanted[5:]
    assert list(follow(hosts, parameters.cluster, 600, is_endless=False)) == []


def test_a_log_is_followed_without_polling(hand: KazooClient, hosts: str, parameters: Parameters,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "_POLL_S", 60.0)
    followed = follow(hosts, parameters.cluster)
    for number in range(4):
        later = threading.Timer(0.1 if number % 2 else 0, append, (hand, parameters.cluster, b"%d" % number))
        later.start()
        started = time.monotonic()
        assert next(followed) == (number, b"%d" % number)
        assert time.monotonic() - started < 30
        later.join()
    followed.close()  # type: ignore[attr-defined]


def test_a_reader_behind_the_origin_goes_on_where_the_log_does(hand: KazooClient, hosts: str,
                                                               parameters: Parameters) -> None:
    append(hand, parameters.cluster, b"0", b"1")
    for position in (0, 1):
        hand.delete(entry_path(f"/skuld/{parameters.cluster}", position))
    put_origin(hand, parameters.cluster, 1, "text")
    append(hand, parameters.cluster, b"2", b"3")
    assert list(islice(follow(hosts, parameters.cluster, 0), 2)) == [(2, b"2"), (3, b"3")]


def test_an_origin_is_read_whole_or_refused(hand: KazooClient, hosts: str, parameters: Parameters) -> None:
    assert read_origin(hosts, parameters.cluster) == (-1, "")
    put_origin(hand, parameters.cluster, 7, "text")
    assert read_origin(hosts, parameters.cluster) == (7, "text")
    hand.set(chunk_path(f"/skuld/{parameters.cluster}", 7, 0), b"other")
    with pytest.raises(Refused, match="broken_origin"):
        read_origin(hosts, parameters.cluster)
    hand.delete(chunk_path(f"/skuld/{parameters.cluster}", 7, 0))
    with pytest.raises(Refused, match=f"^/skuld/{parameters.cluster}/origin .* put back .*broken_origin"):
        read_origin(hosts, parameters.cluster)
    with pytest.raises(Refused, match="unknown_cluster"):
        read_origin(hosts, "nowhere")
    with pytest.raises(Refused, match="unknown_cluster"):
        list(follow(hosts, "nowhere", is_endless=False))


def test_a_command_gets_the_verdict_that_the_log_gives(hand: KazooClient, hosts: str,
                                                       parameters: Parameters) -> None:
    append_command(hand, parameters.cluster, "n1~1", PrepareJoin("n1~1", Member("n1", "h", 1, "b")),
                   LeaveSlot("none"))
    verdicts = [command(hosts, parameters, wish) for wish in
                (RetireNode("n2"), RetireNode("n1"), RetireNode("n1", is_leaving=False), LeaveSlot("none"))]
    assert [(verdict.position, verdict.outcome) for verdict in verdicts] == [
        (2, Outcome.REFUSED), (3, Outcome.REFUSED), (4, Outcome.UNCHANGED), (5, Outcome.UNCHANGED)]
    assert [verdict.reason for verdict in verdicts[:2]] == [
        "there is no node n2", "without n1 there are 0 nodes for 3 copies of each task; start another one first"]
    assert list(verdicts[0].replica.nodes) == ["n1"]


def test_a_command_is_judged_although_the_log_is_collected_on_the_way(
        hand: KazooClient, hosts: str, parameters: Parameters, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = parameters.cluster
    append_command(hand, cluster, "n1~1", PrepareJoin("n1~1", Member("n1", "h", 1, "b")))
    at_the_end = command(hosts, parameters, LeaveSlot("none")).replica
    encode = Entry.encode

    def collected(entry: Entry) -> bytes:
        """Between the reading of the log and the writing to it, all that was read is collected, and more."""
        monkeypatch.setattr(Entry, "encode", encode)
        for position in (0, 1):
            hand.delete(entry_path(f"/skuld/{cluster}", position))
        append(hand, cluster, b"{", b"{")
        for position in (2, 3):
            hand.delete(entry_path(f"/skuld/{cluster}", position))
        put_origin(hand, cluster, 3, attrs.evolve(at_the_end, version=3).text())
        return encode(entry)
    monkeypatch.setattr(Entry, "encode", collected)

    verdict = command(hosts, parameters, RetireNode("n2"))

    assert (verdict.position, verdict.outcome, verdict.reason) == (4, Outcome.REFUSED, "there is no node n2")


class Collected:
    """A log of which nothing is left but an origin."""

    def __init__(self, failed: range) -> None:
        self.replica = Replica(version=100, failed=tuple(Failure(position, "no") for position in failed))

    def entries(self, start: int, limit: int) -> tuple[list[tuple[int, bytes]], bool]:
        return [], False

    def origin(self) -> tuple[int, str]:
        return self.replica.version, self.replica.text()


def test_of_an_entry_that_was_collected_the_origin_knows_the_verdict_unless_it_has_forgotten_failures() -> None:
    verdicts = [_verdict(Collected(range(first, first + length)), Replica(), 50)  # type: ignore[arg-type]
                for first, length in ((30, FAILED_MAX), (51, FAILED_MAX - 1), (49, FAILED_MAX))]
    assert [each.outcome for each in verdicts] == [Outcome.REFUSED, Outcome.APPLIED, Outcome.REFUSED]

    with pytest.raises(Uncertain, match="log_collected"):
        _verdict(Collected(range(51, 51 + FAILED_MAX)), Replica(), 50)  # type: ignore[arg-type]


def test_members_are_told_of_an_operators_entry(hand: KazooClient, hosts: str, parameters: Parameters) -> None:
    """Those who share entries would read it only after a silence."""
    transport = Transport("n1", parameters.cluster, "127.0.0.1", 0)
    member = Member("n1", "127.0.0.1", transport.port, "b")
    append_command(hand, parameters.cluster, "n1~1", PrepareJoin("n1~1", member))

    verdict = command(hosts, parameters, LeaveSlot("none"))

    transport.wait(10_000)
    (_, frames, _), = transport.receive(10)
    transport.close()
    envelope = decode(frames)
    share, = envelope.messages
    assert isinstance(share, Share) and envelope.cluster == parameters.cluster
    raw, = share.entries.unpack()
    assert (share.cluster_id, unpack_u64(share.positions), bytes(share.hops)) == (
        parameters.cluster_id, (verdict.position,), bytes([1]))
    assert raw == hand.get(entry_path(f"/skuld/{parameters.cluster}", verdict.position))[0]


# -- nodes taken out ---------------------------------------------------------------------------------


def enter(hand: KazooClient, cluster: str, names: str) -> None:
    """Nodes that are placed and down."""
    for name in names:
        append_command(hand, cluster, f"{name}~1", PrepareJoin(f"{name}~1", Member(name, "h", 1, "b")))
        append_command(hand, cluster, f"op-{name}", Leave(f"{name}~1"))


def test_a_node_is_taken_out_and_put_back(hand: KazooClient, hosts: str, parameters: Parameters) -> None:
    enter(hand, parameters.cluster, "abcd")
    assert [set_leaving(hosts, parameters.cluster, "b", True) for _ in range(2)] == [True, False]
    assert [set_leaving(hosts, parameters.cluster, "b", False) for _ in range(2)] == [True, False]


def test_no_node_is_taken_out_that_is_unknown_or_needed(hand: KazooClient, hosts: str,
                                                        parameters: Parameters) -> None:
    with pytest.raises(Refused, match="it has: none"):
        set_leaving(hosts, parameters.cluster, "a", True)
    enter(hand, parameters.cluster, "abcd")
    assert set_leaving(hosts, parameters.cluster, "a", True)

    with pytest.raises(Refused, match="too_few_nodes") as few:
        set_leaving(hosts, parameters.cluster, "b", True)
    with pytest.raises(Refused, match="unknown_node") as unknown:
        set_leaving(hosts, parameters.cluster, "x", True)
    with pytest.raises(Refused, match="unknown_cluster"):
        set_leaving(hosts, "nowhere", "a", True)

    assert "2 nodes for 3 copies" in str(few.value) and "start another one first" in str(few.value)
    assert "it has: a, b, c, d" in str(unknown.value)


def test_of_two_nodes_taken_out_at_once_one_stays_if_both_are_too_many(
        hand: KazooClient, hosts: str, parameters: Parameters, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(hand, parameters.cluster, "abcd")
    encode = Entry.encode

    def overtaken(entry: Entry) -> bytes:
        monkeypatch.setattr(Entry, "encode", encode)
        assert set_leaving(hosts, parameters.cluster, "a", True)
        return encode(entry)
    monkeypatch.setattr(Entry, "encode", overtaken)

    with pytest.raises(Refused, match="too_few_nodes"):
        set_leaving(hosts, parameters.cluster, "b", True)
