"""Checkpoints through nodes: which clusters take them, what is refused by name, and what readers are shown."""

from __future__ import annotations

from node.machines import Machines
from node.test_collecting import ask, enqueue
from skuld_py.client.reading import task_of
from skuld_py.model import columns
from skuld_py.model import messages as m

LEASE_MS = 60_000


def claimed() -> tuple[Machines, bytes, int]:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    task_id = enqueue(machines, 1)[0]
    answer = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, "w"))
    assert isinstance(answer, m.Claimed)
    return machines, task_id, answer.batches[0].first_token


def said(task_id: bytes, token: int, value: bytes, number: int = 0, entries: tuple[bytes, ...] = ()) -> m.Append:
    return m.Append(3, 0, task_id, token, 0, columns.pack(entries), number=number, at_ms=7,
                    checkpoint=columns.pack([value]))


def test_a_cluster_with_nodes_that_may_not_know_of_checkpoints_takes_none_and_no_entry_beside_one() -> None:
    machines, task_id, token = claimed()
    for node in machines.nodes.values():
        node.view.protocol = 1
    refused = ask(machines, said(task_id, token, b"x", entries=(b"entry",)))
    assert isinstance(refused, m.Failed) and (refused.code, refused.is_definite) == ("unsupported", True)
    assert "raise its rules" in refused.text
    assert not any(store.rows("log") for store in machines.stores.values())
    assert isinstance(ask(machines, m.Append(3, 0, task_id, token, 0, columns.pack([b"entry"]))), m.Acked)


def test_an_update_says_something() -> None:
    machines, task_id, token = claimed()
    empty = ask(machines, m.Append(3, 0, task_id, token, 0, columns.pack([])))
    assert isinstance(empty, m.Failed) and empty.code == "entry_too_large"
    assert isinstance(ask(machines, said(task_id, token, b"")), m.Acked)


def test_a_reader_is_shown_the_newest_and_a_bare_read_none() -> None:
    machines, task_id, token = claimed()
    for number, value in enumerate((b"one", b"two")):
        assert isinstance(ask(machines, said(task_id, token, value, number)), m.Acked)
    got, bare = (ask(machines, m.Get(4, task_id, is_bare=is_bare)) for is_bare in (False, True))
    assert isinstance(got, m.Got) and isinstance(bare, m.Got)
    shown = task_of(got.tasks[0], machines.now_ms).checkpoint
    assert shown is not None
    assert (shown.value, shown.token, shown.number, shown.at_ms) == (b"two", token, 1, 7)
    assert task_of(bare.tasks[0], machines.now_ms).checkpoint is None
