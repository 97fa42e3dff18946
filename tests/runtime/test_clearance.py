"""What each role may ask for: every request of clients, for every role, and the limit to queues."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import ROLE_CLIENT, TaskBatch
from skuld_py.model.roster import NODE_ROLE, ROLES, KeyRow
from skuld_py.model.schedule import SCHEDULE
from skuld_py.model.setting import LIMITS, PAUSED
from skuld_py.runtime.clearance import MAY, UNLIMITED_ONLY, check_clearance, signed
from tests import strategies

KEY = "x" * 40
REQUESTS = [of for of in m.MESSAGES if of.roles & ROLE_CLIENT]
TABLE = {
    "worker": (m.Greet, m.Describe, m.Claim, m.Renew, m.Append, m.Complete, m.Conclude, m.Get, m.Await, m.ReadLog,
               m.Report, m.Advance, m.Survey),
    "producer": (m.Greet, m.Describe, m.Enqueue, m.Cancel, m.Get, m.Await, m.Submit, m.Kill, m.Survey),
    "reader": (m.Greet, m.Describe, m.Get, m.Await, m.ReadLog, m.List, m.Count, m.GetSettings,
               m.Muster, m.Survey, m.Follow, m.Recall),
    "archiver": (m.Greet, m.Describe, m.Get, m.Await, m.ReadLog, m.List, m.Offer, m.Discard),
    "admin": tuple(of for of in REQUESTS if of not in (m.Offer, m.Discard)),
    NODE_ROLE: (),
}


def least(of: type) -> Any:
    return strategies.make(of, lambda low, high: low)


def owner(*roles: str, queues: tuple[str, ...] = ()) -> KeyRow:
    return KeyRow(KEY, "carl", roles, queues)


def test_the_table_has_every_request_and_every_role() -> None:
    assert set(MAY) == set(REQUESTS)
    assert set(TABLE) == set(ROLES)


@pytest.mark.parametrize("of", REQUESTS, ids=lambda of: of.__name__)
def test_a_request_is_a_reading_one_if_readers_may_make_it(of: type[m.Message]) -> None:
    """What readers may not make may change something: an answer that was lost leaves a doubt, which is told."""
    assert of.is_reading == (of in TABLE["reader"])


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("of", REQUESTS, ids=lambda of: of.__name__)
def test_a_role_may_ask_for_what_is_its_own_and_for_nothing_else(role: str, of: type[m.Message]) -> None:
    message = least(of)
    if of in TABLE[role]:
        check_clearance(owner(role), message)
        check_clearance(owner("archiver", role), message)
    else:
        said = "[a-z][a-z, ]*" if any(of in own for own in TABLE.values()) else of.__name__
        with pytest.raises(Refused, match=rf"(^|\W){said}: the key of carl has the role") as refused:
            check_clearance(owner(role), message)
        assert refused.value.code == "denied" and refused.value.facts["operation"] == of.__name__


@pytest.mark.parametrize("of", REQUESTS, ids=lambda of: of.__name__)
def test_a_key_that_counts_no_more_may_ask_for_nothing(of: type[m.Message]) -> None:
    with pytest.raises(Refused, match="revoked, or its time is over"):
        check_clearance(None, least(of))


def enqueue(*queues: str) -> m.Enqueue:
    return m.Enqueue(1, 0, tuple(TaskBatch(Header(queue).encode(), b"", Column()) for queue in queues))


QUEUED = {"Enqueue": enqueue, "Claim": lambda queue: m.Claim(1, queue, 1, 1, 0, "w"),
          "List": lambda queue: m.List(1, queue, b"", 1), "Count": lambda queue: m.Count(1, queue),
          **{kind: lambda queue, kind=kind: m.GetSettings(1, kind, queue, b"") for kind in (PAUSED, LIMITS)}}


@pytest.mark.parametrize("name", QUEUED)
@pytest.mark.parametrize(("queue", "is_let"), [("shop", True), ("shop-eu", True), ("mail", True), ("sho", False),
                                               ("other", False)])
def test_a_key_of_some_queues_may_ask_for_those_alone(name: str, queue: str, is_let: bool) -> None:
    carl = owner("admin", queues=("shop", "mail"))
    if is_let:
        check_clearance(carl, QUEUED[name](queue))
    else:
        with pytest.raises(Refused, match="limited to those that begin with shop, mail"):
            check_clearance(carl, QUEUED[name](queue))


@pytest.mark.parametrize("name", ["List", "Count", PAUSED, LIMITS])
def test_all_queues_are_more_than_some(name: str) -> None:
    with pytest.raises(Refused, match="queue: all queues, but the key of carl is limited"):
        check_clearance(owner("reader", queues=("shop",)), QUEUED[name](""))


@pytest.mark.parametrize("kind", [SCHEDULE, "", "other"])
@pytest.mark.parametrize("name", ["shop", ""])
def test_what_is_set_otherwise_than_for_a_queue_is_not_for_a_key_of_some(kind: str, name: str) -> None:
    """A schedule shows the payload of tasks of any queue, whatever its name."""
    check_clearance(owner("reader"), m.GetSettings(1, kind, name, b""))
    with pytest.raises(Refused, match="queue: all queues, but the key of carl is limited"):
        check_clearance(owner("reader", queues=("shop",)), m.GetSettings(1, kind, name, b""))


def test_one_batch_of_another_queue_is_enough_to_be_refused() -> None:
    with pytest.raises(Refused, match="queue: other"):
        check_clearance(owner("producer", queues=("shop",)), enqueue("shop", "other"))


@pytest.mark.parametrize("of", UNLIMITED_ONLY, ids=lambda of: of.__name__)
def test_what_reaches_all_queues_is_not_for_a_key_of_some(of: type[m.Message]) -> None:
    roles = ("admin", "archiver")
    check_clearance(owner(*roles), least(of))
    with pytest.raises(Refused, match="limited to queues shop"):
        check_clearance(owner(*roles, queues=("shop",)), least(of))


def test_a_report_is_kept_under_the_name_of_its_key_alone() -> None:
    forged = attrs.evolve(least(m.WorkerRow), key="berta")
    assert [row.key for row in signed(m.Report(1, 1, (forged,)), owner("worker")).workers] == ["carl"]
    assert [row.key for row in signed(m.Report(1, 1, (forged,)), None).workers] == [""]


def test_a_worker_of_other_queues_is_none_of_a_key_of_some() -> None:
    worker = attrs.evolve(least(m.WorkerRow), queues=("shop", "other"))
    check_clearance(owner("worker"), m.Report(1, 1, (worker,)))
    with pytest.raises(Refused, match="queue: other"):
        check_clearance(owner("worker", queues=("shop",)), m.Report(1, 1, (worker,)))
    batch = attrs.evolve(least(m.BatchRow), queue="other")
    with pytest.raises(Refused, match="queue: other"):
        check_clearance(owner("worker", queues=("shop",)), m.Report(1, 1, (
            attrs.evolve(worker, queues=("shop",), batches=(batch,)),)))


def test_seats_are_for_keys_that_may_claim_in_all_queues_of_workflows() -> None:
    worker = attrs.evolve(least(m.WorkerRow), queues=(), weights=b"", takes_seats=True)
    check_clearance(owner("worker"), m.Report(1, 1, (worker,)))
    check_clearance(owner("worker", queues=("wf.",)), m.Report(1, 1, (worker,)))
    for queues in (("shop",), ("wf.team-",)):
        with pytest.raises(Refused, match="queue: wf"):
            check_clearance(owner("worker", queues=queues), m.Report(1, 1, (worker,)))


@pytest.mark.parametrize("ask", [
    lambda name: m.Submit(1, name, "", "", "", 0, ()), lambda name: m.Kill(1, name, ""),
    lambda name: m.Advance(1, name, "s", False), lambda name: m.Survey(1, ("team-a", name), 0, 0, 0)])
def test_a_key_of_some_workflows_queues_is_one_of_those_workflows(ask: Any) -> None:
    carl = owner("admin", queues=("wf.team-",))
    check_clearance(carl, ask("team-daily"))
    with pytest.raises(Refused, match=r"queue: wf\.daily\., but the key of carl is limited"):
        check_clearance(carl, ask("daily"))


def test_a_key_of_some_queues_sees_neither_all_workflows_nor_the_log() -> None:
    check_clearance(owner("reader"), m.Survey(1, (), 0, 0, 0))
    with pytest.raises(Refused, match="queue: all queues, but the key of carl is limited"):
        check_clearance(owner("reader", queues=("wf.",)), m.Survey(1, (), 0, 0, 0))
    with pytest.raises(Refused, match="this reaches others"):
        check_clearance(owner("reader", queues=("wf.",)), m.Follow(1, 0, 1, 0))
