"""One task and two who move it to two queues on three nodes, in every order of their steps, and wherever they
stop: it is done once.

A mover reads, then asks nodes to keep its copy, hears of that, reads the copy, and cancels the first task. What it
reads before it writes is one step here: nothing changes by it. Between any two steps a worker may claim and
complete the first task.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from node.machines import Machines
from skuld_py.client.asking import Answered, Ask, Blocking, Work
from skuld_py.client.moving import Moved
from skuld_py.client.verbs import Verbs
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.events import RulesChanged
from skuld_py.node.writes.tasks import INSTEAD_RULES

STEPS = 5
"""Of one mover, until it has cancelled."""
TARGETS = {"b": "B", "c": "C"}


class Steps(Verbs, Blocking):
    """A client whose verbs are carried out by whoever asked."""

    def _run(self, work: Work[Any], perform: Any = None) -> Any:
        return work


class Mover:
    """Moves what is in queue A, a request at a time; each kind of client asks a node of its own."""

    def __init__(self, machines: Machines, to: str, index: int) -> None:
        self._machines = machines
        self._node = machines.names[index]
        self._client = b"mover to " + to.encode()
        self._heard = 0
        client: Any = Steps("me", clock=lambda: 0.0, wall=lambda: machines.now_ms)
        self._work: Any = client.move_all("A", to)
        self._question: Ask | None = next(self._work)
        self.result: Moved | SkuldError | None = None

    def send(self) -> None:
        """Ask, and hear nothing yet."""
        if self._question is not None:
            question: Any = self._question.message
            self._machines.ask(self._node, attrs.evolve(question, request=1), self._client)

    def hear(self) -> None:
        """Go on with the answer."""
        if self._question is None:
            return
        answers: list[Any] = []
        for _ in range(100):
            answers = self._machines.answers_to(self._client)[self._heard :]
            if answers:
                break
            self._machines.pass_time(20)
        self._heard += 1
        try:
            if isinstance(answers[0], m.Failed):
                kind = Refused if answers[0].is_definite else Uncertain
                self._question = self._work.throw(kind(answers[0].code, answers[0].text))
            else:
                self._question = self._work.send(Answered(answers[0], 0.0))
        except StopIteration as end:
            self._question, self.result = None, end.value
        except SkuldError as error:
            self._question, self.result = None, error

    def ask(self) -> None:
        self.send()
        self.hear()

    def step(self, number: int) -> None:
        """The next of its steps."""
        if number == 0:
            while self._question is not None and not isinstance(self._question.message, m.Enqueue):
                self.ask()
        elif number == 1:
            self.send()
        elif number == 2:
            self.hear()
        elif number < STEPS - 1:
            self.ask()
        else:
            while self._question is not None:
                self.ask()


def cluster() -> Machines:
    """Three nodes, and a task in queue A."""
    machines = Machines(partitions=1)
    machines.pass_time(4_000)
    for name in machines.names:
        machines.give(name, RulesChanged(INSTEAD_RULES))
    batch = machines.batch("A", 1)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (batch,)), b"first")
    machines.pass_time(100)
    return machines


def done_in(machines: Machines, queue: str) -> int:
    """Claim and complete what there is; gives how many were."""
    client = f"of {queue} at {machines.now_ms}".encode()
    machines.ask(machines.names[1], m.Claim(1, queue, 5, 60_000, 0, "w"), client)
    machines.pass_time(200)
    count = 0
    for answer in machines.answers_to(client):
        for batch in answer.batches if isinstance(answer, m.Claimed) else ():
            task_ids = ids.split(batch.ids)
            count += len(task_ids)
            tokens = columns.pack_u64([batch.first_token + number for number in range(len(task_ids))])
            machines.ask(machines.names[2], m.Complete(
                1, 0, 0, batch.ids, tokens, b"", columns.pack([])), client + b" done")
            machines.pass_time(200)
    return count


def all_done(machines: Machines) -> int:
    """How often tasks are claimed from now on."""
    count = 0
    for _ in range(2):
        machines.pass_time(4_000)
        count += sum(done_in(machines, queue) for queue in "ABC")
    return count


def orders() -> Iterator[str]:
    """All orders of the steps of two movers, each of which may stop after any of them."""
    for of_b, of_c in itertools.product(range(1, STEPS + 1), repeat=2):
        for places in itertools.combinations(range(of_b + of_c), of_b):
            yield "".join("b" if place in places else "c" for place in range(of_b + of_c))


def carried_out(order: str, claimed_at: int | None = None) -> tuple[int, dict[str, Mover]]:
    """How often the task is done, and what the movers said."""
    machines = cluster()
    movers = {name: Mover(machines, to, index) for index, (name, to) in enumerate(TARGETS.items())}
    count, numbers = 0, dict.fromkeys(TARGETS, 0)
    for place, name in enumerate(order):
        if place == claimed_at:
            count += done_in(machines, "A")
        movers[name].step(numbers[name])
        numbers[name] += 1
    return count + all_done(machines), movers


def check(index: int, order: str) -> None:
    claimed_at = None if index % 3 == 0 else index % (len(order) + 1)

    count, movers = carried_out(order, claimed_at)

    moved = [mover.result for mover in movers.values() if isinstance(mover.result, Moved)]
    assert count == 1 and sum(each.count for each in moved) <= 1, (order, claimed_at, moved)


@pytest.mark.parametrize("part", range(6))
def test_a_task_that_two_move_to_two_queues_at_once_is_done_once(part: int) -> None:
    """Some of the orders."""
    for index, order in enumerate(orders()):
        if index % 48 == part * 8 + 5:
            check(index, order)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(12))
def test_a_task_that_two_move_to_two_queues_is_done_once_in_every_order(part: int) -> None:
    for index, order in enumerate(orders()):
        if index % 12 == part:
            check(index, order)


def test_neither_of_two_copies_that_one_node_each_keeps_is_a_reason_to_cancel() -> None:
    """The third node hears nothing: the task stays where it is, and who moves it later does so."""
    machines = cluster()
    movers = [Mover(machines, to, index) for index, to in enumerate("BC")]
    for mover in movers:
        mover.step(0)
    machines.is_deaf = machines.names[2]
    for mover in movers:
        mover.send()
    machines.pass_time(5_000)
    for mover in movers:
        mover.hear()
    machines.is_deaf = ""
    for mover in movers:
        mover.step(STEPS - 1)

    assert [isinstance(mover.result, SkuldError) or mover.result == Moved(elsewhere=1) for mover in movers] == [
        True, True], [mover.result for mover in movers]
    machines.pass_time(4_000)
    again = Mover(machines, "B", 2)
    again.step(STEPS - 1)
    assert again.result in (Moved(1), Moved(elsewhere=1)) and all_done(machines) == 1


def test_what_was_purged_where_it_was_moved_to_is_not_cancelled_where_it_is() -> None:
    """A move that broke off, undone by a purge there: moved again, the task is left and can be claimed."""
    machines = cluster()
    mover = Mover(machines, "B", 0)
    for number in range(3):
        mover.step(number)
    copy, = (row.id for row in rows_of(machines, "B"))
    machines.ask(machines.names[0], m.Cancel(1, 0, 0, copy), b"purge")
    machines.pass_time(1_000)
    for number in range(3, STEPS):
        mover.step(number)
    again = Mover(machines, "B", 1)
    again.step(STEPS - 1)

    assert mover.result == again.result == Moved(ended=1)
    assert done_in(machines, "A") == 1 and all_done(machines) == 0


def rows_of(machines: Machines, queue: str) -> list[m.TaskRow]:
    """All tasks of a queue."""
    machines.ask(machines.names[0], m.List(1, queue, b"", 9, 0, 0, 0), b"list")
    machines.pass_time(200)
    page: Any = machines.answers_to(b"list")[-1]
    machines.ask(machines.names[0], m.Get(1, page.ids), b"get")
    machines.pass_time(200)
    answer: Any = machines.answers_to(b"get")[-1]
    return list(answer.tasks)


def test_what_is_done_while_it_is_moved_is_not_left() -> None:
    machines = cluster()
    mover = Mover(machines, "B", 0)
    for number in range(3):
        mover.step(number)
    machines.pass_time(1_000)
    assert done_in(machines, "A") == 1
    machines.pass_time(4_000)
    for number in range(3, STEPS):
        mover.step(number)

    assert mover.result == Moved() and all_done(machines) == 0


def test_one_that_is_moved_elsewhere_at_once_keeps_no_page_from_being_moved() -> None:
    machines = cluster()
    other = Mover(machines, "C", 1)
    other.step(0)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("A", 2),)), b"more")
    machines.pass_time(100)
    mover = Mover(machines, "B", 0)
    mover.step(0)
    for number in range(1, STEPS):
        other.step(number)
    mover.step(STEPS - 1)

    assert (other.result, mover.result) == (Moved(1), Moved(2, elsewhere=1))
    machines.pass_time(4_000)
    assert [done_in(machines, queue) for queue in "ABC"] == [0, 2, 1]
