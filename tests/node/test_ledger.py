"""The account of a limited queue: what it lends is never more than its limits, whoever is silent or late."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from skuld_py.model.limiting import QueueLimits
from skuld_py.node.limits.ledger import Ledger

LEADS = {0: 1, 1: 1}
PEERS = ("a", "b")


def ledger(limit: int = 3, opens_ms: int = 0, **fields: int) -> Ledger:
    made = Ledger(QueueLimits(concurrency=limit, **fields), 1, 2, opens_ms)
    made.note("a", [(0, 1, 0), (1, 1, 0)], 0)
    return made


def rated(rate: int, window_ms: int, burst: int, opens_ms: int = 0) -> Ledger:
    return Ledger(QueueLimits(rate=rate, window_ms=window_ms, burst=burst), 1, 2, opens_ms)


def lend(account: Ledger, now_ms: int = 10, want: int = 5, name: tuple[str, int] = ("a", 1),
         over_ms: int = 99_999) -> int:
    return account.lend(now_ms, name, want, LEADS, over_ms)


def test_loans_and_claims_together_stay_at_the_limit() -> None:
    account = ledger()
    account.note("a", [(0, 1, 1)], 0)

    assert lend(account) == 2
    assert lend(account, name=("b", 2)) == 0


def test_nothing_is_lent_before_every_partition_is_known() -> None:
    account = Ledger(QueueLimits(concurrency=3), 1, 2, 0)
    account.note("a", [(0, 1, 0)], 0)
    assert lend(account) == 0

    account.note("b", [(1, 1, 2)], 0)
    assert lend(account) == 1


def test_nothing_is_lent_before_the_home_opens_by_either_limit() -> None:
    account = ledger(opens_ms=50, rate=10, window_ms=10, burst=5)
    account.note("a", [(0, 1, 0), (1, 1, 0)], 0)

    assert lend(account, now_ms=49) == 0
    assert account.wait_ms(49, 7) == 1
    assert lend(account, now_ms=60) == 3


def test_a_loan_counts_until_its_borrower_reports_without_it() -> None:
    account = ledger()
    assert lend(account) == 3

    account.note("a", [(0, 1, 0), (1, 1, 0)], 1)
    assert account.free == 0, "it is not settled"
    account.note("b", [(0, 1, 0), (1, 1, 0)], 0)
    assert account.free == 0, "another node cannot know"
    account.note("a", [(0, 1, 1)], 0)
    assert account.free == 0, "the other partition may have them all"
    account.note("a", [(1, 1, 1)], 0)
    assert account.free == 1


def test_a_loan_counts_until_a_later_leader_reports_its_partition() -> None:
    account = ledger()
    assert lend(account) == 3

    account.note("b", [(0, 2, 2)], 0)
    assert account.free == 0
    account.note("b", [(1, 2, 0)], 0)
    assert account.free == 1


def test_what_a_deposed_leader_says_later_does_not_count() -> None:
    account = ledger()
    account.note("b", [(0, 5, 3)], 0)

    account.note("a", [(0, 4, 0)], 0)

    assert account.free == 0


def test_a_question_that_comes_twice_is_answered_once() -> None:
    assert [lend(account, want=1) for account in [ledger()] * 2] == [1, 0]
    assert [lend(account, 1_000, 1) for account in [rated(1, 10, 5)] * 2] == [1, 0]


def test_other_limits_forget_reports_but_no_loans() -> None:
    """Who did not know any limit granted freely; who was lent something may still use it."""
    account = ledger(2)
    assert lend(account) == 2

    account.change(QueueLimits(concurrency=3), 2, 20)
    assert account.free == 0
    account.note("b", [(0, 1, 0), (1, 1, 0)], 0)
    assert account.free == 1


def test_a_bucket_begins_empty_and_fills_evenly_up_to_its_burst() -> None:
    account = rated(3, 100, 2, opens_ms=1_000)

    assert lend(account, 1_000) == 0
    assert account.wait_ms(1_000, 7) == 34
    assert lend(account, 1_033) == 0
    assert lend(account, 1_034) == 1
    account.settle(1_034, ("a", 1), 1)
    assert lend(account, 9_999, name=("a", 2)) == 2


def test_tokens_that_were_not_used_come_back_once() -> None:
    account = rated(1, 100, 5)
    assert lend(account, 500) == 5

    account.settle(500, ("a", 1), 2)
    account.settle(500, ("a", 1), 0)

    assert lend(account, 500, name=("a", 2)) == 3


def test_tokens_that_nobody_tells_of_take_their_room_until_they_cannot_be_spent_any_more() -> None:
    account = rated(1, 100, 2)
    assert lend(account, 200, over_ms=900) == 2

    assert lend(account, 800, name=("a", 2)) == 0
    assert lend(account, 901, name=("a", 3)) == 0, "it fills only from then on"
    assert lend(account, 1_001, name=("a", 4)) == 1


def test_a_clock_that_goes_back_fills_nothing() -> None:
    account = rated(1, 100, 2)
    assert lend(account, 200) == 2
    account.settle(200, ("a", 1), 2)

    assert lend(account, 100, name=("a", 2)) == 0
    assert lend(account, 200, name=("a", 3)) == 1


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5), st.integers(1, 50), st.integers(1, 4),
       st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4), st.integers(0, 4), st.integers(0, 30),
                          st.booleans()), max_size=25))
def test_no_window_sees_more_than_its_rate_and_the_burst(
        rate: int, window_ms: int, burst: int, steps: list[tuple[int, int, int, int, bool]]) -> None:
    """Each loan is used some time before it is over, and settled then, or never."""
    account, now_ms, used_at = rated(rate, window_ms, burst), 0, []
    pending: list[tuple[int, tuple[str, int], int, bool]] = []
    for number, (pause_ms, want, use, delay_ms, is_told) in enumerate(steps, 1):
        now_ms += pause_ms
        for at_ms, name, used, told in sorted(pending):
            if at_ms <= now_ms and told:
                account.settle(at_ms if at_ms > now_ms - pause_ms else now_ms, name, used)
        pending = [row for row in pending if row[0] > now_ms]
        count = account.lend(now_ms, ("a", number), want, LEADS, now_ms + 30)
        used_at += [now_ms + delay_ms] * min(use, count)
        pending.append((now_ms + delay_ms, ("a", number), min(use, count), is_told))
    used_at.sort()
    for first, begin_ms in enumerate(used_at):
        for last in range(first, len(used_at)):
            assert (last - first + 1) * window_ms <= rate * (used_at[last] - begin_ms) + burst * window_ms


@attrs.define
class World:
    """What is really held: by partition, under each leader's epoch."""

    epochs: dict[int, int] = attrs.field(factory=lambda: {0: 1, 1: 1})
    leaders: dict[int, str] = attrs.field(factory=lambda: {0: "a", 1: "b"})
    held: dict[int, int] = attrs.field(factory=lambda: {0: 0, 1: 0})


