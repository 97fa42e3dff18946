"""Each guard sees its first line broken, and a candidacy as it should be breaks none."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from simulation.story import record
from simulation.test_monitor import BODY, KEY, TASK, _bare
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import Column, pack, pack_u64
from skuld_py.model.document import NOBODY, Document, Previous, seats_of
from skuld_py.model.events import DocumentRead, ReadFailed, Received, SwapDocument
from skuld_py.model.history import (
    CANCELLED,
    CLAIM,
    DIED,
    FAILED,
    HISTORY_HEAD,
    RELEASED,
    REVIVED,
    SNOOZED,
    encode_claim,
)
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.messages.settings import SettingRow
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import LIMITS, UNSET, encode_setting, setting_key
from skuld_py.partition.data import tables
from skuld_py.simulation import guards as rules
from skuld_py.simulation.guards import Guards
from skuld_py.simulation.world.clock import Clock

OLD, NEW = ("n1", "n2", "n3"), ("n1", "n2", "n4")
FIRST = Document(1, "n3", "boot", seats_of(OLD), "w1")
SECOND = Document(2, "n1", "boot", seats_of(NEW), "w2", previous=Previous(1, "n3", OLD))
PAGE = pack([record(1 << 32)])
CLAIMS = m.ClaimPage(0, 2, b"", b"", b"", Column(), Column())
SUSPECT, PROMISE = tables.suspect_key(0), tables.promise_key(0)


class Stage:
    """n1 stands for epoch 2 and a cohort with n4 in the place of n3, which does not answer."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.broken: dict[str, str] = {}
        self.processes = {name: _bare(name) for name in ("n1", "n2", "n3", "n4")}
        self.excused: list[str] = []
        self.guards = Guards(self.processes, self.counts, self.broken.__setitem__, self.excused.__contains__, {})
        self.guards.on_written(0, 0, None, FIRST)
        for process in self.processes.values():
            self.guards.on_turn(process, [DocumentRead(0, 0, FIRST)])

    def send(self, sender: str, receiver: str, message: m.Message, *, arrives: bool = True) -> Stage:
        """It leaves, and its receiver takes it."""
        self.guards.on_send(self.processes[sender], receiver, message)
        if arrives:
            self.guards.on_turn(self.processes[receiver], [Received(sender, message)])
        return self

    def store(self, name: str, table: str, key: bytes, value: bytes) -> Stage:
        store = self.processes[name].store
        store.put_many(table, [(key, value)])
        store.commit()
        return self

    # -- steps of the candidacy ----------------------------------------------------------------

    def vote(self, epoch: int = 2, *names: str, is_trial: bool = False) -> Stage:
        for name in names or ("n2", "n4"):
            self.send("n1", name, m.RequestVote(0, 2, NEW, is_trial=False, base=1))
            self.send(name, "n1", m.Vote(0, epoch, True, is_trial, epoch, 1))
        return self

    def pull(self, epoch: int = 2, voter: str = "n2") -> Stage:
        self.send("n1", "n2", m.PullClaims(0, 2, b""))
        return self.send(voter, "n1", m.ClaimPage(0, epoch, b"", b"", b"", Column(), Column()))

    def sync(self, epoch: int = 2) -> Stage:
        self.send("n1", "n4", m.Sync(0, 2, NEW, ("n1", "n2"), 1))
        return self.send("n4", "n1", m.Synced(0, epoch))

    def push(self, epoch: int = 2, voter: str = "n2") -> Stage:
        self.send("n1", voter, m.PushClaims(0, 2, b"", b"", TASK, PAGE, pack([b"place"])))
        return self.send(voter, "n1", m.ClaimsKept(0, epoch, b"", b""))

    def keep(self) -> Stage:
        return self.store("n2", "history", KEY, record(1 << 32))

    def swap(self) -> Stage:
        self.guards.on_swap(self.processes["n1"], SwapDocument(0, 0, SECOND))
        return self


def told() -> Stage:
    return Stage().vote().pull().sync().keep().push()


def test_a_candidacy_as_it_should_be_breaks_nothing_and_is_looked_at_at_every_step() -> None:
    stage = told().swap()
    stage.guards.on_written(0, 0, FIRST, SECOND)
    stage.swap().send("n1", "n2", m.Amend(1, 0, 2, b"", Column(), Column()))

    assert stage.broken == {}
    assert {*stage.counts} == {
        rules.VOTES_COUNT, rules.CLAIMS_ARE_READ, rules.MEMBERS_HAVE_FILLED, rules.CLAIMS_ARE_KEPT,
        rules.HANDED_TO_ITS_CANDIDATE, rules.TRUSTED_SPEAK, rules.KEPT_IS_FSYNCED, rules.FILLED_IS_FULL,
        rules.LEADS_BY_DOCUMENT}


