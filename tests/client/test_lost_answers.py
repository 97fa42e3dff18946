"""Every verb whose first answer is lost, and which is asked again after others have done something: what was
refused has not happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from skuld_py import Refused, Retry
from skuld_py.client.asking import Answered, Ask, stream, verb
from skuld_py.client.claims import Claim, ClaimName
from skuld_py.client.pursuit import Heard, Listen, Nodes, Try, pursue
from skuld_py.client.verbs import Verbs
from skuld_py.errors import SkuldError, Uncertain
from skuld_py.model import messages as m
from skuld_py.model.columns import pack_u64
from skuld_py.model.proofs import proofs_of
from skuld_py.testing import MemoryClient
from skuld_py.testing.single_node import KEY

QUEUE = "q"
READING = {"quota_use", "quotas", "archive_root", "archived", "collectable", "count", "depths", "ends",
           "enter_archive", "get", "get_many", "greeting", "limits", "list", "list_page", "log", "new_ids",
           "offered", "overview", "paused", "report", "result", "results", "results_of", "schedules", "status",
           "take_seats", "workers", "workflow", "workflows", "await_workflow", "follow_log", "partition_history"}
"""Verbs that change nothing said again; ``archived`` says how much it did, and never that it was refused for what
it did; and a report said twice is one."""
OF_THE_LOG = {"submit_workflow", "kill_workflow", "exhaust_input", "seal_output", "drain"}
"""What they write into the coordination log changes nothing when it is said again: see ``test_workflows``."""
Act = Callable[[MemoryClient], object]


class Deaf(MemoryClient):
    """Asks as a client over sockets does, and does not hear the first answer to what ``lost`` names; ``between``
    happens before it asks again."""

    def __init__(self, lost: type[m.Message], between: Callable[[], None], **given: Any) -> None:
        super().__init__(**given)
        self.lost = lost
        self.between = between
        self.has_lost = False

    def _perform(self, step: Any) -> Any:
        if not isinstance(step, Ask):
            return super()._perform(step)
        pursuit = pursue(Nodes(["a", "b"]), self.cluster.steady_s(), 5.0, is_idempotent=step.is_idempotent,
                         doubted=step.doubted)
        try:
            heard = next(pursuit)
            while True:
                heard = pursuit.send(self._heard(heard, step))
        except StopIteration as end:
            return Answered(end.value, self.cluster.steady_s())

    def _heard(self, step: object, question: Ask) -> Heard:
        if isinstance(step, Try):
            return Heard(self.cluster.steady_s(), "a")
        if not isinstance(step, Listen):
            self.advance(0.05)
            return Heard(self.cluster.steady_s())
        answer = self._asked(question)
        if type(question.message) is not self.lost or self.has_lost:
            return Heard(self.cluster.steady_s(), answer=answer)
        self.has_lost = True
        self.between()
        return Heard(max(self.cluster.steady_s(), step.until))

    def _asked(self, question: Ask) -> m.Message:
        try:
            answer: m.Message = self.cluster.ask(question, 5.0).message
        except SkuldError as error:
            return m.Failed(1, error.code, error.message, isinstance(error, Refused))
        return answer


@attrs.frozen
class World:
    """What a verb is used on: a task that waits, one that is held, one that is dead."""

    me: Deaf
    waiting: bytes
    held: Claim
    dead: bytes


@attrs.frozen
class Row:
    """A verb, as it is used; and the request whose first answer is lost."""

    verb: str
    lost: type[m.Message]
    use: Callable[[World], object]


ROWS = (
    Row("enqueue", m.Enqueue, lambda world: world.me.enqueue(QUEUE, b"new")),
    Row("enqueue", m.Enqueue, lambda world: world.me.enqueue(QUEUE, b"new", unique="name")),
    Row("enqueue", m.Enqueue, lambda world: world.me.enqueue(QUEUE, b"new", key="key")),
    Row("enqueue_many", m.Enqueue, lambda world: world.me.enqueue_many(QUEUE, [b"1", b"2"])),
    Row("chain", m.Enqueue, lambda world: world.me.chain([(QUEUE, b"1"), (QUEUE, b"2")])),
    Row("group", m.Enqueue, lambda world: world.me.group([(QUEUE, b"1"), (QUEUE, b"2")])),
    Row("chord", m.Enqueue, lambda world: world.me.chord([(QUEUE, b"1")], (QUEUE, b"2"))),
    Row("join", m.Enqueue, lambda world: world.me.join([world.waiting], (QUEUE, b"2"))),
    Row("claim", m.Claim, lambda world: world.me.claim(QUEUE)),
    Row("claim_one", m.Claim, lambda world: world.me.claim_one(QUEUE)),
    Row("renew", m.Renew, lambda world: world.me.renew(world.held, lease_s=90)),
    Row("renew_many", m.Renew, lambda world: insist(world.me.renew_many([world.held], lease_s=90))),
    Row("update", m.Append, lambda world: world.me.update(world.held, b"entry")),
    Row("complete", m.Complete, lambda world: world.me.complete(world.held, b"result")),
    Row("complete_many", m.Complete, lambda world: world.me.complete_many([world.held])),
    Row("fail", m.Conclude, lambda world: world.me.fail(world.held, b"why", retry_in_s=0)),
    Row("fail_many", m.Conclude, lambda world: insist(world.me.fail_many([world.held], retry_in_s=0))),
    Row("snooze", m.Conclude, lambda world: world.me.snooze(world.held, 0)),
    Row("snooze_many", m.Conclude, lambda world: world.me.snooze_many([world.held], 0)),
    Row("release", m.Conclude, lambda world: world.me.release(world.held)),
    Row("cancel", m.Cancel, lambda world: world.me.cancel(world.waiting)),
    Row("purge", m.Cancel, lambda world: world.me.purge(QUEUE)),
    Row("cancel_all", m.Cancel, lambda world: world.me.cancel_all(QUEUE)),
    Row("purge_all", m.Cancel, lambda world: world.me.purge_all(QUEUE)),
    Row("move_all", m.Enqueue, lambda world: world.me.move_all(QUEUE, "elsewhere")),
    Row("move_all", m.Cancel, lambda world: world.me.move_all(QUEUE, "elsewhere")),
    Row("release_all", m.Evict, lambda world: world.me.release_all(holder=world.me.holder)),
    Row("retry", m.Revive, lambda world: world.me.retry(world.dead)),
    Row("retry_all", m.Revive, lambda world: world.me.retry_all(QUEUE)),
    Row("pause", m.PutSetting, lambda world: world.me.pause("other")),
    Row("resume", m.PutSetting, lambda world: world.me.resume("paused")),
    Row("set_limits", m.PutSetting, lambda world: world.me.set_limits(QUEUE, concurrency=7)),
    Row("remove_limits", m.PutSetting, lambda world: world.me.remove_limits(QUEUE)),
    Row("set_quota", m.PutSetting, lambda world: world.me.set_quota("other.", 7)),
    Row("remove_quota", m.PutSetting, lambda world: world.me.remove_quota("other.")),
    Row("put_schedule", m.PutSetting, lambda world: world.me.put_schedule("beat", "other", every_s=3600)),
    Row("remove_schedule", m.PutSetting, lambda world: world.me.remove_schedule("old")),
    Row("freeze", m.Steer, lambda world: world.me.freeze(0)),
    Row("unfreeze", m.Steer, lambda world: world.me.unfreeze(0)),
    Row("promote", m.Steer, lambda world: world.me.promote(world.me.status().node, 0)),
    Row("reorder", m.Steer, lambda world: refused(world.me.reorder, world.me.status().node, 0)),
    Row("rebalance", m.Steer, lambda world: world.me.rebalance(0)),
    Row("withdraw", m.Steer, lambda world: world.me.withdraw(0)),
    Row("solo", m.Steer, lambda world: world.me.solo(0)),
    Row("quarantine", m.Steer, lambda world: refused(world.me.quarantine, world.me.status().node, 0)),
    Row("reap", m.Steer, lambda world: refused(world.me.reap, world.me.status().node, 0)),
    Row("force_epoch", m.Steer, lambda world: refused(world.me.force_epoch, 0)),
)


def insist(held: Sequence[bool | None]) -> None:
    """What one verb raises, its like for many says: False is a refusal."""
    if False in held:
        raise Refused("fenced", "claims: lost")
    if None in held:
        raise Uncertain("uncertain", "claims: nobody knows")


def refused(use: Callable[..., object], *arguments: object) -> None:
    """What a cluster of one node has no use for."""
    with pytest.raises(Refused, match=r"leads it|could lead it|is alive|has a majority"):
        use(*arguments)


def nothing(other: MemoryClient) -> None:
    """Nobody comes between."""


def claim_all(other: MemoryClient) -> list[Claim]:
    return other.claim(QUEUE, n=100)


def finish_all(other: MemoryClient) -> None:
    """Whoever claims it completes it; and what is held is completed by its claim's name, as its holder has it."""
    key = bytes.fromhex(KEY)
    others = [ClaimName(task.id, claim.token, proofs_of(key, [task.id], [claim.token.to_bytes(8, "big")]))
              for task in other.list(QUEUE, states=["claimed"]) for claim in task.claims]
    other.complete_many([*claim_all(other), *others])


