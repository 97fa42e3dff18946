"""An exchange makes two replicas equal, and then has nothing to say; whatever is lost, late or repeated."""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partition.exchanging import HEADER, PLACE, Line, content, draft, fill, indexes, limits_of, replica
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, Retry, encode_body
from skuld_py.model.history import HISTORY_HEAD, History, encode_claim
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.model.state import State
from skuld_py.partition.copies.exchange import Exchange, Phase, answer_compare, answer_fetch, answer_probe
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.merkle import LEAVES
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import in_messages, merge_rows
from skuld_py.wire.codec import Envelope, encode

QUESTIONS = (m.Probe, m.Compare, m.Fetch)


def size_of(messages: list[m.Message]) -> int:
    """Bytes on the wire, each message in an envelope of its own."""
    return sum(len(frame) for message in messages
               for frame in encode(Envelope("10.0.0.1:13000", "main", (message,))))


# -- convergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page_rows", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("seed", range(6))
def test_two_replicas_become_equal(seed: int, page_rows: int) -> None:
    dice, here, there = random.Random(seed), replica(), replica()
    fill(dice, [here, there], 40)
    line = Line(here, there, limits_of(page_rows))

    assert line.run().is_done

    assert content(here) == content(there)
    assert indexes(here) == indexes(there)
    assert here.tree.root == there.tree.root != 0


def test_rows_that_are_all_notes_are_cut_into_messages_too() -> None:
    """Ten thousand tasks wait for each of these, or so: a note has a number and no content."""
    task_ids = ids.IdMint(1).mint(1_000, 10, 0)
    numbers = columns.pack_u64(list(range(500)))
    rows = [m.TaskRow(task_id, columns.pack([]), b"", numbers, numbers, columns.pack([b""] * 500))
            for task_id in task_ids]

    parts = list(in_messages(rows, attrs.evolve(limits_of(1_000), page_bytes=25_000)))

    assert [row for part in parts for row in part] == rows
    assert [len(part) for part in parts] == [2] * 5
    assert max(size_of([m.Repair(0, tuple(part))]) for part in parts) <= 25_000


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((1, 3, 50)), st.sampled_from((1, 5, 10_000)))
def test_passes_over_a_bad_line_converge_and_the_next_one_is_silent(seed: int, page_rows: int, units: int) -> None:
    """Messages are lost, come twice and overtake each other; an exchange that breaks off is begun again."""
    dice, here, there = random.Random(seed), replica(), replica()
    fill(dice, [here, there], dice.randrange(30))
    timing = attrs.evolve(DEFAULT_TIMING, exchange_units=units)
    passes = 0
    while content(here) != content(there):
        line = Line(here, there, limits_of(page_rows), timing, lambda message: dice.choice((0, 1, 1, 1, 2)), dice)
        exchange = line.run()
        assert not exchange.is_clean
        passes += 1
        assert passes <= 40

    line = Line(here, there)
    assert line.run().is_clean
    assert [type(message) for message in line.sent] == [m.Probe, m.Probed]


@pytest.mark.parametrize("page_rows", [1, 3, 1_000])
@pytest.mark.parametrize("seed", range(6))
def test_who_leaves_gives_all_it_has_and_takes_nothing(seed: int, page_rows: int) -> None:
    """And once the peer knows all that it does, and more, there is nothing left to give."""
    dice, here, there, both = random.Random(seed), replica(), replica(), replica()
    fill(dice, [here, there], 40)
    before = content(here)
    for made in (here, there):
        Line(made, both, is_leaving=True).run()

    first = Line(here, there, limits_of(page_rows), is_leaving=True).run()
    assert first.is_done and first.progress.given_rows
    assert content(here) == before
    assert content(there) == content(both)

    second = Line(here, there, limits_of(page_rows), is_leaving=True).run()
    assert second.is_done and not second.progress.given_rows
    assert content(here) == before != content(there)