@pytest.mark.parametrize(("stage", "rule"), [
    (Stage().vote(1).pull(), rules.VOTES_COUNT),
    (Stage().vote(2, is_trial=True).pull(), rules.VOTES_COUNT),
    (Stage().vote(2, "n4").pull(), rules.VOTES_COUNT),
    (Stage().pull(), rules.VOTES_COUNT),
    (Stage().vote().pull(1).sync(), rules.CLAIMS_ARE_READ),
    (Stage().vote().pull(2, "n3").sync(), rules.CLAIMS_ARE_READ),
    (Stage().vote().sync(), rules.CLAIMS_ARE_READ),
    (Stage().vote().pull().sync(1).push(), rules.MEMBERS_HAVE_FILLED),
    (Stage().vote().pull().swap(), rules.MEMBERS_HAVE_FILLED),
    (Stage().vote().pull().sync().keep().push(1).swap(), rules.CLAIMS_ARE_KEPT)])
def test_what_is_of_another_epoch_or_from_another_does_not_count(stage: Stage, rule: str) -> None:
    assert rule in stage.broken


HELD, LATER, DONE, OWN = record(7, end_ms=950), record(9, end_ms=100), record(7, done=7), record(8, end_ms=950)


@pytest.mark.parametrize(("known", "vetoed", "is_broken"), [
    (HELD, (), True), (LATER, (), True), (DONE, (), True), (HELD, (0,), False), (OWN, (), False),
    (record(7, end_ms=900), (), False), (record(7, end_ms=950, flags=RELEASED), (), False)])
def test_a_follower_objects_to_claims_of_what_it_knows_better(known: bytes, vetoed: tuple[int, ...],
                                                              is_broken: bool) -> None:
    """A claim that ends 100 ms before another one begins is over, by clocks that differ by no more."""
    stage = Stage().store("n2", "history", KEY, known)
    stage.guards.skew_ms = 100
    stage.send("n1", "n2", m.Grant(1, 0, 1, 8, 1_000, 2_000, "w", "q", TASK, b""))
    stage.send("n2", "n1", m.Granted(1, 0, 1, is_accepted=True, vetoed=pack_u64(vetoed)))

    assert (rules.FOLLOWERS_OBJECT in stage.broken) is is_broken


def test_grants_of_several_partitions_in_one_request_are_told_apart() -> None:
    stage = Stage().store("n2", "history", KEY, LATER)
    stage.send("n1", "n2", m.Grant(1, 0, 1, 8, 1_000, 2_000, "w", "q", TASK, b""))
    stage.send("n1", "n2", m.Grant(1, 3, 1, 8, 1_000, 2_000, "w", "q", TASK, b""))
    stage.send("n2", "n1", m.Granted(1, 3, 1, is_accepted=True, vetoed=b""))
    assert rules.FOLLOWERS_OBJECT not in stage.broken, "of that partition nothing is known"

    stage.send("n2", "n1", m.Granted(1, 0, 1, is_accepted=True, vetoed=b""))
    assert rules.FOLLOWERS_OBJECT in stage.broken


def test_a_follower_may_learn_in_the_same_turn_that_it_need_not_object() -> None:
    stage = Stage().store("n2", "history", KEY, HELD)
    stage.send("n1", "n2", m.Grant(1, 0, 1, 8, 1_000, 2_000, "w", "q", TASK, b""))
    stage.store("n2", "history", KEY, record(7, end_ms=950, flags=RELEASED))
    stage.send("n2", "n1", m.Granted(1, 0, 1, is_accepted=True, vetoed=b""))

    assert stage.counts[rules.FOLLOWERS_OBJECT] == 1
    assert rules.FOLLOWERS_OBJECT not in stage.broken


