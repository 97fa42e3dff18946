"""Log entries through several nodes: the same ones again are harmless; other content under a number is refused,
as a doubt where a copy that was late has taken it.

A client asks another node each time, so what one node sends may overtake what another one has sent before.
"""

from __future__ import annotations

from node.machines import Machines
from node.test_collecting import ask, enqueue
from skuld_py.model import columns
from skuld_py.model import messages as m

TOKEN = 1 << 32


def append(machines: Machines, task_id: bytes, name: str, *entries: bytes, w: int = 0) -> m.Message:
    return ask(machines, m.Append(2, w, task_id, TOKEN, 0, columns.pack(entries)), name)


def with_a_task() -> tuple[Machines, bytes]:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    return machines, enqueue(machines, 1)[0]


def test_an_update_that_is_asked_again_is_the_same_one_at_every_node() -> None:
    machines, task_id = with_a_task()
    late = machines.names[2]
    machines.is_deaf = late
    assert isinstance(append(machines, task_id, machines.names[0], b"a", b"b"), m.Acked)
    machines.is_deaf = ""

    for name in (*machines.names, *machines.names):
        answer = append(machines, task_id, name, b"a", b"b", w=3)
        assert isinstance(answer, m.Acked) and answer.copies == 3
    for name in machines.names:
        refused = append(machines, task_id, name, b"other")
        assert isinstance(refused, m.Failed) and (refused.code, refused.is_definite) == ("conflict", True)


def test_other_content_is_in_doubt_where_a_copy_that_was_late_has_taken_it() -> None:
    machines, task_id = with_a_task()
    machines.is_deaf = machines.names[2]
    assert isinstance(append(machines, task_id, machines.names[0], b"a"), m.Acked)
    machines.is_deaf = ""

    answer = append(machines, task_id, machines.names[1], b"other")

    assert isinstance(answer, m.Failed) and (answer.code, answer.is_definite) == ("conflict", False)
    assert "other content under this number" in answer.text