@pytest.mark.parametrize("seed", range(10))
def test_the_initiator_holds_at_the_end_what_the_peer_held_at_the_beginning(seed: int) -> None:
    """Both sides go on changing all the while, and repairs are lost."""
    dice, here, there = random.Random(seed), replica(), replica()
    fill(dice, [here, there], 30)
    bodies, records, logs = content(there)
    histories = {key: History.decode(row) for key, row in records}
    now_ms = [20_000_000]

    def fate(message: m.Message) -> int:
        now_ms[0] += 600
        fill(dice, [here, there], 2, now_ms[0])
        return 0 if isinstance(message, m.Repair) else 1
    exchange = Line(here, there, limits_of(4), fate=fate).run()

    assert exchange.is_done
    for table, rows in (("body", bodies), ("log", logs)):
        assert here.store.get_many(table, [key for key, _ in rows]) == dict(rows)
    for key, history in histories.items():
        mine = History.decode(here.store.get("history", key) or b"")
        assert mine.merge(history) == mine


# -- what is said when there is little to say --------------------------------------------------------


def test_equal_replicas_exchange_less_than_a_kilobyte() -> None:
    here, there = replica(), replica()
    fill(random.Random(1), [here, there], 200)
    Line(here, there).run()
    line = Line(here, there)
    exchange = line.run()

    assert exchange.is_clean
    assert exchange.progress.pages == 0
    assert size_of(line.sent) < 300


def test_one_task_more_in_ten_thousand_costs_its_leaf_and_not_the_partition() -> None:
    here, there = replica(), replica()
    mint = ids.IdMint(1)
    for now_ms in range(0, 3_000_000, 600):
        task_ids = mint.mint(now_ms, 2, 0)
        for made in (here, there):
            made.store_tasks(1, HEADER, task_ids, [b"x" * 100] * 2)
    there.store_tasks(1, HEADER, mint.mint(4_000_000, 1, 0), [b""])
    line = Line(here, there)
    exchange = line.run()

    assert here.tree.root == there.tree.root
    assert (exchange.progress.pages, exchange.progress.fetched_rows, exchange.progress.given_rows) == (1, 1, 0)
    compared = [message for message in line.sent if isinstance(message, m.Compare)]
    assert sum(len(message.units) for message in compared) <= 4
    assert size_of(line.sent) < 5_000


def test_what_was_lacking_is_counted_and_named() -> None:
    here, there = replica(), replica()
    mint = ids.IdMint(1)
    lacking, only_here = mint.mint(1, 3, 0), mint.mint(2, 2, 0)
    there.store_tasks(1, HEADER, lacking, [b"x"] * 3)
    here.store_tasks(1, HEADER, only_here, [b"x"] * 2)
    progress = Line(here, there).run().progress

    assert (progress.gained, [*progress.named], progress.given_rows) == (3, sorted(lacking), 2)


def test_what_arrives_between_the_looks_is_not_sent() -> None:
    here, there = replica(), replica()
    task_ids = ids.IdMint(1).mint(1, 100, 0)
    there.store_tasks(1, HEADER, task_ids, [b"x"] * 100)
    line = Line(here, there)
    line.on_pause = lambda: here.store_tasks(1, HEADER, task_ids, [b"x"] * 100) and None
    exchange = line.run()

    assert exchange.progress.pages > 0
    assert exchange.progress.fetched_rows == exchange.progress.given_rows == 0
    assert exchange.is_clean


def test_a_walk_that_finds_nothing_is_the_end() -> None:
    """What differed when the leaves were looked at has arrived since."""
    here, there = replica(), replica()
    task_ids = ids.IdMint(1).mint(1, 3, 0)
    there.store_tasks(1, HEADER, task_ids, [b"x"] * 3)

    def fate(message: m.Message) -> int:
        if isinstance(message, m.Probed) and len(line.sent) == 6:
            here.store_tasks(1, HEADER, task_ids, [b"x"] * 3)
        return 1
    line = Line(here, there, fate=fate)
    exchange = line.run()

    assert exchange.is_clean and line.pauses == 0
    assert [type(message) for message in line.sent] == [m.Probe, m.Probed] * 3 + [m.Compare, m.Compared]


def test_no_event_is_taken_in_a_phase_that_has_none() -> None:
    exchange = Exchange(replica(), "there", DEFAULT_LIMITS, DEFAULT_TIMING, 1, lambda: 7)
    exchange.begin(1)

    with pytest.raises(KeyError):
        exchange.resume(1)
    assert exchange.phase is Phase.PROBING