@pytest.mark.parametrize(("since_ms", "is_broken"), [(1, True), (0, False)])
def test_no_schedule_is_passed_on_as_of_the_future(since_ms: int, is_broken: bool) -> None:
    stage = Stage()
    stage.processes["n1"].clock = Clock()
    now_ms = Clock().read(0)
    made = Schedule(Header("q").encode(), b"x", now_ms + since_ms, every_ms=1_000)
    stage.send("n1", "n2", m.PutSetting(1, SCHEDULE, "s", 5, "w", made.encode()))
    stage.send("n1", "n2", m.PutSetting(1, SCHEDULE, "s", 5, "w", UNSET))

    assert (rules.MADE_BY_NOW in stage.broken) is is_broken and stage.counts[rules.MADE_BY_NOW] == 1


def test_a_new_start_knows_nothing_of_an_earlier_candidacy() -> None:
    stage = told()
    stage.guards.on_start(stage.processes["n1"], ())

    assert rules.VOTES_COUNT in stage.swap().broken


@pytest.mark.parametrize("message", [m.ClaimPage(0, 2, b"", b"", b"", Column(), Column()),
                                     m.ClaimsKept(0, 2, b"", b"")])
def test_claims_are_handed_to_the_candidate_that_has_the_vote_and_kept_for_nobody_else(message: m.Message) -> None:
    assert rules.HANDED_TO_ITS_CANDIDATE in Stage().send("n2", "n1", message).broken
    assert rules.HANDED_TO_ITS_CANDIDATE not in Stage().vote().send("n2", "n1", message).broken
    assert rules.HANDED_TO_ITS_CANDIDATE in Stage().vote().send("n2", "n3", message).broken


def test_a_newer_promise_ends_what_a_vote_gave_and_a_memory_in_doubt_too() -> None:
    page = m.ClaimPage(0, 2, b"", b"", b"", Column(), Column())
    newer = Stage().vote().send("n2", "n3", m.Vote(0, 3, True, False, 3, 1)).send("n2", "n1", page)
    followed = Stage().vote().send("n2", "n3", m.Granted(1, 0, 3, True, b"")).send("n2", "n1", page)
    wiped = Stage().vote()
    wiped.guards.on_start(wiped.processes["n2"], [0])
    wiped.send("n2", "n1", page)

    assert all(rules.HANDED_TO_ITS_CANDIDATE in stage.broken for stage in (newer, followed, wiped))


def test_neither_a_suspect_nor_who_has_not_read_hands_claims_over_or_keeps_them() -> None:
    doubted = Stage().vote().store("n2", "meta", SUSPECT, b"damaged").pull()
    restarted = Stage().vote()
    restarted.guards.on_start(restarted.processes["n2"], ())
    restarted.keep().push()
    in_this_turn = Stage().vote()
    in_this_turn.processes["n2"].store.put_many("meta", [(SUSPECT, b"an old copy")])

    assert rules.TRUSTED_SPEAK in doubted.broken
    assert rules.TRUSTED_SPEAK in restarted.broken
    in_this_turn.guards.on_send(in_this_turn.processes["n2"], "n1", CLAIMS)
    assert in_this_turn.broken == {}


def test_a_vote_outlives_damage_elsewhere_in_its_store_and_is_forgotten_with_its_record() -> None:
    def hurt(promised: int) -> Stage:
        stage = Stage().vote().store("n2", "meta", PROMISE, promised.to_bytes(8, "big"))
        stage.excused.append("n2")
        stage.guards.on_start(stage.processes["n2"], [1])
        return stage.send("n2", "n1", CLAIMS)

    assert rules.HANDED_TO_ITS_CANDIDATE not in hurt(2).broken
    assert rules.HANDED_TO_ITS_CANDIDATE in hurt(1).broken


def test_what_is_confirmed_is_committed() -> None:
    assert rules.KEPT_IS_FSYNCED in Stage().vote().pull().sync().push().broken


def test_who_says_that_it_has_filled_holds_what_its_sources_held() -> None:
    lacking = Stage().store("n2", "body", KEY, BODY).vote().pull().sync()
    excused = Stage().store("n2", "body", KEY, BODY)
    excused.excused.append("n2")
    full = Stage().store("n2", "body", KEY, BODY).store("n4", "body", KEY, BODY)
    staged = Stage().store("n2", "history", KEY, record(1 << 32))
    staged.processes["n4"].store.put_many("history", [(KEY, record(1 << 32))])

    assert rules.FILLED_IS_FULL in lacking.broken
    assert rules.FILLED_IS_FULL in staged.vote().pull().sync().broken
    assert excused.vote().pull().sync().broken == full.vote().pull().sync().broken == {}


