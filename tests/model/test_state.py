"""Which state stands when several things have happened to a task."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model.body import Body, Header, Retry
from skuld_py.model.history import (
    EXPIRED,
    FAILED,
    RELEASED,
    ClaimRecord,
    History,
    death_of,
    ending_of,
    revival_of,
    token_of,
)
from skuld_py.model.state import State, state_of

NOW_MS, SKEW_MS = 1_000, 10
BODY = Body(Header("q", retry=Retry(max_attempts=2)))


def claims(*rows: tuple[int, Max]) -> LatticeMap[int, ClaimRecord]:
    """Claims as (end, ending), in the order of their tokens."""
    return LatticeMap({token_of(1, at + 1): ClaimRecord(1, Max(end_ms), ending, "w")
                       for at, (end_ms, ending) in enumerate(rows)})


HELD, LAPSED, FAILS = (2_000, Max()), (900, Max()), (2_000, ending_of(FAILED, 900))
DONE, CANCEL, DEATH = Min((5, 1)), Min((5, 0)), death_of(0, EXPIRED)


@pytest.mark.parametrize(("history", "state"), [
    (History(), State.WAITING),
    (History(DONE, claims(HELD), CANCEL, Max(), DEATH), State.COMPLETED),
    (History(Min(), claims(HELD), CANCEL, Max(), DEATH), State.CLAIMED),
    (History(Min(), claims(LAPSED), CANCEL, Max(), DEATH), State.CANCELLED),
    (History(Min(), claims(LAPSED), Min(), Max(), DEATH), State.DEAD),
    (History(Min(), claims(LAPSED), Min(), revival_of(1, token_of(1, 1)), DEATH), State.WAITING),
    (History(Min(), claims((991, Max()))), State.CLAIMED),
    (History(Min(), claims((990, Max()))), State.WAITING),
    (History(Min(), claims(LAPSED, LAPSED)), State.DEAD),
    (History(Min(), claims(FAILS, LAPSED)), State.DEAD),
    (History(Min(), claims(FAILS, (2_000, ending_of(RELEASED)))), State.WAITING),
    (History(Min(), claims((2_000, ending_of(FAILED, 1_500)))), State.SCHEDULED),
    (History(Min(), claims(LAPSED, LAPSED), Min(), revival_of(1, token_of(1, 1))), State.WAITING),
])
def test_the_first_of_the_list_stands(history: History, state: State) -> None:
    assert state_of(history, BODY, NOW_MS, SKEW_MS) is state


def test_a_task_is_scheduled_until_its_time() -> None:
    body = attrs.evolve(BODY, not_before_ms=NOW_MS)

    assert state_of(History(), body, NOW_MS - 1, SKEW_MS) is State.SCHEDULED
    assert state_of(History(), body, NOW_MS, SKEW_MS) is State.WAITING
