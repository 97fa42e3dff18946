"""What operators ask for is written into documents, bound to what was read, and named where it cannot be."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from node.machines import Machines
from node.operating import down
from skuld_py.model import messages as m
from skuld_py.model.document import Document, Freeze, Loss, Member, Promotion, Quarantine, seats_of
from skuld_py.model.events import Effect, ReadDocument, SwapDocument
from skuld_py.node.leadership.held import held
from skuld_py.node.leadership.overseeing import MAYBE_OBEYED, UNANSWERED
from skuld_py.partition.leadership.wishes import Impossible, Request, steered
from skuld_py.verbs.attention import Facts, concerns

NOW = 1_000
NAMES = ("n1", "n2", "n3")
LIVE = {name: Member(name, "h", 1, f"boot of {name}") for name in NAMES}
DOCUMENT = Document(4, "n1", "boot of n1", seats_of(NAMES), era=1, horizon_ms=9_000)
FREEZE = Request("r", "freeze", by="me", reason="why")
LEAD = Request("r", "lead", "n3", "me")


@pytest.mark.parametrize(("request_", "changes", "made"), [
    (FREEZE, {}, {"freeze": Freeze("r", "me", "why", NOW)}),
    (attrs.evolve(FREEZE, for_ms=5), {}, {"freeze": Freeze("r", "me", "why", NOW, NOW + 5)}),
    (attrs.evolve(FREEZE, for_ms=5), {"freeze": Freeze("f", "x", "y", 1)}, {}),
    (attrs.evolve(FREEZE, for_ms=5), {"freeze": Freeze("f", "x", "y", 1, NOW + 5)}, {}),
    (attrs.evolve(FREEZE, for_ms=6), {"freeze": Freeze("f", "x", "y", 1, NOW + 5)},
     {"freeze": Freeze("r", "me", "why", NOW, NOW + 6)}),
    (FREEZE, {"freeze": Freeze("f", "x", "y", 1, NOW + 5)}, {"freeze": Freeze("r", "me", "why", NOW)}),
    (FREEZE, {"freeze": Freeze("f", "x", "y", 1)}, {}),
    (attrs.evolve(FREEZE, for_ms=1 << 62), {}, {"freeze": Freeze("r", "me", "why", NOW, 253_402_300_799_999)}),
    (attrs.evolve(FREEZE, kind="unfreeze"), {"freeze": Freeze("f", "x", "y", 1)}, {"freeze": None}),
    (attrs.evolve(FREEZE, kind="unfreeze"), {"malformed": {"freeze": 1, "mode": 2}}, {"malformed": {"mode": 2}}),
    (attrs.evolve(FREEZE, kind="unfreeze"), {}, {}),
    (attrs.evolve(FREEZE, kind="solo"), {}, {"mode": "solo"}),
    (attrs.evolve(FREEZE, kind="normal"), {"mode": "solo"}, {"mode": "normal"}),
    (LEAD, {}, {"promote": Promotion("r", "lead", "n3", 4, NOW + 30_000, "me")}),
    (attrs.evolve(LEAD, for_ms=5, epoch=4), {"malformed": {"promote": 7}},
     {"promote": Promotion("r", "lead", "n3", 4, NOW + 5, "me"), "malformed": {}}),
    (attrs.evolve(LEAD, target="n1"), {}, {}),
    (attrs.evolve(LEAD, kind="rebalance", target=""), {},
     {"promote": Promotion("r", "rebalance", "", 4, NOW + 30_000, "me")}),
    (attrs.evolve(LEAD, kind="withdraw", target=""),
     {"promote": Promotion("p", "lead", "n3", 4, NOW + 9, "me"), "freeze": Freeze("f", "x", "y", 1),
      "malformed": {"promote": 7}}, {"promote": None, "malformed": {}}),
    (attrs.evolve(LEAD, kind="withdraw", target=""), {}, {})])
def test_a_request_makes_of_a_document_what_it_says_and_leaves_all_else(
        request_: Request, changes: dict[str, Any], made: dict[str, Any]) -> None:
    before = attrs.evolve(DOCUMENT, unknown={"later": 1}, **changes)

    assert steered(request_, before, LIVE, NOW) == attrs.evolve(before, **made)


@pytest.mark.parametrize(("owners", "changes", "is_wished"), [
    (("n1", "n2", "n3"), {}, False), (("n2", "n1", "n3"), {}, True), (("n1", "n2"), {}, True),
    (("n1", "n2", "n3"), {"leader": "n2"}, True),
    (("n1", "n2", "n3"), {"seats": seats_of(("n1", "n3", "n2"))}, True),
    (("n1", "n2", "n3"), {"promote": Promotion("p", "lead", "n3", 4, NOW + 9, "me")}, True)])
def test_what_is_led_as_it_is_placed_is_not_to_be_balanced(
        owners: tuple[str, ...], changes: dict[str, Any], is_wished: bool) -> None:
    before = attrs.evolve(DOCUMENT, **changes)
    made = steered(attrs.evolve(LEAD, kind="rebalance", target=""), before, LIVE, NOW, owners=owners)

    assert (made != before) is is_wished


@pytest.mark.parametrize(("request_", "changes", "why"), [
    (FREEZE, {"epoch": 0}, "no leader yet"), (attrs.evolve(LEAD, epoch=3), {}, "its epoch is 4, not 3"),
    (LEAD, {"freeze": Freeze("f", "op", "y", 1)}, "frozen by op"), (LEAD, {"mode": "solo"}, "solo"),
    (attrs.evolve(LEAD, target="n4"), {}, "no vote"),
    (attrs.evolve(LEAD, kind="reorder", target="n1"), {}, "leads"),
    (LEAD, {"quarantine": (Quarantine("n3", "", "wiped", 1),)}, "quarantine")])
def test_what_its_leader_would_take_out_again_is_refused(
        request_: Request, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Impossible, match=why):
        steered(request_, attrs.evolve(DOCUMENT, **changes), LIVE, NOW)


@pytest.mark.parametrize(("kind", "field"), [
    ("freeze", "freeze"), ("solo", "mode"), ("lead", "promote"), ("quarantine", "barred"), ("reap", "barred"),
    ("reap", "promote"), ("force", "force")])
def test_what_an_operator_holds_is_written_over_what_makes_no_sense(kind: str, field: str) -> None:
    """It was answered as done, and what stood there stayed."""
    before = attrs.evolve(DOCUMENT, malformed={field: 7, "other": 8})
    live = {"reap": ("n1", "n2"), "force": ("n1",)}.get(kind, NAMES)
    made = steered(attrs.evolve(LEAD, kind=kind), before, live, NOW)
    after = Document.decode(made.encode())
    assert getattr(after, field) == getattr(made, field) != getattr(DOCUMENT, field)


def test_the_dead_are_not_promoted() -> None:
    with pytest.raises(Impossible, match="not alive"):
        steered(LEAD, DOCUMENT, ("n1", "n2"), NOW)


# -- on nodes --------------------------------------------------------------------------------------


def asked(machines: Machines, at: str, over_ms: int = 100, **options: Any) -> m.Message:
    plain: dict[str, Any] = {"kind": "freeze", "first": 0, "count": 0, "target": "", "by": "me", "reason": "why",
                             "for_ms": 0, "epoch": 0}
    machines.ask(at, m.Steer(1, **{**plain, **options}))
    machines.pass_time(over_ms)
    return machines.answers_to(b"client")[-1]


def test_any_node_freezes_all_and_lets_go_of_one() -> None:
    machines = Machines(partitions=4)
    machines.pass_time(2_000)

    assert asked(machines, machines.names[0]) == m.Steered(1, 4, 0, ())
    frozen = machines.documents[3][1]
    assert frozen.freeze is not None and (frozen.freeze.by, frozen.freeze.reason) == ("me", "why")
    assert frozen.cause == "freeze by me: why"
    assert asked(machines, machines.names[1], kind="unfreeze", first=2, count=1) == m.Steered(1, 1, 0, ())
    assert [machines.documents[each][1].freeze is None for each in range(4)] == [False, False, True, False]


def test_of_many_partitions_it_says_where_to_go_on_and_what_cannot_be() -> None:
    machines = Machines(partitions=128)
    machines.pass_time(6_000)
    leader = machines.documents[0][1].leader
    first = asked(machines, leader, kind="lead", target=leader)
    assert isinstance(first, m.Steered) and first.next == 64 and not first.refused
    last = asked(machines, leader, kind="lead", target="nobody", first=first.next)

    assert isinstance(last, m.Steered) and (last.changed, last.next, len(last.refused)) == (0, 0, 64)
    assert last.refused[0].partition == 64 and "nobody has no vote" in last.refused[0].reason


def test_a_wish_that_is_taken_back_in_time_is_not_obeyed() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    document = machines.documents[0][1]
    machines.is_lost = lambda message: type(message).__name__ == "Abdicate"
    asked(machines, machines.names[0], kind="lead", target=document.cohort[1])
    assert machines.documents[0][1].promote is not None
    assert asked(machines, machines.names[1], kind="withdraw") == m.Steered(1, 1, 0, ())
    machines.is_lost = lambda message: False
    machines.pass_time(10_000)

    after = machines.documents[0][1]
    assert (after.promote, after.leader, after.epoch) == (None, document.leader, document.epoch)
    assert after.cause == "withdraw by me: why" or after.horizon_ms > document.horizon_ms


class Meddled(Machines):
    """Somebody else writes right after the first read."""

    is_meddled = False

    def _carry_out(self, name: str, effect: Effect) -> None:
        super()._carry_out(name, effect)
        if isinstance(effect, ReadDocument) and self.is_meddled:
            self.is_meddled = False
            self.write(0, attrs.evolve(self.documents[0][1], mode="solo", write_id="else"))


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_a_swap_that_is_lost_or_in_doubt_begins_anew_and_overwrites_nothing(is_in_doubt: bool) -> None:
    machines = Meddled(partitions=1)
    machines.pass_time(2_000)
    machines.is_meddled, machines.is_in_doubt = not is_in_doubt, is_in_doubt

    assert asked(machines, machines.names[0]) == m.Steered(1, 1, 0, ())
    document = machines.documents[0][1]
    assert document.freeze is not None and document.mode == ("normal" if is_in_doubt else "solo")


class Given(Machines):
    """Voters are given up in doubt, and those who remain have a leader before the operator's node reads again."""

    def _carry_out(self, name: str, effect: Effect) -> None:
        self.is_in_doubt = isinstance(effect, SwapDocument) and "-op" in effect.document.write_id
        super()._carry_out(name, effect)
        if self.is_in_doubt and isinstance(effect, SwapDocument) and effect.document.force is not None:
            seats = seats_of(effect.document.force.remaining)
            self.write(0, attrs.evolve(effect.document, epoch=effect.document.spent + 1, force=None, seats=seats,
                                       leader=seats[0].node, write_id="theirs"))
        self.is_in_doubt = False