class Lending(RuleBasedStateMachine):
    """Leaders change, loans are used late, in part or never, reports are lost: the limit stands."""

    LIMIT = 3

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.account = Ledger(QueueLimits(concurrency=self.LIMIT), 1, 2, 0)
        self.loans: dict[str, tuple[int, int, dict[int, int]]] = {}
        self.numbers = 0

    def leads(self, peer: str) -> dict[int, int]:
        return {partition: epoch for partition, epoch in self.world.epochs.items()
                if self.world.leaders[partition] == peer}

    @rule(peer=st.sampled_from(PEERS), want=st.integers(1, 4))
    def borrow(self, peer: str, want: int) -> None:
        if peer in self.loans:
            return
        self.numbers += 1
        leads = self.leads(peer)
        count = self.account.lend(1, (peer, self.numbers), want, leads, 99)
        self.loans[peer] = self.numbers, count, leads

    @rule(peer=st.sampled_from(PEERS), uses=st.lists(st.integers(0, 1), max_size=4))
    def use(self, peer: str, uses: list[int]) -> None:
        if peer not in self.loans:
            return
        _, count, leads = self.loans.pop(peer)
        for partition in uses[:count]:
            if leads.get(partition) == self.world.epochs[partition]:
                self.world.held[partition] += 1

    @rule(partition=st.integers(0, 1))
    def end(self, partition: int) -> None:
        self.world.held[partition] = max(0, self.world.held[partition] - 1)

    @rule(partition=st.integers(0, 1), peer=st.sampled_from(PEERS))
    def elect(self, partition: int, peer: str) -> None:
        self.world.epochs[partition] += 1
        self.world.leaders[partition] = peer

    @rule(peer=st.sampled_from(PEERS))
    def report(self, peer: str) -> None:
        open_loan = self.loans[peer][0] if peer in self.loans else 0
        self.account.note(peer, [(partition, epoch, self.world.held[partition])
                                 for partition, epoch in self.leads(peer).items()], open_loan)

    @invariant()
    def is_kept(self) -> None:
        assert sum(self.world.held.values()) <= self.LIMIT


def test_the_limit_stands_whoever_leads_and_whatever_is_heard() -> None:
    run_state_machine_as_test(Lending, settings=settings(max_examples=300, stateful_step_count=30, deadline=None))


@pytest.mark.parametrize("want", [0, 1, 3])
def test_what_is_known_to_be_free_is_never_below_nothing(want: int) -> None:
    account = ledger(1)
    account.note("a", [(0, 1, 9)], 0)
    assert account.free == 0 and lend(account, want=want) == 0