def test_a_lost_repair_is_seen_by_the_next_pass() -> None:
    here, there = replica(), replica()
    here.store_tasks(1, HEADER, ids.IdMint(1).mint(1, 3, 0), [b"x"] * 3)
    lost = Line(here, there, fate=lambda message: int(not isinstance(message, m.Repair))).run()
    assert lost.is_done
    assert not lost.is_clean
    assert content(there) == [[], [], []]

    again = Line(here, there).run()
    assert again.is_done
    assert not again.is_clean
    assert content(there) == content(here)
    assert Line(here, there).run().is_clean


# -- bounds ----------------------------------------------------------------------------------------


def test_differences_beyond_the_cap_wait_for_the_next_lap_and_none_is_lost() -> None:
    here, there = replica(), replica()
    there.store_tasks(1, HEADER, ids.IdMint(1).mint(1, 95, 0), [b"x"] * 95)
    line = Line(here, there, limits_of(5), attrs.evolve(DEFAULT_TIMING, exchange_units=10))
    exchange = line.run()

    assert exchange.is_done
    assert line.laps == 9
    assert content(here) == content(there)
    assert exchange.progress.fetched_rows == 95


def test_no_message_holds_more_than_its_limits() -> None:
    """A log of 1,000 entries goes in blocks; large bodies go few at a time."""
    here, there = replica(), replica()
    dice, mint = random.Random(1), ids.IdMint(1)
    for made in (here, there):
        made.store_tasks(1, HEADER, mint.mint(1, 40, 0), [dice.randbytes(1_000) for _ in range(40)])
    made.append(mint.mint(1, 1, 0)[0], FIRST_TOKEN, 0, [dice.randbytes(50) for _ in range(1_000)])
    limits = attrs.evolve(limits_of(10), page_bytes=5_000)
    line = Line(here, there, limits)
    line.run()

    assert content(here) == content(there)
    for message in line.sent:
        if isinstance(message, m.Fetched | m.Repair):
            assert len(message.tasks) <= 10
            sizes = [len(row.body.data) + len(row.entries.data) for row in message.tasks]
            assert sum(sizes[:-1]) < 5_000
            assert all(len(row.entries) <= 256 for row in message.tasks)
        elif isinstance(message, m.Compare | m.Compared | m.Fetch):
            assert len(message.units) <= 2 * 10