def test_who_may_have_been_given_up_is_not_said_to_be_there() -> None:
    """It was: "it has a majority of its voters; nobody has to be given up"."""
    machines = Given(partitions=1)
    machines.pass_time(2_000)
    document = machines.documents[0][1]
    last = document.cohort[2]
    for name in document.cohort[:2]:
        down(machines, name)
    answer = asked(machines, last, kind="force")

    assert machines.documents[0][1].cohort == (last,)
    assert answer == m.Steered(1, 0, 0, (m.RefusalRow(0, MAYBE_OBEYED.format(document.epoch), True),))


class Slow(Machines):
    """ZooKeeper carries a swap out, and its answer does not come."""

    def _carry_out(self, name: str, effect: Effect) -> None:
        super()._carry_out(name, effect)
        if isinstance(effect, SwapDocument) and "-op" in effect.document.write_id:
            self.flying.pop()


def test_what_may_be_written_yet_is_no_refusal() -> None:
    machines = Slow(partitions=1)
    machines.pass_time(2_000)
    answer = asked(machines, machines.names[0], over_ms=30_000)

    assert machines.documents[0][1].freeze is not None
    assert answer == m.Steered(1, 0, 0, (m.RefusalRow(0, UNANSWERED, True),))


def test_what_was_never_read_was_not_written() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    machines.reads_failing = 1_000
    answer = asked(machines, machines.names[0], over_ms=30_000)

    assert machines.documents[0][1].freeze is None
    assert answer == m.Steered(1, 0, 0, (m.RefusalRow(0, UNANSWERED),))


