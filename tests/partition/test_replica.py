"""A replica's indexes and counts are a function of its data, whatever order things came in."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skuld_py.crdt.lattice import LatticeMap, Max
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_WAIT,
    Body,
    Header,
    Retry,
    split_body,
)
from skuld_py.model.history import (
    CANCELLED,
    DIED,
    FAILED,
    RELEASED,
    REVIVED,
    SNOOZED,
    ClaimRecord,
    History,
    decode_history,
    encode_mark,
    ending_of,
    token_of,
)
from skuld_py.model.ids import lane_route, named_id
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.notes import MET, SUB, TOLD, End, met_seq, told_seq
from skuld_py.model.state import State, due_of, state_of
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Amendment, Grant, Mark
from skuld_py.partition.data.replica import Replica

SKEW_MS = 10
KEYS = ["k", "k", "k", "k", "j", "k"]
IDS = [n.to_bytes(20, "big") for n in range(1, 10)] + [
    n.to_bytes(8, "big") + (1 << 63).to_bytes(8, "big") + lane_route("a", key).to_bytes(4, "big")
    for n, key in enumerate(KEYS, 10)] + [named_id("a", "n", 1_000, key) for key in ("", "k")]
OUTSIDE = b"\xee" * 20
WIDTH = [1]
"""How many tasks of a lane may be claimed at a time."""
BODIES = [Body(Header("a", 0), payload=b"payload"), Body(Header("a", 5), payload=b"payload"),
          Body(Header("b", -3, Retry(max_attempts=2)), payload=b"payload"),
          Body(Header("a", 5), not_before_ms=1_040, payload=b"payload"),
          Body(Header("b", -3), expires_ms=1_060, payload=b"payload"),
          Body(Header("b", 1, Retry(max_attempts=1)), 1_020, 1_030, b"payload"),
          Body(Header("a", policy=ON_FAILURE_IGNORE, dep_wait_ms=9), payload=b"payload", deps=(IDS[0],)),
          Body(Header("b", policy=ON_FAILURE_WAIT, dep_wait_ms=9), deps=(IDS[0], IDS[1], OUTSIDE)),
          Body(Header("a", 1, policy=ON_FAILURE_FAIL, dep_wait_ms=9), 1_020, 1_060, deps=(IDS[1], IDS[5])),
          Body(Header("a", 1), payload=b"payload", key="k"),
          Body(Header("a", 9, Retry(max_attempts=1)), payload=b"payload", key="k"),
          Body(Header("a", 5), not_before_ms=1_030, payload=b"payload", key="k"),
          Body(Header("a", 5), expires_ms=1_050, payload=b"payload", key="k"),
          Body(Header("a", 5), payload=b"payload", key="j"),
          Body(Header("a", 5, policy=ON_FAILURE_WAIT, dep_wait_ms=9), key="k", deps=(IDS[1],)),
          Body(Header("a", window_ms=1_000), 1_020, payload=b"payload", made_ms=1_007, unique="n"),
          Body(Header("a", 1, window_ms=500), payload=b"payload", made_ms=1_003, unique="n", key="k")]
"""One for each id: plain ones, some with options, some that wait for others, some of a lane, some with a name."""
INDEXES = ("ready", "lease", "time", "dead")
NAMED_ONES = (15, 16)
LANES = ([9, 10, 11, 12, 14, 16], [13])


@attrs.frozen
class Op:
    kind: str
    tasks: tuple[int, ...]
    number: int
    time: int


ENDINGS = {"renew": 0, "release": RELEASED, "snooze": SNOOZED, "fail": FAILED}
MARKS = {"cancel": CANCELLED, "revive": REVIVED, "die": DIED}
NOTES = {"meet": MET, "subscribe": SUB, "tell": TOLD}
KINDS = ["store", "store", "store", "grant", "grant", "finish", "sweep", "wait", *ENDINGS, *MARKS, *NOTES, *NOTES]
OPS = st.builds(Op, st.sampled_from(KINDS),
                st.lists(st.integers(0, len(BODIES) - 1), min_size=1, max_size=4, unique=True).map(tuple),
                st.integers(1, 4), st.integers(1, 40))


def store(replica: Replica, now_ms: int, index: int) -> None:
    header, rest = split_body(BODIES[index].encode())
    replica.store_tasks(now_ms, header, [IDS[index]], [rest])


def apply(replica: Replica, now_ms: int, op: Op) -> None:
    """Carry out one operation as a replica would meet it."""
    task_ids = [IDS[index] for index in op.tasks]
    token = token_of(1, op.number * 10)
    if op.kind == "store":
        for index in op.tasks:
            store(replica, now_ms, index)
    elif op.kind == "grant":
        places = [tables.place_of(BODIES[index].header) for index in op.tasks]
        grant = Grant(task_ids, places, token, now_ms, now_ms + op.time, "me")
        replica.apply_grant(now_ms, grant, replica.objections(grant))
    elif op.kind == "finish":
        replica.finish(now_ms, task_ids, [token] * len(task_ids), now_ms)
    elif op.kind == "sweep":
        replica.filing.sweep(now_ms, 100)
    elif op.kind in ENDINGS:
        until_ms = now_ms + op.time if op.kind in ("snooze", "fail") else 0
        replica.amend(now_ms, [Amendment(task_id, token + index, now_ms + op.time, ENDINGS[op.kind], until_ms)
                               for index, task_id in enumerate(task_ids)])
    elif op.kind in MARKS:
        replica.mark(now_ms, [Mark(task_id, MARKS[op.kind], op.number, 0 if op.kind == "cancel" else op.number)
                              for task_id in task_ids])
    elif op.kind in NOTES:
        replica.note(now_ms, *note_of(op), task_ids)


def as_before(replica: Replica) -> None:
    """Put the claimable tasks of unique names where the release before had them."""
    for index in NAMED_ONES:
        place = replica.prefix + tables.place_of(BODIES[index].header)
        mark, = replica.store.pop_many("ready", [place + BODIES[index].made_ms.to_bytes(8, "big") + IDS[index]])
        if mark is not None:
            replica.store.put_many("ready", [(place + IDS[index], mark)])


def note_of(op: Op) -> tuple[int, int]:
    end = End(1 + op.time % 3)
    seqs = {MET: met_seq(op.number - 1, end), SUB: op.number, TOLD: told_seq(op.number, end, op.time % 3)}
    return NOTES[op.kind], seqs[NOTES[op.kind]]


def widen(replica: Replica, now_ms: int, width: int) -> None:
    WIDTH[0] = width
    replica.filing.widen("a", width)
    assert replica.filing.next_lapse_ms == 0
    while replica.filing.next_lapse_ms == 0:
        replica.filing.sweep(now_ms, 1)


def check(replica: Replica, now_ms: int) -> None:
    """Recompute every index from the data and compare."""
    store, prefix = replica.store, replica.prefix
    rows = {table: store.scan(table, prefix, tables.end_of(prefix), 1000)
            for table in (*INDEXES, "expiry", "lane")}
    where = {table: {key[-20:]: (key, value) for key, value in rows[table]} for table in rows}
    assert all(len(where[table]) == len(rows[table]) for table in rows)
    counts: dict[str, list[int]] = {}
    waits = _waits(replica)
    for index, task_id in enumerate(IDS):
        history = decode_history(store.get("history", prefix + task_id))
        has_body = store.get("body", prefix + task_id) is not None
        lane, value = where["lane"].get(task_id, (b"", b""))
        is_behind = lane[2:3] == b"w" and value[:1] == b"\0"
        found = [table for table in INDEXES if task_id in where[table]]
        found += ["blocked"] * (task_id in waits or is_behind)
        _check_tell(replica, history, task_id, found)
        place = tables.place_of(BODIES[index].header)
        row = counts.setdefault(BODIES[index].header.queue, [0] * 7)
        if not has_body:
            assert found in ([], ["lease"]) and task_id not in where["expiry"] and lane[2:3] != b"w"
            if found:
                row[State.CLAIMED] += 1
                assert where["lease"][task_id][1] == tables.BODY_UNKNOWN + place
            continue
        missing = _missing(replica, index)
        state = _state(history, index, found, now_ms, bool(missing))
        assert waits.get(task_id, {}) == (missing if state is State.BLOCKED else {})
        row[state] += 1
        _check_rows(where, task_id, history, index, state)
    replica.filing.tally.settle()
    stored = {queue: list(row) for queue, row in replica.filing.tally.rows() if any(row)}
    assert stored == {queue: row for queue, row in counts.items() if any(row)}
    _check_lanes(where, waits)
    windows = {BODIES[index].header.window_ms for index, task_id in enumerate(IDS)
               if store.get("body", prefix + task_id) is not None} - {0}
    noted = store.scan("window", prefix, tables.end_of(prefix), 9)
    assert windows <= {int.from_bytes(key[2:], "big") for key, _ in noted}
    _check_needs(replica, {dep + task_id for index, task_id in enumerate(IDS) for dep in BODIES[index].deps
                           if store.get("body", prefix + task_id) is not None})
    dues = [int.from_bytes(key[2:10], "big") for table in ("lease", "time") for key, _ in rows[table]]
    assert not dues or (replica.filing.next_lapse_ms is not None and replica.filing.next_lapse_ms <= min(dues))


def _check_lanes(where: dict[str, dict[bytes, tuple[bytes, bytes]]], waits: Collection[bytes]) -> None:
    """What is claimed and what waits, by the other indexes; the oldest are open, as far as there is room."""
    of_lanes: list[bytes] = []
    for lane in LANES:
        members = [IDS[index] for index in lane]
        held = [task_id for task_id in members if task_id in where["lease"]]
        rows = {task_id: where["lane"][task_id] for task_id in members if task_id in where["lane"]}
        assert [task_id for task_id, (key, _) in rows.items() if key[2:3] == b"c"] == held
        waiting = [task_id for task_id in sorted(members) if task_id in rows and task_id not in held]
        flags = [rows[task_id][1][0] for task_id in waiting]
        room = max(0, WIDTH[0] - len(held))
        assert flags == [1] * min(room, len(flags)) + [0] * (len(flags) - room)
        ready = {task_id for task_id in members if task_id in where["ready"] or task_id in where["time"]}
        assert ready == {task_id for task_id in waiting[:room] if task_id not in waits}
        assert {task_id for task_id in members if task_id in waits} <= {*waiting}
        of_lanes += list(rows)
    assert sorted(of_lanes) == sorted(where["lane"])


def _numbers(replica: Replica, task_id: bytes, token: int) -> list[int]:
    """The notes of a task under a token."""
    return [seq for number, seq, _ in replica.entries(task_id)[0] if number == token]


def _missing(replica: Replica, index: int) -> dict[bytes, int]:
    """What a task waits for, by its body and its notes."""
    body = BODIES[index]
    enough = (1, 2, 3) if body.header.policy == ON_FAILURE_IGNORE else (1,)
    met = {seq >> 2 for seq in _numbers(replica, IDS[index], MET) if seq & 3 in enough}
    return {dep: at for at, dep in enumerate(body.deps) if at not in met}


def _waits(replica: Replica) -> dict[bytes, dict[bytes, int]]:
    """Task -> what it waits for, by the table; several have a row that counts them."""
    store, prefix = replica.store, replica.prefix
    waits: dict[bytes, dict[bytes, int]] = {}
    left = {}
    for key, value in store.scan("dep", prefix, tables.end_of(prefix), 1000):
        if key[2]:
            left[key[3:]] = int.from_bytes(value, "big")
        else:
            waits.setdefault(key[-20:], {})[key[3:23]] = int.from_bytes(value, "big")
    assert left == {task_id: len(deps) for task_id, deps in waits.items()
                    if len(BODIES[IDS.index(task_id)].deps) > 1}
    return waits


def _check_needs(replica: Replica, wanted: set[bytes]) -> None:
    """Each body has a row for each task that it names."""
    rows = replica.store.scan("need", replica.prefix, tables.end_of(replica.prefix), 1000)
    assert {key[2:] for key, _ in rows} == wanted


def _check_tell(replica: Replica, history: History, task_id: bytes, found: list[str]) -> None:
    """Who waits for a task, by its notes: until it ends, and from then on until told."""
    rows = {key[2:3] + key[23:] for key, _ in replica.store.scan(
        "tell", replica.prefix, tables.end_of(replica.prefix), 1000) if key[3:23] == task_id}
    end = 1 if history.completion.value is not None else 2 if "dead" in found else 0
    told = {(seq >> 2 & 0xFFF, seq & 3, seq >> 14) for seq in _numbers(replica, task_id, TOLD)}
    wanted = set()
    for partition in _numbers(replica, task_id, SUB):
        where = partition.to_bytes(2, "big")
        if not end:
            wanted.add(b"\x00" + where)
        elif (partition, end, history.round if end == 2 else 0) not in told:
            wanted.add(b"\x01" + where + bytes([end]))
    assert rows == wanted


def _state(history: History, index: int, found: list[str], now_ms: int, is_blocked: bool) -> State:
    """The state by the data, at now or at some earlier time: what has become due may not be swept yet."""
    possible = {state_of(history, BODIES[index], then_ms, SKEW_MS, is_blocked)
                for then_ms in range(1_000, now_ms + 1)}
    if IDS[index][8] >= 0x80 and not possible.isdisjoint({State.WAITING, State.SCHEDULED}):
        possible.add(State.BLOCKED)
    states = {State.WAITING: ["ready"], State.BLOCKED: ["blocked"], State.CLAIMED: ["lease"],
              State.SCHEDULED: ["time"], State.DEAD: ["dead"], State.CANCELLED: ["dead"], State.COMPLETED: []}
    fitting = [state for state in sorted(possible) if states[state] == found]
    assert fitting, (possible, found)
    if State.DEAD in fitting and State.CANCELLED in fitting:
        return State.CANCELLED if history.cancelled.value is not None else State.DEAD
    return fitting[0]


def _check_rows(where: dict[str, dict[bytes, tuple[bytes, bytes]]], task_id: bytes, history: History, index: int,
                state: State) -> None:
    body, place = BODIES[index], tables.place_of(BODIES[index].header)
    if state is State.WAITING:
        asked = body.made_ms.to_bytes(8, "big") if body.made_ms else b""
        assert where["ready"][task_id][0][2:-20] == place + asked
        assert bool(where["ready"][task_id][1]) == bool(body.header.flags)
    elif state is State.CLAIMED:
        key, held = where["lease"][task_id]
        assert int.from_bytes(key[2:10], "big") == history.horizon_ms + SKEW_MS
        assert held == (tables.BODY_ODD if body.header.flags else tables.BODY_PLAIN) + place
    elif state is State.SCHEDULED:
        key, value = where["time"][task_id]
        assert (int.from_bytes(key[2:10], "big"), value) == (due_of(history, body), place)
    elif state in (State.CANCELLED, State.DEAD):
        assert where["dead"][task_id][1] == bytes([state]) + place
    expires = body.expires_ms and state in (State.WAITING, State.SCHEDULED, State.BLOCKED)
    assert (task_id in where["expiry"]) == bool(expires)


@settings(max_examples=400)
@given(st.lists(OPS, max_size=25))
def test_indexes_and_counts_follow_from_the_data(ops: list[Op]) -> None:
    replica, now_ms = Replica(0, MemoryStore(), SKEW_MS), 1_000

    for op in ops:
        now_ms += op.time if op.kind == "wait" else 1
        apply(replica, now_ms, op)
        check(replica, now_ms)


@settings(max_examples=200, deadline=None)
@given(st.lists(OPS, max_size=15), st.lists(OPS, max_size=15))
@example([Op("store", (16,), 1, 1)], [])
def test_tasks_that_the_release_before_filed_are_taken_out_once(before: list[Op], ops: list[Op]) -> None:
    """It filed unique names in ``ready`` as old as their windows."""
    replica, now_ms = Replica(0, MemoryStore(), SKEW_MS), 1_000
    for op in before:
        apply(replica, now_ms, op)
    as_before(replica)

    for op in ops:
        now_ms += op.time if op.kind == "wait" else 1
        apply(replica, now_ms, op)
    for index in NAMED_ONES:
        history = History.decode(encode_mark(CANCELLED, 1, 0))
        replica.join_history(now_ms, IDS[index], history, None)
    check(replica, now_ms)


@settings(max_examples=200)
@given(st.lists(OPS, max_size=15), st.lists(OPS, max_size=15))
def test_two_replicas_that_swap_their_histories_are_equal(ours: list[Op], theirs: list[Op]) -> None:
    pair = [Replica(0, MemoryStore(), SKEW_MS), Replica(0, MemoryStore(), SKEW_MS)]
    now_ms = 1_000
    for replica, ops in zip(pair, (ours, theirs), strict=True):
        for op in ops:
            apply(replica, now_ms, op)

    for here, there in (pair, pair[::-1]):
        for key, record in there.store.scan("history", there.prefix, tables.end_of(there.prefix), 1000):
            here.merge_history(now_ms, key[2:], record, None)

    tables_of = [replica.store.scan("history", replica.prefix, tables.end_of(replica.prefix), 1000)
                 for replica in pair]
    assert tables_of[0] == tables_of[1]


def test_the_head_of_a_queue_is_the_highest_priority_then_the_oldest() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    for index, priority in enumerate([0, 5, 5, -(1 << 31), (1 << 31) - 1]):
        replica.store_tasks(1, Header("q", priority).encode(), [IDS[index]], [b""])

    heads = [head[-20:] for head in replica.filing.heads("q", None, 10)]

    assert heads == [IDS[4], IDS[1], IDS[2], IDS[0], IDS[3]]


def test_a_queue_whose_name_begins_another_is_kept_apart() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    replica.store_tasks(1, Header("q-2").encode(), [IDS[1]], [b""])

    assert [head[-20:] for head in replica.filing.heads("q", None, 10)] == [IDS[0]]


def test_the_same_id_with_another_body_is_refused_and_nothing_changes() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b"one"])

    conflicts = replica.store_tasks(2, Header("q").encode(), [IDS[0], IDS[1]], [b"two", b"new"])

    assert conflicts == [IDS[0]]
    assert replica.bodies([IDS[0]])[0] is not None and replica.bodies([IDS[0]])[0][-3:] == b"one"
    assert replica.bodies([IDS[1]])[0] is not None


def test_a_log_entry_is_immutable() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)

    assert replica.append(IDS[0], 1, 0, [b"a", b"b"])
    assert replica.append(IDS[0], 1, 1, [b"b", b"c"])
    assert not replica.append(IDS[0], 1, 1, [b"x"])
    assert replica.entries(IDS[0])[0] == [(1, 0, b"a"), (1, 1, b"b"), (1, 2, b"c")]


def test_a_completed_task_is_vetoed_even_when_its_very_claim_is_known() -> None:
    """The claim had come by an exchange before the grant itself; the completion must still object."""
    replica = Replica(0, MemoryStore(), SKEW_MS)
    grant = Grant([IDS[0]], [tables.place_of(Header("q"))], 5, 100, 200, "me")
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    replica.apply_grant(100, grant)

    assert replica.objections(grant) == []
    replica.finish(110, [IDS[0]], [4], 110)
    assert replica.objections(grant) == [0]


NEW = token_of(2, 1)


def with_claims(*claims: tuple[int, int, str, bool]) -> Replica:
    """A replica that knows one task, and claims of it as (token, end, holder, is released)."""
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    for token, end_ms, holder, is_released in claims:
        claim = ClaimRecord(1, Max(end_ms), ending_of(RELEASED * is_released), holder)
        replica.merge_history(1, IDS[0], History(claims=LatticeMap({token: claim})).encode(), None)
    return replica


@pytest.mark.parametrize(("claims", "is_vetoed"), [
    ([], False),
    ([(NEW, 200, "me", False)], False),
    ([(NEW, 900, "me", False)], False),
    ([(NEW, 200, "me", True)], True),
    ([(NEW, 200, "somebody else", False)], True),
    ([(NEW + 1, 200, "me", True)], True),
    ([(NEW, 200, "me", False), (NEW + 1, 20, "me", True)], True),
    ([(NEW - 1, 90, "other", False)], False),
    ([(NEW - 1, 91, "other", False)], True),
    ([(NEW - 1, 91, "other", True)], False),
    ([(NEW, 200, "me", False), (NEW - 1, 90, "other", False)], False),
    ([(NEW, 200, "me", False), (NEW - 1, 91, "other", False)], True)])
def test_a_grant_is_vetoed_by_any_other_claim_that_may_be_held(claims: list[tuple[int, int, str, bool]],
                                                               is_vetoed: bool) -> None:
    """Even when the grant's own claim is known already: the leader may have overlooked the other."""
    grant = Grant([IDS[0]], [tables.place_of(Header("q"))], NEW, 100, 200, "me")

    assert with_claims(*claims).objections(grant) == ([0] if is_vetoed else [])


