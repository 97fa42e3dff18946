"""A data directory that is not the one registered is found out at its start, crash or no crash."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from node.machines import Machines
from skuld_py.config import Parameters
from skuld_py.errors import Corrupt, Malformed, Refused
from skuld_py.model.body import Body, Header
from skuld_py.model.events import Session, SessionChanged
from skuld_py.model.ids import named_id
from skuld_py.model.memory_store import MemoryStore, Snapshot
from skuld_py.model.registration import Registration
from skuld_py.node.knowledge.floor import FLOOR_KEY
from skuld_py.node.life.identity import (
    IDENTITY_KEY,
    UNJOINED_KEY,
    Identity,
    Start,
    Verdict,
    begin_start,
    judge,
    load_identity,
    note_joined,
)
from skuld_py.node.life.start import note_damage, prepare
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import partition_of_meta, prefix_of, promise_key, scrub_key, suspect_key
from skuld_py.partition.data.windows import begun_before
from skuld_py.partition.leadership.promise import Promise, load_promise, save_promise
from skuld_py.partition.leadership.suspicion import clear_suspect, damaged, suspects

PARTITIONS = 4
PARAMETERS = Parameters("test", "id", PARTITIONS, 3)


def started(store: MemoryStore, registered: Registration | None, fresh: str = "new") -> Start:
    start = begin_start(store, registered, fresh, PARTITIONS)
    store.commit()
    return start


def registration_of(start: Start) -> Registration:
    return Registration("127.0.0.1", 13000, start.identity.incarnation, start.identity.starts)


ENTRY = Registration("h", 1, "a", 3)
JUDGED = {
    "never heard of": (None, None, Verdict.FRESH),
    "announced and never started": (None, Registration(), Verdict.FRESH),
    "forgotten": (Identity("a", 1), None, Verdict.FORGOTTEN),
    "forgotten, and announced again": (Identity("a", 1), Registration(), Verdict.FORGOTTEN),
    "as registered": (Identity("a", 3), ENTRY, Verdict.SAME),
    "ahead of it by a crash": (Identity("a", 9), ENTRY, Verdict.SAME),
    "empty": (None, ENTRY, Verdict.WIPED),
    "another": (Identity("b", 9), ENTRY, Verdict.WIPED),
    "older": (Identity("a", 2), ENTRY, Verdict.ROLLED_BACK),
}


@pytest.mark.parametrize(("stored", "registered", "verdict"), JUDGED.values(), ids=JUDGED.keys())
def test_verdicts(stored: Identity | None, registered: Registration | None, verdict: Verdict) -> None:
    assert judge(stored, registered) is verdict


def test_a_node_that_dies_again_and_again_before_it_is_a_member_stays_fresh() -> None:
    store, entry = MemoryStore(), None
    for fresh in "abc":
        start = started(store, entry, fresh)
        assert (start.identity, start.verdict, start.alarms) == (Identity(fresh, 1), Verdict.FRESH, ())
    for starts in (2, 3):  # registered, and still no member
        start = started(store, registration_of(start), "x")
        assert (start.identity, start.verdict) == (Identity("c", starts), Verdict.SAME)

    assert started(store, None, "d").verdict is Verdict.FRESH
    assert suspects(store, PARTITIONS) == {}


@pytest.mark.parametrize("starts", [1, 2])
def test_a_member_without_an_entry_is_a_new_one_that_trusts_nothing_it_has(starts: int) -> None:
    store, entry = MemoryStore(), None
    for _ in range(starts):
        entry = registration_of(started(store, entry, "a"))
        note_joined(store)
        save_promise(store, 2, Promise(7, "me"))
        store.commit()

    for fresh in ("b", "c"):  # a crash before it registers changes nothing
        start = started(store, None, fresh)
        assert (start.identity, start.verdict) == (Identity(fresh, 1), Verdict.FORGOTTEN)
        assert start.alarms and "it was forgotten" in suspects(store, PARTITIONS)[3]
    assert load_promise(store, 2) == Promise(7, "me")
    assert started(store, registration_of(start), "d").verdict is Verdict.SAME


def test_a_node_that_is_told_of_its_session_is_a_member_from_then_on() -> None:
    machines = Machines(partitions=1)
    name = machines.names[0]
    store = machines.stores[name]
    begin_start(store, None, "a", 1)
    machines.nodes[name].step(machines.now_ms, SessionChanged(Session.SUSPENDED))
    assert store.get("meta", UNJOINED_KEY)

    machines.nodes[name].step(machines.now_ms, SessionChanged(Session.CONNECTED))
    assert store.get("meta", UNJOINED_KEY) is None


def test_a_directory_of_a_release_without_the_mark_counts_as_that_of_a_member() -> None:
    store = MemoryStore()
    started(store, None, "a")
    store.pop_many("meta", [UNJOINED_KEY])

    assert started(store, None, "b").verdict is Verdict.FORGOTTEN


def test_the_mark_of_an_earlier_start_says_nothing_of_a_later_one() -> None:
    store = MemoryStore()
    first = started(store, None, "a")
    mark = store.get("meta", UNJOINED_KEY)
    assert mark is not None
    started(store, registration_of(first))
    store.put_many("meta", [(UNJOINED_KEY, mark)])  # an earlier release counted the last start

    assert started(store, None, "b").verdict is Verdict.FORGOTTEN


def test_a_forgotten_node_with_the_only_copies_is_refused_and_keeps_what_it_has() -> None:
    store = MemoryStore()
    started(store, None, "a")
    note_joined(store)
    store.commit()

    with pytest.raises(Refused, match=r"this node was forgotten.* move the data directory away"):
        prepare(store, None, "b", attrs.evolve(PARAMETERS, replicas=1))
    store.crash()
    assert load_identity(store) == Identity("a", 1) and not suspects(store, PARTITIONS)
    assert prepare(store, None, "b", attrs.evolve(PARAMETERS, replicas=2))[0].verdict is Verdict.FORGOTTEN


def test_the_only_copy_is_not_filled_as_the_log_says_now() -> None:
    store = MemoryStore()
    started(store, None, "a")
    note_joined(store)
    store.commit()

    with pytest.raises(Refused, match="this node was forgotten"):
        prepare(store, None, "b", attrs.evolve(PARAMETERS, replicas=3), lambda: 1)
    store.crash()
    grown = prepare(store, None, "b", attrs.evolve(PARAMETERS, replicas=1), lambda: 3)
    assert grown[0].verdict is Verdict.FORGOTTEN


def test_a_fresh_node_has_no_marks_and_counts_its_starts() -> None:
    store = MemoryStore()

    first = started(store, None, "a")
    second = started(store, registration_of(first), "b")

    assert (first.identity, first.verdict, first.alarms) == (Identity("a", 1), Verdict.FRESH, ())
    assert (second.identity, second.verdict, second.alarms) == (Identity("a", 2), Verdict.SAME, ())
    assert suspects(store, PARTITIONS) == {}
    assert [load_promise(store, partition) for partition in range(PARTITIONS)] == [Promise()] * PARTITIONS


def test_a_wiped_directory_is_found_out_again_after_a_crash_before_registering() -> None:
    store = MemoryStore()

    for fresh in ("b", "c"):
        start = started(store, ENTRY, fresh)
        assert (start.identity, start.verdict) == (Identity(fresh, 1), Verdict.WIPED)
        assert start.is_empty == (fresh == "b")
        assert list(suspects(store, PARTITIONS)) == [0, 1, 2, 3]
    for partition in range(PARTITIONS):
        clear_suspect(store, partition)

    assert started(store, registration_of(start), "d").verdict is Verdict.SAME
    assert suspects(store, PARTITIONS) == {}


def test_the_marks_are_in_the_very_batch_that_changes_the_incarnation() -> None:
    store = MemoryStore()
    begin_start(store, ENTRY, "b", PARTITIONS)

    store.crash()

    assert load_identity(store) is None
    assert suspects(store, PARTITIONS) == {}


def test_a_directory_turned_back_gets_a_new_incarnation_and_keeps_what_it_has() -> None:
    store = MemoryStore()
    old = started(store, None, "a")
    save_promise(store, 2, Promise(7, "me"))
    store.commit()
    snapshot = store.snapshot()
    newest = started(store, registration_of(old))

    store.restore(snapshot)
    start = started(store, registration_of(newest), "b")

    assert (start.identity, start.verdict) == (Identity("b", 1), Verdict.ROLLED_BACK)
    assert "1 starts, not of 2" in suspects(store, PARTITIONS)[3]
    assert load_promise(store, 2) == Promise(7, "me")


def test_a_lost_promise_makes_its_partition_suspect_and_is_unknown_from_then_on() -> None:
    store = MemoryStore()
    first = started(store, None)
    save_promise(store, 2, Promise(7, "me"))
    store.commit()
    for loss in (lambda: store.damage("meta", promise_key(2)),
                 lambda: store.pop_many("meta", [promise_key(2)])):
        loss()
        start = started(store, registration_of(first))

        assert start.verdict is Verdict.SAME
        assert list(suspects(store, PARTITIONS)) == list(damaged(store, PARTITIONS)) == [2]
        assert len(start.alarms) == 1
        assert load_promise(store, 2) == Promise()
        clear_suspect(store, 2)
        store.pop_many("meta", [scrub_key(2)])


@pytest.mark.parametrize("key", [IDENTITY_KEY, FLOOR_KEY, b"cluster", b"of a later version"])
def test_a_node_whose_own_records_are_unreadable_is_as_good_as_wiped(key: bytes) -> None:
    store = MemoryStore()
    first = started(store, None, "a")
    store.put_many("meta", [(key, store.get("meta", key) or b"something")])
    store.commit()
    store.damage("meta", key)

    start = started(store, registration_of(first), "b")

    assert (start.identity, start.verdict) == (Identity("b", 1), Verdict.WIPED)
    assert list(suspects(store, PARTITIONS)) == [0, 1, 2, 3]
    assert store.purge("meta", b"", b"\xff", 100) == ([], None)


def test_a_damaged_mark_counts_as_a_mark() -> None:
    for key in (suspect_key(1), scrub_key(1)):
        store = MemoryStore()
        first = started(store, None)
        store.put_many("meta", [(key, b"reason")])
        store.commit()
        store.damage("meta", key)

        started(store, registration_of(first))

        assert list(suspects(store, PARTITIONS)) == list(damaged(store, PARTITIONS)) == [1]


def test_keys_of_partitions_are_told_from_those_of_the_node() -> None:
    assert [partition_of_meta(key(258)) for key in (promise_key, suspect_key, scrub_key)] == [258] * 3
    assert [partition_of_meta(key) for key in (IDENTITY_KEY, FLOOR_KEY, b"cluster", b"", b"x")] == [None] * 5


def test_a_bad_record_costs_its_partition_and_no_other() -> None:
    store = MemoryStore()
    first = started(store, None)
    task_id = bytes(20)
    Replica(3, store, 10).store_tasks(1, Header("q").encode(), [task_id], [b"payload"])
    store.commit()
    store.damage("body", prefix_of(3) + task_id)
    with pytest.raises(Corrupt) as caught:
        Replica(3, store, 10).bodies([task_id])

    assert note_damage(store, caught.value, PARTITIONS) == [3]
    store.commit()
    _, scrubbed = prepare(store, registration_of(first), "new", PARAMETERS)

    assert scrubbed == {3: {"body": 1}}
    assert list(suspects(store, PARTITIONS)) == [3] and not damaged(store, PARTITIONS)
    assert Replica(3, store, 10).bodies([task_id]) == [None]
    assert not store.is_staged


def test_a_bad_record_of_nobody_costs_all_and_one_of_the_node_is_left_to_its_start() -> None:
    store = MemoryStore()

    assert note_damage(store, Corrupt("history", b""), PARTITIONS) == [0, 1, 2, 3]
    assert note_damage(store, Corrupt("body", prefix_of(77) + b"x"), PARTITIONS) == [0, 1, 2, 3]
    assert note_damage(store, Corrupt("meta", FLOOR_KEY), PARTITIONS) == []


@pytest.mark.parametrize("is_unreadable", [True, False])
def test_what_a_partition_remembers_is_dropped_if_it_is_unreadable_or_makes_no_sense(is_unreadable: bool) -> None:
    store = MemoryStore()
    first = started(store, None)
    if is_unreadable:
        store.damage("meta", promise_key(1))

    assert note_damage(store, Corrupt("meta", promise_key(1)), PARTITIONS) == [1]
    store.commit()
    prepare(store, registration_of(first), "new", PARAMETERS)

    assert list(suspects(store, PARTITIONS)) == [1]
    assert load_promise(store, 1) == Promise()


def test_a_start_notes_the_windows_of_a_store_from_before() -> None:
    store = MemoryStore()
    body = Body(Header("q", window_ms=7_000), made_ms=15_000, unique="n")
    Replica(1, store, 100).store_tasks(15_000, body.header.encode(), [named_id("q", "n", 14_000, "")], [body.rest])
    store.pop_many("window", list(store.rows("window")))

    prepare(store, None, "new", PARAMETERS)
    assert list(begun_before(store, prefix_of(1), 15_000)) == [(14_000, 14_001)]


def test_a_registration_reads_back_with_what_a_later_version_wrote() -> None:
    entry = attrs.evolve(ENTRY, is_leaving=True, unknown={"rack": "r1"})

    assert Registration.decode(entry.encode()) == entry
    assert b'"rack": "r1"' in entry.encode()
    assert Registration.decode(b'{"host": "h", "port": 1}') == Registration("h", 1)
    for raw in (b"", b"7", b"[]", b'{"starts": "1"}', b'{"port": true}', b'{"host": null}'):
        with pytest.raises(Malformed):
            Registration.decode(raw)


class Life(RuleBasedStateMachine):
    """One name over wipes, restored copies and crashes at every step; what it ever promised in public is held
    against what the directory knows, unless it is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.registered: Registration | None = None
        self.told = 0
        self.copies: list[Snapshot] = []
        self.count = 0

    @rule(steps=st.integers(0, 4))
    def live(self, steps: int) -> None:
        """Start, and die after so many of: commit, register, promise in public, be copied when down."""
        self.count += 1
        start = begin_start(self.store, self.registered, f"i{self.count}", 1)
        if start.verdict is Verdict.FRESH:  # another voter, with nothing of the one that was
            assert self.registered is None and load_promise(self.store, 0) == Promise()
            self.told = 0
        if steps > 0:
            self.store.commit()
        if steps > 1:
            self.registered = registration_of(start)
            assert suspects(self.store, 1) or load_promise(self.store, 0).epoch >= self.told
        if steps > 2:
            self._promise()
        if steps > 3:
            self.copies.append(self.store.snapshot())
        self.store.crash()

    @rule()
    def forget(self) -> None:
        """The entry is removed while the node is down, for no partition needs its vote."""
        self.registered = None

    def _promise(self) -> None:
        note_joined(self.store)
        if suspects(self.store, 1):  # as the refill does it: the peers still know
            clear_suspect(self.store, 0)
        self.told += 1
        save_promise(self.store, 0, Promise(self.told, "me"))
        self.store.commit()

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def turn_back(self, data: st.DataObject) -> None:
        self.store.restore(self.copies[data.draw(st.integers(0, len(self.copies) - 1))])

    @rule()
    def wipe(self) -> None:
        self.store.wipe()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=20)