class Obeyed(Machines):
    """A wish is written in doubt, obeyed, and followed by another leader, all before its writer reads again."""

    successor = ""

    def _carry_out(self, name: str, effect: Effect) -> None:
        self.is_in_doubt = isinstance(effect, SwapDocument) and "-op" in effect.document.write_id
        super()._carry_out(name, effect)
        if self.is_in_doubt and isinstance(effect, SwapDocument):
            self.write(0, attrs.evolve(effect.document, epoch=effect.document.epoch + 1, leader=self.successor,
                                       promote=None, write_id="theirs"))
        self.is_in_doubt = False


@pytest.mark.parametrize(("kind", "is_target"), [("lead", False), ("reorder", False), ("rebalance", False),
                                                 ("lead", True)])
def test_a_wish_that_may_have_been_obeyed_is_not_written_into_a_later_epoch(kind: str, is_target: bool) -> None:
    machines = Obeyed(partitions=1)
    machines.pass_time(2_000)
    document = machines.documents[0][1]
    target, other = (name for name in document.cohort if name != document.leader)
    machines.successor = target if is_target else other
    if kind == "rebalance":  # of one that is as it is placed nothing is written
        machines.write(0, attrs.evolve(document, seats=document.seats[:1] + document.seats[:0:-1]))
    answer = asked(machines, document.leader, kind=kind, target="" if kind == "rebalance" else target)

    reasons = [] if is_target else [MAYBE_OBEYED.format(document.epoch)]
    assert isinstance(answer, m.Steered) and [row.reason for row in answer.refused] == reasons
    assert answer.changed == is_target and machines.documents[0][1].promote is None


