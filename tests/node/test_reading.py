"""Reads over copies that differ: what is shown, a majority has; and pages of listings, flat in memory."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.asides import Aside
from skuld_py.model.body import Header, Retry, encode_body
from skuld_py.model.events import Received
from skuld_py.model.history import CANCELLED, decode_history
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.outcomes import facts_of
from skuld_py.model.state import State
from skuld_py.node.reads import listing
from skuld_py.node.reads.get import LEAST_MS
from skuld_py.node.reads.listing import listed
from skuld_py.partition.data.facts import Grant, Mark
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import place_of

TOKEN = 1 << 32
EXCHANGES = (m.Invite, m.Probe, m.Compare, m.Fetch, m.Repair)
"""What would bring copies together without any reader."""


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def enqueue(machines: Machines) -> bytes:
    batch = machines.batch("q", 1)
    machines.ask(machines.names[0], m.Enqueue(1, 3, (batch,)), b"producer")
    machines.pass_time(100)
    assert isinstance(machines.answers_to(b"producer")[-1], m.Acked)
    return batch.ids


def complete_on_one(machines: Machines, name: str, task_id: bytes) -> None:
    """Acknowledged with one copy, which nobody else hears of but from readers."""
    machines.is_lost = lambda message: isinstance(message, (m.Complete, *EXCHANGES))
    machines.ask(name, m.Complete(2, 1, 0, task_id, columns.pack_u64([TOKEN])), b"worker")
    machines.pass_time(100)
    assert isinstance(machines.answers_to(b"worker")[-1], m.Acked)


def read(machines: Machines, name: str, task_id: bytes, least: int = 0, wait_ms: int = 100) -> m.Message | None:
    before = len(machines.answers_to(b"reader"))
    machines.ask(name, m.Get(3, task_id, least=columns.pack_u64([least])), b"reader")
    machines.pass_time(wait_ms)
    return next(iter(machines.answers_to(b"reader")[before:]), None)


def is_shown_done(answer: m.Message | None) -> bool:
    assert isinstance(answer, m.Got)
    row, = answer.tasks
    return bool(row.history) and decode_history(row.history).completion.value is not None


def completed_copies(machines: Machines, task_id: bytes) -> int:
    found = 0
    for node in machines.nodes.values():
        replica = node.view.vnodes[0].replica
        record = replica.histories([task_id]).get(replica.prefix + task_id)
        found += record is not None and decode_history(record).completion.value is not None
    return found


def test_what_one_copy_knows_is_given_to_a_majority_before_it_is_shown(machines: Machines) -> None:
    task_id, (knows, *others) = enqueue(machines), machines.names
    complete_on_one(machines, knows, task_id)

    assert is_shown_done(read(machines, knows, task_id))
    assert completed_copies(machines, task_id) >= 2

    machines.is_deaf = knows
    assert all(is_shown_done(read(machines, name, task_id)) for name in others), "what was shown stays shown"


def test_what_was_not_asked_for_is_not_looked_at() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    task_id, (reader, liar, _) = enqueue(machines), machines.names
    other = task_id[:-1] + bytes([task_id[-1] ^ 1])

    def tells_more(message: m.Message) -> bool:
        if isinstance(message, m.Got) and len(message.tasks) == 1:
            rows = (*message.tasks, attrs.evolve(message.tasks[0], id=other))
            machines.flying.append((reader, Received(liar, attrs.evolve(message, tasks=rows))))
        return False

    machines.is_lost = tells_more
    answer = read(machines, reader, task_id)
    assert isinstance(answer, m.Got) and [row.id for row in answer.tasks] == [task_id]


def test_nothing_is_shown_that_a_majority_could_not_be_given(machines: Machines) -> None:
    task_id, knows = enqueue(machines), machines.names[0]
    complete_on_one(machines, knows, task_id)
    machines.is_lost = lambda message: isinstance(message, (m.Mend, m.Complete, *EXCHANGES))

    assert read(machines, knows, task_id, wait_ms=1_000) is None
    machines.pass_time(5_000)
    answer = machines.answers_to(b"reader")[-1]
    assert isinstance(answer, m.Failed) and answer.code == "unavailable" and answer.is_definite


def test_copies_that_agree_cost_no_second_round(machines: Machines) -> None:
    task_id, sent = enqueue(machines), list[m.Message]()
    machines.is_lost = lambda message: sent.append(message) is not None

    assert isinstance(read(machines, machines.names[0], task_id), m.Got)
    assert [message for message in sent if isinstance(message, m.Mend)] == []
    assert sum(isinstance(message, m.Get) for message in sent) == 2


def test_a_lost_mending_is_sent_again(machines: Machines) -> None:
    task_id, knows = enqueue(machines), machines.names[0]
    complete_on_one(machines, knows, task_id)
    lost: list[m.Message] = []

    def lose(message: m.Message) -> bool:
        is_first = isinstance(message, m.Mend) and len(lost) < 2
        lost.extend([message] * is_first)
        return is_first or isinstance(message, (m.Complete, *EXCHANGES))
    machines.is_lost = lose

    assert is_shown_done(read(machines, knows, task_id, wait_ms=2_000))
    assert len(lost) == 2


def test_less_than_was_seen_before_is_never_shown(machines: Machines) -> None:
    task_id, knows = enqueue(machines), machines.names[0]
    complete_on_one(machines, knows, task_id)
    answer = read(machines, knows, task_id)
    assert isinstance(answer, m.Got)
    seen = facts_of(answer.tasks[0])

    assert isinstance(read(machines, machines.names[1], task_id, seen), m.Got)
    patience_ms = LEAST_MS + machines.nodes[knows].view.timing.resend_ms
    refused = read(machines, machines.names[1], task_id, seen + 1, wait_ms=patience_ms)
    assert isinstance(refused, m.Failed) and refused.code == "unavailable" and "min_seq" in refused.text


def test_of_a_long_log_its_end_is_shown_and_what_copies_miss_of_that_is_mended(machines: Machines) -> None:
    """One copy has missed the last entries, and so has more of the earlier ones to show than the others."""
    task_id, behind, large = enqueue(machines), machines.names[2], bytes(DEFAULT_LIMITS.entry_bytes)
    for seq in range(40):
        machines.is_deaf = behind if seq >= 30 else ""
        machines.is_lost = lambda message: isinstance(message, EXCHANGES)
        machines.ask(machines.names[0], m.Append(5, 0, task_id, TOKEN, seq, columns.pack([large])), b"worker")
        machines.pass_time(50)
    machines.is_deaf = ""
    shown = []
    for name in machines.names:
        answer = read(machines, name, task_id)
        assert isinstance(answer, m.Got)
        aside, = map(Aside.decode, answer.asides.unpack())
        shown.append((columns.unpack_u64(answer.tasks[0].seqs), aside.cuts))
        assert isinstance(read(machines, name, task_id, facts_of(answer.tasks[0], aside.cuts.values())), m.Got)
    assert shown == [(tuple(range(24, 40)), {TOKEN: 24})] * 3


def test_a_reader_who_wants_more_is_shown_it_once_it_is_there(machines: Machines) -> None:
    task_id = enqueue(machines)
    machines.ask(machines.names[1], m.Get(3, task_id, least=columns.pack_u64([1])), b"reader")
    machines.pass_time(100)
    assert machines.answers_to(b"reader") == []

    machines.ask(machines.names[0], m.Complete(2, 0, 0, task_id, columns.pack_u64([TOKEN])), b"worker")
    machines.pass_time(1_000)
    answer, = machines.answers_to(b"reader")
    assert is_shown_done(answer)


def test_a_bare_read_has_no_log(machines: Machines) -> None:
    task_id = enqueue(machines)
    machines.ask(machines.names[0], m.Append(2, 3, task_id, TOKEN, 0, columns.pack([b"entry"])), b"worker")
    machines.pass_time(100)
    machines.ask(machines.names[0], m.Get(4, task_id, is_bare=True), b"bare")
    machines.pass_time(100)

    answer, = machines.answers_to(b"bare")
    assert isinstance(answer, m.Got) and len(answer.tasks[0].body) == 1 and not len(answer.tasks[0].entries)


# -- listing ---------------------------------------------------------------------------------------


class CountingStore(MemoryStore):
    """Knows how many records are held by somebody who walks at once."""

    def __init__(self) -> None:
        super().__init__()
        self.walked = 0
        self.scanned = 0

    def walk(self, table: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        for row in super().walk(table, start, stop):
            self.walked += 1
            yield row

    def scan(self, table: str, start: bytes, stop: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        found = super().scan(table, start, stop, limit)
        self.scanned += len(found) * (table == "body")
        return found


PARTITIONS, EACH, NOW_MS = 4, 300, 2_000_000


@pytest.fixture
def stocked() -> tuple[CountingStore, list[Replica]]:
    """Tasks of two queues in four partitions, one a millisecond; every third done, every tenth cancelled."""
    store = CountingStore()
    replicas = [Replica(partition, store, 100) for partition in range(PARTITIONS)]
    for number in range(PARTITIONS * EACH):
        partition = number % PARTITIONS
        task_id, = ids.IdMint(1).mint(1_000 + number, 1, partition)
        header = Header("even" if number % 2 == 0 else "odd").encode()
        replicas[partition].store_tasks(NOW_MS, header, [task_id], [b"payload"])
        if number % 3 == 0:
            replicas[partition].finish(NOW_MS, [task_id], [TOKEN], NOW_MS)
        if number % 10 == 0:
            replicas[partition].mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS)])
    store.walked = store.scanned = 0
    return store, replicas


def pages(replicas: list[Replica], question: m.List, limits: Limits = DEFAULT_LIMITS) -> Iterator[m.Listed]:
    after = b""
    while True:
        page = listed(NOW_MS, range(PARTITIONS), replicas, limits, attrs.evolve(question, after=after))
        yield page
        after = page.upto
        if not after:
            return


def numbers(found: Iterator[m.Listed]) -> list[int]:
    """Which tasks, by the order in which they were made."""
    return [ids.time_of(task_id) - 1_000 for page in found for task_id in ids.split(page.ids)]


def mask(*states: State) -> int:
    return sum(1 << state for state in states)


EVERY = range(PARTITIONS * EACH)
WAITING = [number for number in EVERY if number % 3 and number % 10]
DONE = [number for number in EVERY if number % 3 == 0]
CANCELLED_ONES = [number for number in EVERY if number % 3 and number % 10 == 0]


@pytest.mark.parametrize(("question", "wanted"), [
    (m.List(1, "", b"", 7), list(EVERY)),
    (m.List(1, "odd", b"", 1_000), [number for number in EVERY if number % 2]),
    (m.List(1, "", b"", 50, mask(State.COMPLETED)), DONE),
    (m.List(1, "", b"", 50, mask(State.WAITING)), WAITING),
    (m.List(1, "", b"", 7, mask(State.CANCELLED)), CANCELLED_ONES),
    (m.List(1, "", b"", 7, mask(State.DEAD)), []),
    (m.List(1, "odd", b"", 7, mask(State.CANCELLED, State.DEAD)), []),
    (m.List(1, "even", b"", 7, mask(State.CANCELLED, State.DEAD)), CANCELLED_ONES),
    (m.List(1, "", b"", 7, mask(State.CANCELLED, State.COMPLETED)), sorted(DONE + CANCELLED_ONES)),
    (m.List(1, "", b"", 7, 0, 1_010, 1_050), list(range(10, 50))),
    (m.List(1, "", b"", 7, mask(State.CANCELLED), 1_010, 1_051), [10, 20, 40, 50]),
], ids=str)
def test_pages_show_what_was_asked_for_once_and_in_order(
        stocked: tuple[CountingStore, list[Replica]], question: m.List, wanted: list[int]) -> None:
    assert numbers(pages(stocked[1], question)) == wanted


def test_a_page_holds_no_more_records_than_it_may_show_and_one_of_each_partition(
        stocked: tuple[CountingStore, list[Replica]]) -> None:
    store, replicas = stocked
    for page in pages(replicas, m.List(1, "", b"", 10)):
        assert len(page.bodies) <= 10
        assert store.walked <= 10 + 1 + PARTITIONS and store.scanned == 0
        store.walked = 0


@pytest.mark.parametrize(("queue", "states", "partitions"), [
    ("no-such", 0, ()), ("no-such", mask(State.COMPLETED), ()), ("odd", mask(State.DEAD), ()),
    ("odd", mask(State.COMPLETED), (1, 3)), ("even", 0, (0, 2)), ("last", 0, (2,)), ("last", mask(State.DEAD), ()),
    ("last", mask(State.WAITING), (2,))])
def test_partitions_without_such_tasks_of_the_queue_are_passed_over(
        stocked: tuple[CountingStore, list[Replica]], queue: str, states: int,
        partitions: tuple[int, ...]) -> None:
    """One partition has the one task of the last queue besides."""
    store, replicas = stocked
    last, = ids.IdMint(1).mint(1, 1, 2)
    replicas[2].store_tasks(NOW_MS, Header("last").encode(), [last], [b""])
    store.walked = 0
    page = listed(NOW_MS, range(PARTITIONS), replicas, DEFAULT_LIMITS, m.List(1, queue, b"", 1_000, states))

    assert store.walked == EACH * len(partitions) + (2 in partitions)
    assert page.upto == b"" and {each % PARTITIONS for each in numbers(iter([page])) if each >= 0} <= {*partitions}
    assert (last in ids.split(page.ids)) == (queue == "last" and states != mask(State.DEAD))


def test_what_time_alone_has_moved_on_is_listed_before_it_is_counted() -> None:
    replica = Replica(0, CountingStore(), 100)
    task_id, = ids.IdMint(1).mint(1_000, 1, 0)
    replica.store_tasks(NOW_MS, Header("q").encode(), [task_id], [b""])
    replica.apply_grant(NOW_MS, Grant([task_id], [place_of(Header("q"))], TOKEN, NOW_MS, NOW_MS + 1, "w"))

    lapsed_ms = NOW_MS + 10_000
    found = listed(lapsed_ms, [0], [replica], DEFAULT_LIMITS, m.List(1, "q", b"", 5, mask(State.WAITING)))
    assert replica.filing.tally.row(b"q")[State.WAITING] == 0
    assert found.ids == task_id


@pytest.mark.parametrize(("state", "retry", "is_cancelled"), [
    (State.DEAD, Retry(max_attempts=1), False), (State.CANCELLED, Retry(), True)])
def test_what_ends_as_its_claim_lapses_is_listed_before_it_is_counted(
        state: State, retry: Retry, is_cancelled: bool) -> None:
    replica = Replica(0, CountingStore(), 100)
    header = Header("q", retry=retry)
    task_id, = ids.IdMint(1).mint(1_000, 1, 0)
    replica.store_tasks(NOW_MS, header.encode(), [task_id], [b""])
    replica.apply_grant(NOW_MS, Grant([task_id], [place_of(header)], TOKEN, NOW_MS, NOW_MS + 1, "w"))
    if is_cancelled:
        replica.mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS)])

    found = listed(NOW_MS + 10_000, [0], [replica], DEFAULT_LIMITS,
                   m.List(1, "q", b"", 5, mask(state, State.COMPLETED)))
    assert replica.filing.tally.row(b"q")[state] == 0
    assert found.ids == task_id


def test_a_page_ends_where_it_has_looked_at_enough_though_it_shows_nothing(
        stocked: tuple[CountingStore, list[Replica]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SCAN_ROWS", 20)
    store, replicas = stocked
    found = list(pages(replicas, m.List(1, "", b"", 10, mask(State.SCHEDULED))))

    assert [page.ids for page in found] == [b""] * len(found)
    assert len(found) == PARTITIONS * EACH // 20
    assert store.walked <= len(found) * (20 + 1 + PARTITIONS)


def test_a_page_ends_with_its_bytes(stocked: tuple[CountingStore, list[Replica]]) -> None:
    body = len(encode_body(Header("odd").encode(), b"payload"))
    small = Limits(page_bytes=3 * body)
    found = list(pages(stocked[1], m.List(1, "odd", b"", 100, mask(State.WAITING)), small))

    assert {len(page.bodies) for page in found[:-1]} == {3}
    assert numbers(iter(found)) == [number for number in WAITING if number % 2]
