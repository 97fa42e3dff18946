"""With an archive, what has ended goes when somebody has said that it is archived: just that, and not before."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from node.test_collecting import KEEP_MS, ask, complete, enqueue, follower_of, leader_of, left, vnodes
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.config.timing import Retention
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.events import MembersChanged
from skuld_py.node.retention.replica_side import delete, ebb
from skuld_py.partition.copies.remains import remains_of

ARCHIVED = Retention(KEEP_MS, slice_ms=5_000, page_tasks=3, archives=True)


def started(retention: Retention = ARCHIVED) -> Machines:
    made = Machines(partitions=1, retention=retention)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


@pytest.fixture
def machines() -> Machines:
    return started()


def grow_old(machines: Machines, count: int) -> list[bytes]:
    """Tasks that ended long ago."""
    made = enqueue(machines, count)
    complete(machines, made)
    machines.pass_time(KEEP_MS + 10_000)
    return made


def offered(machines: Machines, name: str = "") -> m.Offered:
    answer = ask(machines, m.Offer(7, 0), name)
    assert isinstance(answer, m.Offered), answer
    return answer


def discard(machines: Machines, page: m.Offered, name: str = "") -> m.Message:
    return ask(machines, m.Discard(8, 0, page.epoch, page.ids, page.digests), name)


def test_nothing_goes_before_it_is_archived_and_then_exactly_that(machines: Machines) -> None:
    made = grow_old(machines, 5)
    machines.pass_time(KEEP_MS)
    assert left(machines) == [made] * 3

    asked = follower_of(machines)
    first = offered(machines, asked)
    assert offered(machines) == first and first.is_under_way
    assert ids.split(first.ids) == [row.id for row in first.tasks] == made[:3]
    assert discard(machines, first, asked) == m.Discarded(8, True, 3)
    assert left(machines) == [made[3:]] * 3
    second = offered(machines)
    assert ids.split(second.ids) == made[3:]
    assert discard(machines, second) == m.Discarded(8, True, 2)

    assert left(machines) == [[]] * 3
    assert offered(machines) == m.Offered(7, first.epoch, False, (), b"", b"", b"", ())
    assert [vnode.replica.watermark.collected for vnode in vnodes(machines).values()] == [5] * 3


def test_only_the_page_on_offer_goes(machines: Machines) -> None:
    made = grow_old(machines, 2)
    page = offered(machines)
    digests = columns.unpack_u64(page.digests)
    for other in (
        attrs.evolve(page, ids=made[0], digests=columns.pack_u64(digests[:1])),
        attrs.evolve(page, digests=columns.pack_u64([digests[0], digests[1] ^ 1])),
        attrs.evolve(page, epoch=page.epoch + 1),
    ):
        assert discard(machines, other) == m.Discarded(8, False, 0)

    assert left(machines) == [made] * 3
    assert offered(machines) == page


def test_who_says_it_again_is_told_the_same(machines: Machines) -> None:
    grow_old(machines, 2)
    page = offered(machines)
    machines.is_lost = lambda message: isinstance(message, m.Discarded)
    machines.ask(follower_of(machines), m.Discard(8, 0, page.epoch, page.ids, page.digests), b"other")
    machines.pass_time(500)
    machines.is_lost = lambda message: False

    assert left(machines) == [[]] * 3
    assert discard(machines, page) == m.Discarded(8, True, 2)
    machines.pass_time(1_000)
    assert machines.answers_to(b"other") == [m.Discarded(8, True, 2)]


def test_what_changes_while_it_is_on_offer_stays(machines: Machines) -> None:
    """A copy that an old disk brings another fact on: its digest is another one."""
    made = grow_old(machines, 2)
    page = offered(machines)
    other = vnodes(machines)[follower_of(machines)].replica
    other.store.put_many("log", [(other.prefix + made[0] + bytes(12), b"late")])
    machines.stores[follower_of(machines)].commit()

    assert discard(machines, page) == m.Discarded(8, True, 2)

    assert left(machines).count([]) == 2 and left(machines).count([made[0]]) == 1


def test_a_node_that_wants_an_archive_deletes_nothing_without_one(machines: Machines) -> None:
    made = enqueue(machines, 2)
    complete(machines, made)
    for name, node in machines.nodes.items():
        node.view.retention = attrs.evolve(ARCHIVED, archives=name == follower_of(machines))

    machines.pass_time(2 * KEEP_MS)

    assert left(machines) == [made] * 3
    answer = ask(machines, m.Offer(7, 0))
    assert isinstance(answer, m.Failed) and answer.code == "no_archive" and "--archive" in answer.text
    leader = machines.nodes[leader_of(machines)]
    assert leader._steward.slices.awaited(0) == [follower_of(machines)]


@pytest.mark.parametrize("is_led_by_it", [False, True])
def test_the_longest_retention_counts(is_led_by_it: bool) -> None:
    machines = started(Retention(KEEP_MS, slice_ms=5_000))
    careful = leader_of(machines) if is_led_by_it else follower_of(machines)
    machines.nodes[careful].view.retention = Retention(5 * KEEP_MS, slice_ms=5_000)
    slices = machines.nodes[leader_of(machines)]._steward.slices
    made = grow_old(machines, 2)
    machines.pass_time(4 * KEEP_MS - 20_000)
    assert left(machines) == [made] * 3
    assert slices.awaited(0) == []
    assert abs(machines.now_ms - 5 * KEEP_MS - slices.due_ms(machines.now_ms, 0)) < 1_000
    machines.pass_time(20_000)
    assert left(machines) == [[]] * 3
    assert machines.now_ms - 5 * KEEP_MS - slices.collected_ms(vnodes(machines)[leader_of(machines)]) < 10_000


def test_what_waits_for_an_archive_waits_since_the_longest_retention_ended(machines: Machines) -> None:
    machines.nodes[follower_of(machines)].view.retention = attrs.evolve(ARCHIVED, keep_ms=5 * KEEP_MS)
    slices, begun_ms = machines.nodes[leader_of(machines)]._steward.slices, machines.now_ms
    grow_old(machines, 2)
    assert slices.unarchived_since_ms(0) == 0
    machines.pass_time(4 * KEEP_MS)
    assert begun_ms < slices.unarchived_since_ms(0) - 5 * KEEP_MS < begun_ms + 5_000


def test_an_option_that_was_shortened_counts_at_once() -> None:
    machines = started(Retention(KEEP_MS, slice_ms=5_000))
    careful = follower_of(machines)
    machines.nodes[careful].view.retention = Retention(5 * KEEP_MS)
    made, slices = grow_old(machines, 2), machines.nodes[leader_of(machines)]._steward.slices
    assert left(machines) == [made] * 3
    machines.nodes[careful].view.retention = Retention(KEEP_MS)
    machines.pass_time(10_000)
    assert left(machines) == [[]] * 3
    assert slices.due_ms(machines.now_ms, 0) == machines.now_ms - KEEP_MS


def test_who_is_to_keep_more_refuses_also_what_others_have_closed(machines: Machines) -> None:
    """It hears of that by exchanges, and a leader may ask for no more, as with a clock behind that of the last."""
    careful = follower_of(machines)
    machines.nodes[careful].view.retention = attrs.evolve(ARCHIVED, keep_ms=5 * KEEP_MS)
    vnode, closed_ms = vnodes(machines)[careful], machines.now_ms - 2 * KEEP_MS
    vnode.replica.watermark.close(closed_ms)

    epoch = vnodes(machines)[leader_of(machines)].epoch
    answer = ebb(machines.nodes[careful].operations, machines.now_ms, vnode, m.Ebb(9, 0, epoch, closed_ms))

    assert answer == m.Ebbed(9, False, 0, 0, machines.now_ms - 5 * KEEP_MS)


def test_who_is_given_no_page_hears_how_many_tasks_went(machines: Machines) -> None:
    def asked(archiver: int) -> m.Offered:
        answer = ask(machines, m.Offer(7, 0, in_columns=True, archiver=archiver))
        assert isinstance(answer, m.Offered)
        return answer

    grow_old(machines, 5)
    for _ in range(2):  # the second time all are known
        seen = {number: asked(number) for number in (1, 2, 3)}
    mine = next(number for number, page in seen.items() if page.ids)
    other = next(number for number, page in seen.items() if page.is_others)
    assert (seen[mine].deleted, seen[other].deleted) == (0, 0)
    assert discard(machines, asked(mine)) == m.Discarded(8, True, 3)
    assert asked(other).deleted == 3
    assert discard(machines, asked(mine)) == m.Discarded(8, True, 2)
    assert asked(other).deleted == 5


def test_who_comes_back_to_keep_more_agrees_on_no_page_more(machines: Machines) -> None:
    """What all have agreed on before goes: some may have deleted it."""
    made, careful, lead = grow_old(machines, 2), follower_of(machines), vnodes(machines)[leader_of(machines)]
    node, vnode = machines.nodes[careful], vnodes(machines)[careful]
    digests = remains_of(lead.replica, made).digests
    trial = m.Collect(1, 0, lead.epoch, vnode.replica.watermark.sealed_ms, True, True, b"".join(made), digests)
    assert delete(node.view, machines.now_ms, vnode, trial) == m.Collected(1, True, b"")

    node.view.retention = attrs.evolve(ARCHIVED, keep_ms=10 * KEEP_MS)

    assert not delete(node.view, machines.now_ms, vnode, trial).is_accepted
    last = attrs.evolve(trial, is_trial=False)
    assert delete(node.view, machines.now_ms, vnode, last) == m.Collected(1, True, b"")


def test_of_those_who_keep_more_only_who_keeps_all_is_named() -> None:
    machines = started(Retention(KEEP_MS, slice_ms=5_000))
    lead = leader_of(machines)
    one, other = (name for name in machines.names if name != lead)
    machines.nodes[one].view.retention = Retention(5 * KEEP_MS)
    machines.nodes[other].view.retention = Retention(0)
    grow_old(machines, 2)

    assert machines.nodes[lead]._steward.slices.awaited(0) == [other]


def test_who_is_to_keep_all_stops_it() -> None:
    machines = started(Retention(KEEP_MS, slice_ms=5_000))
    careful = follower_of(machines)
    machines.nodes[careful].view.retention = Retention(0)
    made = grow_old(machines, 2)
    machines.pass_time(KEEP_MS)

    assert left(machines) == [made] * 3
    assert machines.nodes[leader_of(machines)]._steward.slices.awaited(0) == [careful]

    machines.nodes[careful].view.retention = Retention(KEEP_MS)
    machines.pass_time(10_000)
    assert left(machines) == [[]] * 3
    assert machines.nodes[leader_of(machines)]._steward.slices.awaited(0) == []


def test_who_is_away_is_named_and_only_if_there_is_something_to_collect(machines: Machines) -> None:
    away, all_members = follower_of(machines), machines.members
    slices = machines.nodes[leader_of(machines)]._steward.slices
    for name in machines.names:
        machines.give(name, MembersChanged(tuple(member for member in all_members if member.name != away)))
    machines.pass_time(KEEP_MS)
    assert slices.awaited(0) == []

    grow_old(machines, 1)
    page = offered(machines)
    assert (page.ids, page.awaited, page.is_under_way) == (b"", (away,), False)


def test_a_new_leader_offers_it_again(machines: Machines) -> None:
    made = grow_old(machines, 2)
    page, old = offered(machines), leader_of(machines)
    machines.restart(old)
    machines.pass_time(15_000)

    assert discard(machines, page) == m.Discarded(8, False, 0)
    assert left(machines) == [made] * 3
    again = offered(machines)
    assert again.epoch > page.epoch and (again.ids, again.digests) == (page.ids, page.digests)
    assert discard(machines, again) == m.Discarded(8, True, 2)


def test_without_a_leader_it_is_refused_and_an_unheard_discard_is_uncertain(machines: Machines) -> None:
    grow_old(machines, 1)
    page, asked = offered(machines), follower_of(machines)
    machines.is_lost = lambda message: isinstance(message, m.Offered | m.Discarded)
    machines.ask(asked, m.Offer(1, 0), b"one")
    machines.ask(asked, m.Discard(2, 0, page.epoch, page.ids, page.digests), b"two")
    machines.pass_time(10_000)

    assert [answer.code for answer in machines.answers_to(b"one")] == ["no_leader"]
    assert [(answer.code, answer.is_definite) for answer in machines.answers_to(b"two")] == [("uncertain", False)]
    answer = ask(machines, m.Offer(3, 9))
    assert isinstance(answer, m.Failed) and answer.code == "bad_partition"


def test_a_log_that_is_longer_than_a_read_is_named() -> None:
    machines = started()
    made = enqueue(machines, 2)
    entry = b"x" * 60_000
    for seq in range(DEFAULT_LIMITS.log_bytes // len(entry) + 1):
        ask(machines, m.Append(2, 0, made[1], 1 << 32, seq, columns.pack([entry])))
    complete(machines, made)
    machines.pass_time(KEEP_MS + 10_000)

    assert offered(machines).cut == made[1]


# -- in columns --------------------------------------------------------------------------------------------


def in_columns(machines: Machines, after: m.Offered | None = None, name: str = "",
               wanted_ms: int = 0) -> m.Offered:
    epoch, number = (after.epoch, after.number) if after else (0, 0)
    answer = ask(machines, m.Offer(7, 0, True, epoch, number, wanted_ms), name)
    assert isinstance(answer, m.Offered), answer
    return answer


def test_several_pages_are_on_offer_and_go_in_any_order(machines: Machines) -> None:
    made = grow_old(machines, 8)
    first = in_columns(machines, name=follower_of(machines))
    second = in_columns(machines, first)
    third = in_columns(machines, second)
    none = in_columns(machines, third)

    assert [ids.split(page.ids) for page in (first, second, third)] == [made[:3], made[3:6], made[6:]]
    assert (none.ids, none.is_under_way, none.ended, none.upto_ms < none.due_ms) == (b"", True, 8, True)
    assert discard(machines, second) == m.Discarded(8, True, 3)
    assert left(machines) == [[*made[:3], *made[6:]]] * 3
    assert discard(machines, third) == m.Discarded(8, True, 2)
    assert discard(machines, second) == m.Discarded(8, True, 3), "who says it again is told the same"
    again = in_columns(machines)
    assert again == attrs.evolve(first, due_ms=again.due_ms, ended=3)
    assert discard(machines, first) == m.Discarded(8, True, 3)
    assert left(machines) == [[]] * 3


def test_pages_in_columns_hold_what_rows_hold_and_other_archivers_get_rows(machines: Machines) -> None:
    made = enqueue(machines, 2)
    ask(machines, m.Append(2, 0, made[1], 1 << 32, 0, columns.pack([b"one", b"two"])))
    complete(machines, made)
    machines.pass_time(KEEP_MS + 10_000)
    page, rows = in_columns(machines), offered(machines).tasks

    assert page.tasks == () and [row.id for row in rows] == ids.split(page.ids) == made
    assert page.bodies.unpack() == [row.body.unpack()[0] for row in rows]
    assert page.histories.unpack() == [row.history for row in rows]
    assert columns.unpack_u64(page.counts) == (0, 2) and page.entries.unpack() == [b"one", b"two"]
    assert (page.tokens, page.seqs) == (rows[1].tokens, rows[1].seqs)
    assert (offered(machines).number, offered(machines).due_ms) == (0, 0)


def test_a_page_of_another_leader_is_no_page_of_this_one(machines: Machines) -> None:
    grow_old(machines, 2)
    page = in_columns(machines)
    other = attrs.evolve(page, epoch=page.epoch + 1, number=page.number + 100)

    assert in_columns(machines, other).ids == page.ids
    assert in_columns(machines, page).ids == b""


def test_who_waits_for_a_time_is_not_kept_waiting_by_the_pace_of_slices() -> None:
    """A slice ends where it began to look; what has become old enough meanwhile is due, and the next begins."""
    machines = started(attrs.evolve(ARCHIVED, slice_ms=100 * KEEP_MS))
    made = grow_old(machines, 2)
    goal_ms = in_columns(machines).due_ms
    machines.pass_time(5_000)
    assert in_columns(machines).ids == b"" and in_columns(machines).upto_ms < goal_ms

    in_columns(machines, wanted_ms=goal_ms)
    machines.pass_time(5_000)
    page = in_columns(machines)
    assert ids.split(page.ids) == made
    discard(machines, page)
    assert in_columns(machines).upto_ms >= goal_ms