def fail_all(other: MemoryClient) -> None:
    other.fail_many(claim_all(other), retry_in_s=0)


def cancel_all(other: MemoryClient) -> None:
    other.cancel(*(task.id for task in other.list(QUEUE)))


def let_lapse(other: MemoryClient) -> None:
    """Leases end, and others claim what they held."""
    other.advance(100)
    claim_all(other)


def set_all(other: MemoryClient) -> None:
    """Settings that others make meanwhile."""
    other.pause("other")
    other.set_limits(QUEUE, concurrency=9)
    other.put_schedule("beat", "other", every_s=60)


BETWEEN: tuple[Act, ...] = (nothing, claim_all, finish_all, fail_all, cancel_all, let_lapse, set_all)


def world_of(lost: type[m.Message], between: Act) -> tuple[World, list[object]]:
    """And what was to be seen before and after the first asking."""
    other = MemoryClient(now=1_700_000_000.0)
    dead = other.enqueue(QUEUE, b"dead", retry=Retry(max_attempts=1))
    other.fail(other.claim(QUEUE)[0])
    other.pause("paused")
    other.set_limits(QUEUE, concurrency=50)
    other.put_schedule("old", "other", every_s=3600)
    seen: list[object] = []

    def meanwhile() -> None:
        seen.append(facts_of(other))
        between(other)
    me = Deaf(lost, meanwhile, cluster=other.cluster)
    held_id = other.enqueue(QUEUE, b"held", retry=Retry(max_attempts=100))
    held, = other.claim(QUEUE)
    assert held.id == held_id
    world = World(me, other.enqueue(QUEUE, b"waiting"), held, dead)
    seen.append(facts_of(other))
    return world, seen


