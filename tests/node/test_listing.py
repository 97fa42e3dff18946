"""Listings of unique names, whose ids are as old as their windows: by the time at which they were asked for.
And many listings at once: between their pages a node does what else it is asked for."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from node.test_reading import NOW_MS, PARTITIONS, CountingStore, mask, pages
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.events import Asked, Received, Ticked
from skuld_py.model.history import CANCELLED
from skuld_py.model.state import State
from skuld_py.node.reads import listing
from skuld_py.node.reads import pages as waiting
from skuld_py.node.reads.listing import PASSED_ROWS, Lister, listed
from skuld_py.partition.data import windows
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.replica import Replica

DAY_MS, MINUTE_MS = 86_400_000, 60_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2


def replicas_of(store: CountingStore) -> list[Replica]:
    return [Replica(partition, store, 100) for partition in range(PARTITIONS)]


def put(replicas: list[Replica], made_ms: int) -> bytes:
    """A task without a name."""
    task_id, = ids.IdMint(1).mint(made_ms, 1, made_ms // MINUTE_MS % PARTITIONS)
    at = replicas[ids.partition_of(task_id, len(replicas))]
    at.store_tasks(NOW_MS, Header("q").encode(), [task_id], [b""])
    return task_id


def put_named(replicas: list[Replica], name: str, made_ms: int, window_ms: int) -> bytes:
    body = Body(Header("q", window_ms=window_ms), made_ms=made_ms, unique=name)
    task_id = ids.named_id("q", name, made_ms // window_ms * window_ms, "")
    at = replicas[ids.partition_of(task_id, len(replicas))]
    at.store_tasks(NOW_MS, body.header.encode(), [task_id], [body.rest])
    return task_id


def one_page(replica: Replica, since_ms: int, most: int = 7) -> m.Listed:
    return listed(NOW_MS, [0], [replica], DEFAULT_LIMITS, m.List(1, "", b"", most, 0, since_ms))


@pytest.mark.parametrize("states", [0, mask(State.WAITING)])
@pytest.mark.parametrize(("since", "until"), [
    (NOON_MS + 10 * MINUTE_MS, 0), (NOON_MS, 0), (1, NOON_MS + 2),
    (NOON_MS + 1, NOON_MS + 15 * MINUTE_MS), (0, NOON_MS + 5 * MINUTE_MS)])
def test_names_are_listed_by_the_time_at_which_they_were_asked_for(since: int, until: int, states: int) -> None:
    """Though they stand, and pages go on, by their ids. Other tasks of the time of these ids are none of them."""
    replicas = replicas_of(CountingStore())
    asked = {put_named(replicas, f"{made_ms}", made_ms, window_ms): made_ms for window_ms in (DAY_MS, 420_000, 1)
             for made_ms in range(NOON_MS, NOON_MS + 30 * MINUTE_MS, 5 * MINUTE_MS)}
    for made_ms in (NOON_MS - DAY_MS // 2, *range(NOON_MS, NOON_MS + 30 * MINUTE_MS, MINUTE_MS)):
        asked[put(replicas, made_ms)] = made_ms

    found = [task_id for page in pages(replicas, m.List(1, "", b"", 3, states, since, until))
             for task_id in ids.split(page.ids)]
    assert found == sorted(task_id for task_id, made_ms in asked.items()
                           if since <= made_ms < (until or made_ms + 1))
    assert len(found) > 3


def test_a_name_that_was_cancelled_is_found_by_the_time_of_its_asking_too() -> None:
    replicas = replicas_of(CountingStore())
    early, late = (put_named(replicas, name, NOON_MS + at, DAY_MS) for name, at in (("a", 0), ("b", 9)))
    for task_id in (early, late):
        replicas[ids.partition_of(task_id, PARTITIONS)].mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS)])

    found = pages(replicas, m.List(1, "", b"", 7, mask(State.CANCELLED), NOON_MS + 5))
    assert b"".join(page.ids for page in found) == late


def test_what_was_asked_for_since_is_found_without_a_look_at_what_was_not() -> None:
    store = CountingStore()
    replica = Replica(0, store, 100)
    for at in range(1_000):
        put([replica], NOON_MS - 1_000 + at)
    named = put_named([replica], "n", NOON_MS + 9, DAY_MS)
    store.walked = store.scanned = 0

    page = one_page(replica, NOON_MS + 5)
    assert (page.ids, page.upto) == (named, b"")
    assert store.walked <= 2 and not store.scanned


def test_of_very_many_windows_all_that_may_be_open_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOWS_MAX", 2)
    replica = Replica(0, CountingStore(), 100)
    lengths = (DAY_MS, 7_000, 11_000, 13_000, 17_000)
    made = [put_named([replica], f"{window_ms}", NOON_MS + 9, window_ms) for window_ms in lengths]
    assert all(ids.time_of(task_id) < NOON_MS + 9 for task_id in made)

    assert ids.split(one_page(replica, NOON_MS + 9).ids) == sorted(made)


def test_a_store_from_before_windows_were_noted_is_gone_through_once() -> None:
    store = CountingStore()
    replicas = replicas_of(store)
    for number in range(9):
        put_named(replicas, f"{number}", NOON_MS, (DAY_MS, 7_000)[number % 2])
        put(replicas, NOON_MS + number)
    rows = store.rows("window")
    assert len(rows) > 2
    store.pop_many("window", list(rows))

    windows.make_windows(store, PARTITIONS, rows=2)
    assert store.rows("window") == rows
    store.pop_many("window", list(rows))
    windows.make_windows(store, PARTITIONS)
    assert store.rows("window") == {}


# -- many at once ----------------------------------------------------------------------------------


@pytest.fixture
def machines() -> Machines:
    made = Machines()
    made.pass_time(3_000)
    made.ask(made.names[0], m.Enqueue(1, 3, (made.batch("q", 4),)))
    made.pass_time(100)
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Lister]:
    """The pages of listings read so far; each is a turn's work."""
    found: list[Lister] = []
    read = Lister.page

    def noting(self: Lister) -> tuple[bytes, list[tuple[bytes, bytes, bytes]]]:
        found.append(self)
        return read(self)
    monkeypatch.setattr(Lister, "page", noting)
    monkeypatch.setattr(waiting, "SCAN_ROWS", 1)
    return found


