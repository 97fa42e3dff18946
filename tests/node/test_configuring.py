"""Settings over a cluster: read and written by majorities, known everywhere, heeded where claims are granted."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.events import MembersChanged, NodesChanged
from skuld_py.model.setting import PAUSED, UNSET, YES


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(2_000)
    return made


def ask(machines: Machines, message: m.Message, at: int = 0, wait_ms: int = 20) -> m.Message | None:
    """What node number ``at`` answers within a while."""
    client = b"%d" % len(machines.answers)
    machines.ask(machines.names[at], message, client)
    machines.pass_time(wait_ms)
    answers = machines.answers_to(client)
    return answers[-1] if answers else None


def version_of(machines: Machines, queue: str, at: int = 0) -> int:
    got = ask(machines, m.GetSettings(1, PAUSED, queue, b""), at)
    assert isinstance(got, m.GotSettings), got
    return got.version


def put(machines: Machines, version: int, value: bytes = YES, queue: str = "q", at: int = 0, writer: str = "w",
        wait_ms: int = 20) -> m.Message | None:
    return ask(machines, m.PutSetting(2, PAUSED, queue, version, writer, value), at, wait_ms)


def pause(machines: Machines, queue: str = "q", at: int = 0) -> m.Message | None:
    return put(machines, version_of(machines, queue, at), YES, queue, at)


def resume(machines: Machines, queue: str = "q", at: int = 0) -> m.Message | None:
    return put(machines, version_of(machines, queue, at), UNSET, queue, at)


def is_paused(machines: Machines, queue: str = "q") -> list[bool]:
    return [queue in machines.nodes[name].view.settings.paused for name in machines.names]


def give_a_task(machines: Machines, queue: str = "q", count: int = 1) -> None:
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch(queue, count),)))
    machines.pass_time(20)


def claim(machines: Machines, at: int = 0, wait_ms: int = 0, client: bytes = b"worker") -> bytes:
    machines.ask(machines.names[at], m.Claim(3, "q", 5, 60_000, wait_ms, "me"), client)
    return client


def granted(machines: Machines, client: bytes = b"worker") -> list[int]:
    """How many tasks each answer gave."""
    answers = machines.answers_to(client)
    assert all(isinstance(answer, m.Claimed) for answer in answers)
    return [sum(len(batch.ids) // 20 for batch in answer.batches)
            for answer in answers if isinstance(answer, m.Claimed)]


# -- the register ----------------------------------------------------------------------------------


def test_a_change_is_stored_on_all_nodes_before_it_is_acknowledged(machines: Machines) -> None:
    assert pause(machines) == m.SettingPut(2, 3, ())
    assert is_paused(machines) == [True] * 3
    for name in machines.names:
        assert "q" in machines.restart(name).view.settings.paused


def test_a_change_needs_a_majority_of_the_registered_nodes(machines: Machines) -> None:
    alone = machines.members[:1]
    machines.give(machines.names[0], MembersChanged(alone))

    refused = ask(machines, m.GetSettings(1, PAUSED, "q", b""))
    also = put(machines, 1_000_000)

    for answer in (refused, also):
        assert isinstance(answer, m.Failed) and answer.code == "unavailable" and answer.is_definite
    assert is_paused(machines) == [False] * 3


def test_nothing_is_set_before_the_nodes_are_known(machines: Machines) -> None:
    machines.give(machines.names[0], NodesChanged(()))

    refused = put(machines, 1_000_000)

    assert isinstance(refused, m.Failed) and refused.code == "unavailable"


def test_a_minority_is_no_acknowledgement_and_no_refusal_either(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.is_lost = lambda message: isinstance(message, m.PutSetting)

    assert put(machines, version) is None
    machines.pass_time(5_000)

    answer = machines.answers[-1][1]
    assert isinstance(answer, m.Failed) and answer.code == "uncertain" and not answer.is_definite


def test_who_is_silent_is_named_and_who_is_gone_is_not_waited_for(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.is_deaf = machines.names[2]
    assert put(machines, version) is None, "a live node does not have it yet"

    machines.give(machines.names[0], MembersChanged(machines.members[:2]))
    machines.pass_time(20)

    assert machines.answers[-1][1] == m.SettingPut(2, 2, (machines.names[2],))


def test_the_answer_comes_at_the_deadline_though_a_live_node_is_silent(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.is_deaf = machines.names[2]
    put(machines, version)
    machines.pass_time(4_500)

    assert machines.answers[-1][1] == m.SettingPut(2, 2, (machines.names[2],))


def test_who_missed_a_change_learns_it_from_the_gossip(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.is_deaf = machines.names[2]
    put(machines, version)
    machines.pass_time(4_500)
    assert is_paused(machines) == [True, True, False]

    machines.is_deaf = ""
    machines.pass_time(1_000)

    assert is_paused(machines) == [True] * 3


def test_a_later_change_wins_whichever_nodes_had_the_one_before_and_whatever_their_clocks_show(
        machines: Machines) -> None:
    """The majorities differ, the second node's clock is behind, and gossip is lost."""
    machines.ahead_ms[machines.names[1]] = -150
    for turn in range(6):
        value = UNSET if turn % 2 else YES
        machines.is_deaf = machines.names[turn % 3]
        at = (turn + 1) % 3
        machines.give(machines.names[at], MembersChanged(tuple(
            member for member in machines.members if member.name != machines.is_deaf)))
        version = version_of(machines, "q", at)
        answer = put(machines, version, value, at=at, writer=f"w{9 - turn}")
        assert isinstance(answer, m.SettingPut) and answer.copies == 2
        machines.give(machines.names[at], MembersChanged(machines.members))
        machines.is_deaf = ""
        got = ask(machines, m.GetSettings(1, PAUSED, "q", b""), at)
        assert isinstance(got, m.GotSettings) and got.rows[0].value == value, turn


