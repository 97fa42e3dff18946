"""One process: who gets which event, and that what the log says reaches the node in the same turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from skuld_py.cluster.log.commands import AddSlot, Command, LeaveSlot, PrepareJoin, SetRules
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import UnknownRules
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.scale.slots import units
from skuld_py.model.columns import Column
from skuld_py.model.coordination import (
    Announce,
    Append,
    Appended,
    EntriesRead,
    OriginRead,
    PulseStands,
    ReadOrigin,
    SetPulse,
)
from skuld_py.model.document import Member
from skuld_py.model.events import (
    Asked,
    Computed,
    DocumentRead,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    ReadDocument,
    Received,
    Send,
    Session,
    SessionChanged,
    Settled,
    Ticked,
)
from skuld_py.model.messages import Greet, Invite
from skuld_py.model.messages.decisions import DECLINED, Decide, Undecided
from skuld_py.model.messages.membership import NotNow
from skuld_py.node.process import Process, Told, Wish

ANNA = Member("h:1", "h", 1, "boot")
LIFE = "h:1~1"


class Recorder:
    """A node that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.is_leading = False

    def hand_over(self, now_ms: int) -> None:
        pass

    def is_handing_over(self, now_ms: int) -> bool:
        return self.is_leading

    slots: Mapping[tuple[str, ...], int] = {}
    playback = None
    commands: ClassVar[dict[Command, None]] = {}

    def needs_vote_of(self, name: str) -> bool:
        return name == "h:9"

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        self.told.append(event)
        return [ReadDocument(len(self.told))]

    def deadline(self) -> int:
        return 70


def made() -> tuple[Recorder, Process]:
    node = Recorder()
    return node, Process(node, Membership(ANNA, lambda: LIFE, lambda most: 0))


def joined() -> tuple[Recorder, Process, list[Wish]]:
    """A process that has joined alone, and the wishes of the turn in which it read so."""
    node, process = made()
    entry = Entry(LIFE, 0, PrepareJoin(LIFE, ANNA)).encode()
    wishes: list[Wish] = []
    news: list[Told] = [SessionChanged(Session.CONNECTED), PulseStands(LIFE), OriginRead(-1, ""),
                        EntriesRead(0, (), is_end=True), Appended(0, 0),
                        EntriesRead(0, ((0, entry),), is_end=True)]
    for event in news:
        wishes = process.step(0, event)
    return node, process, wishes


def test_the_node_hears_of_the_session_only_from_the_log() -> None:
    node, process = made()
    assert process.step(0, SessionChanged(Session.CONNECTED)) == [SetPulse(LIFE, ANNA)]
    assert ReadOrigin() in process.step(0, PulseStands(LIFE))
    assert node.told == []


def test_what_the_log_says_is_told_to_the_node_at_once_and_to_the_shell() -> None:
    node, _, wishes = joined()
    news: list[Any] = [NodesChanged(("h:1",), replicas=3), MembersChanged((ANNA,)),
                       SessionChanged(Session.CONNECTED)]
    assert node.told[-3:] == news
    assert [wish.event for wish in wishes if isinstance(wish, Announce)] == news
    at = wishes.index(Announce(news[2]))
    assert isinstance(wishes[at + 1], ReadDocument), "the node's own wishes follow"


@pytest.mark.parametrize("event", [Asked(b"c", Greet(1)), Received("h:2", Invite(0)), Settled(),
                                   DocumentRead(0, -1, None)])  # type: ignore[arg-type]
def test_everything_else_is_the_nodes(event: Event) -> None:
    node, process = made()
    assert process.step(0, event) == [ReadDocument(1)]
    assert node.told == [event]


def test_messages_about_the_log_are_not_the_nodes() -> None:
    node, process = made()
    process.step(0, Received("h:2", NotNow("id", LIFE, "busy")))
    question = Decide("placement-1", 1, bytes(16), False, Column())
    declined = process.step(0, Received("h:2", question))
    assert declined == [Send("h:2", Undecided(bytes(16), DECLINED))]
    process.step(0, Computed(bytes(16), ""))
    assert node.told == []


