"""A node that is behind with what it has to do takes on nothing new, and peers that are silent get no flood."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.events import Ticked

BUSY = ["busy"]
NEW = m.Count(9, "q")
OF_HOLDER = m.Complete(9, 0, 0, bytes(20), columns.pack_u64([1]))


def behind(late_ms: int) -> tuple[Machines, str]:
    """A node whose oldest timer, that of a question nobody answers, is overdue for so long."""
    machines = Machines()
    machines.pass_time(5_000)
    name = machines.names[0]
    machines.is_deaf = machines.names[1]
    machines.ask(name, m.Count(1, "q"), b"first")
    machines.now_ms += machines.timing.resend_ms + late_ms
    return machines, name


def refusals(machines: Machines, name: str, message: m.Message) -> list[str]:
    machines.ask(name, message, b"client")
    return [answer.code for answer in machines.answers_to(b"client")
            if isinstance(answer, m.Failed) and answer.is_definite]


def test_a_node_that_is_behind_refuses_what_is_new_and_later_what_holders_ask() -> None:
    most_ms = DEFAULT_TIMING.behind_ms
    asked = [(NEW, most_ms), (NEW, most_ms + 1), (OF_HOLDER, 3 * most_ms), (OF_HOLDER, 3 * most_ms + 1)]

    are_refused = [refusals(*behind(late_ms), message) == BUSY for message, late_ms in asked]
    assert are_refused == [False, True, False, True]


@pytest.mark.parametrize("message", [m.Greet(9), m.Describe(9)])
def test_a_node_however_far_behind_says_who_and_how_it_is(message: m.Message) -> None:
    machines, name = behind(60_000)
    machines.ask(name, message, b"client")
    machines.give(name, Ticked())
    machines.pass_time(100)

    assert [type(answer) for answer in machines.answers_to(b"client")] != [m.Failed]


def test_a_node_that_has_caught_up_takes_on_what_is_new() -> None:
    machines, name = behind(60_000)
    machines.give(name, Ticked())

    assert refusals(machines, name, NEW) == []


def test_a_silent_peer_is_asked_again_after_ever_longer_pauses() -> None:
    machines = Machines()
    machines.pass_time(5_000)
    name = machines.names[0]
    began_ms, sent = machines.now_ms, []

    def note(message: m.Message) -> bool:
        if isinstance(message, m.Replicate):
            sent.append(machines.now_ms - began_ms)
        return isinstance(message, m.Replicate)

    machines.is_lost = note
    machines.ask(name, m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(machines.timing.request_ms)

    resend_ms = machines.timing.resend_ms
    assert sent == [each * resend_ms for each in (0, 0, 1, 1, 3, 3, 7, 7)]
