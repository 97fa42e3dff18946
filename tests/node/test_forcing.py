"""Voters that are lost for good are given up by an operator's word alone, and without two holders of one task."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from node.machines import Machines
from node.operating import down, up
from node.test_overseeing import asked
from node.test_rebuilding import FIXED
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.errors import Corrupt
from skuld_py.model import messages as m
from skuld_py.model.columns import pack_u64, unpack_u64
from skuld_py.model.document import Document, Force, Freeze, Member, seats_of
from skuld_py.model.events import MembersChanged, Session, SessionChanged
from skuld_py.model.history import token_of
from skuld_py.model.ids import split, to_text
from skuld_py.node.life.identity import Identity
from skuld_py.node.life.rebuilding import Remains, memories_of, rebuilt
from skuld_py.partition.data.tables import barrier_key
from skuld_py.partition.leadership.barrier import load_barrier
from skuld_py.partition.leadership.evaluator import Facts, Rest, Stand, Write, evaluate
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD
from skuld_py.partition.leadership.standing import load_standing
from skuld_py.partition.leadership.wishes import Impossible, Request, steered
from skuld_py.verbs import attention

NOW = 1_000
NAMES = ("n1", "n2", "n3")
LIVE = {name: Member(name, "h", 1, f"boot of {name}") for name in NAMES}
DOCUMENT = Document(4, "n1", "boot of n1", seats_of(NAMES), era=1, horizon_ms=9_000)
ASK = Request("r", "force", by="me", reason="why")
FORCE = Force("r", 4, ("n3",), "me", "why", NOW)
HORIZON_MS = 20_000


def test_who_remains_is_written_down_and_all_epochs_that_may_be_promised_are_spent() -> None:
    forced = steered(ASK, DOCUMENT, ("n3", "n4"), NOW)
    assert forced == attrs.evolve(DOCUMENT, force=FORCE, spent=4 + EPOCHS_AHEAD)
    assert steered(attrs.evolve(ASK, id="again"), forced, ("n3",), NOW + 1) == forced
    assert steered(ASK, DOCUMENT, LIVE, NOW, {"n1": "wiped", "n2": "wiped"}) == forced
    assert Document.decode(forced.encode()) == forced


@pytest.mark.parametrize(("live", "changes", "why"), [
    (NAMES, {}, "has a majority of its voters: n1, n2, n3"), (("n1", "n2"), {}, "has a majority"),
    ((), {}, "none of its voters"), (("n3",), {"epoch": 0}, "no leader yet"),
    (("n3",), {"freeze": Freeze("f", "op", "y", 1)}, "frozen by op")])
def test_nobody_is_given_up_without_need(live: tuple[str, ...], changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Impossible, match=why):
        steered(ASK, attrs.evolve(DOCUMENT, **changes), live, NOW)


def facts(me: str, *live: str, **changes: Any) -> Facts:
    return attrs.evolve(Facts(LIVE[me], {name: LIVE[name] for name in live}, NAMES, 0, 4), **changes)


@pytest.mark.parametrize(("known", "changes", "action"), [
    (facts("n3", "n3"), {}, Stand(("n3",), is_forced=True)),
    (facts("n3", *NAMES, suspects=dict.fromkeys(("n1", "n2"), "wiped")), {"boot": "x"}, Stand(("n3",), True)),
    (facts("n1", "n1"), {"force": attrs.evolve(FORCE, remaining=("n1",)), "boot": "x",
                         "freeze": Freeze("f", "op", "y", 1)}, Rest("a majority of the voters is not alive")),
    (facts("n3", "n3", "n2"), {}, Stand(NAMES)),
    (facts("n3", *NAMES, suspects={"n1": "wiped"}), {"boot": "x"}, Stand(NAMES)),
    (facts("n3", "n3"), {"force": attrs.evolve(FORCE, epoch=3)}, Rest("a majority of the voters is not alive")),
    (facts("n3", "n3"), {"force": attrs.evolve(FORCE, remaining=("n2", "n3"))},
     Rest("a majority of the voters is not alive")),
    (facts("n3", "n3"), {"force": attrs.evolve(FORCE, remaining=("n3", "n9"))},
     Rest("a majority of the voters is not alive")),
    (facts("n2", "n2"), {}, Rest("a majority of the voters is not alive")),
    (facts("n3", "n3", is_suspect=True), {},
     Rest("its memory of this partition is not to be trusted until it has filled again")),
    (facts("n1", *NAMES, epoch=4, suspects=dict.fromkeys(("n2", "n3"), "wiped")),
     {"force": attrs.evolve(FORCE, remaining=("n1",))}, Stand(("n1",), True)),
    (facts("n3", "n3"), {"freeze": Freeze("f", "op", "y", 1)},
     Rest("frozen: nobody but the recorded leader may stand"))])
def test_those_who_remain_obey_all_together_while_no_majority_could_vote(
        known: Facts, changes: dict[str, Any], action: object) -> None:
    assert evaluate(known, attrs.evolve(DOCUMENT, **{"force": FORCE, **changes}), NOW) == action


def test_a_leader_takes_out_what_has_no_place_any_more() -> None:
    written = evaluate(facts("n1", *NAMES, epoch=4), attrs.evolve(DOCUMENT, force=FORCE), NOW)
    assert isinstance(written, Write) and written.document == DOCUMENT


# -- on nodes --------------------------------------------------------------------------------------


def bereft(*, is_behind: bool = False) -> tuple[Machines, m.Claimed, str]:
    """One partition, two tasks, one of them claimed; its leader and another voter die. ``is_behind``: the last one
    was told of the claim, and of no task."""
    machines = Machines(partitions=1, timing=attrs.evolve(DEFAULT_TIMING, horizon_ms=HORIZON_MS))
    machines.pass_time(2_000)
    leader, last = machines.documents[0][1].leader, machines.documents[0][1].cohort[2]
    if is_behind:
        machines.is_lost = lambda message: isinstance(message, (m.Replicate, m.Repair, m.Probe, m.Fetched))
    machines.ask(leader, m.Enqueue(1, 1 if is_behind else 3, (machines.batch("q", 2),)))
    machines.pass_time(100)
    claimed = claim(machines, leader)
    for name in machines.names:
        if name != last:
            down(machines, name)
    machines.pass_time(10_000)
    return machines, claimed, last


def claim(machines: Machines, at: str) -> m.Claimed:
    machines.ask(at, m.Claim(7, "q", 1, 5_000, 1_000, "w"))
    machines.pass_time(2_000)
    answer = machines.answers_to(b"client")[-1]
    assert isinstance(answer, m.Claimed), answer
    return answer


def tokens(claimed: m.Claimed) -> list[int]:
    return [batch.first_token + each for batch in claimed.batches for each in range(len(split(batch.ids)))]


def test_two_of_three_are_lost_and_nothing_is_granted_before_all_that_they_may_have_granted_is_over() -> None:
    machines, before, last = bereft()
    document = machines.documents[0][1]
    told = attention.concerns(attention.Facts("c", 3, 200, machines.nodes[last].description()))
    (words,) = [each.words for each in told if each.kind == "no_majority"]
    assert document.leader in words and "skuld cluster force-epoch 0" in words
    assert asked(machines, last, kind="force", over_ms=2_000) == m.Steered(1, 1, 0, ())

    forced = machines.documents[0][1]
    assert (forced.leader, forced.cohort, forced.force) == (last, (last,), None)
    assert forced.epoch > document.told_epoch + EPOCHS_AHEAD
    assert forced.no_grant_before_ms == document.horizon_ms + 200 > machines.now_ms
    assert forced.loss is not None and forced.loss.until_ms == forced.no_grant_before_ms
    assert ({*forced.loss.lost}, forced.loss.by) == ({*machines.names} - {last}, "me")
    assert not claim(machines, last).batches

    machines.ask(last, m.Claim(9, "q", 2, 5_000, 100_000, "w"))
    machines.pass_time(forced.no_grant_before_ms - machines.now_ms - 1)
    assert not [each for _, each in machines.answers if isinstance(each, m.Claimed) and each.request == 9]
    machines.pass_time(1_000)
    after = machines.answers_to(b"client")[-1]
    assert isinstance(after, m.Claimed) and after.request == 9
    assert len(tokens(after)) == 2 and min(tokens(after)) > max(tokens(before))


def test_who_remains_keeps_the_barrier_with_the_data_and_so_does_who_reads_of_it() -> None:
    machines, _, last = bereft()
    store, before, kept = machines.stores[last], machines.documents[0][1].epoch, list[int]()
    commit = store.commit

    def watched() -> None:
        commit()
        if load_standing(store, 0).epoch > before:
            kept.append(load_barrier(store, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", watched)
        asked(machines, last, kind="force", over_ms=2_000)
    barrier_ms = machines.documents[0][1].no_grant_before_ms
    assert barrier_ms > machines.now_ms and {*kept} == {barrier_ms}
    assert [each.barrier_ms for each in memories_of(machines.stores[last], 1)] == [barrier_ms]

    other = next(name for name in machines.names if name != last)
    up(machines, other)
    machines.pass_time(2_000)
    assert load_barrier(machines.stores[other], 0) == barrier_ms
    machines.stores[last].put_many("meta", [(barrier_key(0), b"soon")])
    with pytest.raises(Corrupt):
        load_barrier(machines.stores[last], 0)


def test_who_was_given_up_brings_no_epoch_of_those_who_remained_back() -> None:
    """Restored from the directories of who was given up, alone: what they cannot know of is lost, but no token
    that was given out since comes a second time."""
    machines, _, last = bereft()
    asked(machines, last, kind="force", over_ms=2_000)
    machines.pass_time(machines.documents[0][1].no_grant_before_ms - machines.now_ms + 100)
    granted = tokens(claim(machines, last))
    made = rebuilt("c", [Remains(name, "id", name, FIXED, Identity(name, 2), memories_of(machines.stores[name], 1))
                         for name in machines.names if name != last], "ab" * 32)
    assert granted and token_of(made.documents[0].told_epoch + 1, 1) > max(granted), "tokens would fall"


def test_tasks_of_which_those_who_remain_have_only_heard_are_named() -> None:
    machines, before, last = bereft(is_behind=True)
    asked(machines, last, kind="force", over_ms=3_000)
    (lost,) = [to_text(task_id) for batch in before.batches for task_id in split(batch.ids)]
    loss = machines.documents[0][1].loss
    told = attention.concerns(attention.Facts("c", 3, 200, machines.nodes[last].description()))

    assert loss is not None and (loss.missing, loss.named) == (1, (lost,)) and loss.counted_ms
    (words,) = [each.words for each in told if each.kind == "held"]
    assert f"1 task is known to be lost ({lost})" in words and "nothing is granted until" in words
    assert asked(machines, last, kind="noted") == m.Steered(1, 1, 0, ())
    machines.pass_time(500)
    until_ms = machines.documents[0][1].no_grant_before_ms
    assert machines.documents[0][1].loss is None
    assert machines.nodes[last].description().held == (m.HeldRow(0, "barrier", "", until_ms),), "it is not over"
    machines.pass_time(HORIZON_MS)
    assert not machines.nodes[last].description().held


def test_a_majority_that_is_only_cut_off_and_goes_on_renewing_shares_no_task_with_whoever_was_forced() -> None:
    """The operator was wrong: the others live, see neither ZooKeeper nor the last one, and renew as long as they
    may."""
    machines = Machines(partitions=1, timing=attrs.evolve(DEFAULT_TIMING, horizon_ms=HORIZON_MS))
    machines.pass_time(2_000)
    leader, last = machines.documents[0][1].leader, machines.documents[0][1].cohort[2]
    machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    machines.pass_time(200)
    machines.ask(leader, m.Claim(2, "q", 1, 5_000, 1_000, "w"))
    machines.pass_time(200)
    granted = machines.answers_to(b"client")[-1]
    assert isinstance(granted, m.Claimed) and granted.batches
    apart = [name for name in machines.names if name != last]
    machines.is_deaf = machines.is_mute = last
    for name in apart:
        machines.give(name, SessionChanged(Session.SUSPENDED))
    machines.give(last, MembersChanged(tuple(each for each in machines.members if each.name == last)))
    machines.ask(last, m.Steer(3, "force", 0, 0, "", "me", "why", 0, 0))
    machines.ask(last, m.Claim(4, "q", 1, 5_000, 100_000, "other"), b"other")

    held_ms, regained = granted.batches[0].end_ms, 0
    ids, tokens_ = granted.batches[0].ids, pack_u64([granted.batches[0].first_token])
    for _ in range(60):
        machines.ask(leader, m.Renew(5, 3_000, ids, tokens_, b""))
        machines.pass_time(500)
        renewed = machines.answers_to(b"client")[-1]
        if isinstance(renewed, m.Renewed) and not regained:
            held_ms = max(held_ms, *unpack_u64(renewed.ends))
        for answer in machines.answers_to(b"other"):
            if isinstance(answer, m.Claimed) and answer.batches and not regained:
                regained = answer.batches[0].end_ms - 5_000
    assert machines.documents[0][1].leader == last
    assert held_ms > granted.batches[0].end_ms + 2_000, "nothing was renewed"
    assert regained > held_ms, "the task had two holders"


def test_who_remains_renews_no_claim_whose_task_the_lost_may_have_granted_to_another() -> None:
    """An operator took a claim from its holder, and the task was granted anew, while the last voter heard nothing
    of it. The first holder lives."""
    machines = Machines(partitions=1, timing=attrs.evolve(DEFAULT_TIMING, horizon_ms=HORIZON_MS))
    machines.pass_time(2_000)
    leader, last = machines.documents[0][1].leader, machines.documents[0][1].cohort[2]
    machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    machines.pass_time(100)
    machines.ask(leader, m.Claim(2, "q", 1, 18_000, 1_000, "first"))
    machines.pass_time(200)
    first = machines.answers_to(b"client")[-1]
    assert isinstance(first, m.Claimed) and first.batches
    ids, token = first.batches[0].ids, pack_u64([first.batches[0].first_token])
    machines.is_deaf = last
    machines.ask(leader, m.Evict(3, ids, token))
    machines.pass_time(100)
    machines.ask(leader, m.Claim(4, "q", 1, 15_000, 1_000, "second"))
    machines.pass_time(200)
    second = machines.answers_to(b"client")[-1]
    assert isinstance(second, m.Claimed) and second.batches and second.batches[0].ids == ids
    machines.is_deaf = ""
    for name in machines.names:
        if name != last:
            down(machines, name)
    asked(machines, last, kind="force", over_ms=3_000)
    assert machines.documents[0][1].leader == last

    machines.ask(last, m.Renew(5, 5_000, ids, token, b""))
    machines.pass_time(100)
    renewed = machines.answers_to(b"client")[-1]
    held_by_two = isinstance(renewed, m.Renewed) and any(unpack_u64(renewed.ends))
    assert machines.now_ms < second.batches[0].end_ms and not held_by_two, "the task has two holders"
    assert isinstance(renewed, m.Renewed)
    assert unpack_u64(renewed.unknown) == (0,), "it is not lost: its lease runs on"
    machines.pass_time(machines.documents[0][1].no_grant_before_ms - machines.now_ms)
    machines.ask(last, m.Claim(6, "q", 1, 5_000, 1_000, "third"))
    machines.pass_time(100)
    third = machines.answers_to(b"client")[-1]
    assert isinstance(third, m.Claimed) and third.batches[0].ids == ids
    machines.ask(last, m.Renew(7, 5_000, ids, pack_u64([third.batches[0].first_token]), b""))
    machines.pass_time(100)
    renewed = machines.answers_to(b"client")[-1]
    assert isinstance(renewed, m.Renewed) and any(unpack_u64(renewed.ends)), "nothing is renewed any more"
