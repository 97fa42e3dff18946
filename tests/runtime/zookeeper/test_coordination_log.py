"""The coordination log on a real ZooKeeper: appending, reading, waiting, gaps, origins, pulses, breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped

from runtime.attending import Events, client_of, expire, joined, paused
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.model.coordination import (
    Append,
    Appended,
    AppendUncertain,
    DropPulse,
    EntriesRead,
    OriginRead,
    OriginWritten,
    PulseGone,
    PulsesRead,
    PulseStands,
    ReadEntries,
    ReadOrigin,
    ReadPulses,
    SetPulse,
    WatchPulses,
    WriteOrigin,
)
from skuld_py.model.document import Member
from skuld_py.model.events import Session, SessionChanged
from skuld_py.model.registration import Registration
from skuld_py.runtime.zookeeper import log_reading
from skuld_py.runtime.zookeeper.clusters import destroy_cluster
from skuld_py.runtime.zookeeper.registry import Registry

pytestmark = pytest.mark.cluster

ANNA = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b")
LONG_SESSION_MS = 30_000
CONNECTED, SUSPENDED, LOST = (SessionChanged(session) for session in Session)


@pytest.fixture
def anna(server: ZooKeeperServer, cluster: str) -> Iterator[tuple[Registry, Events]]:
    """Its session outlives a disk that is slow for seconds. What was asked in a session ends with it."""
    with joined(server.hosts, cluster, ANNA, LONG_SESSION_MS) as (registry, events):
        events.wait(CONNECTED)
        yield registry, events


@pytest.fixture
def hand(server: ZooKeeperServer) -> Iterator[KazooClient]:
    with client_of(server) as client:
        yield client


def write(hand: KazooClient, cluster: str, count: int, first: int = 0) -> list[tuple[int, bytes]]:
    """Entries as another member would append them."""
    answers = [hand.create_async(f"/skuld/{cluster}/log/entry-", b"%d" % number, sequence=True)
               for number in range(first, first + count)]
    return [(log_reading.position_of(answer.get(10)), b"%d" % number)
            for number, answer in enumerate(answers, first)]


def entries(count: int, first: int = 0) -> tuple[tuple[int, bytes], ...]:
    return tuple((number, b"%d" % number) for number in range(first, first + count))


# -- what ZooKeeper does ----------------------------------------------------------------------------


def test_positions_stay_contiguous_whatever_is_deleted(cluster: str, hand: KazooClient) -> None:
    written = write(hand, cluster, 5)
    for position in (0, 1, 2, 3, 4):
        hand.delete(log_reading.entry_path(f"/skuld/{cluster}", position))
    written += write(hand, cluster, 2, 5)
    hand.delete(log_reading.entry_path(f"/skuld/{cluster}", 5))
    written += write(hand, cluster, 1, 7)
    assert tuple(written) == entries(8)


def test_the_folder_tells_how_many_were_ever_written(cluster: str, hand: KazooClient) -> None:
    root = f"/skuld/{cluster}"
    reader = log_reading.LogReader(root, lambda: hand, lambda answer: answer.get(10))
    assert not reader.is_behind(0)
    for count, deleted, total in ((3, [1], 3), (4, [0, 2, 3, 6], 7), (1, [4, 5, 7], 8)):
        write(hand, cluster, count)
        for position in deleted:
            hand.delete(log_reading.entry_path(root, position))
        assert [reader.is_behind(start) for start in (0, total - 1, total)] == [True, True, False]


# -- appending and reading --------------------------------------------------------------------------


def test_what_is_appended_stands_where_it_says_and_is_read_back(anna: tuple[Registry, Events]) -> None:
    registry, events = anna
    for number in range(3):
        registry.perform(Append(number, b"%d" % number))
    events.wait(Appended(2, 2))
    registry.perform(ReadEntries(0, 10, is_waiting=False))
    events.wait(EntriesRead(0, entries(3), is_end=True))
    registry.perform(ReadEntries(1, 1, is_waiting=False))
    events.wait(EntriesRead(1, entries(1, 1)))
    registry.perform(ReadEntries(3, 10, is_waiting=False))
    events.wait(EntriesRead(3, (), is_end=True))


def test_a_long_log_is_read_in_pieces_of_the_size_asked_for(cluster: str, anna: tuple[Registry, Events],
                                                            hand: KazooClient) -> None:
    write(hand, cluster, 700)
    registry, events = anna
    for start, count, is_end in ((0, 300, False), (300, 300, False), (600, 100, True)):
        registry.perform(ReadEntries(start, 300))
        events.wait(EntriesRead(start, entries(count, start), is_end))


def test_a_waiting_reader_is_answered_when_the_entry_comes(cluster: str, anna: tuple[Registry, Events],
                                                           hand: KazooClient) -> None:
    registry, events = anna
    for number in range(20):
        registry.perform(ReadEntries(number, 10))
        if number % 2:
            registry.perform(ReadOrigin())  # answered after the reader has armed its watch
            events.wait_for(OriginRead, len(events.all))
        write(hand, cluster, 1, number)
        events.wait(EntriesRead(number, entries(1, number), is_end=True))


def test_a_reader_waits_no_longer_than_it_says(anna: tuple[Registry, Events]) -> None:
    registry, events = anna
    started = time.monotonic()
    registry.perform(ReadEntries(0, 10, wait_ms=300))
    events.wait(EntriesRead(0, (), is_end=True))
    assert 0.3 <= time.monotonic() - started < 5


def test_a_later_reading_takes_the_place_of_an_earlier_one(cluster: str, anna: tuple[Registry, Events],
                                                          hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 2)
    registry.perform(ReadEntries(2, 10))
    registry.perform(ReadEntries(0, 10))
    at = events.wait(EntriesRead(0, entries(2), is_end=True))
    write(hand, cluster, 1, 2)
    registry.perform(ReadEntries(1, 10, is_waiting=False))
    events.wait(EntriesRead(1, entries(2, 1), is_end=True), at)
    assert not any(isinstance(event, EntriesRead) and event.start == 2 for event in events.all)


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_gap_is_told_with_what_stands_behind_it(cluster: str, anna: tuple[Registry, Events], hand: KazooClient,
                                                  is_waiting: bool) -> None:
    registry, events = anna
    write(hand, cluster, 9)
    for position in (0, 1, 2, 5):
        hand.delete(log_reading.entry_path(f"/skuld/{cluster}", position))
    registry.perform(ReadEntries(0, 10, is_waiting, 200))
    events.wait(EntriesRead(0, entries(2, 3), is_missing=True))
    registry.perform(ReadEntries(3, 10, is_waiting, 200))
    events.wait(EntriesRead(3, entries(2, 3)))
    registry.perform(ReadEntries(5, 10, is_waiting, 200))
    events.wait(EntriesRead(5, entries(3, 6), is_end=True, is_missing=True))


def test_a_reader_at_a_gap_before_the_end_goes_on_waiting(cluster: str, anna: tuple[Registry, Events],
                                                          hand: KazooClient) -> None:
    """All of the log is gone and no origin stands: nobody can say more than that nothing is there."""
    registry, events = anna
    write(hand, cluster, 2)
    for position in (0, 1):
        hand.delete(log_reading.entry_path(f"/skuld/{cluster}", position))
    registry.perform(ReadEntries(0, 10, wait_ms=200))
    events.wait(EntriesRead(0, (), is_end=True))
    registry.perform(ReadEntries(1, 10, wait_ms=20_000))
    write(hand, cluster, 1, 2)
    registry.perform(ReadEntries(1, 10, is_waiting=False))
    events.wait(EntriesRead(1, entries(1, 2), is_end=True, is_missing=True))


# -- origins ----------------------------------------------------------------------------------------


def test_before_the_first_origin_there_is_none(anna: tuple[Registry, Events]) -> None:
    registry, events = anna
    registry.perform(ReadOrigin())
    events.wait(OriginRead(-1, ""))


def test_an_origin_is_written_in_pieces_and_replaces_what_it_covers(cluster: str, anna: tuple[Registry, Events],
                                                                    hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 400)
    root = f"/skuld/{cluster}"
    large = "å" * (log_reading.CHUNK_BYTES_MAX + 10)  # a piece ends within a letter
    for position, text, keep_from, pieces in ((350, large, 300, 3), (399, "small", 380, 1)):
        registry.perform(WriteOrigin(position, text, keep_from))
        at = events.wait(OriginWritten(position, True))
        registry.perform(ReadOrigin())
        events.wait(OriginRead(position, text), at)
        registry.perform(ReadEntries(0, 500, is_waiting=False))
        events.wait(EntriesRead(0, entries(400 - keep_from, keep_from), is_end=True, is_missing=True))
        assert sorted(hand.get_children(f"{root}/origin")) == [f"{position}-{number}" for number in range(pieces)]
    assert all(len(hand.get(f"{root}/origin/{name}")[0]) <= log_reading.CHUNK_BYTES_MAX
               for name in hand.get_children(f"{root}/origin"))


def test_an_origin_does_not_replace_a_later_one(cluster: str, anna: tuple[Registry, Events],
                                                hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 10)
    registry.perform(WriteOrigin(7, "later", 5))
    events.wait(OriginWritten(7, True))
    registry.perform(WriteOrigin(4, "earlier", 2))
    events.wait(OriginWritten(4, False))
    registry.perform(WriteOrigin(7, "later", 5))
    events.wait(OriginWritten(7, True))
    registry.perform(ReadOrigin())
    events.wait(OriginRead(7, "later"))
    assert hand.get_children(f"/skuld/{cluster}/origin") == ["7-0"]


def test_nothing_is_removed_that_the_origin_does_not_cover(cluster: str, anna: tuple[Registry, Events],
                                                           hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 6)
    registry.perform(WriteOrigin(3, "text", 100))
    events.wait(OriginWritten(3, True))
    registry.perform(ReadEntries(4, 10, is_waiting=False))
    events.wait(EntriesRead(4, entries(2, 4), is_end=True))


def test_a_reader_whose_log_was_collected_wholly_is_told(cluster: str, anna: tuple[Registry, Events],
                                                         hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 3)
    registry.perform(WriteOrigin(2, "text", 3))
    events.wait(OriginWritten(2, True))
    registry.perform(ReadEntries(1, 10, is_waiting=False))
    events.wait(EntriesRead(1, (), is_missing=True))


def test_others_are_served_while_a_long_log_is_removed(cluster: str, anna: tuple[Registry, Events],
                                                       hand: KazooClient) -> None:
    registry, events = anna
    write(hand, cluster, 2_000)
    registry.perform(WriteOrigin(1_999, "text", 2_000))
    registry.perform(Append(0, b"2000"))
    assert events.wait(Appended(0, 2_000)) < events.wait(OriginWritten(1_999, True))


def test_a_broken_header_is_said_and_mended_by_the_next_origin(
        cluster: str, anna: tuple[Registry, Events], hand: KazooClient, caplog: pytest.LogCaptureFixture) -> None:
    registry, events = anna
    write(hand, cluster, 1)
    hand.set(f"/skuld/{cluster}/origin", b"{")
    registry.perform(ReadOrigin())
    registry.perform(ReadEntries(0, 1))
    registry.perform(WriteOrigin(0, "text", 0))
    events.wait(OriginWritten(0, True))
    events.wait(OriginRead(0, "text"))
    assert "no readable header" in caplog.text


# -- pulses -----------------------------------------------------------------------------------------


def test_a_pulse_stands_until_it_is_dropped_or_another_one_is_set(cluster: str, anna: tuple[Registry, Events],
                                                                  hand: KazooClient) -> None:
    registry, events = anna
    folder = f"/skuld/{cluster}/members"
    for life in ("one", "two"):
        registry.perform(SetPulse(f"{ANNA.name}~{life}", ANNA))
        events.wait(PulseStands(f"{ANNA.name}~{life}"))
        assert hand.get_children(folder) == [f"{ANNA.name}~{life}"]
        registry.perform(ReadPulses())
        events.wait(PulsesRead((f"{ANNA.name}~{life}",)))
    session = registry._connection.session()
    assert hand.exists(f"{folder}/{ANNA.name}~two").ephemeralOwner == session
    registry.perform(WatchPulses((f"{ANNA.name}~two",)))
    registry.perform(DropPulse())
    events.wait(PulseGone(f"{ANNA.name}~two"))
    assert hand.get_children(folder) == []


def test_the_pulse_of_a_process_that_was_killed_goes_when_its_node_lives_again(
        server: ZooKeeperServer, cluster: str, hand: KazooClient) -> None:
    one, two = f"{ANNA.name}~one", f"{ANNA.name}~two"
    entry = Registration(ANNA.host, ANNA.port, starts=1, life=one)
    hand.create(f"/skuld/{cluster}/nodes/{ANNA.name}", entry.encode())
    hand.create(f"/skuld/{cluster}/members/{one}", ephemeral=True)  # in a session that goes on for long
    with joined(server.hosts, cluster, BERT) as (watcher, seen), \
            joined(server.hosts, cluster, ANNA, starts=2) as (registry, events):
        watcher.perform(WatchPulses((one,)))
        registry.perform(SetPulse(two, ANNA))
        events.wait(PulseStands(two))
        seen.wait(PulseGone(one))
        assert hand.get_children(f"/skuld/{cluster}/members") == [two]
        entry = Registration.decode(hand.get(f"/skuld/{cluster}/nodes/{ANNA.name}")[0])
        assert (entry.life, entry.starts) == (two, 2)


def test_a_pulse_is_missed_when_it_is_not_there_and_when_it_goes(cluster: str, anna: tuple[Registry, Events],
                                                                 hand: KazooClient) -> None:
    registry, events = anna
    hand.create(f"/skuld/{cluster}/members/b", ephemeral=True)
    hand.create(f"/skuld/{cluster}/members/c", ephemeral=True)
    registry.perform(WatchPulses(("a", "b")))
    events.wait(PulseGone("a"))
    registry.perform(WatchPulses(("b", "c")))
    hand.delete(f"/skuld/{cluster}/members/b")
    events.wait(PulseGone("b"))
    hand.delete(f"/skuld/{cluster}/members/c")
    events.wait(PulseGone("c"))


def test_what_goes_while_the_connection_is_down_is_missed_after_it(server: ZooKeeperServer, cluster: str,
                                                                   hand: KazooClient) -> None:
    with joined(server.hosts, cluster, ANNA, 8_000) as (registry, events):
        at = events.wait(CONNECTED)
        hand.create(f"/skuld/{cluster}/members/b", ephemeral=True)
        registry.perform(WatchPulses(("b",)))
        registry.perform(ReadEntries(0, 10))
        registry.perform(ReadOrigin())
        events.wait(OriginRead(-1, ""))
        healthy = registry._connection.client._connection._connect

        def refuse(*arguments: object) -> None:
            hand.delete(f"/skuld/{cluster}/members/b")
            write(hand, cluster, 1)
            registry._connection.client._connection._connect = healthy
            raise ConnectionDropped("planted")

        registry._connection.client._connection._connect = refuse
        registry._connection.client._connection._socket.shutdown(2)
        at = events.wait(SUSPENDED, at)
        at = events.wait(CONNECTED, at)
        events.wait(PulseGone("b"))
        events.wait(EntriesRead(0, entries(1), is_end=True))
        assert LOST not in events.all


# -- what breaks ------------------------------------------------------------------------------------


def test_an_append_that_nobody_can_be_asked_for_is_given_up(server: ZooKeeperServer, cluster: str) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        at = events.wait(CONNECTED)
        with paused(server):
            at = events.wait(SUSPENDED, at)
            started = time.monotonic()
            registry.perform(Append(0, b"0"))
            events.wait(AppendUncertain(0), at)
            assert time.monotonic() - started > 1


def test_a_session_that_ends_takes_the_pulse_along(server: ZooKeeperServer, cluster: str, hand: KazooClient,
                                                   anna: tuple[Registry, Events]) -> None:
    registry, events = anna
    registry.perform(SetPulse("a~1", ANNA))
    at = events.wait(PulseStands("a~1"))
    expire(server, registry)
    at = events.wait(CONNECTED, events.wait(LOST, at))
    assert hand.get_children(f"/skuld/{cluster}/members") == []
    registry.perform(SetPulse("a~2", ANNA))
    events.wait(PulseStands("a~2"), at)
    assert hand.get_children(f"/skuld/{cluster}/members") == ["a~2"]


def test_a_log_that_is_taken_away_is_said_and_survived(server: ZooKeeperServer, cluster: str, hand: KazooClient,
                                                       anna: tuple[Registry, Events]) -> None:
    registry, events = anna
    hand.delete(f"/skuld/{cluster}/log")
    registry.perform(Append(0, b"0"))
    events.wait(AppendUncertain(0))
    hand.create(f"/skuld/{cluster}/log")
    registry.perform(Append(0, b"0"))
    events.wait(Appended(0, 0))
    destroy_cluster(server.hosts, cluster, is_forced=True)