def test_a_registry_that_is_silent_is_told_of() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    machines.reads_failing = 1_000
    answer = asked(machines, machines.names[0], over_ms=5_000)

    assert isinstance(answer, m.Steered) and "ZooKeeper" in answer.refused[0].reason


@pytest.mark.parametrize(("options", "why"), [
    ({"kind": "melt"}, "kind: 'melt' is none of"), ({"kind": "lead"}, "target: name a node"),
    ({"target": "n1"}, "target"), ({"first": 1, "count": 1}, "1 partitions, 0 to 0")])
def test_what_makes_no_sense_is_refused(options: dict[str, Any], why: str) -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    answer = asked(machines, machines.names[0], **options)

    assert isinstance(answer, m.Failed) and why in answer.text


def test_who_is_asked_how_the_cluster_is_names_what_is_held() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    name = machines.names[1]
    asked(machines, machines.names[0], for_ms=60_000, first=1, count=1)
    ends_ms = machines.documents[1][1].freeze.until_ms  # type: ignore[union-attr]
    machines.write(0, attrs.evolve(machines.documents[0][1], mode="solo"))
    machines.pass_time(100)

    assert machines.nodes[name].description().held == (
        m.HeldRow(0, "solo", "", 0), m.HeldRow(1, "frozen", "by me (why)", ends_ms))
    machines.pass_time(70_000)
    assert machines.nodes[name].description().held == (m.HeldRow(0, "solo", "", 0),)


def test_what_keeps_a_leader_from_granting_is_named() -> None:
    machines = Machines()
    machines.pass_time(2_000)
    name = next(each for each in machines.names if each != machines.documents[0][1].leader)
    view, now_ms = machines.nodes[name].view, machines.now_ms
    vnode, plain, quarter_ms = view.vnodes[0], view.vnodes[0].known, view.timing.horizon_ms // 4

    def rows(**changes: Any) -> list[tuple[str, int]]:
        vnode.known = attrs.evolve(plain, **changes)
        return [(row.what, row.until_ms) for row in held(view, now_ms, lambda *_: "") if not row.partition]

    assert rows() == rows(horizon_ms=now_ms + quarter_ms) == rows(no_grant_before_ms=now_ms) == []
    assert rows(horizon_ms=now_ms + quarter_ms - 1) == [("horizon", now_ms + quarter_ms - 1)]
    assert rows(horizon_ms=now_ms + 1) == [("horizon", now_ms + 1)]
    assert rows(horizon_ms=now_ms) == [("horizon", 0)], "it is over"
    assert rows(horizon_ms=now_ms, leader="n9") == [], "who leads now has written another one"
    assert rows(no_grant_before_ms=now_ms + 1) == [("barrier", now_ms + 1)]
    loss = Loss(4, ("n2",), ("n1",), "me", "", NOW, now_ms + 1)
    assert rows(no_grant_before_ms=now_ms + 1, loss=loss) == [("loss", now_ms + 1)], "which says so itself"
    view.is_connected = False
    assert rows(horizon_ms=now_ms) == [], "what was read long ago may have moved on"


def test_what_is_held_is_told_to_people_once_for_all_partitions_of_a_kind() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    plain = machines.nodes[machines.names[0]].description()
    rows = (m.HeldRow(0, "frozen", "by me (why)", 0), m.HeldRow(1, "frozen", "by me (why)", 0),
            m.HeldRow(1, "promotion", "lead n2, by me", 0), m.HeldRow(0, "later", "unknown", 0))
    told = concerns(Facts("c", 3, 2_000, attrs.evolve(plain, held=rows)))

    assert [each.words for each in told if each.kind == "held"] == [
        "2 partitions (0, 1) are frozen by me (why); nobody but the present leader may lead until"
        " 'skuld unfreeze'",
        "partition 1 is waiting for what an operator wished: lead n2, by me; 'skuld withdraw' takes it back"]
