"""The registry on a real ZooKeeper: clusters, membership, sessions that break, and swaps of all outcomes."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from kazoo.client import KazooClient

from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.document import NOBODY, Document, Member, seats_of
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Event,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    ReadFailed,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.model.registration import Registration
from skuld_py.runtime import clusters
from skuld_py.runtime import registry as registry_module
from skuld_py.runtime.clusters import (
    create_cluster,
    destroy_cluster,
    read_parameters,
    read_registration,
    set_leaving,
)
from skuld_py.runtime.registry import Registry

pytestmark = pytest.mark.cluster

SESSION_MS = 2_000
WAIT_S = 20.0
ANNA = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b")

CONNECTED, SUSPENDED, LOST = (SessionChanged(session) for session in Session)


class Events:
    """What a registry emitted, in order; waiting for more of it without polling."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._arrival = threading.Condition()

    def emit(self, event: Event) -> None:
        with self._arrival:
            self.all.append(event)
            self._arrival.notify_all()

    def wait(self, wanted: Event | Callable[[Event], bool], after: int = 0) -> int:
        """The position behind the first such event at or behind ``after``."""
        matches = wanted if callable(wanted) else wanted.__eq__
        deadline = time.monotonic() + WAIT_S
        with self._arrival:
            position = after
            while True:
                while position < len(self.all):
                    position += 1
                    if matches(self.all[position - 1]) is True:
                        return position
                assert self._arrival.wait(deadline - time.monotonic()), f"no {wanted} in {self.all[after:]}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        yield running


@pytest.fixture
def cluster(server: ZooKeeperServer, request: pytest.FixtureRequest) -> str:
    name = f"c{zlib.crc32(request.node.name.encode())}"
    create_cluster(server.hosts, Parameters(name, f"id-of-{name}"))
    return name


@contextlib.contextmanager
def joined(server: ZooKeeperServer, cluster: str, member: Member, session_ms: int = SESSION_MS, *,
           starts: int = 1, judged: Registration | None = None) -> Iterator[tuple[Registry, Events]]:
    events = Events()
    registry = Registry(server.hosts, cluster, member, session_ms, events.emit, starts=starts, judged=judged)
    registry.start()
    try:
        yield registry, events
    finally:
        registry.stop()


@contextlib.contextmanager
def client_of(server: ZooKeeperServer, **options: Any) -> Iterator[KazooClient]:
    client = KazooClient(hosts=server.hosts, timeout=10.0, **options)
    client.start(timeout=10.0)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextlib.contextmanager