@pytest.mark.parametrize("kind", [CANCELLED, DIED])
def test_a_cancelled_task_is_vetoed_and_so_is_one_that_died(kind: int) -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    grant = Grant([IDS[0]], [tables.place_of(Header("q"))], token_of(1, 1), 100, 200, "me")
    assert replica.objections(grant) == []

    replica.mark(1, [Mark(IDS[0], kind, 1, 0 if kind == CANCELLED else 2)])

    assert replica.objections(grant) == [0]


def test_a_death_that_is_known_before_the_task_itself_is_vetoed() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.mark(1, [Mark(IDS[0], DIED, 1, 2)])
    grant = Grant([IDS[0]], [tables.place_of(Header("q"))], token_of(1, 1), 100, 200, "me")

    assert replica.bodies([IDS[0]]) == [None] and replica.objections(grant) == [0]


def test_a_task_whose_attempts_are_spent_is_vetoed_by_a_follower_that_knows_them() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    header = Header("q", retry=Retry(max_attempts=1))
    replica.store_tasks(1, header.encode(), [IDS[0]], [b""])
    first, second = (Grant([IDS[0]], [tables.place_of(header)], token_of(epoch, 1), start_ms, start_ms + 50, "me")
                     for epoch, start_ms in ((1, 100), (2, 200)))
    assert replica.objections(first) == []

    replica.apply_grant(100, first)

    assert replica.objections(first) == [], "the very claim is no objection"
    assert replica.objections(second) == [0]