def asked(machines: Machines, *questions: m.Message) -> list[Received]:
    return [Received(machines.names[1], question) for question in questions]


def told(machines: Machines) -> list[m.Message]:
    """What the second node, as which the tests ask, was answered since the last look."""
    found = [event.message for name, event in machines.flying
             if name == machines.names[1] and isinstance(event, Received)
             and isinstance(event.message, (m.Listed, m.Summed))]
    machines.flying.clear()
    return found


def requests(machines: Machines) -> list[int]:
    return [getattr(message, "request", 0) for message in told(machines)]


def test_between_two_pages_a_node_does_what_else_it_is_asked(machines: Machines, reads: list[Lister]) -> None:
    name = machines.names[0]
    machines.give(name, *asked(machines, *[m.List(number, "q", b"", number) for number in (1, 2, 3)]))
    assert requests(machines) == [1] and machines.nodes[name].deadline() == 0

    machines.give(name, *asked(machines, m.Get(9, bytes(20))), Asked(b"client", m.Greet(5)))
    assert any(isinstance(event, Received) and isinstance(event.message, m.Got) for _, event in machines.flying)
    assert isinstance(machines.answers_to(b"client")[-1], m.Greeted)
    assert requests(machines) == [2] and len(reads) == 2

    machines.give(name, Ticked())
    assert requests(machines) == [3] and machines.nodes[name].deadline() > 0


def test_short_pages_are_answered_in_one_turn(machines: Machines) -> None:
    machines.give(machines.names[0], *asked(machines, *[m.List(number, "q", b"", number) for number in (1, 2, 3)]))
    assert requests(machines) == [1, 2, 3]


def test_equal_questions_share_a_page(machines: Machines, reads: list[Lister]) -> None:
    equal = [m.List(number, "q", b"", 9) for number in range(1, 6)]
    machines.give(machines.names[0], *asked(machines, m.List(7, "q", b"", 8), *equal))
    assert requests(machines) == [7]

    machines.give(machines.names[0], *asked(machines, m.List(6, "q", b"", 9)))
    answers = told(machines)
    assert [answer.request for answer in answers if isinstance(answer, m.Listed)] == [1, 2, 3, 4, 5, 6]
    assert len({answer.ids for answer in answers if isinstance(answer, m.Listed)}) == 1 and len(reads) == 2


def test_a_page_that_tells_much_is_shared_by_few(
        machines: Machines, reads: list[Lister], monkeypatch: pytest.MonkeyPatch) -> None:
    name, equal = machines.names[0], [m.List(number, "q", b"", 9) for number in range(1, 6)]
    monkeypatch.setattr(waiting, "SHARED_ROWS", 10)
    machines.give(name, *asked(machines, *equal))
    assert requests(machines) == [1, 2], "four tasks each"

    monkeypatch.setattr(waiting, "SHARED_ROWS", 1)
    machines.give(name, Ticked())
    assert requests(machines) == [3], "but by one at least"


