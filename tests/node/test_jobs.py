"""What a learner, a zombie, a suspect and a new member must have compared, and with whom, before they are done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.document import Document, Member, seats_of
from skuld_py.model.events import DocumentRead, Effect, ReadDocument
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.copies.moves import ASK_PAUSE_MS, Moves
from skuld_py.partition.copies.exchange import Pass, Progress
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.vnode import Vnode

NOW = 1_000_000
HERE, FIVE = ("me", "n1", "n2"), ("me", "n1", "n2", "n3", "n4")
THERE = ("n1", "n2", "n3")
EVERYBODY = ("me", "n1", "n2", "n3", "n4")


class Stage:
    """One node with one partition of three tasks; others are names."""

    def __init__(self, *, owners: tuple[str, ...], cohort: tuple[str, ...]) -> None:
        members = {name: Member(name, "h", 1, f"boot of {name}") for name in EVERYBODY}
        self.vnode = Vnode(0, members["me"], Parameters("c", "i", 1, len(cohort), 200), MemoryStore(),
                           DEFAULT_TIMING, DEFAULT_LIMITS, lambda most: 0)
        self.vnode.has_read = True
        self.vnode.nodes = tuple(members)
        self.vnode.replica.store_tasks(NOW, Header("q").encode(), IdMint(1).mint(1_000, 3, 0), [b""] * 3)
        self.vnode.settle(0, 4, 4, cohort)
        self.sent: list[tuple[str, m.Message]] = []
        self.pursued: list[str] = []
        self.asked: list[Effect] = []
        self.vnode.place(owners)
        self.begun = 10
        operations: Any = SimpleNamespace(
            view=SimpleNamespace(me=members["me"], live=members, vnodes=[self.vnode], bulletin=Bulletin(),
                                 timing=DEFAULT_TIMING, is_leaving=False),
            outbox=SimpleNamespace(send=lambda name, message: self.sent.append((name, message)),
                                   carry_out=self.asked.extend))
        self.members = members
        self.on_pass: list[Any] = []
        exchanges: Any = self
        self.moves = Moves(operations, exchanges)

    def pursue(self, partition: int, peer: str, *, is_awaited: bool = False) -> None:
        """Stands for the exchanges of the node."""
        self.pursued.append(peer)

    def progress(self, partition: int, peer: str) -> None:
        """None is under way."""

    def look(self) -> Stage:
        self.moves.look(NOW, [0])
        return self

    def compare(self, peer: str, *, serial: int = 11, given: int = 0) -> Stage:
        """An exchange with a peer, begun as number ``serial``, is through."""
        self.moves.on_pass(NOW, Pass(0, peer, serial, not given, Progress(given_rows=given)))
        return self

    def confirm(self, cohort: tuple[str, ...], era: int = 4) -> Stage:
        """The document is read."""
        document = Document(epoch=era, era=era, leader="n1", seats=seats_of(cohort))
        self.moves.on_read(NOW, DocumentRead(0, 1, document))
        return self

    @property
    def is_done(self) -> bool:
        return self.moves.rows()[0].is_done

    @property
    def count(self) -> int:
        return len(self.vnode.store.scan("body", b"", b"\xff", 10))


# -- learners ----------------------------------------------------------------------------------------


def test_a_learner_compares_with_the_voters_until_a_majority_is_through() -> None:
    stage = Stage(owners=HERE, cohort=THERE).look()
    assert stage.pursued == ["n1", "n2", "n3"]

    assert not stage.compare("n1").is_done
    assert not stage.compare("n4").is_done, "a stranger"
    assert stage.compare("n3").is_done


def test_what_was_begun_before_it_was_placed_does_not_count() -> None:
    stage = Stage(owners=HERE, cohort=THERE).look()

    assert not stage.compare("n1", serial=10).compare("n2", serial=10).is_done


def test_a_new_cohort_begins_the_job_anew() -> None:
    stage = Stage(owners=HERE, cohort=THERE).look().compare("n1").compare("n2")
    assert stage.is_done

    stage.vnode.settle(0, 5, 5, ("n2", "n3", "n4"))

    assert not stage.look().is_done


# -- zombies -----------------------------------------------------------------------------------------


def test_a_zombie_drops_what_a_majority_has_and_nothing_before() -> None:
    stage = Stage(owners=THERE, cohort=THERE).look()

    for peer, given in (("n1", 0), ("n2", 3), ("n4", 0)):
        stage.compare(peer, given=given)
        stage.moves.drop(0)
        assert not stage.is_done and stage.count == 3

    stage.confirm(THERE)
    stage.compare("n2", serial=12)
    assert stage.is_done
    stage.moves.drop(0, 2)
    assert stage.count == 3, "what was read before does not count"

    assert stage.look().asked == [ReadDocument(0)]
    for cohort, era in ((HERE, 4), (THERE, 5)):
        stage.confirm(cohort, era).moves.drop(0, 2)
        assert stage.count == 3
    stage.confirm(THERE).moves.drop(0, 2)
    assert 0 < stage.count < 3
    stage.moves.drop(0)
    assert stage.count == 0


def test_what_a_restarted_voter_was_given_does_not_count() -> None:
    stage = Stage(owners=THERE, cohort=THERE).look().compare("n1").compare("n2")
    assert stage.is_done

    stage.members["n2"] = Member("n2", "h", 1, "a later boot")

    assert not stage.look().is_done
    assert stage.compare("n2", serial=12).is_done


@pytest.mark.parametrize("change", ["placed again", "another cohort"])
def test_a_zombie_that_is_wanted_again_drops_no_more(change: str) -> None:
    stage = Stage(owners=THERE, cohort=THERE).look().compare("n1").compare("n2").confirm(THERE)
    assert stage.is_done
    if change == "placed again":
        stage.vnode.place(HERE)
    else:
        stage.vnode.settle(0, 5, 5, ("n1", "n3", "n4"))

    stage.moves.drop(0)

    assert stage.count == 3


# -- suspects ----------------------------------------------------------------------------------------


def forgetful(cohort: tuple[str, ...]) -> Stage:
    stage = Stage(owners=cohort, cohort=cohort)
    stage.vnode.suspicion = "wiped"
    return stage.look()


def tell(stage: Stage, peer: str, promised: int, *, trial: bool = True) -> Stage:
    stage.moves.on_vote(peer, m.Vote(0, 4, True, trial, promised, 4))
    stage.moves.look(NOW + ASK_PAUSE_MS, [0])
    return stage


def test_a_suspect_asks_for_promises_and_compares_with_who_told_its_own() -> None:
    stage = forgetful(HERE)

    assert [name for name, message in stage.sent if isinstance(message, m.RequestVote)] == ["n1", "n2"]
    assert stage.pursued == []
    assert tell(stage, "n2", 7).pursued == ["n2"]


@pytest.mark.parametrize(("cohort", "needed"), [(HERE, ("n1", "n2")), (FIVE, ("n1", "n2", "n4"))])
def test_it_is_trusted_once_it_meets_every_majority_it_may_have_been_part_of(cohort: tuple[str, ...],
                                                                            needed: tuple[str, ...]) -> None:
    stage = forgetful(cohort)
    for number, peer in enumerate(needed):
        assert stage.vnode.suspicion
        tell(stage, peer, 7 - number).compare(peer)

    assert not stage.vnode.suspicion
    assert (stage.vnode.promise.epoch, stage.vnode.promise.candidate) == (7, "")


def test_who_was_compared_with_but_told_no_promise_does_not_count() -> None:
    stage = forgetful(HERE)
    tell(stage, "n1", 7).compare("n1").compare("n2")
    tell(stage, "n2", 8, trial=False).compare("n2", serial=12)

    assert stage.vnode.suspicion


# -- new members --------------------------------------------------------------------------------------


def synced(stage: Stage) -> list[m.Message]:
    return [message for name, message in stage.sent if isinstance(message, m.Synced) and name == "n9"]


def test_a_new_member_says_that_it_has_synced_after_all_sources_named() -> None:
    stage = Stage(owners=HERE, cohort=THERE).look()
    stage.moves.on_sync(NOW, "n9", m.Sync(0, 6, HERE, ("n1", "n2")))

    stage.compare("n1", serial=10).compare("n2", serial=10)
    assert synced(stage) == [], "they were begun before it was asked"
    stage.compare("n1").compare("n3")
    assert synced(stage) == []
    stage.compare("n2")
    assert synced(stage) == [m.Synced(0, 6)]


def test_from_then_on_its_cohort_counts_here() -> None:
    stage = Stage(owners=HERE, cohort=THERE)
    stage.moves.on_sync(NOW, "n9", m.Sync(0, 6, HERE, ("n1",)))

    assert [row.cohort for row in stage.vnode.cohorts_for(4)] == [HERE]


def test_who_forgot_or_is_not_meant_does_not_sync() -> None:
    stage = Stage(owners=HERE, cohort=THERE).look()
    stage.moves.on_sync(NOW, "n9", m.Sync(0, 6, THERE, ("n1",)))
    stage.compare("n1")
    assert synced(stage) == []

    stage.vnode.suspicion = "wiped"
    stage.moves.on_sync(NOW, "n9", m.Sync(0, 6, HERE, ("n1",)))
    stage.compare("n1")
    assert synced(stage) == []