def test_a_read_shows_what_a_majority_stored_at_a_node_that_has_not_heard_of_it(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.is_deaf = machines.names[2]
    put(machines, version, wait_ms=4_500)
    machines.is_deaf = ""
    machines.is_lost = lambda message: isinstance(message, m.Gossip)
    assert is_paused(machines) == [True, True, False]

    got = ask(machines, m.GetSettings(1, PAUSED, "q", b""), at=2)

    assert isinstance(got, m.GotSettings) and [row.version for row in got.rows] == [version]
    assert got.version > version


def test_a_request_held_up_for_long_does_not_undo_a_later_one(machines: Machines) -> None:
    held_up = version_of(machines, "q")
    pause(machines)
    resume(machines)

    assert put(machines, held_up, at=1) == m.SettingPut(2, 3, ())

    assert is_paused(machines) == [False] * 3


def test_a_version_is_never_below_the_clock_so_lost_disks_do_not_bring_the_past_back(machines: Machines) -> None:
    assert version_of(machines, "q") >= machines.now_ms - 20


def test_of_two_changes_at_once_one_stands_everywhere(machines: Machines) -> None:
    version = version_of(machines, "q")
    machines.ask(machines.names[0], m.PutSetting(2, PAUSED, "q", version, "one", YES), b"one")
    machines.ask(machines.names[1], m.PutSetting(2, PAUSED, "q", version, "two", UNSET), b"two")
    machines.pass_time(100)

    assert is_paused(machines) == [False] * 3
    assert machines.answers_to(b"one") == machines.answers_to(b"two") == [m.SettingPut(2, 3, ())]


@pytest.mark.parametrize(("message", "code"), [
    (m.PutSetting(2, "colour", "q", 1, "w", b"red"), "unknown_setting"),
    (m.PutSetting(2, PAUSED, "q", 1, "w", b"perhaps"), "bad_setting"),
    (m.PutSetting(2, PAUSED, "q", 1 << 60, "w", YES), "bad_version"),
])
def test_bad_settings_are_refused_by_name(machines: Machines, message: m.Message, code: str) -> None:
    answer = ask(machines, message)

    assert isinstance(answer, m.Failed) and answer.code == code and answer.is_definite


def test_there_is_room_for_so_many_settings_and_no_more(machines: Machines) -> None:
    registers = machines.nodes[machines.names[0]].view.settings
    registers.join(m.SettingRow(PAUSED, f"q{number}", 1, "w", UNSET) for number in range(10_000))
    version = version_of(machines, "q0")

    full, known = put(machines, version, queue="new"), put(machines, version, queue="q0")

    assert isinstance(full, m.Failed) and full.code == "too_many_settings"
    assert isinstance(known, m.SettingPut)


def test_a_list_joins_what_a_majority_knows_and_is_complete_as_far_as_it_says(machines: Machines) -> None:
    for number, name in enumerate(machines.names):
        machines.nodes[name].view.settings.join(
            m.SettingRow(PAUSED, f"q{count:04}", 1 + number, f"w{number}", YES) for count in range(number, 1_500))
    seen: list[m.SettingRow] = []
    after, is_over = b"", False
    while not is_over:
        got = ask(machines, m.GetSettings(1, "", "", after))
        assert isinstance(got, m.GotSettings) and len(got.rows) <= 1_000
        seen += got.rows
        after, is_over = got.upto, not got.upto

    assert [row.name for row in seen] == [f"q{count:04}" for count in range(1_500)]
    assert all(row.version >= 2 for row in seen[2:]), "any two nodes know more than the first alone"


# -- what a pause does -------------------------------------------------------------------------------


def test_nothing_is_granted_of_a_paused_queue_and_all_when_it_is_resumed(machines: Machines) -> None:
    give_a_task(machines, count=3)
    pause(machines)
    claim(machines)
    machines.pass_time(2_000)
    assert granted(machines) == [0]

    resume(machines)
    claim(machines)
    machines.pass_time(2_000)

    assert granted(machines) == [0, 3]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_claim_that_waits_is_served_as_soon_as_the_queue_is_resumed(machines: Machines, at: int) -> None:
    pause(machines)
    give_a_task(machines)
    claim(machines, at, wait_ms=60_000)
    machines.pass_time(3_000)
    assert granted(machines) == []

    resume(machines)
    machines.pass_time(50)

    assert granted(machines) == [1]


def test_a_claim_that_waited_for_a_paused_queue_in_vain_ends_in_time(machines: Machines) -> None:
    pause(machines)
    give_a_task(machines)
    claim(machines, wait_ms=1_000)
    machines.pass_time(990)
    assert granted(machines) == []

    machines.pass_time(20)

    assert granted(machines) == [0]


def test_a_leader_that_knows_of_the_pause_grants_nothing_to_a_coordinator_that_does_not(
        machines: Machines) -> None:
    give_a_task(machines)
    led = next(name for name, node in machines.nodes.items() if any(
        vnode.is_leading and vnode.replica.filing.heads("q", None, 1) for vnode in node.view.vnodes))
    machines.nodes[led].view.settings.join([m.SettingRow(PAUSED, "q", 1, "w", YES)])
    other = next(index for index, name in enumerate(machines.names) if name != led)

    claim(machines, other)
    machines.pass_time(20)

    assert granted(machines) == [0]
    assert is_paused(machines)[other] is False


def test_other_queues_go_on(machines: Machines) -> None:
    give_a_task(machines)
    pause(machines, "other")

    claim(machines)
    machines.pass_time(100)

    assert granted(machines) == [1]


def test_a_held_task_of_a_paused_queue_is_renewed_and_completed(machines: Machines) -> None:
    give_a_task(machines)
    claim(machines)
    machines.pass_time(50)
    claimed = machines.answers_to(b"worker")[0]
    assert isinstance(claimed, m.Claimed)
    batch = claimed.batches[0]
    pause(machines)

    token = columns.pack_u64([batch.first_token])
    renewed = ask(machines, m.Renew(5, 60_000, batch.ids, token))
    done = ask(machines, m.Complete(6, 0, 0, batch.ids, token))

    assert isinstance(renewed, m.Renewed) and columns.unpack_u64(renewed.ends)[0]
    assert isinstance(done, m.Acked)


def test_the_paused_queues_are_told_with_the_cluster(machines: Machines) -> None:
    pause(machines, "b")
    pause(machines, "a")

    described = ask(machines, m.Describe(1), at=2)

    assert isinstance(described, m.Described) and described.paused == ("a", "b")


def test_a_paused_queue_is_not_gossiped(machines: Machines) -> None:
    give_a_task(machines)
    pause(machines)
    machines.pass_time(600)
    gossiped: list[m.Gossip] = []
    machines.is_lost = lambda message: isinstance(message, m.Gossip) and gossiped.append(message) is not None
    machines.pass_time(2_000)

    assert len(gossiped) >= 9
    assert not any(gossip.queues for gossip in gossiped)


def test_gossip_tells_the_head_of_each_queue(machines: Machines) -> None:
    give_a_task(machines, count=3)
    gossiped: list[m.Gossip] = []
    machines.is_lost = lambda message: isinstance(message, m.Gossip) and gossiped.append(message) is not None
    machines.pass_time(600)

    heads = {gossip.heads for gossip in gossiped if gossip.queues}
    stored = [key[-24:] for key in machines.stores[machines.names[0]].rows("ready")]
    assert heads == {min(stored)}


def test_a_claim_goes_to_the_node_that_is_said_to_have_the_better_task(machines: Machines) -> None:
    """Of two tasks led by different nodes, the one of higher priority, wherever it is asked for."""
    leaders = {partition: document.leader for partition, (_, document) in machines.documents.items()}
    first, second = machines.names[:2]
    for name, priority in ((first, 1), (second, 7)):
        partition = next(number for number, leader in leaders.items() if leader == name)
        task_ids = machines.mint.mint(machines.now_ms, 1, partition)
        assert ids.partition_of(task_ids[0], 4) == partition
        machines.ask(first, m.Enqueue(1, 0, (m.TaskBatch(Header("q", priority).encode(), b"".join(task_ids),
                                                          columns.pack([b"p%d" % priority])),)))
    machines.pass_time(1_200)

    for client in (b"1", b"2"):
        machines.ask(first, m.Claim(3, "q", 1, 60_000, 0, "me"), client)
        machines.pass_time(20)

    payloads = [answer.batches[0].bodies.unpack()[0][-2:] for client in (b"1", b"2")
                for answer in machines.answers_to(client) if isinstance(answer, m.Claimed)]
    assert payloads == [b"p7", b"p1"]