def test_a_silent_peer_is_asked_again_and_given_up() -> None:
    here, there = replica(), replica()
    there.store_tasks(1, HEADER, ids.IdMint(1).mint(1, 1, 0), [b""])
    line = Line(here, there, fate=lambda message: int(not isinstance(message, QUESTIONS)))
    exchange = line.run()

    assert not exchange.is_done
    assert exchange.has_expired(line.now_ms)
    assert len(line.sent) == -(-DEFAULT_TIMING.exchange_page_ms // DEFAULT_TIMING.resend_ms)


def test_a_peer_that_is_building_its_tree_ends_the_exchange_at_once() -> None:
    here, there = replica(), replica()
    fill(random.Random(3), [there], 5)
    again = Replica(0, there.store, 10)
    line = Line(here, again)
    exchange = line.run()
    assert not exchange.is_done
    assert exchange.has_expired(line.now_ms)
    assert len(line.sent) == 2

    draft(again)
    assert Line(here, again).run().is_done
    assert content(here) == content(there)


def test_an_initiator_whose_records_are_being_dropped_ends_the_exchange() -> None:
    here, there = replica(), replica()
    fill(random.Random(3), [here], 20)
    there.store_tasks(1, HEADER, ids.IdMint(9).mint(1, 1, 0), [b""])

    def fate(message: m.Message) -> int:
        here.drop(1)
        return 1
    line = Line(here, there, fate=fate)
    exchange = line.run()

    assert not exchange.is_done
    assert exchange.has_expired(line.now_ms)


# -- claims ----------------------------------------------------------------------------------------


def test_claims_known_to_one_side_become_known_to_both() -> None:
    """A follower's claim of an older leader, the leader's claim that it missed, a release, a completion."""
    leader, follower = replica(), replica()
    task_ids = ids.IdMint(1).mint(1, 4, 0)
    for made in (leader, follower):
        made.store_tasks(1, HEADER, task_ids, [b""] * 4)
    follower.apply_grant(1, Grant(task_ids[:1], [PLACE], 1 << 32, 1, 1_000, "old"))
    leader.apply_grant(1, Grant(task_ids[1:], [PLACE] * 3, 2 << 32, 1, 1_000, "new"))
    follower.apply_grant(1, Grant(task_ids[2:], [PLACE] * 2, (2 << 32) + 1, 1, 1_000, "new"))
    follower.finish(1, task_ids[3:], [(2 << 32) + 2], 50)
    Line(leader, follower, now_ms=1).run()

    assert content(leader) == content(follower)
    assert content(leader, ("ready", "lease")) == content(follower, ("ready", "lease"))
    histories = leader.histories(task_ids)
    newest = [History.decode(histories[leader.prefix + task_id]).newest_token for task_id in task_ids]
    assert newest == [1 << 32, 2 << 32, (2 << 32) + 1, (2 << 32) + 2]
    assert leader.filing.heads("q", None, 10) == []


# -- strangers -------------------------------------------------------------------------------------


def test_rows_of_a_stranger_are_checked() -> None:
    made, task_id = replica(), ids.IdMint(1).mint(1, 1, 0)[0]
    nothing = columns.pack([])
    endless = HISTORY_HEAD.pack(0, 0, 0) + encode_claim(9, 1, (1 << 64) - 1, b"me")
    spaced = columns.pack([(6).to_bytes(2, "big") + b"\0\0\0\0\1 " + b"payload"])
    untimed = columns.pack([encode_body(HEADER + b"\0\x10", b"payload")])
    unlaned = columns.pack([Body(Header("q"), key="k").encode()])
    loose = columns.pack([encode_body(HEADER, b"")[:-1]])
    good = m.TaskRow(task_id, columns.pack([len(HEADER).to_bytes(2, "big") + HEADER]), b"", b"", b"", nothing)
    for row in (m.TaskRow(task_id, nothing, endless, b"", b"", nothing),
                m.TaskRow(task_id, nothing, b"short", b"", b"", nothing),
                m.TaskRow(task_id, spaced, b"", b"", b"", nothing),
                m.TaskRow(task_id, untimed, b"", b"", b"", nothing),
                m.TaskRow(task_id, unlaned, b"", b"", b"", nothing),
                m.TaskRow(task_id, loose, b"", b"", b"", nothing)):
        with pytest.raises(Malformed):
            merge_rows(made, 1, 1, [good, row])
    with pytest.raises(Malformed, match="another partition"):
        merge_rows(made, 1, 2, [m.TaskRow(task_id[:19] + b"\1", nothing, b"", b"", b"", nothing)])

    assert content(made) == [[], [], []]
    assert not any(indexes(made))
    assert History.decode(HISTORY_HEAD.pack(0, 0, 0)) == History()


def test_rows_of_several_queues_arrive_whole() -> None:
    made, mint = replica(), ids.IdMint(1)
    rows = [m.TaskRow(task_id, columns.pack([len(header).to_bytes(2, "big") + header + b"x"]), b"", b"", b"",
                      columns.pack([]))
            for header in (Header("a").encode(), Header("b", 3).encode(), Header("a").encode())
            for task_id in mint.mint(1, 2, 0)]
    assert merge_rows(made, 1, 1, rows) == []
    waiting = [(queue, counts[State.WAITING]) for queue, counts in made.filing.tally.rows()]
    assert waiting == [("a", 4), ("b", 2)]


def test_tasks_with_options_become_equal_and_are_found_by_their_place() -> None:
    here, there, mint = replica(), replica(), ids.IdMint(1)
    header = Header("q", headers=(("a", "b"),), retry=Retry(2))
    bodies = [Body(attrs.evolve(header, priority=number), number % 2, 1 << 40, b"x") for number in range(4)]
    for body in bodies:
        here.store_tasks(9, body.header.encode(), mint.mint(1, 1, 0), [body.rest])

    exchange = Line(here, there).run()

    assert exchange.progress.conflicts == 0 and content(here) == content(there)
    assert [Body.decode(record) for _, record in there.store.scan("body", b"", b"\xff" * 30, 9)] == bodies
    assert [head[:-20] for head in there.filing.heads("q", None, 9)] == [
        tables.place_of(body.header) for body in reversed(bodies)]


def test_a_body_that_differs_is_reported_in_each_pass_and_kept() -> None:
    here, there = replica(), replica()
    task_id = ids.IdMint(1).mint(1, 1, 0)[0]
    here.store_tasks(1, HEADER, [task_id], [b"mine"])
    there.store_tasks(1, HEADER, [task_id], [b"yours"])
    before = content(here), content(there)

    exchange = Line(here, there).run()

    assert exchange.progress.conflicts == 1
    assert not exchange.is_clean
    assert (content(here), content(there)) == before


UNITS = columns.pack([b"\1" * 20, b"\2" * 20])
NUMBERS = columns.pack_u64([1, 2])
ONE_LEAF = (1).to_bytes(LEAVES // 8, "big")


@pytest.mark.parametrize("question", [
    m.Probe(0, 1, 0, columns.pack_u64([0]), NUMBERS[:8]),
    m.Probe(0, 1, 0, b"", NUMBERS),
    m.Probe(0, 1, 1, b"", NUMBERS),
    m.Probe(0, 1, 1, columns.pack_u64([1]), bytes(8 * 64)),
    m.Probe(0, 1, 2, columns.pack_u64([64]), bytes(8 * 64)),
    m.Probe(0, 1, 2, columns.pack_u64([3]), NUMBERS),
    m.Compare(0, 1, b"", b"", b"", UNITS, NUMBERS),
    m.Compare(0, 1, ONE_LEAF, b"\1" * 20, b"", UNITS, NUMBERS),
    m.Compare(0, 1, ONE_LEAF, b"", b"\1" * 20, UNITS, NUMBERS),
    m.Compare(0, 1, ONE_LEAF, b"\3", b"", columns.pack([]), b""),
    m.Compare(0, 1, ONE_LEAF, b"\3" * 20, b"\2" * 20, columns.pack([]), b""),
    m.Compare(0, 1, ONE_LEAF, b"", b"", columns.pack([b"\2" * 20, b"\1" * 20]), NUMBERS),
    m.Compare(0, 1, ONE_LEAF, b"", b"", columns.pack([b"\1" * 28 + b"\1\0\0\0"]), NUMBERS[:8]),
    m.Fetch(0, 1, columns.pack([b"", b"\1" * 20]), NUMBERS),
])
def test_questions_of_a_stranger_are_checked(question: m.Probe | m.Compare | m.Fetch) -> None:
    made = replica()
    with pytest.raises(Malformed):
        match question:
            case m.Probe():
                answer_probe(made, question)
            case m.Compare():
                answer_compare(made, limits_of(10), question)
            case m.Fetch():
                answer_fetch(made, limits_of(10), question)


def test_answers_of_a_stranger_are_checked() -> None:
    def asked(phase_after: list[m.Message]) -> Exchange:
        here = replica()
        here.store_tasks(1, HEADER, ids.IdMint(1).mint(1, 1, 0), [b""])
        exchange = Exchange(here, "there", limits_of(10), DEFAULT_TIMING, 1, lambda: 7)
        exchange.begin(1)
        for answer in phase_after:
            assert isinstance(answer, m.Probed | m.Compared)
            exchange.on_answer(1, answer)
        exchange.on_deadline(300)
        return exchange
    root = m.Probed(0, 7, False, columns.pack_u64([0]))
    compared = m.Compared(0, 7, b"", columns.pack([b"\1" * 20]))
    bad: list[tuple[list[m.Message], m.Probed | m.Compared | m.Fetched]] = [
        ([], m.Probed(0, 7, False, columns.pack_u64([1]))),
        ([root], m.Probed(0, 7, False, columns.pack_u64([64]))),
        ([root, root], m.Probed(0, 7, False, columns.pack_u64([LEAVES]))),
        ([root, root, root], m.Compared(0, 7, b"\1" * 20, columns.pack([b"\2" * 20]))),
        ([root, root, root], m.Compared(0, 7, b"\1", columns.pack([]))),
        ([root, root, root, compared], m.Fetched(0, 7, b"", ())),
        ([root, root, root, compared], m.Fetched(0, 7, NUMBERS, ())),
    ]
    for before, answer in bad:
        exchange = asked(before)
        with pytest.raises(Malformed):
            exchange.on_answer(301, answer)
        assert not exchange.is_done
    assert asked([root]).on_answer(301, m.Probed(0, 8, False, b"")) == []
    assert asked([root]).on_answer(301, compared) == []