def test_what_waits_is_asked_for_once_and_forgotten_when_its_asker_has_given_up(
        machines: Machines, reads: list[Lister]) -> None:
    name, (first, again, late) = machines.names[0], [m.List(number, "q", b"", number) for number in (1, 2, 3)]
    machines.give(name, *asked(machines, first, again, again, late))
    machines.give(name, *asked(machines, again))
    machines.give(name, Ticked())
    machines.give(name, Ticked())
    assert requests(machines) == [1, 2, 3] and len(reads) == 3

    machines.give(name, *asked(machines, first, again))
    machines.now_ms += machines.timing.request_ms - 1
    machines.give(name, *asked(machines, late, again))
    assert requests(machines) == [1, 2], "nobody has given up yet"
    machines.now_ms += machines.timing.request_ms
    machines.give(name, Ticked())
    assert requests(machines) == [] and machines.nodes[name].deadline() > 0


def test_a_question_asked_again_is_as_old_as_it_was(machines: Machines, reads: list[Lister]) -> None:
    name, (first, again) = machines.names[0], [m.List(number, "q", b"", number) for number in (1, 2)]
    machines.give(name, *asked(machines, first, again))
    machines.now_ms += machines.timing.request_ms
    machines.give(name, *asked(machines, again))
    assert requests(machines) == [1]


def test_beyond_its_places_a_node_takes_in_no_question(
        machines: Machines, reads: list[Lister], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PLACES", 2)
    name, questions = machines.names[0], [m.List(number, "q", b"", number) for number in (1, 2, 3)]
    machines.give(name, *asked(machines, *questions))
    machines.give(name, Ticked())
    machines.give(name, Ticked())
    assert requests(machines) == [1, 2]

    machines.give(name, *asked(machines, questions[2]))
    assert requests(machines) == [3], "when it was asked again"


def test_counts_of_all_queues_wait_with_the_listings_and_of_one_do_not(
        machines: Machines, reads: list[Lister]) -> None:
    name = machines.names[0]
    machines.give(name, *asked(machines, m.List(1, "q", b"", 9), m.Sum(2, 1, "", ""), m.Sum(3, 1, "", ""),
                               m.Sum(2, 2, "", "a"), m.Sum(4, 1, "q", ""), m.Sum(5, 7, "", "")))
    assert requests(machines) == [4, 1]

    machines.give(name, Ticked())
    assert [(answer.request, answer.turn) for answer in told(machines) if isinstance(answer, m.Summed)] == [(2, 2)]
    machines.give(name, Ticked())
    answers = [answer for answer in told(machines) if isinstance(answer, m.Summed)]
    assert [(answer.request, answer.turn) for answer in answers] == [(3, 1), (5, 7)]
    assert answers[0].rows == answers[1].rows


def test_so_many_listings_are_open_at_a_node_and_so_many_of_a_client(machines: Machines) -> None:
    node = machines.nodes[machines.names[0]]
    node.view.limits = attrs.evolve(node.view.limits, listings=3, listings_each=2)
    machines.is_lost = lambda message: isinstance(message, (m.List, m.Sum))

    def codes(client: bytes) -> list[str]:
        return [message.code for message in machines.answers_to(client) if isinstance(message, m.Failed)]
    for client in (b"one", b"two"):
        for question in (m.List(1, "q", b"", 9), m.Count(2, ""), m.List(3, "q", b"", 9), m.Count(4, "q")):
            machines.ask(node.view.me.name, question, client)
    assert (codes(b"one"), codes(b"two")) == (["busy"], ["busy", "busy"])

    machines.pass_time(machines.timing.request_ms + 500)
    machines.is_lost = lambda message: False
    for number in (5, 6, 7):
        machines.ask(node.view.me.name, m.List(number, "q", b"", 9), b"one")
        machines.pass_time(50)
    assert [type(each) for each in machines.answers_to(b"one")[-3:]] == [m.Listed] * 3, "the places are free again"


# -- one partition ---------------------------------------------------------------------------------


@pytest.fixture
def spread() -> tuple[Machines, dict[int, list[bytes]]]:
    """Tasks of several partitions, by partition."""
    made, tasks = Machines(), dict[int, list[bytes]]()
    made.pass_time(3_000)
    for number in range(12):
        batch = made.batch("q", 2)
        made.ask(made.names[0], m.Enqueue(number, 3, (batch,)))
        made.pass_time(100)
        tasks.setdefault(ids.partition_of(batch.ids, 8), []).extend(ids.split(batch.ids))
    return made, {partition: sorted(found) for partition, found in tasks.items()}


def listed_by(machines: Machines, question: m.List) -> m.Message:
    machines.ask(machines.names[0], question, b"one")
    machines.pass_time(machines.timing.request_ms + 500)
    return machines.answers_to(b"one")[-1]


def test_a_question_about_one_partition_shows_its_tasks_alone(
        spread: tuple[Machines, dict[int, list[bytes]]]) -> None:
    machines, tasks = spread
    assert len(tasks) > 3
    for partition in range(8):
        answer = listed_by(machines, m.List(partition, "", b"", 1_000, place=partition + 1))
        assert isinstance(answer, m.Listed) and ids.split(answer.ids) == tasks.get(partition, [])


def test_a_node_of_an_older_release_shows_all_and_others_are_left_out(
        spread: tuple[Machines, dict[int, list[bytes]]], monkeypatch: pytest.MonkeyPatch) -> None:
    machines, tasks = spread
    read = waiting.Pages._read
    monkeypatch.setattr(waiting.Pages, "_read", lambda self, now_ms, matter: read(
        self, now_ms, attrs.evolve(matter, place=0)))
    for partition, found in tasks.items():
        answer = listed_by(machines, m.List(partition, "", b"", 1_000, place=partition + 1))
        assert isinstance(answer, m.Listed) and ids.split(answer.ids) == found


def test_a_partition_that_does_not_exist_is_refused(machines: Machines) -> None:
    answer = listed_by(machines, m.List(3, "", b"", 9, place=9))
    assert isinstance(answer, m.Failed) and answer.code == "bad_partition"


def put_keyed(replica: Replica, key: str, *, at_ms: int, lane: str = "", queue: str = "q") -> bytes:
    """A task of a key, or with the route of another one that has the same by chance."""
    body = Body(Header(queue), key=key)
    task_id, = ids.IdMint(1).mint(at_ms, 1, ids.lane_route(queue, lane or key), is_laned=True)
    replica.store_tasks(NOW_MS, body.header.encode(), [task_id], [body.rest])
    return task_id


def keyed() -> tuple[Replica, list[bytes]]:
    """Two tasks of a key among others of one partition: of another queue, of the same route, and without one."""
    replica = Replica(0, CountingStore(), 100)
    found = [put_keyed(replica, "a", at_ms=NOON_MS + at_ms) for at_ms in (5, 40)]
    put_keyed(replica, "b", at_ms=NOON_MS + 6)
    put_keyed(replica, "b", at_ms=NOON_MS + 7, lane="a")
    for at_ms in range(10, 30):
        task_id, = ids.IdMint(1).mint(NOON_MS + at_ms, 1, 8)
        replica.store_tasks(NOW_MS, Header("q").encode(), [task_id], [b""])
    return replica, found


@pytest.mark.parametrize("states", [0, mask(State.WAITING, State.BLOCKED), mask(State.CANCELLED)])
@pytest.mark.parametrize("queue", ["q", ""])
def test_of_a_key_all_is_listed_and_nothing_else(states: int, queue: str) -> None:
    replica, found = keyed()
    if states == mask(State.CANCELLED):
        everything = ids.split(one_page(replica, 0, most=100).ids)
        replica.mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS) for task_id in everything])

    question = m.List(1, queue, b"", 7, states, key="a")
    assert b"".join(page.ids for page in pages([replica], question)) == b"".join(found)


