"""Tasks that wait for tasks of other partitions, on real machines: what lets them go, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from node.machines import Machines
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_WAIT,
    Body,
    Header,
    Retry,
    split_body,
)
from skuld_py.model.history import DEP_FAILED, DEP_UNKNOWN, FAILED, History, decode_history
from skuld_py.model.notes import MET, SUB, TOLD, End, met_seq, told_seq
from skuld_py.model.state import State
from skuld_py.node.dependencies import dependent_side
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.vnode import Vnode

HERE, THERE, ELSEWHERE = 0, 1, 2
"""Routes, so partitions: the dependent is here, its dependencies are there."""
BULK = Header("then", policy=ON_FAILURE_WAIT, dep_wait_ms=3_600_000)
LEASE_MS = 600_000
ONE_PASS_MS = 31_000
LONG_MS = 3_600_000
POLICIES = (ON_FAILURE_WAIT, ON_FAILURE_FAIL, ON_FAILURE_IGNORE)


class World(Machines):
    """Four partitions, each led by somebody."""

    def __init__(self, count: int = 3, replicas: int = 3) -> None:
        super().__init__(count, partitions=4, replicas=replicas)
        self.pass_time(4_000)
        self._asked = 0
        assert all(self.documents[partition][1].leader for partition in range(4))

    # -- what clients do -------------------------------------------------------------------------

    def new_id(self, route: int) -> bytes:
        return self.mint.mint(self.now_ms, 1, route)[0]

    def enqueue(self, deps: Sequence[bytes] = (), route: int = HERE, *, policy: int = ON_FAILURE_WAIT,
                dep_wait_ms: int = LONG_MS, task_id: bytes = b"", queue: str = "", attempts: int = 25,
                not_before_ms: int = 0) -> bytes:
        """A task; what waits for nothing is in queue ``first``, all else in ``then``."""
        task_id = task_id or self.new_id(route)
        retry = Retry(max_attempts=attempts, backoff_ms=0)
        header = Header(queue or ("then" if deps else "first"), retry=retry, policy=policy if deps else 0,
                        dep_wait_ms=dep_wait_ms if deps else 0)
        raw, rest = split_body(Body(header, not_before_ms, deps=tuple(sorted(deps))).encode())
        assert isinstance(self.put(m.Enqueue(1, 0, (m.TaskBatch(raw, task_id, columns.pack([rest])),))), m.Acked)
        return task_id

    def put(self, message: m.Message, wait_ms: int = 150, name: str = "") -> m.Message:
        self._asked += 1
        client = b"client %d" % self._asked
        self.ask(name or self.names[-1], message, client)
        self.pass_time(wait_ms)
        answer, = self.answers_to(client)
        return answer

    def claim(self, queue: str = "then") -> list[bytes]:
        answer = self.put(m.Claim(2, queue, 100, LEASE_MS, 0, "w"))
        assert isinstance(answer, m.Claimed)
        self.tokens = {task_id: batch.first_token + at for batch in answer.batches
                       for at, task_id in enumerate(ids.split(batch.ids))}
        return sorted(self.tokens)

    def complete(self, *task_ids: bytes, w: int = 0) -> None:
        answer = self.put(m.Complete(3, w, 0, b"".join(task_ids), columns.pack_u64([1 << 32] * len(task_ids))))
        assert isinstance(answer, m.Acked)

    def cancel(self, task_id: bytes) -> None:
        assert isinstance(self.put(m.Cancel(4, 0, 0, task_id)), m.Acked)

    def fail(self, task_id: bytes) -> None:
        assert task_id in self.claim("first")
        answer = self.put(m.Conclude(5, FAILED, 0, task_id, columns.pack_u64([self.tokens[task_id]])))
        assert isinstance(answer, m.Renewed) and any(columns.unpack_u64(answer.ends))

    def revive(self, task_id: bytes) -> m.Revival:
        answer = self.put(m.Revive(6, task_id))
        assert isinstance(answer, m.Revived)
        return m.Revival(answer.outcomes[0])

    # -- what there is ---------------------------------------------------------------------------

    def leader_of(self, partition: int) -> Vnode:
        vnodes = [node.view.vnodes[partition] for node in self.nodes.values()]
        leader, = [vnode for vnode in vnodes if vnode.is_leading]
        return leader

    def copies(self, task_id: bytes) -> list[Replica]:
        partition = ids.partition_of(task_id, 4)
        return [node.view.vnodes[partition].replica for node in self.nodes.values()]

    def states(self, task_id: bytes) -> set[State]:
        """Where the copies have filed a task, by their counts: each queue has but one task of this kind here."""
        found = set()
        for replica in self.copies(task_id):
            key = replica.prefix + task_id
            history = decode_history(replica.histories([task_id]).get(key))
            end = replica.prefix + b"\xff" * 30
            rows = {table: [row for row, _ in replica.store.scan(table, replica.prefix, end, 1_000)
                            if row.endswith(task_id)] for table in ("ready", "lease", "time", "dead", "dep")}
            held = [table for table, keys in rows.items() if keys]
            dead = replica.store.get("dead", key)
            if history.completion.value is not None:
                assert held == []
                found.add(State.COMPLETED)
            elif dead is not None:
                found.add(State(dead[0]))
            else:
                table, = held
                found.add({"ready": State.WAITING, "lease": State.CLAIMED, "time": State.SCHEDULED,
                           "dep": State.BLOCKED}[table])
        return found

    def history(self, task_id: bytes) -> History:
        partition = ids.partition_of(task_id, 4)
        replica = self.leader_of(partition).replica
        return decode_history(replica.histories([task_id]).get(replica.prefix + task_id))

    def reason(self, task_id: bytes) -> int:
        """Why it is dead."""
        return self.history(task_id).death(25, self.now_ms)

    def notes(self, task_id: bytes) -> set[tuple[int, int]]:
        """Those that all copies have."""
        each = [{(token, seq) for token, seq, _ in replica.entries(task_id)[0] if token <= TOLD}
                for replica in self.copies(task_id)]
        return set.intersection(*each)

    def lose(self, *kinds: type[m.Message]) -> None:
        self.is_lost = lambda message: isinstance(message, kinds)

    def tells(self, task_id: bytes) -> int:
        """Rows that say who waits for a task, over all copies."""
        return sum(1 for replica in self.copies(task_id) for key, _ in replica.store.scan(
            "tell", replica.prefix, replica.prefix + b"\xff" * 30, 1_000) if key[3:23] == task_id)


@pytest.fixture
def world() -> World:
    return World()


# -- done --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [HERE, THERE])
def test_a_task_waits_until_what_it_needs_is_completed(world: World, route: int) -> None:
    first = world.enqueue(route=route)
    then = world.enqueue([first])
    assert world.states(then) == {State.BLOCKED} and world.claim() == []
    assert world.claim("first") == [first] and world.claim() == []

    world.complete(first)

    assert world.states(then) == {State.WAITING}
    assert world.notes(then) == {(MET, met_seq(0, End.DONE))}
    assert world.notes(first) == {(SUB, HERE), (TOLD, told_seq(HERE, End.DONE, 0))}
    assert world.tells(first) == 0 and world.claim() == [then]


def test_one_that_needs_several_waits_for_the_last(world: World) -> None:
    firsts = [world.enqueue(route=route) for route in (HERE, THERE, ELSEWHERE, THERE)]
    then = world.enqueue(firsts)

    for first in firsts:
        assert world.claim() == []
        world.complete(first)

    assert world.claim() == [then]


def test_what_was_done_before_is_met_at_once(world: World) -> None:
    first = world.enqueue(route=THERE)
    world.complete(first)

    then = world.enqueue([first])
    late = world.enqueue([first], ELSEWHERE)
    world.pass_time(100)

    assert sorted(world.claim() + world.claim()) == sorted([then, late])
    again = world.enqueue([first])
    assert world.claim() == [again], "one more of a partition that was told before"


def test_many_wait_for_one(world: World) -> None:
    first = world.enqueue(route=THERE)
    header, rest = split_body(Body(Header("then", policy=ON_FAILURE_WAIT, dep_wait_ms=9), deps=(first,)).encode())
    thens = world.mint.mint(world.now_ms, 1_500, HERE)
    for half in (thens[:750], thens[750:]):
        batch = m.TaskBatch(header, b"".join(half), columns.pack([rest] * len(half)))
        assert isinstance(world.put(m.Enqueue(1, 0, (batch,))), m.Acked)

    world.complete(first)

    counts = world.leader_of(HERE).replica.filing.tally.row(b"then")
    assert counts[State.WAITING] == 1_500 and not counts[State.BLOCKED]


def test_a_chain_runs_in_its_order(world: World) -> None:
    links = [world.enqueue(route=HERE)]
    for number in range(1, 6):
        links.append(world.enqueue([links[-1]], number % 4))

    assert world.claim("first") == links[:1]
    for link, following in pairwise(links):
        assert world.claim() == []
        world.complete(link)
        assert world.claim() == [following]


def test_a_task_whose_time_has_not_come_waits_for_that_as_well(world: World) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first], not_before_ms=world.now_ms + 5_000)
    assert world.states(then) == {State.BLOCKED}

    world.complete(first)

    assert world.states(then) == {State.SCHEDULED}
    world.pass_time(6_000)
    assert world.claim() == [then]


def test_what_is_needed_may_be_enqueued_later(world: World) -> None:
    first = world.new_id(THERE)
    then = world.enqueue([first])
    world.pass_time(ONE_PASS_MS)
    assert world.states(then) == {State.BLOCKED}

    world.enqueue(task_id=first)
    world.complete(first)

    assert world.claim() == [then]


def test_a_completion_that_no_majority_knows_is_told_to_nobody(world: World) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])
    world.lose(m.Complete, m.Amend, m.Probe)
    world.put(m.Complete(3, 1, 0, first, columns.pack_u64([1 << 32])), name=world.leader_of(THERE).me.name)
    assert world.history(first).completion.value is not None
    assert world.claim() == [] and world.states(then) == {State.BLOCKED}

    world.lose()
    world.pass_time(5_000)

    assert world.states(then) == {State.WAITING}


# -- failed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [World.cancel, World.fail])
@pytest.mark.parametrize(("policy", "state"), [
    (ON_FAILURE_WAIT, State.BLOCKED), (ON_FAILURE_FAIL, State.DEAD), (ON_FAILURE_IGNORE, State.WAITING)])
def test_what_fails_does_what_the_policy_says(world: World, end: Callable[[World, bytes], None], policy: int,
                                              state: State) -> None:
    first = world.enqueue(route=THERE, attempts=1)
    then = world.enqueue([first], policy=policy)

    end(world, first)
    world.pass_time(1_000)

    assert world.states(then) == {state}
    assert world.reason(then) == (DEP_FAILED if policy == ON_FAILURE_FAIL else 0)
    assert end is World.cancel or world.history(first).died.value, "a majority knows it, whatever their clocks say"
    assert (TOLD, told_seq(HERE, End.FAILED, 0)) in world.notes(first) and world.tells(first) == 0


def test_a_failure_goes_down_a_chain(world: World) -> None:
    links = [world.enqueue(route=HERE)]
    for number in range(1, 4):
        links.append(world.enqueue([links[-1]], number, policy=ON_FAILURE_FAIL))

    world.cancel(links[0])
    world.pass_time(1_000)

    assert [world.states(link) for link in links] == [{State.CANCELLED}, *[{State.DEAD}] * 3]


def test_who_waits_for_a_dead_task_is_told_when_it_is_done_after_all(world: World) -> None:
    first = world.enqueue(route=THERE, attempts=1)
    then = world.enqueue([first])
    world.fail(first)
    assert world.revive(first) is m.Revival.REVIVED
    assert world.tells(first) == 3, "who waits shall hear of its next end"

    world.fail(first)
    assert (TOLD, told_seq(HERE, End.FAILED, 1)) in world.notes(first), "the second death is told again"
    world.complete(first)

    assert world.claim() == [then]


def test_a_dead_task_that_is_revived_waits_for_what_is_not_met(world: World) -> None:
    first, second = world.enqueue(route=THERE), world.enqueue(route=ELSEWHERE)
    then = world.enqueue([first, second], policy=ON_FAILURE_FAIL)
    world.complete(first)
    world.cancel(second)
    world.pass_time(500)
    assert world.states(then) == {State.DEAD}

    assert world.revive(then) is m.Revival.REVIVED
    world.pass_time(500)
    assert world.states(then) == {State.DEAD}, "it has still failed"
    world.complete(second)
    assert world.revive(then) is m.Revival.REVIVED
    world.pass_time(500)

    assert world.claim() == [then]


def test_a_cancelled_dependent_waits_for_nothing(world: World) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])

    world.cancel(then)
    world.complete(first)

    assert world.states(then) == {State.CANCELLED} and world.claim() == []


# -- unknown -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "state"), [
    (ON_FAILURE_WAIT, State.DEAD), (ON_FAILURE_FAIL, State.DEAD), (ON_FAILURE_IGNORE, State.WAITING)])
def test_what_nobody_knows_is_waited_for_until_the_deadline(world: World, policy: int, state: State) -> None:
    then = world.enqueue([world.new_id(THERE)], policy=policy, dep_wait_ms=ONE_PASS_MS + 5_000)

    world.pass_time(ONE_PASS_MS)
    assert world.states(then) == {State.BLOCKED}
    world.pass_time(2 * ONE_PASS_MS)

    assert world.states(then) == {state}
    assert world.reason(then) == (DEP_UNKNOWN if state is State.DEAD else 0)


def test_what_somebody_else_knows_is_not_unknown(world: World) -> None:
    first = world.new_id(THERE)
    then = world.enqueue([first], dep_wait_ms=400)
    leader = world.leader_of(THERE).me.name
    world.is_deaf = leader
    world.put(m.Enqueue(1, 0, (m.TaskBatch(Header("first").encode(), first, columns.pack([b""])),)))
    world.is_deaf = ""
    assert world.leader_of(THERE).me.name == leader
    assert world.leader_of(THERE).replica.bodies([first]) == [None]

    world.lose(m.Probe, m.Replicate)
    world.pass_time(ONE_PASS_MS)

    assert world.states(then) == {State.BLOCKED}
    assert world.leader_of(THERE).replica.bodies([first]) != [None], "it has learnt of it"


# -- many --------------------------------------------------------------------------------------------


def enqueue_bulk(world: World, firsts: Sequence[bytes]) -> None:
    """A task for each of these, which waits for it."""
    made = world.mint.mint(world.now_ms, len(firsts), HERE)
    headers, rests = zip(*[split_body(Body(BULK, deps=(first,)).encode()) for first in firsts], strict=True)
    world.put(m.Enqueue(1, 0, (m.TaskBatch(headers[0], b"".join(made), columns.pack(rests)),)), wait_ms=5)


def test_questions_about_many_are_gathered_and_those_about_few_are_not(world: World) -> None:
    firsts = world.mint.mint(world.now_ms, 301, THERE)

    def asked() -> int:
        return sum(1 for first in firsts if world.tells(first))

    enqueue_bulk(world, firsts[:100])
    assert asked() == 100
    enqueue_bulk(world, firsts[100:200])
    enqueue_bulk(world, firsts[200:300])
    assert asked() == 100
    enqueue_bulk(world, firsts[300:])
    assert asked() == 101 and world.tells(firsts[300]) == 3
    world.pass_time(100)
    assert asked() == 301


def test_what_is_gathered_and_too_much_to_remember_is_asked_at_once(world: World,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependent_side, "FRESH_MAX", 150)
    firsts = world.mint.mint(world.now_ms, 300, THERE)
    for at in range(0, 300, 100):
        enqueue_bulk(world, firsts[at : at + 100])

    world.pass_time(200)

    assert all(world.tells(first) for first in firsts)


# -- losses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [m.Watch, m.Tell, m.Told, m.Watched])
def test_the_walk_finds_what_was_lost(world: World, kind: type[m.Message]) -> None:
    first = world.enqueue(route=THERE)
    world.lose(kind)
    then = world.enqueue([first])
    world.complete(first)
    world.pass_time(10_000)
    has_passed = kind in (m.Told, m.Watched) or world.leader_of(HERE).me == world.leader_of(THERE).me
    assert world.states(then) == {State.WAITING if has_passed else State.BLOCKED}

    world.lose()
    world.pass_time(ONE_PASS_MS)

    assert world.claim() == [then] and world.tells(first) == 0


@pytest.mark.parametrize("partition", [HERE, THERE])
def test_a_new_leader_goes_on(world: World, partition: int) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])
    world.lose(m.Tell)
    world.complete(first)

    vnode = world.leader_of(partition)
    vnode.resign(world.now_ms)
    world.lose()
    world.pass_time(10_000)

    assert world.leader_of(partition).is_leading
    assert world.claim() == [then]


def test_a_new_leader_asks_what_the_old_one_had_no_answer_to(world: World) -> None:
    apart = next(route for route in range(4) if world.leader_of(route).me != world.leader_of(HERE).me)
    first = world.enqueue(route=apart)
    world.lose(m.Watch)
    then = world.enqueue([first])
    assert world.notes(first) == set()

    restart_all(world)
    world.complete(first)
    world.pass_time(15_000)

    assert world.claim() == [then]


def test_a_new_leader_tells_what_the_old_one_could_not(world: World) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])
    world.lose(m.Tell, m.Told, m.Amended)
    world.complete(first)
    world.pass_time(1_000)
    assert world.states(then) == {State.BLOCKED} and world.tells(first) == 3

    restart_all(world)
    world.pass_time(15_000)

    assert world.claim() == [then] and world.tells(first) == 0


def restart_all(world: World) -> None:
    """All processes die, and what they had in memory; nothing is lost any more."""
    world.flying.clear()
    for name in world.names:
        world.restart(name)
    world.lose()
    world.pass_time(8_000)


def test_what_could_not_be_told_is_told_somewhat_later(world: World) -> None:
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])
    world.lose(m.Amended)
    world.complete(first)
    world.pass_time(3_000)
    assert world.states(then) == {State.BLOCKED}

    world.lose()
    world.pass_time(3_000)

    assert world.states(then) == {State.WAITING}


def test_one_node_needs_no_other() -> None:
    world = World(1, 1)
    first = world.enqueue(route=THERE)
    then = world.enqueue([first])
    world.complete(first)
    assert world.claim() == [then]
