"""The last errors of tasks, as a column of a listing: each copy's newest, and of all copies the newest."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.history import FAILED
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.outcomes import ERROR_SEQ, FIRST_TOKEN, RESULT_SEQ
from skuld_py.node.reads.listing import listed
from skuld_py.node.reads.merge import join_errors
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import last_error

NOW_MS = 1_000_000
FIRST, SECOND = FIRST_TOKEN, FIRST_TOKEN + 9


def failed(*errors: bytes, log: bytes = b"") -> tuple[Replica, bytes]:
    """A task that failed with these errors, one claim after another, the last of which has a log."""
    replica, now_ms = Replica(0, MemoryStore(), 100), NOW_MS
    task_id, = ids.IdMint(1).mint(NOW_MS, 1, 0)
    replica.store_tasks(now_ms, Header("q").encode(), [task_id], [b"x"])
    for number, error in enumerate(errors):
        token = (FIRST, SECOND)[number]
        head = next(iter(replica.filing.heads("q", None, 1)), bytes(20))
        replica.apply_grant(now_ms, Grant([task_id], [head[:-20]], token, now_ms, now_ms + 50, "w"))
        replica.amend(now_ms, [Amendment(task_id, token, now_ms + 50, FAILED, now_ms)])
        replica.note_outcomes(ERROR_SEQ, [task_id], [token], [error])
        now_ms += 1_000
    if log:
        replica.append(task_id, token, 0, [log])
    return replica, task_id


@pytest.mark.parametrize(("errors", "log", "found"), [
    ((), b"", b""), ((b"",), b"", b""), ((b"one",), b"", columns.pack_u64([FIRST]) + b"one"),
    ((b"one", b"two"), b"", columns.pack_u64([SECOND]) + b"two"),
    ((b"one", b"two"), b"said", columns.pack_u64([SECOND]) + b"two"),
    ((b"one", b""), b"said", columns.pack_u64([FIRST]) + b"one")])
def test_it_is_that_of_the_newest_claim_that_failed_with_one(errors: tuple[bytes, ...], log: bytes,
                                                             found: bytes) -> None:
    replica, task_id = failed(*errors, log=log)
    record = replica.histories([task_id]).get(replica.prefix + task_id, b"")

    page = listed(NOW_MS, [0], [replica], DEFAULT_LIMITS, m.List(1, "", b"", 7, with_errors=True))

    assert last_error(replica, task_id, record) == found
    assert page.errors.unpack("errors") == [found]
    assert len(listed(NOW_MS, [0], [replica], DEFAULT_LIMITS, m.List(1, "", b"", 7)).errors) == 0


def test_a_result_is_no_error() -> None:
    replica, task_id = failed(b"one")
    replica.note_outcomes(RESULT_SEQ, [task_id], [SECOND], [b"result"])

    assert last_error(replica, task_id, replica.histories([task_id])[replica.prefix + task_id])[8:] == b"one"


def test_of_all_copies_the_newest_stands_in_whatever_order_they_answer() -> None:
    old, new, smaller = (columns.pack_u64([token]) + text for token, text in (
        (FIRST, b"zz"), (SECOND, b"b"), (SECOND, b"a")))

    assert join_errors(old, new) == join_errors(new, old) == new
    assert join_errors(new, smaller) == join_errors(smaller, new) == smaller
    assert join_errors(b"", old) == join_errors(old, b"") == old and join_errors(b"", b"") == b""


def test_where_one_copy_has_no_place_for_errors_none_are_shown() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    batch = machines.batch("q", 2)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (batch,)))
    machines.pass_time(100)

    def shown(client: bytes) -> int:
        machines.ask(machines.names[0], m.List(1, "q", b"", 9, with_errors=True), client)
        machines.pass_time(200)
        page, = machines.answers_to(client)
        assert isinstance(page, m.Listed) and len(page.ids) == 2 * ids.ID_BYTES
        return len(page.errors)
    assert shown(b"all know") == 2
    for node in (machines.nodes[name] for name in machines.names[1:]):
        answer = node._reads.pages._read
        node._reads.pages._read = lambda now_ms, matter, answer=answer: (  # type: ignore[method-assign]
            m.Listed(0, *(getattr(answer(now_ms, matter)[0], name) for name in (
                "partitions", "upto", "ids", "bodies", "histories"))), 0)
    assert shown(b"some do not") == 0