def test_a_task_that_rests_is_vetoed_by_a_follower_that_knows_of_it() -> None:
    """A new leader that has not heard of the failure would let it be claimed at once."""
    replica = Replica(0, MemoryStore(), SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    place = tables.place_of(Header("q"))
    first = Grant([IDS[0]], [place], token_of(1, 1), 100, 150, "me")
    replica.apply_grant(100, first)
    replica.amend(120, [Amendment(IDS[0], first.first_token, 150, FAILED, 400)])

    assert replica.objections(Grant([IDS[0]], [place], token_of(2, 1), 399, 600, "me")) == [0]
    assert replica.objections(Grant([IDS[0]], [place], token_of(2, 1), 400, 600, "me")) == []


def test_a_lease_swept_by_a_clock_that_ran_ahead_is_a_lease_again() -> None:
    replica = with_claims((NEW, 500, "other", False))
    replica.filing.sweep(10_000, 10)
    heads = replica.filing.heads("q", None, 10)
    assert len(heads) == 1, "the wrong clock let it wait again"

    known = replica.histories([head[-20:] for head in heads])
    assert replica.still_waiting(100, heads, known) == []
    assert [task_id for _, task_id, _ in replica.filing.leases(b"", 9)] == [heads[0][-20:]]
    assert replica.filing.heads("q", None, 10) == [] and replica.filing.next_lapse_ms == 510

    replica.filing.sweep(510, 10)
    assert replica.still_waiting(510, replica.filing.heads("q", None, 10), known) == heads