def facts_of(client: MemoryClient) -> object:
    """All that readers are shown."""
    return ([attrs.evolve(task, state="") for task in client.list()], client.paused(), client.limits(),
            client.quotas(), client.schedules())


@pytest.mark.parametrize("between", BETWEEN, ids=lambda act: act.__name__)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.verb)
def test_what_is_refused_when_it_is_asked_again_has_not_happened(row: Row, between: Act) -> None:
    world, seen = world_of(row.lost, between)
    try:
        row.use(world)
    except Uncertain:
        return
    except Refused as refusal:
        before, after = seen
        assert before == after, f"{refusal}, although it has happened"
    assert world.me.has_lost


def test_every_verb_that_changes_something_is_in_the_table() -> None:
    verbs = {name for of in Verbs.__mro__ for name, value in vars(of).items() if isinstance(value, verb | stream)}

    assert verbs - READING - OF_THE_LOG == {row.verb for row in ROWS}


class Unlucky(MemoryClient):
    """Has all requests answered well but one of a kind, which is refused."""

    def __init__(self, kind: type[m.Message], refused: int) -> None:
        super().__init__()
        self._kind = kind
        self._refused = refused
        self.sent = 0

    def _perform(self, step: Any) -> Any:
        if not isinstance(step, Ask) or type(step.message) is not self._kind:
            return super()._perform(step)
        self.sent += 1
        if self.sent == self._refused:
            raise Refused("busy", "wait")
        count = len(getattr(step.message, "ids", b"")) // 20
        answers: dict[type[m.Message], m.Message] = {
            m.Renew: m.Renewed(0, pack_u64([1] * count)), m.Conclude: m.Renewed(0, pack_u64([1] * count)),
            m.Revive: m.Revived(0, bytes([m.Revival.REVIVED]) * count)}
        return Answered(answers.get(self._kind, m.Acked(0, 1)), self.cluster.steady_s())


