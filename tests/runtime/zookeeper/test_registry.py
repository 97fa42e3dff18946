"""The registry on a real ZooKeeper: clusters, entries of nodes, sessions that break, swaps of all outcomes."""

from __future__ import annotations

import queue
import time
from typing import Any

import attrs
import pytest
from kazoo.exceptions import NoAuthError

from patience import in_time
from runtime.attending import SESSION_MS, Events, Told, client_of, expire, joined, paused
from skuld_py.config import RULES, Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.coordination import PulseGone, PulseStands, SetPulse, WatchPulses
from skuld_py.model.document import NOBODY, Document, Member, seats_of
from skuld_py.model.events import (
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Outcome,
    ReadDocument,
    ReadFailed,
    ReadRevisions,
    RevisionsRead,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.model.registration import Registration
from skuld_py.model.revision import HORIZON
from skuld_py.runtime.zookeeper import clusters, documents, histories, patience
from skuld_py.runtime.zookeeper.clusters import create_cluster, destroy_cluster, read_parameters, read_registration
from skuld_py.runtime.zookeeper.registry import Registry

pytestmark = pytest.mark.cluster

ANNA = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b")

CONNECTED, SUSPENDED, LOST = (SessionChanged(session) for session in Session)


def document(write_id: str, **changes: Any) -> Document:
    fields = {"epoch": 1, "leader": ANNA.name, "boot": ANNA.boot, "seats": seats_of([ANNA.name])} | changes
    return Document(write_id=write_id, **fields)


def is_swapped(event: Told) -> bool:
    return isinstance(event, DocumentSwapped)


def life_of(registry: Registry, events: Events, member: Member, number: int = 1) -> str:
    """Let a pulse stand."""
    life = f"{member.name}~{number}"
    registry.perform(SetPulse(life, member))
    events.wait(PulseStands(life))
    return life


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
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        registry.perform(SwapDocument(0, -1, document("w")))
        events.wait(DocumentSwapped(0, "w", Outcome.WON, 0))
    destroy_cluster(server.hosts, cluster)

    for missed in (read_parameters, destroy_cluster):
        with pytest.raises(Refused, match="unknown_cluster"):
            missed(server.hosts, cluster)
    create_cluster(server.hosts, Parameters(cluster, "second"))
    with joined(server.hosts, cluster, BERT) as (_, events):
        events.wait(CONNECTED)


def test_a_cluster_with_live_nodes_is_destroyed_by_force_only(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        life_of(registry, events, ANNA)
        with pytest.raises(Refused, match="cluster_alive") as caught:
            destroy_cluster(server.hosts, cluster)
        assert ANNA.name in str(caught.value) and "--force" in str(caught.value)
        read_parameters(server.hosts, cluster)
        destroy_cluster(server.hosts, cluster, is_forced=True)
    with pytest.raises(Refused, match="unknown_cluster"):
        read_parameters(server.hosts, cluster)


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
    assert time.monotonic() - started < 12, "by default a single one takes 10 s"
    with pytest.raises(Refused, match="bad_hosts"):
        read_parameters("127.0.0.1:port", "made")


def test_a_zookeeper_that_is_waited_for_is_told(monkeypatch: pytest.MonkeyPatch,
                                                caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(clusters, "_SILENCE_S", 0.2)
    with pytest.raises(Refused, match="zookeeper_unreachable"):
        read_parameters("127.0.0.1:1", "made", timeout_s=1.5)

    assert "ZooKeeper at 127.0.0.1:1 has not answered" in caplog.text


# -- the entry of a node ----------------------------------------------------------------------------


def test_start_returns_once_the_node_is_registered(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (_, events):
        assert events.all[0] == CONNECTED
        assert entry(server, cluster) == Registration("127.0.0.1", 7001, starts=1, boot=ANNA.boot, rules=RULES,
                                                        rules_boot=ANNA.boot)


DATA = attrs.evolve(ANNA, incarnation="data-1")


def entry(server: ZooKeeperServer, cluster: str) -> Registration:
    found = read_registration(server.hosts, cluster, ANNA.name)
    assert found is not None
    return found


def test_a_node_registers_its_data_and_the_count_of_its_starts(server: ZooKeeperServer, cluster: str) -> None:
    assert read_registration(server.hosts, cluster, ANNA.name) is None
    for starts in (1, 2):
        with joined(server.hosts, cluster, DATA, starts=starts):
            assert entry(server, cluster) == Registration(
                "127.0.0.1", 7001, "data-1", starts, DATA.boot, rules=RULES, rules_boot=DATA.boot)


def test_data_that_was_not_judged_by_what_is_registered_stays_out(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, DATA, starts=3):
        pass
    judged = entry(server, cluster)
    other = attrs.evolve(ANNA, incarnation="data-2")

    for member, starts, by in ((DATA, 2, judged), (other, 1, None), (other, 1, attrs.evolve(judged, starts=2))):
        registry = Registry(server.hosts, cluster, member, SESSION_MS, Events().emit, starts=starts, judged=by)
        with pytest.raises(Refused, match="name_taken"):
            registry.start()
    assert entry(server, cluster) == judged
    with joined(server.hosts, cluster, other, judged=judged):
        assert entry(server, cluster).incarnation == "data-2"


def test_of_two_copies_of_a_directory_started_at_once_the_second_is_refused(
        server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, DATA, starts=5) as (_, events):
        at = events.wait(CONNECTED)
        with client_of(server) as client:
            _, stat = client.get(f"/skuld/{cluster}/nodes/{DATA.name}")
            copy = attrs.evolve(DATA, boot="boot-of-the-copy", host="127.0.0.2")
            with pytest.raises(Refused, match="a copy of this one"):
                Registry(server.hosts, cluster, copy, SESSION_MS, Events().emit, starts=5).start()
            assert client.get(f"/skuld/{cluster}/nodes/{DATA.name}")[1].version == stat.version
        assert events.all[at:] == []


def test_an_entry_of_a_release_that_knew_no_boot_is_taken_over(server: ZooKeeperServer, cluster: str) -> None:
    with client_of(server) as client:
        client.create(f"/skuld/{cluster}/nodes/{DATA.name}",
                      b'{"host": "127.0.0.1", "port": 7001, "incarnation": "data-1", "starts": 1}')
    with joined(server.hosts, cluster, DATA):
        assert entry(server, cluster).boot == DATA.boot


def test_a_node_whose_name_starts_on_other_data_is_out_until_it_has_it_again(server: ZooKeeperServer,
                                                                             cluster: str) -> None:
    with joined(server.hosts, cluster, DATA) as (registry, events), client_of(server) as client:
        at = events.wait(CONNECTED)
        life_of(registry, events, DATA)
        path = f"/skuld/{cluster}/nodes/{ANNA.name}"
        client.set(path, Registration("127.0.0.1", 7001, "data-2", 1).encode())
        at = events.wait(LOST, at)
        registry.perform(ReadDocument(0))
        events.wait(DocumentRead(0, -1, NOBODY), at)
        assert client.get_children(f"/skuld/{cluster}/members") == []
        client.set(path, Registration("127.0.0.1", 7001, "data-1", 1).encode())
        events.wait(CONNECTED, at)


def test_a_later_life_of_a_node_is_told_to_begin_anew(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, BERT) as (watcher, seen), \
            joined(server.hosts, cluster, DATA) as (registry, events):
        watcher.perform(WatchPulses((life_of(registry, events, DATA),)))
        at = len(events.all)
        registry.rejoin(attrs.evolve(DATA, boot="boot-later"), 2)
        events.wait(CONNECTED, events.wait(LOST, at))
        seen.wait(PulseGone(f"{DATA.name}~1"))
        assert entry(server, cluster).starts == 2
        life_of(registry, events, DATA, 2)
        life = f"{DATA.name}~2"
        assert entry(server, cluster) == Registration("127.0.0.1", 7001, "data-1", 2, "boot-later", life, RULES,
                                                        "boot-later")


def test_what_a_later_version_wrote_stays_in_the_entry(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, DATA) as (registry, events), client_of(server) as client:
        known = attrs.evolve(entry(server, cluster), unknown={"rack": "r1"})
        client.set(f"/skuld/{cluster}/nodes/{ANNA.name}", known.encode())
        life = life_of(registry, events, DATA)
    with joined(server.hosts, cluster, DATA, starts=2):
        assert entry(server, cluster) == attrs.evolve(known, starts=2, life=life)


def test_an_entry_that_cannot_be_read_is_refused_to_its_node(server: ZooKeeperServer, cluster: str) -> None:
    with client_of(server) as client:
        client.create(f"/skuld/{cluster}/nodes/{ANNA.name}", b"[]")
        with pytest.raises(Refused, match="bad_registration"):
            read_registration(server.hosts, cluster, ANNA.name)
        with pytest.raises(Refused, match="bad_registration"):
            Registry(server.hosts, cluster, ANNA, SESSION_MS, Events().emit).start()


# -- sessions ---------------------------------------------------------------------------------------


def test_an_expired_session_is_lost_and_another_one_begins(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        first, at = registry._connection.session(), events.wait(CONNECTED)
        expire(server, registry)
        events.wait(CONNECTED, events.wait(LOST, at))
        assert registry._connection.session() != first


def test_a_connection_that_breaks_is_suspended_and_the_pulse_found_again(server: ZooKeeperServer,
                                                                         cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA, 6_000) as (registry, events):
        life = life_of(registry, events, ANNA)
        at = len(events.all)
        registry._connection.client._connection._socket.shutdown(2)
        at = events.wait(CONNECTED, events.wait(SUSPENDED, at))
        assert events.wait(PulseStands(life), at) == at + 1
        assert LOST not in events.all


def test_a_pulse_that_an_operator_removed_is_said_to_be_gone(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events), client_of(server) as hand:
        life = life_of(registry, events, ANNA)
        hand.delete(f"/skuld/{cluster}/members/{life}")
        events.wait(PulseGone(life))
        life_of(registry, events, ANNA, 2)
        assert hand.get_children(f"/skuld/{cluster}/members") == [f"{ANNA.name}~2"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_connection_thread_that_died_is_replaced(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        at = events.wait(CONNECTED)
        connection = registry._connection.client._connection
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


def test_a_no_of_zookeeper_is_said_in_a_line_and_survived(
        server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(patience, "FIRST_S", 0.01)
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        at = events.wait(CONNECTED)
        healthy = registry._presence.keep_entry

        def broken() -> None:
            registry._presence.keep_entry = healthy  # type: ignore[method-assign]
            raise NoAuthError("planted")

        registry._presence.keep_entry = broken  # type: ignore[method-assign]
        registry.perform(SetPulse("a~1", ANNA))
        events.wait(CONNECTED, events.wait(LOST, at))
        registry.perform(SetPulse("a~2", ANNA))
        events.wait(PulseStands("a~2"))
        assert PulseStands("a~1") not in events.all
        said = [record for record in caplog.records if "give the cluster's key" in record.getMessage()]
        assert [record.exc_info for record in said] == [None]


def test_an_unexpected_error_of_the_worker_ends_the_session_and_is_told(
        server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("planted")

    with joined(server.hosts, cluster, ANNA) as (registry, events):
        life = life_of(registry, events, ANNA)
        told: queue.Queue[Exception] = queue.Queue()
        monkeypatch.setattr(registry, "_on_failure", told.put)
        monkeypatch.setattr(registry._presence, "keep_entry", broken)
        registry.perform(SetPulse(life, ANNA))
        assert isinstance(told.get(timeout=60), ZeroDivisionError)
        registry._connection._worker.join(60)

        assert events.all[-1] == LOST
        with client_of(server) as client:
            assert client.exists(f"/skuld/{cluster}/members/{life}") is None


def test_a_document_of_any_kind_is_read_or_said_to_be_none(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events), client_of(server) as client:
        client.create(f"/skuld/{cluster}/partitions/0", b'{"floor": []}')
        registry.perform(ReadDocument(0))
        at = events.wait(ReadFailed(0))
        registry.perform(ReadDocument(1))
        events.wait(DocumentRead(1, -1, NOBODY), at)


def test_a_node_does_not_start_where_the_origin_cannot_be_read(server: ZooKeeperServer, cluster: str) -> None:
    with client_of(server) as client:
        client.set(f"/skuld/{cluster}/origin", b'{"position": "x"}')
    with pytest.raises(Refused, match=f"/skuld/{cluster}/origin in ZooKeeper cannot be read"):
        Registry(server.hosts, cluster, ANNA, SESSION_MS, Events().emit).start()


def test_stopping_leaves_at_once(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, BERT) as (watcher, seen):
        with joined(server.hosts, cluster, ANNA, 30_000) as (registry, events):
            life = life_of(registry, events, ANNA)
            watcher.perform(WatchPulses((life,)))
        started = time.monotonic()
        seen.wait(PulseGone(life))
        assert time.monotonic() - started < 15, "it does not wait for the session to end"


# -- documents --------------------------------------------------------------------------------------


def test_a_document_is_created_swapped_and_read_back(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        registry.perform(ReadDocument(3))
        events.wait(DocumentRead(3, -1, NOBODY))
        registry.perform(SwapDocument(3, -1, document("w1")))
        registry.perform(ReadDocument(3))
        registry.perform(SwapDocument(3, 0, document("w2", epoch=2)))
        registry.perform(ReadDocument(3))
        events.wait(DocumentRead(3, 1, document("w2", epoch=2)))
        events.wait(DocumentChanged(3))
        told = [event for event in events.all if isinstance(event, DocumentRead | DocumentSwapped)]
        assert told == [
            DocumentRead(3, -1, NOBODY), DocumentSwapped(3, "w1", Outcome.WON, 0),
            DocumentRead(3, 0, document("w1")), DocumentSwapped(3, "w2", Outcome.WON, 1),
            DocumentRead(3, 1, document("w2", epoch=2))]


def test_a_partition_is_begun_once_and_its_leader_may_put_its_document_back(server: ZooKeeperServer,
                                                                            cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        registry.perform(SwapDocument(3, -1, document("w1"), is_founding=True))
        events.wait(DocumentSwapped(3, "w1", Outcome.WON, 0))
        with client_of(server) as client:
            client.delete(f"/skuld/{cluster}/partitions/3")
        registry.perform(ReadDocument(3))
        registry.perform(SwapDocument(3, -1, document("w2"), is_founding=True))
        registry.perform(SwapDocument(3, -1, document("w3")))
        events.wait(DocumentSwapped(3, "w3", Outcome.WON, 0))
        told = [event for event in events.all if isinstance(event, DocumentRead | DocumentSwapped)]
        assert told[1:] == [
            DocumentRead(3, -1, NOBODY, was_there=True), DocumentSwapped(3, "w2", Outcome.LOST, -1),
            DocumentSwapped(3, "w3", Outcome.WON, 0)]


def test_a_swap_made_of_a_document_that_was_deleted_is_lost_though_its_version_came_again(
        server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events), client_of(server) as client:
        def swapped(version: int, write_id: str, put_back: int) -> Outcome:
            at = len(events.all)
            registry.perform(SwapDocument(3, version, document(write_id, put_back=put_back),
                                          is_founding=write_id == "founded"))
            events.wait(is_swapped, at)
            return next(event.outcome for event in events.all[at:] if isinstance(event, DocumentSwapped))

        assert (swapped(-1, "founded", 0), swapped(0, "next", 0)) == (Outcome.WON, Outcome.WON)
        client.delete(f"/skuld/{cluster}/partitions/3")
        assert (swapped(-1, "back", 1), swapped(0, "next", 1)) == (Outcome.WON, Outcome.WON)
        assert (swapped(1, "late", 0), swapped(1, "third", 1)) == (Outcome.LOST, Outcome.WON)

        client.delete(f"/skuld/{cluster}/history", recursive=True)
        assert (swapped(2, "gone", 1), swapped(2, "again", 1)) == (Outcome.LOST, Outcome.WON)
        assert swapped(3, "late", 0) is Outcome.LOST

        client.set(f"/skuld/{cluster}/partitions/3", document("by hand").encode())
        assert swapped(4, "mine", 0) is Outcome.LOST
        at = len(events.all)
        registry.perform(ReadDocument(3))
        events.wait(DocumentRead(3, 4, document("by hand", put_back=1)), at)
        assert swapped(4, "mine", 1) is Outcome.WON

        client.set(f"/skuld/{cluster}/partitions/3", document("by hand").encode())
        client.delete(f"/skuld/{cluster}/partitions/3")
        assert swapped(-1, "mine", 1) is Outcome.LOST
        at = len(events.all)
        registry.perform(ReadDocument(3))
        events.wait(DocumentRead(3, -1, attrs.evolve(NOBODY, put_back=1), was_there=True), at)
        assert swapped(-1, "mine", 2) is Outcome.WON


def test_each_revision_is_kept_with_its_writer_and_its_time_and_the_oldest_go(
        server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "KEPT", 3)
    monkeypatch.setattr(histories, "ROUTINE_KEPT", 1)
    monkeypatch.setattr(histories, "PRUNED_EVERY", 4)
    began_ms = int(time.time() * 1000)
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        for number in range(8):
            cause = HORIZON if number in (3, 4) else f"for reason {number}"
            registry.perform(SwapDocument(3, number - 1, document(f"w{number}", cause=cause)))
        registry.perform(SwapDocument(3, 2, document("late")))
        registry.perform(ReadRevisions(3, 100))
        registry.perform(ReadRevisions(4, 100))
        events.wait(RevisionsRead(4, 100, ()))
        (told,) = [event for event in events.all if isinstance(event, RevisionsRead) and event.partition == 3]
        assert told.revisions is not None
        assert [(each.version, each.cause) for each in told.revisions] == [
            (7, "for reason 7"), (6, "for reason 6"), (5, "for reason 5"), (4, HORIZON)]
        assert all(began_ms - 1_000 <= each.at_ms <= time.time() * 1000 + 1_000 for each in told.revisions)
        assert {each.writer for each in told.revisions} == {ANNA.name} and told.revisions[0].write_id == "w7"

        with client_of(server) as client:
            client.delete(f"/skuld/{cluster}/history", recursive=True)
        for write_id in ("lost", "kept"):
            at = len(events.all)
            registry.perform(SwapDocument(3, 7, document(write_id)))
            events.wait(is_swapped, at)
        assert [event.outcome for event in events.all if isinstance(event, DocumentSwapped)][-2:] == [
            Outcome.LOST, Outcome.WON]


def test_what_an_operator_writes_is_told_within_a_second_to_who_has_read_before(server: ZooKeeperServer,
                                                                                 cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (anna, to_anna), \
            joined(server.hosts, cluster, BERT) as (bert, to_bert):
        anna.perform(SwapDocument(3, -1, document("w1")))
        to_anna.wait(is_swapped)  # or else bert may read before it, and be told of that

        def told() -> float:
            at = len(to_bert.all)
            bert.perform(ReadDocument(3))
            at, started = to_bert.wait(lambda event: isinstance(event, DocumentRead), at), time.monotonic()
            with client_of(server) as client:
                client.set(f"/skuld/{cluster}/partitions/3", document("w2").encode())
            to_bert.wait(DocumentChanged(3), at)
            return time.monotonic() - started
        in_time(1, told)
    assert DocumentChanged(3) not in to_anna.all


def test_of_two_that_swap_the_same_revision_one_wins(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (anna, to_anna), \
            joined(server.hosts, cluster, BERT) as (bert, to_bert):
        at_anna, at_bert = 0, 0
        for version in (-1, 0):
            anna.perform(SwapDocument(0, version, document(f"a{version}")))
            bert.perform(SwapDocument(0, version, document(f"b{version}")))
            at_anna, at_bert = to_anna.wait(is_swapped, at_anna), to_bert.wait(is_swapped, at_bert)
            outcomes = [to_anna.all[at_anna - 1].outcome, to_bert.all[at_bert - 1].outcome]
            assert sorted(outcome.value for outcome in outcomes) == ["lost", "won"]


def test_a_document_that_is_too_large_is_not_written(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        huge = document("huge", cause="x" * documents.DOCUMENT_BYTES_MAX)
        registry.perform(SwapDocument(0, -1, huge))
        events.wait(DocumentSwapped(0, "huge", Outcome.LOST))
        registry.perform(ReadDocument(0))
        events.wait(DocumentRead(0, -1, NOBODY))
        assert SUSPENDED not in events.all


def test_a_document_that_is_not_readable_fails_the_read(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events), client_of(server) as client:
        client.create(f"/skuld/{cluster}/partitions/5", b"{]")
        registry.perform(ReadDocument(5))
        events.wait(ReadFailed(5))


def test_a_document_that_stays_unreadable_is_said_in_a_line_ever_more_seldom(
        server: ZooKeeperServer, cluster: str, caplog: pytest.LogCaptureFixture) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events), client_of(server) as client:
        path = f"/skuld/{cluster}/partitions/5"

        def read(times: int) -> list[str]:
            for _ in range(times):
                at = len(events.all)
                registry.perform(ReadDocument(5))
                events.wait(lambda event: isinstance(event, ReadFailed | DocumentRead), at)
            return [each.getMessage() for each in caplog.records if "cannot read" in each.getMessage()]
        client.create(path, b"{]")
        line, = read(5)
        assert line.startswith(f"cannot read {path}, silent about it for 2 s: ")
        registry._documents._patience[5].until_s = 0.0
        assert "for 4 s" in read(5)[1] and len(read(1)) == 2
        client.set(path, document("mended").encode())
        read(1)
        client.set(path, b"{]")
        assert "for 2 s" in read(2)[2] and len(read(1)) == 3


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"partitions": 8}', b"[" * 100_000])
def test_parameters_that_cannot_be_read_are_refused_with_their_znode(server: ZooKeeperServer, cluster: str,
                                                                     raw: bytes) -> None:
    with client_of(server) as client:
        client.set(f"/skuld/{cluster}/parameters", raw)
    with pytest.raises(Refused, match=f"/skuld/{cluster}/parameters in ZooKeeper cannot be read .* mend the"):
        read_parameters(server.hosts, cluster)


def test_a_swap_without_an_answer_is_uncertain(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
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
        read = next(event for event in reversed(events.all) if isinstance(event, DocumentRead))
        assert read.document.write_id in ("first", "asked")