def paused(server: ZooKeeperServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


def document(write_id: str, **changes: Any) -> Document:
    fields = {"epoch": 1, "leader": ANNA.name, "boot": ANNA.boot, "seats": seats_of([ANNA.name])} | changes
    return Document(write_id=write_id, **fields)


def is_swapped(event: Event) -> bool:
    return isinstance(event, DocumentSwapped)


# -- clusters ---------------------------------------------------------------------------------------


def test_a_cluster_is_what_it_was_created_as(server: ZooKeeperServer) -> None:
    parameters = Parameters("made", "id-1", partitions=16, replicas=1, skew_ms=700)
    create_cluster(server.hosts, parameters)
    assert read_parameters(server.hosts, "made") == parameters


def test_a_cluster_is_created_once(server: ZooKeeperServer, cluster: str) -> None:
    with pytest.raises(Refused, match="cluster_exists") as caught:
        create_cluster(server.hosts, Parameters(cluster, "another-id"))
    assert cluster in str(caught.value)
    assert read_parameters(server.hosts, cluster).cluster_id == f"id-of-{cluster}"


def test_a_destroyed_cluster_is_gone_and_can_be_made_again(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events):
        registry.perform(SwapDocument(0, -1, document("w")))
        events.wait(DocumentSwapped(0, "w", Outcome.WON, 0))
    destroy_cluster(server.hosts, cluster)

    for missed in (read_parameters, destroy_cluster):
        with pytest.raises(Refused, match="unknown_cluster"):
            missed(server.hosts, cluster)
    create_cluster(server.hosts, Parameters(cluster, "second"))
    with joined(server, cluster, BERT) as (_, events):
        events.wait(NodesChanged((BERT.name,)))


def test_a_cluster_with_live_nodes_is_destroyed_by_force_only(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA):
        with pytest.raises(Refused, match="cluster_alive") as caught:
            destroy_cluster(server.hosts, cluster)
        assert ANNA.name in str(caught.value) and "--force" in str(caught.value)
        read_parameters(server.hosts, cluster)
        destroy_cluster(server.hosts, cluster, is_forced=True)
    with pytest.raises(Refused, match="unknown_cluster"):
        read_parameters(server.hosts, cluster)


def enter(server: ZooKeeperServer, cluster: str, names: list[str]) -> None:
    """Nodes that are registered and down."""
    with client_of(server) as client:
        for name in names:
            client.create(f"/skuld/{cluster}/nodes/{name}", Registration("h", 1, f"data of {name}", 4).encode())


def test_a_node_is_taken_out_and_put_back_with_all_else_in_its_entry_kept(server: ZooKeeperServer,
                                                                          cluster: str) -> None:
    enter(server, cluster, ["a", "b", "c", "d"])

    assert [set_leaving(server.hosts, cluster, "b", True) for _ in range(2)] == [True, False]
    out = read_registration(server.hosts, cluster, "b")
    assert [set_leaving(server.hosts, cluster, "b", False) for _ in range(2)] == [True, False]

    assert out == Registration("h", 1, "data of b", 4, is_leaving=True)
    assert read_registration(server.hosts, cluster, "b") == Registration("h", 1, "data of b", 4)


def test_no_node_is_taken_out_that_is_unknown_or_needed(server: ZooKeeperServer, cluster: str) -> None:
    enter(server, cluster, ["a", "b", "c", "d"])
    assert set_leaving(server.hosts, cluster, "a", True)

    with pytest.raises(Refused, match="too_few_nodes") as few:
        set_leaving(server.hosts, cluster, "b", True)
    with pytest.raises(Refused, match="unknown_node") as unknown:
        set_leaving(server.hosts, cluster, "x", True)
    with pytest.raises(Refused, match="unknown_cluster"):
        set_leaving(server.hosts, "nowhere", "a", True)

    assert "2 nodes for 3 copies" in str(few.value) and "start another node first" in str(few.value)
    assert "it has: a, b, c, d" in str(unknown.value)


def test_of_two_nodes_taken_out_at_once_one_stays_if_both_are_too_many(server: ZooKeeperServer, cluster: str,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    enter(server, cluster, ["a", "b", "c", "d"])
    read, count = clusters._read_entries, 0

    def read_then_lose(*arguments: Any) -> Any:
        nonlocal count
        found, count = read(*arguments), count + 1
        if count == 1:
            assert set_leaving(server.hosts, cluster, "a", True)
        return found
    monkeypatch.setattr(clusters, "_read_entries", read_then_lose)

    with pytest.raises(Refused, match="too_few_nodes"):
        set_leaving(server.hosts, cluster, "b", True)


def test_an_unknown_cluster_is_refused_with_those_that_exist(server: ZooKeeperServer, cluster: str) -> None:
    with pytest.raises(Refused, match="unknown_cluster") as caught:
        read_parameters(server.hosts, "nowhere")
    assert cluster in str(caught.value)
    with pytest.raises(Refused, match="unknown_cluster"):
        Registry(server.hosts, "nowhere", ANNA, SESSION_MS, Events().emit).start()


@pytest.mark.parametrize("name", ["", "../made", "a/b", ".hidden", "a" * 201])
def test_what_is_no_name_never_becomes_a_path(server: ZooKeeperServer, name: str) -> None:
    with pytest.raises(Refused, match="bad_name"):
        read_parameters(server.hosts, name)


def test_an_unreachable_zookeeper_is_named_within_the_timeout(server: ZooKeeperServer) -> None:
    started = time.monotonic()
    with pytest.raises(Refused, match="zookeeper_unreachable") as caught:
        read_parameters("127.0.0.1:1", "made", timeout_s=1.5)
    with pytest.raises(Refused, match="zookeeper_unreachable"):
        create_cluster("127.0.0.1:1", Parameters("c", "i"), timeout_s=1.5)
    with paused(server), pytest.raises(Refused, match="zookeeper_unreachable"):
        destroy_cluster(server.hosts, "made", timeout_s=1.5)
    assert "127.0.0.1:1" in str(caught.value)
    assert time.monotonic() - started < 3 * 1.5 + 2
    with pytest.raises(Refused, match="bad_hosts"):
        read_parameters("127.0.0.1:port", "made")


# -- membership -------------------------------------------------------------------------------------


def test_members_see_each_other_come_and_go_and_stay_known(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, BERT) as (_, seen):
        alone = seen.wait(CONNECTED)
        assert seen.all[:alone] == [NodesChanged((BERT.name,)), MembersChanged((BERT,)), CONNECTED]
        with joined(server, cluster, ANNA) as (_, events):
            both = seen.wait(MembersChanged((ANNA, BERT)), alone)
            seen.wait(NodesChanged((ANNA.name, BERT.name)), alone)
            events.wait(MembersChanged((ANNA, BERT)))
        seen.wait(MembersChanged((BERT,)), both)
        assert seen.all.count(NodesChanged((BERT.name,))) == 1


def test_start_returns_once_the_node_is_a_member(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA), client_of(server) as client:
        raw, stat = client.get(f"/skuld/{cluster}/members/{ANNA.name}")
        assert json.loads(raw) == {"host": "127.0.0.1", "port": 7001, "boot": "boot-a", "incarnation": ""}
        assert stat.ephemeralOwner
        raw, _ = client.get(f"/skuld/{cluster}/nodes/{ANNA.name}")
        assert Registration.decode(raw) == Registration("127.0.0.1", 7001, starts=1)


DATA = attrs.evolve(ANNA, incarnation="data-1")


def entry(server: ZooKeeperServer, cluster: str) -> Registration:
    found = read_registration(server.hosts, cluster, ANNA.name)
    assert found is not None
    return found


def test_a_node_registers_its_data_and_the_count_of_its_starts(server: ZooKeeperServer, cluster: str) -> None:
    assert read_registration(server.hosts, cluster, ANNA.name) is None
    for starts in (1, 2):
        with joined(server, cluster, DATA, starts=starts):
            assert entry(server, cluster) == Registration("127.0.0.1", 7001, "data-1", starts)


def test_data_that_was_not_judged_by_what_is_registered_stays_out(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, DATA, starts=3):
        pass
    judged = entry(server, cluster)
    other = attrs.evolve(ANNA, incarnation="data-2")

    for member, starts, by in ((DATA, 2, judged), (other, 1, None), (other, 1, attrs.evolve(judged, starts=2))):
        registry = Registry(server.hosts, cluster, member, SESSION_MS, Events().emit, starts=starts, judged=by)
        with pytest.raises(Refused, match="name_taken"):
            registry.start()
    assert entry(server, cluster) == judged
    with joined(server, cluster, other, judged=judged):
        assert entry(server, cluster).incarnation == "data-2"


def test_a_node_whose_name_starts_on_other_data_is_out_until_it_has_it_again(server: ZooKeeperServer,
                                                                             cluster: str) -> None:
    with joined(server, cluster, DATA) as (_, events), client_of(server) as client:
        at = events.wait(CONNECTED)
        path = f"/skuld/{cluster}/nodes/{ANNA.name}"
        client.set(path, Registration("127.0.0.1", 7001, "data-2", 1).encode())
        at = events.wait(LOST, at)
        client.set(path, Registration("127.0.0.1", 7001, "data-1", 1).encode())
        events.wait(CONNECTED, at)


def test_a_later_life_of_a_node_is_told_everything_again_under_its_new_boot(server: ZooKeeperServer,
                                                                            cluster: str) -> None:
    with joined(server, cluster, BERT) as (_, seen), joined(server, cluster, DATA) as (registry, events):
        at, later = events.wait(CONNECTED), attrs.evolve(DATA, boot="boot-later")
        both = seen.wait(MembersChanged((DATA, BERT)))
        registry.rejoin(later, 2)
        again = events.wait(CONNECTED, at)
        assert NodesChanged((ANNA.name, BERT.name)) in events.all[at:again]
        assert MembersChanged((later, BERT)) in events.all[at:again]
        seen.wait(MembersChanged((later, BERT)), both)
        assert entry(server, cluster).starts == 2


def test_who_is_leaving_is_told_at_once_and_stays_leaving_over_a_start(server: ZooKeeperServer,
                                                                       cluster: str) -> None:
    with joined(server, cluster, BERT) as (_, seen), client_of(server) as client:
        with joined(server, cluster, DATA):
            at = seen.wait(NodesChanged((ANNA.name, BERT.name)))
            leaving = attrs.evolve(entry(server, cluster), is_leaving=True, unknown={"rack": "r1"})
            client.set(f"/skuld/{cluster}/nodes/{ANNA.name}", leaving.encode())
            seen.wait(NodesChanged((BERT.name,), (ANNA.name,)), at)
        with joined(server, cluster, DATA, starts=2) as (_, events):
            events.wait(NodesChanged((BERT.name,), (ANNA.name,)))
            assert entry(server, cluster) == attrs.evolve(leaving, starts=2)


def test_an_entry_that_cannot_be_read_is_refused_to_its_node_and_placed_by_others(server: ZooKeeperServer,
                                                                                  cluster: str) -> None:
    with client_of(server) as client:
        client.create(f"/skuld/{cluster}/nodes/{ANNA.name}", b"[]")
        with pytest.raises(Refused, match="bad_registration"):
            read_registration(server.hosts, cluster, ANNA.name)
        with joined(server, cluster, BERT) as (_, events):
            events.wait(NodesChanged((ANNA.name, BERT.name)))


def test_the_entry_of_an_earlier_process_is_taken_over_at_once(server: ZooKeeperServer, cluster: str) -> None:
    restarted = Member(ANNA.name, ANNA.host, ANNA.port, "boot-later")
    with joined(server, cluster, BERT) as (_, seen), client_of(server) as dead:
        path = f"/skuld/{cluster}/members/{ANNA.name}"
        dead.create(path, b'{"boot": "boot-a", "host": "127.0.0.1", "port": 7001}', ephemeral=True)
        at = seen.wait(MembersChanged((ANNA, BERT)))
        with joined(server, cluster, restarted):
            seen.wait(MembersChanged((restarted, BERT)), at)


def test_a_name_that_lives_elsewhere_is_not_taken_over(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (_, events):
        impostor = Member(ANNA.name, "127.0.0.1", 7999, "boot-x")
        with pytest.raises(Refused, match="name_taken") as caught:
            Registry(server.hosts, cluster, impostor, SESSION_MS, Events().emit).start()
        assert "127.0.0.1:7001" in str(caught.value)
        with joined(server, cluster, BERT):
            events.wait(MembersChanged((ANNA, BERT)))


def test_entries_that_describe_no_member_are_left_out(server: ZooKeeperServer, cluster: str) -> None:
    with client_of(server) as client:
        for name, raw in {"junk": b"\xff", "127.0.0.1:1": b"{}", "bad name": b"{}", "list": b"[1]",
                          "port": b'{"host": "h", "port": 99999, "boot": "b"}'}.items():
            client.create(f"/skuld/{cluster}/members/{name}", raw)
        client.create(f"/skuld/{cluster}/nodes/no name", b"")
        with joined(server, cluster, ANNA) as (_, events):
            events.wait(MembersChanged((ANNA,)))
            events.wait(NodesChanged((ANNA.name,)))


# -- sessions ---------------------------------------------------------------------------------------


def expire(server: ZooKeeperServer, registry: Registry) -> None:
    """End the session at the server at once, as only its owner could: by its id and password."""
    with client_of(server, client_id=registry._client.client_id):
        pass


def test_an_expired_session_is_lost_and_the_node_joins_again(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, BERT), joined(server, cluster, ANNA) as (registry, events):
        first, at = registry._client.client_id[0], events.wait(CONNECTED)
        expire(server, registry)
        again = events.wait(CONNECTED, events.wait(LOST, at))
        assert MembersChanged((ANNA, BERT)) in events.all[at:again]
        with client_of(server) as client:
            owner = client.exists(f"/skuld/{cluster}/members/{ANNA.name}").ephemeralOwner
        assert owner not in (0, first)

        late = Member("127.0.0.1:7003", "127.0.0.1", 7003, "boot-c")
        with joined(server, cluster, late):
            events.wait(MembersChanged((ANNA, BERT, late)), again)


def test_what_happens_while_suspended_is_seen_after_it(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA, 6_000) as (registry, events):
        at = events.wait(CONNECTED)
        with joined(server, cluster, BERT, 6_000):
            at = events.wait(MembersChanged((ANNA, BERT)), at)
            registry._client._connection._socket.shutdown(2)
            at = events.wait(SUSPENDED, at)
            at = events.wait(CONNECTED, at)
        at = events.wait(MembersChanged((ANNA,)), at)
        assert LOST not in events.all


def test_an_ephemeral_that_an_operator_removed_comes_back(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, BERT) as (_, seen), joined(server, cluster, ANNA), client_of(server) as hand:
        seen.wait(MembersChanged((ANNA, BERT)))
        path = f"/skuld/{cluster}/members/{ANNA.name}"
        hand.delete(path)
        is_back = threading.Event()
        if not hand.exists(path, watch=lambda _: is_back.set()):
            assert is_back.wait(WAIT_S)
        assert hand.exists(path).ephemeralOwner


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_connection_thread_that_died_is_replaced(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events):
        at = events.wait(CONNECTED)
        connection = registry._client._connection
        healthy = connection._read_socket

        def broken(timeout: float) -> None:
            connection._read_socket = healthy
            raise RuntimeError("planted")

        connection._read_socket = broken
        registry.perform(ReadDocument(1))
        at = events.wait(LOST, at)
        at = events.wait(CONNECTED, at)
        registry.perform(ReadDocument(2))
        events.wait(DocumentRead(2, -1, NOBODY), at)


def test_an_unexpected_error_of_the_worker_is_said_and_survived(
        server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(registry_module, "_RETRY_UNEXPECTED_S", 0.01)
    with joined(server, cluster, ANNA) as (registry, events):
        at = events.wait(CONNECTED)
        healthy = registry._members

        def broken() -> tuple[Member, ...]:
            registry._members = healthy  # type: ignore[method-assign]
            raise ZeroDivisionError("planted")

        registry._members = broken  # type: ignore[method-assign]
        with joined(server, cluster, BERT):
            at = events.wait(LOST, at)
            events.wait(CONNECTED, at)
            events.wait(MembersChanged((ANNA, BERT)))
        assert "planted" in caplog.text


def test_stopping_leaves_at_once(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, BERT) as (_, seen):
        with joined(server, cluster, ANNA, 30_000):
            at = seen.wait(MembersChanged((ANNA, BERT)))
        started = time.monotonic()
        seen.wait(MembersChanged((BERT,)), at)
        assert time.monotonic() - started < 2


# -- documents --------------------------------------------------------------------------------------


def test_a_document_is_created_swapped_and_read_back(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events):
        registry.perform(ReadDocument(3))
        registry.perform(SwapDocument(3, -1, document("w1")))
        registry.perform(ReadDocument(3))
        registry.perform(SwapDocument(3, 0, document("w2", epoch=2)))
        registry.perform(ReadDocument(3))
        events.wait(DocumentRead(3, 1, document("w2", epoch=2)))
        assert events.all[-5:] == [
            DocumentRead(3, -1, NOBODY), DocumentSwapped(3, "w1", Outcome.WON, 0),
            DocumentRead(3, 0, document("w1")), DocumentSwapped(3, "w2", Outcome.WON, 1),
            DocumentRead(3, 1, document("w2", epoch=2))]


def test_of_two_that_swap_the_same_revision_one_wins(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (anna, to_anna), joined(server, cluster, BERT) as (bert, to_bert):
        at_anna, at_bert = 0, 0
        for version in (-1, 0):
            anna.perform(SwapDocument(0, version, document(f"a{version}")))
            bert.perform(SwapDocument(0, version, document(f"b{version}")))
            at_anna, at_bert = to_anna.wait(is_swapped, at_anna), to_bert.wait(is_swapped, at_bert)
            outcomes = [to_anna.all[at_anna - 1].outcome, to_bert.all[at_bert - 1].outcome]
            assert sorted(outcome.value for outcome in outcomes) == ["lost", "won"]


def test_a_document_that_is_too_large_is_not_written(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events):
        huge = document("huge", cause="x" * registry_module.DOCUMENT_BYTES_MAX)
        registry.perform(SwapDocument(0, -1, huge))
        events.wait(DocumentSwapped(0, "huge", Outcome.LOST))
        registry.perform(ReadDocument(0))
        events.wait(DocumentRead(0, -1, NOBODY))
        assert SUSPENDED not in events.all


def test_a_document_that_is_not_readable_fails_the_read(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events), client_of(server) as client:
        client.create(f"/skuld/{cluster}/partitions/5", b"{]")
        registry.perform(ReadDocument(5))
        events.wait(ReadFailed(5))


def test_a_swap_without_an_answer_is_uncertain(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server, cluster, ANNA) as (registry, events):
        registry.perform(SwapDocument(0, -1, document("first")))
        at = events.wait(DocumentSwapped(0, "first", Outcome.WON, 0))
        with paused(server):
            registry.perform(SwapDocument(0, 0, document("asked")))
            registry.perform(ReadDocument(0))
            at = events.wait(DocumentSwapped(0, "asked", Outcome.UNCERTAIN), at)
            events.wait(ReadFailed(0), at)
            events.wait(SUSPENDED)
            registry.perform(SwapDocument(0, 0, document("unasked")))
            registry.perform(ReadDocument(1))
            at = events.wait(DocumentSwapped(0, "unasked", Outcome.UNCERTAIN), at)
            at = events.wait(ReadFailed(1), at)
        at = events.wait(CONNECTED, at)
        registry.perform(ReadDocument(0))
        events.wait(lambda event: isinstance(event, DocumentRead) and event.partition == 0, at)
        read = events.all[-1]
        assert isinstance(read, DocumentRead)
        assert read.document.write_id in ("first", "asked")