MANY = 1_001
IDS = [number.to_bytes(20, "big") for number in range(MANY)]
NAMES = [ClaimName(task_id, 1 << 32) for task_id in IDS]
LARGE: tuple[tuple[type[m.Message], Callable[[MemoryClient, Sequence[ClaimName]], object]], ...] = (
    (m.Cancel, lambda me, names: me.cancel(*(name.id for name in names))),
    (m.Revive, lambda me, names: me.retry(*(name.id for name in names))),
    (m.Complete, lambda me, names: me.complete_many(names)),
    (m.Complete, lambda me, names: me.complete_many(names, ["result"] * len(names))),
    (m.Renew, lambda me, names: me.renew_many(names)),
    (m.Conclude, lambda me, names: me.fail_many(names)),
    (m.Conclude, lambda me, names: me.fail_many(names, ["error"] * len(names))),
    (m.Conclude, lambda me, names: me.release(*names)),
    (m.Enqueue, lambda me, names: me.enqueue_many(QUEUE, [b""] * len(names))),
    (m.Enqueue, lambda me, names: me.chain([(QUEUE, b"")] * len(names))),
    (m.Enqueue, lambda me, names: me.group([(QUEUE, b"")] * len(names))),
    (m.Enqueue, lambda me, names: me.chord([(QUEUE, b"")] * len(names), (QUEUE, b""))),
    (m.Enqueue, lambda me, names: me.join([name.id for name in names], (QUEUE, b""))),
)


@pytest.mark.parametrize(("kind", "use"), LARGE)
def test_a_call_of_several_requests_is_refused_only_when_the_first_one_is(
        kind: type[m.Message], use: Callable[[MemoryClient, Sequence[ClaimName]], object]) -> None:
    with pytest.raises(Refused):
        use(Unlucky(kind, 1), NAMES)
    with pytest.raises(Uncertain, match="1 requests of this call were carried out before") as caught:
        use(Unlucky(kind, 2), NAMES)
    assert caught.value.code == "busy"


@pytest.mark.parametrize(("kind", "use"), [row for row in LARGE if row[0] is not m.Enqueue])
def test_a_bad_argument_is_refused_before_the_first_request(
        kind: type[m.Message], use: Callable[[MemoryClient, Sequence[ClaimName]], object]) -> None:
    me = Unlucky(kind, 0)
    with pytest.raises(Refused):
        use(me, [*NAMES[:-1], ClaimName(b"no id", 1 << 32)])
    assert not me.sent


class Forgetful(Deaf):
    """Asks leaders that have missed all that was asked for first: to them every claim is lost."""

    def __init__(self) -> None:
        super().__init__(m.Conclude, lambda: None)

    def _asked(self, question: Ask) -> m.Message:
        assert isinstance(question.message, m.Conclude)
        return m.Renewed(0, pack_u64([0] * (len(question.message.ids) // 20)))


@pytest.mark.parametrize("use", [
    lambda me: me.fail(NAMES[0]), lambda me: insist(me.fail_many(NAMES[:2])), lambda me: me.snooze(NAMES[0], 1)])
def test_a_claim_that_is_called_lost_by_who_missed_the_first_asking_leaves_doubt(
        use: Callable[[MemoryClient], object]) -> None:
    me = Forgetful()
    with pytest.raises(Uncertain):
        use(me)
    assert me.has_lost


def test_a_release_of_what_is_called_lost_then_leaves_none() -> None:
    me = Forgetful()
    me.release(*NAMES[:2])
    assert me.has_lost