def test_only_the_leader_that_the_document_names_grants() -> None:
    grant = m.Grant(1, 0, 1, 1 << 32, 0, 9, "w", "q", TASK, bytes(4))

    assert Stage().send("n3", "n1", grant).broken == {}
    assert rules.LEADS_BY_DOCUMENT in Stage().send("n1", "n3", grant).broken
    assert rules.LEADS_BY_DOCUMENT in Stage().send("n3", "n1", attrs.evolve(grant, epoch=2)).broken


@pytest.mark.parametrize(("promised", "is_broken"), [(3, False), (2, False), (1, True)])
def test_who_is_trusted_again_has_learnt_what_it_once_acted_on(promised: int, is_broken: bool) -> None:
    stage = Stage().store("n2", "meta", SUSPECT, b"wiped").send("n2", "n1", m.Granted(1, 0, 2, True, b""))
    store = stage.processes["n2"].store
    store.pop_many("meta", [SUSPECT])
    store.put_many("meta", [(PROMISE, promised.to_bytes(8, "big"))])

    stage.guards.before_commit(stage.processes["n2"])

    assert (rules.FILLED_PROMISE in stage.broken) is is_broken
    assert stage.counts[rules.FILLED_PROMISE] == 1


@pytest.mark.parametrize(("version", "is_broken"), [(2, True), (3, False), (4, False)])
def test_a_document_read_is_as_new_as_when_it_was_asked_for(version: int, is_broken: bool) -> None:
    stage = Stage()
    stage.guards.on_read_asked("n1", 0, 9)
    stage.guards.on_read_asked("n1", 0, 3)

    stage.guards.on_news("n1", ReadFailed(0))
    stage.guards.on_news("n1", DocumentRead(0, version, NOBODY))
    stage.guards.on_news("n1", DocumentRead(0, 0, NOBODY))

    assert (rules.READ_IS_FRESH in stage.broken) is is_broken


def test_a_failure_overtakes_documents_that_were_asked_for_before() -> None:
    stage = Stage()
    stage.guards.on_read_asked("n1", 0, 1)
    stage.guards.on_read_asked("n1", 0, 2)

    stage.guards.on_news("n1", ReadFailed(0))
    stage.guards.on_news("n1", DocumentRead(0, 1, NOBODY))

    assert stage.broken == {} and stage.counts[rules.READ_IS_FRESH] == 1


# -- what a change carries ---------------------------------------------------------------------------


def amended(*claims: tuple[int, int], done: int = 0, marks: tuple[tuple[int, int, int], ...] = (),
            holder: bytes = b"w" * 90) -> Stage:
    """The leader tells n1 of a task with these claims: their tokens and how they ended."""
    rows = [CLAIM.pack(*mark, 0, 0) for mark in marks]
    rows += [encode_claim((1 << 32) + token, 1, 9, holder, kind) for token, kind in claims]
    told = HISTORY_HEAD.pack(done, 1 if done else 0, 0) + b"".join(rows)
    return Stage().send("n3", "n1", m.Amend(1, 0, 1, TASK, pack([told]), pack([b""])))


@pytest.mark.parametrize(("stage", "is_broken"), [
    (amended((1, SNOOZED), (2, RELEASED), (3, 0)), True),
    (amended((1, SNOOZED), (2, 0), (3, SNOOZED)), False),
    (amended((1, FAILED), (2, 0), (3, FAILED), (4, RELEASED)), False),
    (amended((1, FAILED), (2, 0), (3, 0), marks=((REVIVED, 1, (1 << 32) + 2),)), True),
    (amended((1, FAILED), (2, 0), (3, 0), marks=((REVIVED, 1, (1 << 32) + 1),)), False),
    (amended((1, SNOOZED), (2, RELEASED), (3, 0), holder=b"w"), False),
    (amended((1, SNOOZED), (2, RELEASED), (3, 0), done=5), False),
    (amended((1, SNOOZED), (2, RELEASED), (3, 0), marks=((CANCELLED, 5, 0),)), False),
    (amended((1, SNOOZED), (2, RELEASED), (3, 0), marks=((DIED, 1, 1),)), False),
    (amended((1, FAILED), (2, 0), (3, 0), marks=((REVIVED, 1, (1 << 32) + 2), (DIED, 1, 1))), True)])
def test_a_change_of_an_open_task_leaves_out_what_its_task_has_been_through(stage: Stage, is_broken: bool) -> None:
    assert (rules.CHANGE_IS_SMALL in stage.broken) is is_broken


