"""The models do what they model: time, clocks, links, the registry's half-truths, a store that crashes."""

from __future__ import annotations

from itertools import count
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.cluster.log.commands import Command, Leave, RetireNode
from skuld_py.cluster.log.entries import Entry
from skuld_py.errors import Corrupt
from skuld_py.model import messages as m
from skuld_py.model.coordination import (
    Append,
    Appended,
    AppendUncertain,
    DropPulse,
    EntriesRead,
    OriginWritten,
    PulseGone,
    PulseStands,
    ReadEntries,
    SetPulse,
    SweepEntries,
    WatchPulses,
    WriteOrigin,
)
from skuld_py.model.document import NOBODY, Document, Member, seats_of
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Outcome,
    ReadDocument,
    ReadFailed,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.leadership.consultation import Step
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.clock import WALL_START_MS, draw_clock
from skuld_py.simulation.world.network import CALM, Envelope, Network, Weather, between, halves, one_way
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.zookeeper import documents as registry_model
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import Connection, News, RegistryOptions

HELLO = (m.Gossip((), ()),)
LATER = RetireNode("none")
"""An entry that changes nothing but the list of failures."""


# -- time --------------------------------------------------------------------------------------------


def test_actions_run_in_the_order_of_their_time_and_time_passes_to_the_end() -> None:
    scheduler, seen = Scheduler(1), list[tuple[int, str]]()
    for time_ms in (30, 10, 20):
        scheduler.at(time_ms, lambda: seen.append((scheduler.now_ms, "x")))
    scheduler.at(41, lambda: seen.append((scheduler.now_ms, "too late")))

    scheduler.run(40)

    assert seen == [(10, "x"), (20, "x"), (30, "x")]
    assert scheduler.now_ms == 40


def test_actions_of_one_millisecond_run_in_an_order_that_depends_on_the_seed() -> None:
    def order(seed: int) -> list[int]:
        scheduler, seen = Scheduler(seed), list[int]()
        for number in range(10):
            scheduler.at(5, seen.append, number)
        scheduler.run(5)
        return seen

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_a_past_time_means_now() -> None:
    scheduler, seen = Scheduler(1), list[int]()
    scheduler.at(10, lambda: scheduler.at(3, lambda: seen.append(scheduler.now_ms)))

    scheduler.run(20)

    assert seen == [10]


def test_streams_are_apart() -> None:
    assert stream(1, "a").random() == stream(1, "a").random()
    assert len({stream(seed, label).random() for seed in (1, 2) for label in "ab"}) == 4


@given(st.integers(), st.sampled_from((2, 20, 400, 2_000)), st.integers(0, 60_000))
def test_clocks_stay_within_half_the_bound_and_know_when_they_show_a_time(seed: int, skew_ms: int,
                                                                         true_ms: int) -> None:
    clock = draw_clock(Random(seed), skew_ms, 60_000)
    shown_ms = clock.read(true_ms)

    assert abs(shown_ms - WALL_START_MS - true_ms) <= skew_ms / 2
    assert clock.read(true_ms + 1) >= shown_ms
    assert clock.read(clock.when(shown_ms)) >= shown_ms > clock.read(clock.when(shown_ms) - 1)


# -- network -----------------------------------------------------------------------------------------