def test_what_shows_by_its_id_that_it_has_not_the_key_takes_little_of_a_page(
        monkeypatch: pytest.MonkeyPatch) -> None:
    replica, found = keyed()
    lister = Lister(NOW_MS, [replica], DEFAULT_LIMITS, m.List(1, "q", b"", 100, key="a"))
    _, rows = lister.page()
    assert [row[0] for row in rows] == found
    assert lister.scanned == 3 + 21 // PASSED_ROWS, "those of its route, and one for each few others"

    monkeypatch.setattr(listing, "SCAN_ROWS", 2)
    lister = Lister(NOW_MS, [replica], DEFAULT_LIMITS, m.List(1, "q", b"", 100, key="c"))
    upto, rows = lister.page()
    times = [5, 6, 7, *range(10, 30)]
    assert not rows and ids.time_of(upto) == NOON_MS + times[2 * PASSED_ROWS - 1], "but it ends"
    assert b"".join(page.ids for page in pages([replica], m.List(1, "q", b"", 1, key="a"))) == b"".join(found)


@pytest.mark.parametrize("states", [0, mask(State.CANCELLED)])
def test_a_page_ends_after_so_many_bytes_read_though_nothing_is_found(
        monkeypatch: pytest.MonkeyPatch, states: int) -> None:
    replica, found = keyed()
    if states:
        everything = ids.split(one_page(replica, 0, most=100).ids)
        replica.mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS) for task_id in everything])
    monkeypatch.setattr(listing, "READ_BYTES", 30)
    upto, rows = Lister(NOW_MS, [replica], DEFAULT_LIMITS, m.List(1, "q", b"", 100, states, key="c")).page()

    assert upto and not rows
    question = m.List(1, "q", b"", 100, states, key="a")
    assert b"".join(page.ids for page in pages([replica], question)) == b"".join(found), "and goes on there"
