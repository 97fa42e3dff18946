"""The clock is right at the start and deaf to whoever sets the wall clock later."""

from __future__ import annotations

import time

import pytest

from skuld_py.runtime.clock import Clock


def test_it_starts_at_the_wall_clock() -> None:
    before = time.time_ns() // 1_000_000
    now = Clock().now_ms()
    assert before - 1 <= now <= time.time_ns() // 1_000_000 + 1


@pytest.mark.parametrize("step_s", [-3_600, 3_600])
def test_a_step_of_the_wall_clock_does_not_move_it(monkeypatch: pytest.MonkeyPatch, step_s: int) -> None:
    clock = Clock()
    before, wall_ns = clock.now_ms(), time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns + step_s * 1_000_000_000)
    monkeypatch.setattr(time, "time", lambda: wall_ns / 1e9 + step_s)
    assert 0 <= clock.now_ms() - before < 60_000


def test_it_never_falls() -> None:
    clock = Clock()
    readings = [clock.now_ms() for _ in range(10_000)]
    assert readings == sorted(readings)
