"""A node that an operator does not trust leads nothing and gets no new vote; one that is gone is no voter."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from node.machines import Machines
from node.operating import down, up
from node.test_overseeing import DOCUMENT, LIVE, NAMES, NOW, asked
from skuld_py.model import messages as m
from skuld_py.model.document import Bar, Document, Freeze, Promotion
from skuld_py.partition.leadership.evaluator import Facts, Rest, Stand, Write, Yield, evaluate
from skuld_py.partition.leadership.wishes import Impossible, Request, steered
from skuld_py.verbs import attention

BAR = Bar("r", "n3", "me", "why", NOW)
ASK = Request("r", "quarantine", "n3", "me", "why")
REAP = attrs.evolve(ASK, kind="reap")
WISH = Promotion("r", "reap", "n3", 4, NOW + 30_000, "me")
BARRED = attrs.evolve(DOCUMENT, barred=(BAR,))
BOTH = (BAR, attrs.evolve(BAR, node="n2"))
HELD = Freeze("f", "me", "why", NOW)


def facts(me: str, *live: str, **changes: Any) -> Facts:
    return attrs.evolve(Facts(LIVE[me], {name: LIVE[name] for name in live or NAMES}, NAMES), **changes)


def test_a_bar_is_written_once_and_lifted_and_survives_the_text() -> None:
    assert steered(ASK, DOCUMENT, LIVE, NOW) == BARRED
    assert steered(attrs.evolve(ASK, id="again"), BARRED, LIVE, NOW + 1) == BARRED
    assert steered(attrs.evolve(ASK, kind="unquarantine"), BARRED, LIVE, NOW) == DOCUMENT
    assert Document.decode(BARRED.encode()) == BARRED
    assert "barred" not in json.loads(DOCUMENT.encode())


@pytest.mark.parametrize(("request_", "live", "changes", "why"), [
    (attrs.evolve(ASK, target="n9"), NAMES, {}, "no node n9 is known here"),
    (ASK, ("n3",), {}, "nobody but n3 could lead it"),
    (attrs.evolve(ASK, target="n1"), NAMES, {"barred": (BAR, attrs.evolve(BAR, node="n2"))}, "nobody but n1"),
    (attrs.evolve(ASK, kind="lead"), NAMES, {"barred": (BAR,)}, "n3 is in quarantine"),
    (REAP, NAMES, {}, "n3 is alive"), (REAP, ("n1",), {}, "needs the vote of n3: only n1 of n1, n2, n3 is there"),
    (REAP, ("n1", "n2"), {"mode": "solo"}, "it is solo"),
    (REAP, (), {}, "only nobody of"), (REAP, ("n1", "n2"), {"freeze": Freeze("f", "op", "y", 1)}, "frozen by op")])
def test_what_would_do_harm_is_refused_by_name(request_: Request, live: tuple[str, ...], changes: dict[str, Any],
                                               why: str) -> None:
    with pytest.raises(Impossible, match=why):
        steered(request_, attrs.evolve(DOCUMENT, **changes), live, NOW)


def test_who_is_reaped_is_barred_too_and_who_has_no_vote_stays_as_it_is() -> None:
    assert steered(REAP, DOCUMENT, ("n1", "n2"), NOW) == attrs.evolve(DOCUMENT, promote=WISH, barred=(BAR,))
    assert steered(attrs.evolve(REAP, target="n9"), DOCUMENT, ("n1", "n2"), NOW) == DOCUMENT
    assert steered(REAP, BARRED, ("n1", "n2"), NOW).barred == (BAR,)


@pytest.mark.parametrize(("known", "changes", "action"), [
    # Whoever is barred does not stand, hands over what it leads, and is nobody's heir.
    (facts("n3", "n2", "n3"), {}, Rest("an operator has put this node into quarantine")),
    (facts("n2", "n2", "n3"), {}, Stand(NAMES)),
    (facts("n3", "n3"), {"seats": DOCUMENT.seats[2:]}, Stand(("n3",))),
    # Where nobody else is there that could lead, it leads, rather than that nothing is granted.
    (facts("n3", "n2", "n3"), {"barred": BOTH}, Stand(NAMES)),
    (facts("n3", "n2", "n3", suspects={"n2": "wiped"}), {}, Stand(NAMES)),
    (facts("n3", *NAMES), {"barred": BOTH, "boot": "x"}, Rest("an operator has put this node into quarantine")),
    (facts("n3", epoch=4), {"leader": "n3", "boot": "boot of n3"}, Yield(("n1", "n2"), NAMES)),
    (facts("n3", "n3", epoch=4), {"leader": "n3", "boot": "boot of n3"}, Rest()),
    (facts("n1", epoch=4, is_leaving=True), {}, Yield(("n2",), NAMES)),
    # While it is frozen the leader stays, and so it is led again by nobody else.
    (facts("n3"), {"leader": "n3", "freeze": HELD}, Stand(NAMES)),
    (facts("n3", epoch=4), {"leader": "n3", "boot": "boot of n3", "freeze": HELD}, Rest("held by an operator")),
    # While it is solo the voters stay, and one of them leads instead.
    (facts("n3", epoch=4), {"leader": "n3", "boot": "boot of n3", "mode": "solo"}, Yield(("n1", "n2"), NAMES)),
    (facts("n3", "n3", epoch=4), {"leader": "n3", "boot": "boot of n3", "mode": "solo"},
     Rest("held by an operator")),
    # It gets no new vote, and keeps the one that it has.
    (facts("n1", epoch=4, filled=("n3",)), {"seats": DOCUMENT.seats[:2], "learners": ("n3",)}, Rest()),
    (facts("n1", epoch=4, owners=("n1", "n2"), filled=(), is_gathered=True), {}, Stand(("n1", "n2"))),
    (facts("n2", epoch=4, steady=("n3",)),
     {"leader": "n2", "boot": "boot of n2", "seats": (DOCUMENT.seats[2], *DOCUMENT.seats[:2])}, Rest()),
    # The voters become fewer once those who stay were compared.
    (facts("n1", "n1", "n2", epoch=4, is_gathered=True), {"promote": WISH}, Stand(("n1", "n2"))),
    (facts("n1", "n1", "n2", epoch=4), {"promote": WISH}, Rest("those who stay are compared first"))])
def test_what_a_bar_makes_of_each(known: Facts, changes: dict[str, Any], action: object) -> None:
    assert evaluate(known, attrs.evolve(BARRED, **changes), NOW) == action


def test_a_wish_about_who_lives_is_taken_out() -> None:
    written = evaluate(facts("n1", *NAMES, epoch=4), attrs.evolve(BARRED, promote=WISH), NOW)
    assert isinstance(written, Write) and written.document == BARRED


@pytest.mark.parametrize("barred", [7, [7], [{"node": "n3"}], {"node": "n3"}])
def test_bars_that_make_no_sense_hold_nobody_and_are_told_and_taken_out(barred: Any) -> None:
    read = Document.decode(json.dumps({**json.loads(DOCUMENT.encode()), "barred": barred}).encode())
    assert read == attrs.evolve(DOCUMENT, malformed={"barred": barred})
    written = evaluate(facts("n1", epoch=4), read, NOW)
    assert isinstance(written, Write) and written.document == DOCUMENT


# -- on nodes --------------------------------------------------------------------------------------


def test_a_leader_in_quarantine_is_succeeded_and_named_until_it_is_trusted_again() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    bad = machines.documents[0][1].leader
    assert asked(machines, bad, kind="quarantine", target=bad, over_ms=5_000) == m.Steered(1, 2, 0, ())
    machines.pass_time(200_000)

    assert all(document.leader != bad and bad in document.cohort for _, document in machines.documents.values())
    told = attention.concerns(attention.Facts("c", 3, 200, machines.nodes[bad].description()))
    (words,) = [each.words for each in told if each.kind == "held"]
    assert bad in words and "2 partitions" in words and "by me (why)" in words
    asked(machines, bad, kind="unquarantine", target=bad, over_ms=5_000)
    machines.pass_time(200_000)
    assert bad in {document.leader for _, document in machines.documents.values()}


def test_what_is_frozen_a_leader_in_quarantine_leads_on_and_the_answer_names_it() -> None:
    machines = Machines(partitions=4)
    machines.pass_time(2_000)
    bad = machines.documents[0][1].leader
    other = next(name for name in machines.names if name != bad)
    asked(machines, other, first=0, count=1, by="ann", for_ms=300_000)
    asked(machines, other, kind="freeze", first=1, count=1, by="bob")
    freezes = {number: machines.documents[number][1].freeze for number in (0, 1)
               if machines.documents[number][1].leader == bad}
    rows = tuple(m.FrozenRow(number, freeze.by, freeze.until_ms) for number, freeze in freezes.items() if freeze)
    assert (rows[0].partition, rows[0].by) == (0, "ann") and rows[0].until_ms > machines.now_ms

    assert asked(machines, other, kind="quarantine", target=bad) == m.Steered(1, 4, 0, (), rows)
    assert asked(machines, bad, kind="quarantine", target=bad) == m.Steered(1, 0, 0, (), rows), "asked for again"
    machines.pass_time(200_000)
    assert {number for number, (_, each) in machines.documents.items() if each.leader == bad} == {*freezes}
    machines.pass_time(200_000)
    assert machines.documents[0][1].leader != bad, "the freeze is over"
    told = asked(machines, bad, kind="quarantine", target=bad)
    assert isinstance(told, m.Steered) and told.frozen == rows[1:]
    told = asked(machines, bad, kind="unquarantine", target=bad)
    assert isinstance(told, m.Steered) and not told.frozen


def test_a_leader_in_quarantine_is_succeeded_while_the_partition_is_solo_and_the_voters_stay() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    bad, cohort = machines.documents[0][1].leader, machines.documents[0][1].cohort
    machines.write(0, attrs.evolve(machines.documents[0][1], mode="solo"))
    machines.pass_time(100)
    asked(machines, bad, kind="quarantine", target=bad, over_ms=5_000)
    machines.pass_time(10_000)

    document = machines.documents[0][1]
    assert (document.mode, document.cohort) == ("solo", cohort) and document.leader != bad


def test_nobody_who_is_there_is_passed_over_though_a_majority_was_compared() -> None:
    machines = Machines(5, partitions=1, replicas=5)
    machines.pass_time(2_000)
    leader, _, _, slow, gone = machines.documents[0][1].cohort
    down(machines, gone)
    machines.is_deaf = slow
    asked(machines, leader, kind="reap", target=gone, over_ms=10_000)
    assert gone in machines.documents[0][1].cohort
    machines.is_deaf = ""
    machines.pass_time(10_000)
    assert gone not in machines.documents[0][1].cohort


def test_who_is_gone_is_no_voter_any_more_while_another_voter_is_down_too() -> None:
    machines = Machines(5, partitions=1, replicas=5)
    machines.pass_time(2_000)
    leader, second, third, absent, gone = machines.documents[0][1].cohort
    assert leader == machines.documents[0][1].leader
    for name in (absent, gone):
        down(machines, name)
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed))
    asked(machines, leader, kind="reap", target=gone, over_ms=5_000)
    assert gone in machines.documents[0][1].cohort
    machines.is_lost = lambda message: False
    machines.pass_time(10_000)
    assert sorted(machines.documents[0][1].cohort) == sorted((leader, second, third, absent))


def test_who_is_gone_is_no_voter_any_more_and_gets_no_vote_when_it_comes_back() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader, holder, gone = machines.documents[0][1].cohort
    assert leader == machines.documents[0][1].leader
    down(machines, gone)
    machines.is_deaf = holder
    machines.ask(leader, m.Enqueue(1, 1, (machines.batch("q", 2),)))
    machines.deliver(100)
    machines.is_deaf = ""
    machines.is_lost = lambda message: isinstance(message, (m.Replicate, m.Probe, m.Probed))
    asked(machines, holder, kind="reap", target=gone, over_ms=10_000)
    assert gone in machines.documents[0][1].cohort
    machines.is_lost = lambda message: isinstance(message, m.Replicate)
    machines.pass_time(15_000)

    assert sorted(machines.documents[0][1].cohort) == sorted((leader, holder))
    roots = {machines.nodes[name].view.vnodes[0].replica.tree.root for name in (leader, holder)}
    assert len(roots) == 1 and roots != {0}
    up(machines, gone)
    machines.pass_time(300_000)
    assert gone not in machines.documents[0][1].cohort
    asked(machines, holder, kind="unquarantine", target=gone, over_ms=5_000)
    machines.pass_time(300_000)
    assert gone in machines.documents[0][1].cohort