def test_a_history_that_may_travel_whole_has_so_many_bytes() -> None:
    claims = (1, SNOOZED), (2, RELEASED), (3, 0)

    def holder(size: int) -> bytes:
        return b"w" * ((size - len(HISTORY_HEAD.pack(0, 0, 0)) - 3 * CLAIM.size - 8) // 3)
    assert rules.WHOLE_BYTES == 256
    assert rules.CHANGE_IS_SMALL not in amended(*claims, holder=holder(256)).broken
    assert rules.CHANGE_IS_SMALL in amended(*claims, holder=holder(259)).broken


# -- the home of a limit -----------------------------------------------------------------------------

TWO = QueueLimits(concurrency=2).encode()
ELSEWHERE = attrs.evolve(SECOND, leader="n4")


class Home(Stage):
    """n2 is at home for q, of whose limits it knows the third version. Partition 0 is led by n3."""

    def __init__(self, limits: bytes = TWO) -> None:
        super().__init__()
        row = SettingRow(LIMITS, "q", 3, "n9", limits)
        self.store("n2", "meta", setting_key(LIMITS, "q"), encode_setting(row))

    def read(self, document: Document) -> Home:
        self.guards.on_turn(self.processes["n2"], [DocumentRead(0, 0, document)])
        return self

    def reckon(self, *reports: tuple[int, int], request: int = 7, version: int = 3, queue: str = "q") -> Home:
        """A round in which n3 says what it leads: partitions and epochs."""
        self.send("n2", "n3", m.Reckon(7, queue, version))
        partitions, epochs = (pack_u64([report[at] for report in reports]) for at in (0, 1))
        self.send("n3", "n2", m.Reckoned(request, partitions, epochs, pack_u64([0] * len(reports)), 0))
        return self

    def lend(self, count: int = 1, version: int = 3) -> bool:
        """Whether something may be wrong with that."""
        self.send("n1", "n2", m.Borrow(5, "q", 3, 1, b"", b""))
        self.send("n2", "n1", m.Lent(5, version, count, 99, 1))
        return rules.ALL_HAVE_REPORTED in self.broken


def test_a_home_lends_by_reports_of_those_who_lead_as_far_as_it_knows() -> None:
    assert Home().lend()
    assert not Home().reckon((0, 1)).lend()
    assert Home().read(ELSEWHERE).reckon((0, 1)).lend()
    assert not Home().read(ELSEWHERE).reckon((0, 2)).lend()
    assert not Home().read(ELSEWHERE).read(FIRST).reckon((0, 2)).lend()
    assert Home().read(ELSEWHERE).read(FIRST).reckon((0, 1)).lend(), "it has known better"
    assert not Home().reckon((0, 1)).read(ELSEWHERE).lend(), "loans keep up with what was counted"


def test_a_home_knows_who_leads_from_what_it_has_recorded_too() -> None:
    def recorded(*, is_accepted: bool) -> Home:
        home = Home()
        home.send("n2", "n4", m.Amended(1, 0, 2, is_accepted))
        return home.reckon((0, 1))

    assert recorded(is_accepted=True).lend()
    assert not recorded(is_accepted=False).lend()


def test_reports_count_for_the_question_and_the_limits_they_were_asked_for() -> None:
    assert Home().reckon((0, 1), version=2).lend()
    assert Home().reckon((0, 1), queue="other").lend()
    assert Home().reckon((0, 1), request=8).lend()
    assert Home().reckon((1, 1)).lend()
    restarted = Home().reckon((0, 1))
    restarted.guards.on_start(restarted.processes["n2"], ())
    assert restarted.lend()


def test_every_partition_is_reported_or_led_by_the_home_itself() -> None:
    def two(leader: str) -> Home:
        home = Home()
        home.guards.on_written(0, 1, None, attrs.evolve(FIRST, leader=leader))
        return home.reckon((0, 1))

    assert two("n3").lend()
    assert not two("n3").reckon((1, 1)).lend()
    assert not two("n2").lend()


def test_who_lends_nothing_or_by_a_rate_alone_or_by_older_limits_needs_no_reports() -> None:
    nothing, older = Home(), Home()

    assert not nothing.lend(count=0)
    assert not older.lend(version=2)
    assert not Home(QueueLimits(rate=5, window_ms=1_000, burst=1).encode()).lend()
    assert not Home(UNSET).lend()
    assert nothing.counts[rules.ALL_HAVE_REPORTED] == older.counts[rules.ALL_HAVE_REPORTED] == 0
