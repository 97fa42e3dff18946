"""By option, a node takes no tasks that nobody would be granted for a long time."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.events import MembersChanged
from skuld_py.node.writes.unled import Unled

LIMIT_MS = 10_000


def unled(limit_ms: int) -> tuple[Machines, str]:
    """Three nodes, the leader of all partitions gone, and no candidate hears a vote."""
    machines = Machines(partitions=1, timing=attrs.evolve(DEFAULT_TIMING, refuse_unled=limit_ms))
    machines.pass_time(5_000)
    gone = machines.documents[0][1].leader
    machines.down[gone] = None
    machines.is_lost = lambda message: isinstance(message, m.Vote)
    left = tuple(member for member in machines.members if member.name != gone)
    for member in left:
        machines.give(member.name, MembersChanged(left))
    return machines, left[0].name


def enqueued(machines: Machines, at: str, client: bytes) -> m.Message:
    machines.ask(at, m.Enqueue(1, 0, (machines.batch("q", 1),)), client)
    machines.pass_time(500)
    return machines.answers_to(client)[-1]


def test_tasks_are_refused_once_their_partition_has_had_no_leader_for_long_and_taken_again_afterwards() -> None:
    machines, at = unled(LIMIT_MS)
    assert isinstance(enqueued(machines, at, b"soon"), m.Acked)
    machines.pass_time(LIMIT_MS - 2_000)
    assert isinstance(enqueued(machines, at, b"still"), m.Acked)
    machines.pass_time(2_000)
    refused = enqueued(machines, at, b"late")
    assert isinstance(refused, m.Failed) and refused.code == "unled" and refused.is_definite
    assert "--refuse-unled" in refused.text

    machines.is_lost = lambda message: False
    machines.pass_time(5_000)
    assert isinstance(enqueued(machines, at, b"again"), m.Acked)


def test_who_was_led_meanwhile_has_had_no_leader_since_then_alone() -> None:
    machines = Machines(4, partitions=8, timing=attrs.evolve(DEFAULT_TIMING, refuse_unled=LIMIT_MS))
    machines.pass_time(5_000)
    partition, document = next((partition, document) for partition, (_, document) in machines.documents.items()
                               if len(document.cohort) == 3)
    (at,) = set(machines.names) - set(document.cohort)
    view, now_ms = machines.nodes[at].view, machines.now_ms
    unled, led = Unled(view), next(other for other in machines.documents if view.leader_of(other) == at)
    left = tuple(member for member in machines.members if member.name != document.leader)

    def check(after_ms: int, *partitions: int, is_led: bool) -> None:
        machines.give(at, MembersChanged(machines.members if is_led else left))
        view.vnodes[partition].note_leader(document.leader, document.epoch)
        unled.check(now_ms + after_ms, partitions)
    check(0, partition, is_led=False)
    check(LIMIT_MS - 1, led, is_led=True)
    check(LIMIT_MS, partition, is_led=False)
    check(2 * LIMIT_MS - 1, partition, is_led=False)
    with pytest.raises(Refused, match="has had no leader for 10 s"):
        check(2 * LIMIT_MS, partition, is_led=False)
    view.vnodes[partition].note_leader(document.leader, document.epoch + 1)
    unled.check(now_ms + 3 * LIMIT_MS, [partition])
    with pytest.raises(Refused):
        unled.check(now_ms + 4 * LIMIT_MS, [partition])
    view.vnodes[partition].leaderless_since_ms = now_ms + 4 * LIMIT_MS - 1
    unled.check(now_ms + 4 * LIMIT_MS, [partition])


def test_without_the_option_tasks_are_stored_as_ever() -> None:
    machines, at = unled(0)
    machines.pass_time(10 * LIMIT_MS)
    assert isinstance(enqueued(machines, at, b"late"), m.Acked)