class Ear:
    """An endpoint that notes what it hears, and when."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.heard: list[tuple[int, str]] = []
        self._scheduler = scheduler

    def __call__(self, sender: str, messages: Envelope) -> None:
        self.heard.append((self._scheduler.now_ms, sender))


def network(weather: Weather = CALM) -> tuple[Scheduler, Network, Ear]:
    scheduler = Scheduler(1)
    links, ear = Network(scheduler, 1, weather), Ear(scheduler)
    links.attach("b", ear)
    return scheduler, links, ear


def send_many(weather: Weather, count: int = 1_000) -> Ear:
    scheduler, links, ear = network(weather)
    for _ in range(count):
        links.send("a", "b", HELLO)
    scheduler.run(100_000)
    return ear


def test_a_calm_link_delivers_everything_once_after_its_latency() -> None:
    ear = send_many(Weather(latency_min_ms=3, latency_mean_ms=2.0, tail=0.0))

    assert len(ear.heard) == 1_000
    assert min(at_ms for at_ms, _ in ear.heard) == 3
    assert 3 < max(at_ms for at_ms, _ in ear.heard) < 40


def test_links_lose_and_repeat_as_often_as_they_should() -> None:
    assert 200 < 1_000 - len(send_many(Weather(loss=0.25)).heard) < 300
    assert 200 < len(send_many(Weather(repeat=0.25)).heard) - 1_000 < 300


def test_the_tail_is_heavy() -> None:
    slow = [at_ms for at_ms, _ in send_many(Weather(latency_mean_ms=0.0, tail=0.05)).heard if at_ms > 1]

    assert 20 < len(slow) < 90
    assert min(slow) == 51


def test_latency_lets_messages_overtake() -> None:
    scheduler, links, _ = network(Weather(latency_mean_ms=10.0))
    order: list[int] = []
    links.attach("b", lambda sender, messages: order.append(messages[0].request))  # type: ignore[attr-defined]
    for number in range(20):
        links.send("a", "b", (m.Greet(number),))
    scheduler.run(1_000)

    assert sorted(order) == list(range(20)) != order


def test_what_passes_between_client_and_node_is_never_repeated() -> None:
    scheduler, links, ear = network(Weather(repeat=1.0))
    links.attach("client", ear, is_client=True)
    links.send("client", "b", HELLO)
    links.send("b", "client", HELLO)
    scheduler.run(100)

    assert len(ear.heard) == 2


def test_a_cut_goes_one_way_and_swallows_what_is_under_way() -> None:
    scheduler, links, ear = network()
    links.attach("a", ear)
    links.send("a", "b", HELLO)
    links.cut(one_way(["a"], ["b"]))
    links.send("a", "b", HELLO)
    links.send("b", "a", HELLO)
    scheduler.run(1_000)

    assert [sender for _, sender in ear.heard] == ["b"]


def test_cuts_add_up_and_mending_takes_one_back() -> None:
    _, links, _ = network()
    links.cut(between(["a"], ["b"]))
    links.cut([("a", "b")])
    links.mend(between(["a"], ["b"]))

    assert links.is_cut(("a", "b"))
    assert not links.is_cut(("b", "a"))

    links.mend_all()

    assert not links.is_cut(("a", "b"))


def test_a_clogged_link_holds_back_and_loses_nothing() -> None:
    scheduler, links, ear = network()
    links.clog(("a", "b"), 500)
    links.send("a", "b", HELLO)
    scheduler.run(1_000)

    assert len(ear.heard) == 1
    assert ear.heard[0][0] > 500


def test_halves_part_all_pairs_of_two_groups() -> None:
    names = ["a", "b", "c", "d", "e"]
    links = halves(Random(3), names)
    side = {name for name in names if ("a", name) not in links}

    assert len(links) == 2 * len(side) * (5 - len(side))
    assert 0 < len(side) < 5


# -- store -------------------------------------------------------------------------------------------


def test_staged_writes_are_read_and_a_crash_takes_them_back() -> None:
    store = MemoryStore()
    store.put_many("body", [(b"a", b"1"), (b"b", b"2"), (b"d", b"4")])
    store.commit()
    store.put_many("body", [(b"a", b"x"), (b"c", b"3")])
    assert store.pop_many("body", [b"b", b"z"]) == [b"2", None]

    assert store.scan("body", b"a", b"z", 10) == [(b"a", b"x"), (b"c", b"3"), (b"d", b"4")]
    assert store.committed("body", b"a") == b"1"
    assert store.committed("body", b"c") is None
    assert store.is_staged

    store.crash()

    assert store.rows("body") == {b"a": b"1", b"b": b"2", b"d": b"4"}
    assert not store.is_staged


def test_scans_are_half_open_and_seeks_are_closed() -> None:
    store = MemoryStore()
    store.put_many("ready", [(key, b"") for key in (b"a", b"b", b"c")])

    assert [key for key, _ in store.scan("ready", b"a", b"c", 10)] == [b"a", b"b"]
    assert [key for key, _ in store.scan("ready", b"a", b"c", 1)] == [b"a"]
    assert [key for key, _ in store.walk("ready", b"b", b"d")] == [b"b", b"c"]
    assert store.is_any_between("ready", b"bb", b"c")
    assert not store.is_any_between("ready", b"aa", b"az")
    assert store.get_many("ready", [b"a", b"x"]) == {b"a": b""}


steps = st.lists(st.one_of(
    st.tuples(st.just("put"), st.integers(0, 5), st.binary(max_size=2)),
    st.tuples(st.just("pop"), st.integers(0, 5), st.just(b"")),
    st.tuples(st.sampled_from(("commit", "crash")), st.just(0), st.just(b""))), max_size=40)


@given(steps)
def test_the_store_is_a_dict_that_remembers_its_last_commit(moves: list[tuple[str, int, bytes]]) -> None:
    store, now, saved = MemoryStore(), dict[bytes, bytes](), dict[bytes, bytes]()
    for move, number, value in moves:
        key = bytes([number])
        if move == "put":
            store.put_many("log", [(key, value)])
            now[key] = value
        elif move == "pop":
            assert store.pop_many("log", [key]) == [now.pop(key, None)]
        elif move == "commit":
            store.commit()
            saved = dict(now)
        else:
            store.crash()
            now = dict(saved)

    assert store.rows("log") == now
    assert {key: store.committed("log", key) for key in map(bytes, ([n] for n in range(6)))
            if store.committed("log", key) is not None} == saved


def test_a_damaged_record_is_given_to_nobody_but_the_checkers_until_it_is_replaced() -> None:
    store = MemoryStore()
    store.put_many("log", [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    store.commit()

    assert store.damage("log", b"b") and not store.damage("log", b"x")
    for read in (lambda: store.get("log", b"b"), lambda: store.get_many("log", [b"a", b"b"]),
                 lambda: store.pop_many("log", [b"b"]), lambda: store.scan("log", b"", b"x", 9),
                 lambda: list(store.walk("log", b"", b"x"))):
        with pytest.raises(Corrupt):
            read()
    assert store.scan("log", b"", b"b", 9) == [(b"a", b"1")]
    assert store.committed("log", b"b") == b"2"

    store.put_many("log", [(b"b", b"4")])
    assert store.get("log", b"b") == b"4"
    assert list(store.changes("log")) == [("log", b"b", None, b"4")]
    store.crash()
    with pytest.raises(Corrupt):
        store.get("log", b"b")


def test_purging_drops_what_is_damaged_chunk_by_chunk() -> None:
    store = MemoryStore()
    keys = [b"%d" % number for number in range(7)]
    store.put_many("log", [(key, b"") for key in keys])
    store.commit()
    for key in (b"0", b"3", b"6"):
        store.damage("log", key)

    dropped, start = list[bytes](), b""
    while start is not None:
        gone, start = store.purge("log", start, b"6", 2)
        dropped += gone
    assert dropped == [b"0", b"3"]
    store.commit()
    store.crash()
    assert store.scan("log", b"", b"6", 9) == [(key, b"") for key in (b"1", b"2", b"4", b"5")]
    assert store.purge("log", b"", b"\xff", 99) == ([b"6"], None)


def test_a_store_can_be_wiped_and_turned_back_to_what_was_committed() -> None:
    store = MemoryStore()
    store.put_many("log", [(b"a", b"1"), (b"b", b"2")])
    store.commit()
    store.put_many("log", [(b"a", b"9"), (b"c", b"3"), (b"d", b"4")])
    store.pop_many("log", [b"b", b"d"])

    snapshot = store.snapshot()
    store.wipe()
    assert store.rows("log") == {} and not store.is_staged
    store.restore(snapshot)

    assert store.rows("log") == {b"a": b"1", b"b": b"2"}


def test_digests_tell_stores_apart() -> None:
    one, other = MemoryStore(), MemoryStore()
    one.put_many("log", [(b"a", b"bc")])
    other.put_many("log", [(b"ab", b"c")])

    assert one.digest() != other.digest()
    assert one.digest(("body",)) == other.digest(("body",))


# -- registry ----------------------------------------------------------------------------------------


class Service:
    """A ZooKeeper and two clients of it, n1 and n2, each with a pulse, settled."""

    def __init__(self, **options: float) -> None:
        self.scheduler = Scheduler(4)
        self.registry = Registry(self.scheduler, Random(5), attrs.evolve(RegistryOptions(), **options))
        self.heard: dict[str, list[News]] = {"n1": [], "n2": []}
        self.n1, self.n2 = self.join("n1"), self.join("n2")
        self.wait(1_000)

    def join(self, name: str, boot: int = 1) -> Connection:
        """A client that lets a pulse stand in each of its sessions."""
        member, lives, standing = Member(name, "h", 1, f"{name}.{boot}"), count(1), dict[int, None]()

        def deliver(event: News) -> None:
            self.heard[name].append(event)
            if event == SessionChanged(Session.CONNECTED) and connection.session not in standing:
                standing[connection.session] = None
                self.registry.request(connection, SetPulse(f"{name}.{boot}~{next(lives)}", member))
        connection = self.registry.connect(member, deliver, boot)
        return connection

    def alive(self) -> list[str]:
        """The boots whose pulse stands."""
        return sorted(life.partition("~")[0] for life in self.registry.log.pulses)

    def append(self, connection: Connection, seq: int, command: Command = LATER) -> None:
        self.registry.request(connection, Append(seq, Entry(connection.member.name, seq, command).encode()))

    def read(self, connection: Connection, start: int, wait_ms: int = 500) -> EntriesRead:
        """What a reading comes to."""
        self.news(connection.member.name)
        self.registry.request(connection, ReadEntries(start, 9, True, wait_ms))
        self.wait(wait_ms + 1_000)
        return next(event for event in self.news(connection.member.name) if isinstance(event, EntriesRead))

    def wait(self, time_ms: int) -> None:
        self.scheduler.run(self.scheduler.now_ms + time_ms)

    def news(self, name: str) -> list[News]:
        news, self.heard[name] = list(self.heard[name]), self.heard[name]
        self.heard[name].clear()
        return news

    def sessions(self, name: str) -> list[Session]:
        return [event.session for event in self.news(name) if isinstance(event, SessionChanged)]

    def swap(self, connection: Connection, version: int, write_id: str) -> None:
        document = Document(version + 2, connection.member.name, "boot", seats_of(("n1", "n2")), write_id)
        self.registry.request(connection, SwapDocument(0, version, document))


def outcomes(events: list[News]) -> list[Outcome]:
    return [event.outcome for event in events if isinstance(event, DocumentSwapped)]


def test_a_client_hears_of_its_session_and_then_of_its_pulse() -> None:
    service = Service()

    assert service.news("n2") == [SessionChanged(Session.CONNECTED), PulseStands("n2.1~1")]
    assert service.alive() == ["n1.1", "n2.1"]


def test_a_short_cut_suspends_and_costs_nothing_else() -> None:
    service = Service(session_ms=3_000)
    service.news("n1")
    service.registry.cut(service.n1)
    service.wait(1_990)
    assert service.sessions("n1") == [Session.SUSPENDED]
    service.registry.mend(service.n1)
    service.wait(500)

    assert service.news("n1") == [SessionChanged(Session.CONNECTED), PulseStands("n1.1~1")]
    assert service.registry.counts["session ended"] == 0


def test_a_long_cut_loses_the_session_and_the_client_learns_it_only_afterwards() -> None:
    service = Service(session_ms=3_000)
    service.news("n1"), service.news("n2")
    service.registry.cut(service.n1)
    service.wait(10_000)
    assert service.sessions("n1") == [Session.SUSPENDED]
    assert service.alive() == ["n2.1"]
    service.registry.mend(service.n1)
    service.wait(500)

    assert service.sessions("n1") == [Session.LOST, Session.CONNECTED]
    assert service.alive() == ["n1.1", "n2.1"]


def test_a_process_that_stood_still_learns_late_that_it_is_out() -> None:
    service = Service(session_ms=1_000)
    service.news("n1"), service.news("n2")
    service.registry.silence(service.n1)
    service.wait(3_000)
    assert service.sessions("n1") == []
    assert service.alive() == ["n2.1"]
    service.registry.wake(service.n1)
    service.wait(500)

    assert service.sessions("n1") == [Session.SUSPENDED, Session.LOST, Session.CONNECTED]


def test_a_dead_process_goes_by_its_timeout_or_when_its_successor_comes() -> None:
    service = Service(session_ms=1_000)
    service.registry.close(service.n1)
    service.wait(500)
    assert service.alive() == ["n1.1", "n2.1"]
    service.join("n1", boot=2)
    service.wait(50)
    assert service.alive() == ["n1.2", "n2.1"]
    assert service.registry.counts["pulse of a former life removed"] == 1
    service.registry.close(service.n2)
    service.wait(5_000)

    assert service.alive() == ["n1.2"]
    assert service.registry.counts["session ended"] == 2


def test_the_server_may_end_a_session_under_a_healthy_client() -> None:
    service = Service()
    service.news("n1")
    service.registry.expire(service.n1)
    service.wait(1_000)

    assert service.sessions("n1") == [Session.SUSPENDED, Session.LOST, Session.CONNECTED]


def test_a_swap_wins_once_per_version() -> None:
    service = Service()
    service.news("n1"), service.news("n2")
    service.swap(service.n1, -1, "a")
    service.wait(100)
    service.swap(service.n2, -1, "b")
    service.registry.request(service.n2, ReadDocument(0))
    service.wait(100)

    assert outcomes(service.news("n1")) == [Outcome.WON]
    news = service.news("n2")
    assert outcomes(news) == [Outcome.LOST]
    assert [event.document.write_id for event in news if isinstance(event, DocumentRead)] == ["a"]
    assert [write.document.write_id for write in service.registry.writes] == ["a"]


def test_a_missing_document_reads_as_nobody() -> None:
    service = Service()
    service.registry.request(service.n1, ReadDocument(0))
    service.wait(100)

    assert DocumentRead(0, -1, NOBODY) in service.news("n1")


def test_uncertain_swaps_are_of_both_kinds() -> None:
    service = Service(ambiguity=1.0)
    for number in range(40):
        version = service.registry.documents.get(0, (-1, NOBODY))[0]
        service.swap(service.n1, version, f"w{number}")
        service.wait(3_000)

    assert outcomes(service.news("n1")) == [Outcome.UNCERTAIN] * 40
    assert 5 < len(service.registry.writes) < 35


def read_version(service: Service, connection: Connection) -> int:
    service.news(connection.member.name)
    service.registry.request(connection, ReadDocument(0))
    service.wait(100)
    return next(event.version for event in service.news(connection.member.name) if isinstance(event, DocumentRead))


def test_a_document_is_as_new_as_it_is_at_the_server_that_is_behind_too(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    service.swap(service.n1, -1, "first")
    service.wait(10_000)
    service.registry.lag("n2", 5_000)
    service.swap(service.n1, 0, "second")
    service.wait(100)

    monkeypatch.setattr(registry_model, "steps_of", lambda effect: (Step.GET,))
    assert read_version(service, service.n2) == 0, "without a sync it shows what its server has"
    assert read_version(service, service.n1) == 1
    monkeypatch.undo()
    assert read_version(service, service.n2) == 1
    monkeypatch.setattr(registry_model, "steps_of", lambda effect: (Step.GET,))
    assert read_version(service, service.n2) == 1, "never an older one after a newer one"
    assert service.registry.counts["document read at a server that was behind"] == 3


def test_behind_a_cut_a_read_fails_and_a_swap_is_uncertain_and_not_applied() -> None:
    service = Service()
    service.news("n1")
    service.registry.cut(service.n1)
    service.registry.request(service.n1, ReadDocument(0))
    service.swap(service.n1, -1, "a")
    service.wait(2_500)

    news = service.news("n1")
    assert ReadFailed(0) in news
    assert outcomes(news) == [Outcome.UNCERTAIN]
    assert service.registry.writes == []


def test_a_frozen_server_applies_late_what_was_uncertain_before() -> None:
    service = Service(session_ms=3_000)
    service.news("n1")
    service.registry.freeze()
    service.swap(service.n1, -1, "a")
    service.wait(2_500)
    assert outcomes(service.news("n1")) == [Outcome.UNCERTAIN]
    assert service.registry.writes == []
    service.registry.thaw()
    service.registry.request(service.n1, ReadDocument(0))
    service.wait(500)

    assert [write.document.write_id for write in service.registry.writes] == ["a"]
    assert [event.document.write_id for event in service.news("n1")
            if isinstance(event, DocumentRead)] == ["a"]


def test_a_stalled_server_applies_late_while_others_go_on() -> None:
    service = Service(session_ms=3_000)
    for attempt in range(12):
        service.registry.cut(service.n1)
        version = service.registry.documents.get(0, (-1, NOBODY))[0]
        service.swap(service.n1, version, f"n1 {attempt}")
        service.wait(100)
        if attempt % 2:
            service.swap(service.n2, version, f"n2 {attempt}")
        service.wait(100)
        service.registry.mend(service.n1)
        service.wait(3_000)

    leaders = [write.document.leader for write in service.registry.writes]
    assert leaders.count("n2") == 6
    assert 0 < leaders.count("n1") < 6
    assert service.registry.counts["swap uncertain, applied late"] == leaders.count("n1")


def test_a_cut_loses_the_answer_of_a_swap_that_was_applied() -> None:
    service = Service()
    service.news("n1")
    service.swap(service.n1, -1, "a")
    while not service.registry.writes:
        service.wait(1)
    service.registry.cut(service.n1)
    service.wait(2_500)

    assert outcomes(service.news("n1")) == [Outcome.UNCERTAIN]


def watched(service: Service) -> str:
    """n2 watches the pulse of n1, whose life is given."""
    life, = [life for life in service.registry.log.pulses if life.startswith("n1")]
    service.registry.request(service.n2, WatchPulses((life,)))
    service.wait(100)
    service.news("n2")
    return life


def test_a_watch_tells_once_that_a_pulse_is_gone() -> None:
    service = Service()
    life = watched(service)
    service.registry.expire(service.n1)
    service.wait(1_000)

    assert service.news("n2") == [PulseGone(life)]


def test_a_watch_that_nobody_could_be_told_by_is_armed_again_and_finds_the_pulse_gone() -> None:
    service = Service(session_ms=3_000, watch_ms=0)
    life = watched(service)
    service.registry.expire(service.n1)
    service.registry.freeze()
    service.wait(2)
    service.registry.thaw()
    service.wait(1_000)

    assert PulseGone(life) in service.news("n2")


def test_a_pulse_that_a_server_does_not_know_yet_is_not_taken_for_gone() -> None:
    service = Service(watch_ms=0)
    service.registry.lag("n2", 60_000)
    service.wait(2_000)
    service.registry.expire(service.n1)
    service.wait(500)
    life, = [life for life in service.registry.log.pulses if life.startswith("n1")]
    service.news("n2")
    service.registry.request(service.n2, WatchPulses((life,)))
    service.wait(100)
    assert service.news("n2") == []
    assert service.registry.counts["pulse hidden by a server that is behind"] == 1
    service.registry.lag("n2", 3_000)
    service.registry.log.drop_pulse(life)
    service.wait(1_000)
    assert service.news("n2") == []
    service.wait(3_000)

    assert service.news("n2") == [PulseGone(life)]


def test_a_pulse_that_stood_is_not_made_anew() -> None:
    service = Service()
    service.news("n1")
    service.registry.log.drop_pulse("n1.1~1")
    service.wait(500)

    assert service.news("n1") == [PulseGone("n1.1~1")]
    assert service.alive() == ["n2.1"]


def test_an_entry_wakes_who_waits_for_it_and_a_reading_ends_when_its_time_is_up() -> None:
    service = Service()
    assert service.read(service.n2, 0) == EntriesRead(0, (), is_end=True)
    service.registry.request(service.n2, ReadEntries(0, 9))
    service.wait(100)
    service.append(service.n1, 0)
    service.wait(500)

    assert Appended(0, 0) in service.news("n1")
    assert service.news("n2") == [EntriesRead(0, ((0, service.registry.log.entries[0]),), is_end=True)]


def test_who_reads_at_a_server_that_is_behind_sees_entries_later_and_never_fewer_than_before() -> None:
    service = Service(watch_ms=0)
    service.append(service.n1, 0)
    service.wait(6_000)
    service.registry.lag("n2", 5_000)
    service.append(service.n1, 1)
    service.wait(100)
    found = service.read(service.n2, 0)
    assert len(found.entries) == 1 and found.is_end
    assert service.registry.counts["entries hidden by a server that is behind"] > 0
    assert service.read(service.n2, 1).entries == ()
    service.wait(5_000)

    assert len(service.read(service.n2, 1).entries) == 1


def test_who_reads_what_was_collected_is_told_where_the_entries_go_on() -> None:
    service = Service()
    for seq in range(5):
        service.append(service.n1, seq)
        service.wait(100)
    log = service.registry.log
    service.registry.request(service.n1, WriteOrigin(3, log.reference.at(3).text(), 4))
    service.wait(100)

    assert OriginWritten(3, True) in service.news("n1")
    assert [*log.entries] == [4] and log.origin[0] == 3
    assert service.read(service.n2, 1) == EntriesRead(1, ((4, log.entries[4]),), is_missing=True)
    assert service.registry.violations == []


def test_doubtful_appends_are_of_both_kinds() -> None:
    service = Service(doubt=1.0)
    for seq in range(40):
        service.append(service.n1, seq)
        service.wait(5_000)

    counts = service.registry.counts
    assert counts["append uncertain, applied"] > 5 and counts["append uncertain, not applied"] > 5
    assert counts["append uncertain, applied late"] > 0
    assert sum(isinstance(event, AppendUncertain) for event in service.news("n1")) > 20


def test_with_a_lost_session_all_wishes_are_void() -> None:
    service = Service(session_ms=1_000)
    service.registry.request(service.n1, ReadEntries(0, 9, True, 60_000))
    service.wait(100)
    service.registry.expire(service.n1)
    service.wait(100)
    assert service.n1.wishes.outstanding == {}
    service.news("n1")
    service.append(service.n2, 0)
    service.wait(1_000)

    assert service.news("n1") == []


def test_what_nobody_may_ask_for_is_found_out() -> None:
    service = Service()
    for _ in range(2):
        service.registry.request(service.n1, ReadEntries(0, 9))
    service.registry.request(service.n2, DropPulse())
    service.wait(100)
    service.append(service.n2, 0)

    assert service.registry.violations == ["n1 asks for a second ReadEntries", "n2 appends without a pulse"]


def test_who_was_answered_what_a_lost_session_had_asked_may_ask_on_once() -> None:
    service = Service()
    service.registry.request(service.n1, ReadEntries(0, 10, is_waiting=False), True)
    service.wait(100)
    for start in (0, 1):
        service.registry.request(service.n1, ReadEntries(start, 10, is_waiting=False))
    assert service.registry.violations == []

    service.registry.request(service.n1, ReadEntries(2, 10, is_waiting=False))
    assert service.registry.violations == ["n1 asks for a second ReadEntries"]


def test_an_eviction_of_one_that_lives_is_found_out() -> None:
    service = Service()
    service.append(service.n1, 0, Leave("n2.1~1"))
    service.wait(100)

    assert service.registry.violations == ["entry 0: n1 evicts n2.1~1, which lives"]


def test_an_entry_of_a_node_that_is_forgotten_is_swept_up_once_no_partition_needs_it() -> None:
    service = Service(session_ms=500)
    service.registry.close(service.n2)
    service.wait(2_000)
    for _ in range(2):
        assert service.registry.registration("n2") is not None
        service.registry.request(service.n1, SweepEntries(("n1",)))
        service.wait(100)
        service.registry.documents[0] = (0, Document(1, "n1", "boot", seats_of(("n1",)), "w"))

    assert service.registry.registration("n2") is None
    assert service.registry.registration("n1") is not None


# -- trace -------------------------------------------------------------------------------------------


def test_the_trace_hash_depends_on_every_line_and_keeps_the_last_ones() -> None:
    one, other = Trace(), Trace()
    for trace in (one, other):
        trace.note(1, "a", "->", "b", HELLO[0])
    assert one.hash == other.hash
    other.note(2, "a", "crash", "")

    assert one.hash != other.hash
    assert other.last(1) == ["      2 ms  a         crash"]


@pytest.mark.parametrize("blob", [b"", b"x"])
def test_the_trace_hash_depends_on_the_stores(blob: bytes) -> None:
    trace = Trace()
    trace.absorb(blob)

    assert (trace.hash == Trace().hash) is not bool(blob)
