"""Feeders take turns where their input has fewer slots than strands: none waits for ever, and none for nothing."""

from __future__ import annotations

import pytest

from skuld_py.workflow.acking.turns import TURN_MS, rest_ms


def test_a_feeder_gives_way_once_its_turn_is_over_while_others_wait() -> None:
    assert rest_ms(TURN_MS - 1, 3) == rest_ms(TURN_MS, 0) == 0
    assert [rest_ms(TURN_MS, waiting) for waiting in (1, 3)] == [TURN_MS, 3 * TURN_MS]


@pytest.mark.parametrize(("strands", "slots"), [(2, 1), (3, 1), (5, 2), (7, 3), (8, 7)])
def test_each_has_its_turn_though_the_first_that_waits_is_always_the_one_of_the_smallest_id(
        strands: int, slots: int) -> None:
    """By turns: a task that waits is claimed by its id, as nodes do."""
    due, begun, last = dict.fromkeys(range(strands), 0), dict[int, int](), dict.fromkeys(range(strands), 0)
    for now_ms in range(0, 60 * TURN_MS, TURN_MS // 2):
        for strand in [*begun]:
            waiting = sum(at_ms <= now_ms for at_ms in due.values())
            if rest := rest_ms(now_ms - begun[strand], waiting):
                del begun[strand]
                due[strand] = now_ms + rest
                _claim(due, begun, slots, now_ms)
        _claim(due, begun, slots, now_ms)
        last |= dict.fromkeys(begun, now_ms)
        assert len(begun) == slots, "a slot stands idle while others rest"
        assert now_ms - min(last.values()) <= 2 * strands * TURN_MS


def _claim(due: dict[int, int], begun: dict[int, int], slots: int, now_ms: int) -> None:
    for strand in sorted(each for each, at_ms in due.items() if at_ms <= now_ms)[: slots - len(begun)]:
        del due[strand]
        begun[strand] = now_ms