def test_what_the_nodes_workers_can_hold_is_brought_into_the_log_when_it_changes() -> None:
    node, process, _ = joined()

    def written(slots: int, position: int) -> list[Any]:
        """What is written for a number of slots, entry after entry, and read back."""
        node.slots = {(): slots} if slots else {}
        wishes, commands = process.step(0, Settled()), []
        while appends := [wish for wish in wishes if isinstance(wish, Append)]:
            commands.append(decode(appends[0].raw).command)
            wishes = [*process.step(0, Appended(appends[0].seq, position))]
            wishes += process.step(0, EntriesRead(position, ((position, appends[0].raw),), is_end=True))
            position += 1
        return commands

    assert written(0, 1) == []
    assert written(7, 1) == [AddSlot("h:1~claims-7", LIFE, ("claims-7",))]
    assert written(7, 2) == []
    assert written(40, 2) == [AddSlot("h:1~claims-40", LIFE, ("claims-40",)), LeaveSlot("h:1~claims-7")]
    assert sum(map(units, process._membership.replica.slots.values())) == 40
    assert written(0, 4) == [LeaveSlot("h:1~claims-40")]


def test_both_are_woken_and_the_earlier_one_says_when() -> None:
    node, process, _ = joined()
    process.step(5, Ticked())
    assert node.told[-1] == Ticked()
    due_ms = process.deadline()
    assert due_ms is not None and due_ms <= 70
    assert made()[1].deadline() == 70


def test_the_membership_is_not_woken_before_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node is woken often; the log has nothing to say to most of that."""
    node, process, _ = joined()
    due_ms = process._membership.deadline()
    assert due_ms is not None
    woken: list[int] = []
    monkeypatch.setattr(Membership, "step", lambda self, now_ms, event: woken.append(now_ms) or [])

    process.step(due_ms - 1, Ticked())
    assert woken == []
    process.step(due_ms, Ticked())
    assert woken == [due_ms]
    assert node.told[-2:] == [Ticked(), Ticked()]


def test_news_that_come_with_a_tick_are_told_before_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    node, process, _ = joined()
    due_ms = process._membership.deadline()
    assert due_ms is not None
    lost = SessionChanged(Session.LOST)
    monkeypatch.setattr(Membership, "step", lambda self, now_ms, event: [Announce(lost)])

    process.step(due_ms, Ticked())
    assert node.told[-2:] == [lost, Ticked()]


def test_it_departs_by_an_entry_of_its_own() -> None:
    _, process, _ = joined()
    appends = [wish for wish in process.depart(9) if isinstance(wish, Append)]
    assert not process.is_out
    process.step(9, Appended(1, 1))
    process.step(9, EntriesRead(1, ((1, appends[0].raw),), is_end=True))
    assert process.is_out


def test_it_departs_once_others_lead_what_its_node_led() -> None:
    node, process, _ = joined()
    node.is_leading = True
    assert process.depart(9) == []
    assert process.step(9, Settled()) == [ReadDocument(len(node.told))]

    node.is_leading = False
    assert not [wish for wish in process.step(10, Ticked()) if isinstance(wish, Append)], "the turn is not over"
    assert [wish for wish in process.step(10, Settled()) if isinstance(wish, Append)]


def test_the_log_is_told_which_votes_the_node_knows_to_be_needed() -> None:
    _, process = made()
    assert process._membership.needs_vote_of("h:9") and not process._membership.needs_vote_of("h:1")


def test_rules_that_it_cannot_play_end_it() -> None:
    _, process, _ = joined()
    entry = Entry("op", 0, SetRules(99)).encode()
    with pytest.raises(UnknownRules):
        process.step(9, EntriesRead(1, ((1, entry),), is_end=True))
