"""The holder has stopped before anybody can be granted its task again, in true time, by the code that runs."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import attrs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skuld_py.model.body import Header
from skuld_py.model.history import token_of
from skuld_py.model.leases import RATE, holder_deadline
from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.replica import Replica

TASK = bytes(20)
PLACE = tables.place_of(Header("q"))
EPOCH_MS = 1_700_000_000_000
MILLION = 10**6
SLACK = int(RATE * MILLION)
RATES = st.one_of(st.sampled_from([-SLACK, 0, SLACK]), st.integers(-SLACK, SLACK)).map(
    lambda slack: Fraction(MILLION + slack, MILLION))
MOMENTS = st.integers(0, MILLION).map(lambda micros: Fraction(micros, 1_000))
DELAYS = st.one_of(st.just(Fraction(0)), MOMENTS.map(lambda delay: delay * 5))


@attrs.frozen
class Clock:
    """Exact arithmetic: the question is one of inequalities, often met with equality."""

    rate: Fraction
    at_zero: Fraction

    def read(self, true_ms: Fraction) -> Fraction:
        return self.at_zero + self.rate * true_ms

    def when(self, shown: Fraction) -> Fraction:
        return (shown - self.at_zero) / self.rate


def clock_beside(data: st.DataObject, other: Clock, true_ms: Fraction, skew_ms: int) -> Clock:
    """A clock within the bound of another one at a moment; it may be as wrong as allowed."""
    apart = data.draw(st.one_of(st.sampled_from([-skew_ms, 0, skew_ms]), st.integers(-skew_ms, skew_ms)))
    rate = data.draw(RATES)
    return Clock(rate, other.read(true_ms) + apart - rate * true_ms)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_holder_stops_before_its_task_can_be_granted_again(data: st.DataObject) -> None:
    """Any rates, any delays, any time parked; granted and perhaps renewed; lapsed by the leader or its heir."""
    skew_ms = data.draw(st.sampled_from([1, 20, 2_000]))
    lease_ms = data.draw(st.one_of(st.integers(1, 100), st.integers(1, 600_000)))
    holder = Clock(data.draw(RATES), Fraction(data.draw(st.integers(0, 10**6))))
    coordinator = Clock(data.draw(RATES), Fraction(EPOCH_MS))
    leader = Clock(data.draw(RATES), Fraction(EPOCH_MS + data.draw(st.integers(-skew_ms, skew_ms))))

    sent = data.draw(MOMENTS)
    asked = sent + data.draw(DELAYS)
    tried = asked + data.draw(DELAYS) * 10
    parked_ms = floor(coordinator.read(tried)) - floor(coordinator.read(asked))
    granted = tried + data.draw(DELAYS)
    start_ms = floor(leader.read(granted))
    heir_copy = Replica(0, MemoryStore(), skew_ms)
    grant = Grant([TASK], [PLACE], token_of(1, 1), start_ms, start_ms + lease_ms, "me")
    heir_copy.store_tasks(EPOCH_MS, Header("q").encode(), [TASK], [b""])
    heir_copy.apply_grant(start_ms, grant)
    deadline_s = holder_deadline(float(holder.read(sent)) / 1000, lease_ms / 1000, parked_ms)

    if data.draw(st.booleans()):
        sent = granted + data.draw(DELAYS)
        renewed = sent + data.draw(DELAYS)
        assume(leader.read(renewed) <= grant.end_ms)
        end_ms = max(grant.end_ms, floor(leader.read(renewed)) + lease_ms)
        heir_copy.amend(floor(leader.read(renewed)), [Amendment(TASK, token_of(1, 1), end_ms, False)])
        deadline_s = max(deadline_s, holder_deadline(float(holder.read(sent)) / 1000, lease_ms / 1000))

    stopped = holder.when(Fraction(deadline_s) * 1000)
    lapse_ms = int.from_bytes(heir_copy.filing.leases(b"", 1)[0][0][:8], "big")
    heir = clock_beside(data, leader, leader.when(Fraction(lapse_ms)), skew_ms)
    again = heir.when(Fraction(lapse_ms))
    assume(abs(heir.read(again) - leader.read(again)) <= skew_ms)

    assert stopped <= again + Fraction(1, 10**6)  # holder's float seconds
    assert heir_copy.objections(Grant([TASK], [PLACE], token_of(2, 1), lapse_ms - 1, lapse_ms, "other")) == [0]
    assert heir_copy.objections(Grant([TASK], [PLACE], token_of(2, 1), lapse_ms, lapse_ms + 1, "other")) == []
