"""The clock for fault tests: exact in what it distorts, and not to be switched on by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skuld_py.errors import Refused
from skuld_py.runtime.clock import Clock, MachineTime
from skuld_py.runtime.wrong_time import ALLOWED, FILE, YES, WrongTime, time_source

S = 1_000_000_000


class Truth:
    """Both clocks of a machine, moved by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 5_000 * S, 70 * S

    def wall_ns(self) -> int:
        return self.wall

    def steady_ns(self) -> int:
        return self.steady

    def move(self, seconds: int) -> None:
        self.wall += seconds * S
        self.steady += seconds * S


def say(file: Path, offset_ms: int, rate_ppm: int) -> None:
    """Replace the file whole, as a test does while a node reads it."""
    fresh = file.with_suffix(".new")
    fresh.write_text(f'{{"offset_ms": {offset_ms}, "rate_ppm": {rate_ppm}}}')
    os.replace(fresh, file)


def test_the_offset_is_the_wall_clocks_and_the_rate_is_the_steady_ones(tmp_path: Path) -> None:
    file, truth = tmp_path / "wrong", Truth()
    say(file, -300, 0)
    wrong = WrongTime(file, truth)
    assert wrong.wall_ns() == truth.wall - 300_000_000 and wrong.steady_ns() == truth.steady

    say(file, 0, 100_000)
    assert wrong.steady_ns() == truth.steady, "a new rate moves nothing by itself"
    truth.move(10)
    assert wrong.steady_ns() == truth.steady + 1 * S
    say(file, 0, -100_000)
    assert wrong.steady_ns() == truth.steady + 1 * S, "and what it ran ahead before stays"
    truth.move(10)
    assert wrong.steady_ns() == truth.steady
    assert wrong.wall_ns() == truth.wall


def test_a_nodes_clock_keeps_the_offset_of_its_start_and_hears_no_step(tmp_path: Path) -> None:
    file, truth = tmp_path / "wrong", Truth()
    say(file, 2_000, 0)
    clock = Clock(WrongTime(file, truth))
    assert clock.now_ms() == truth.wall // 1_000_000 + 2_000
    say(file, -60_000, 0)
    truth.move(1)
    assert clock.now_ms() == truth.wall // 1_000_000 + 2_000


@pytest.mark.parametrize("environment", [{FILE: "x"}, {ALLOWED: YES}, {FILE: "", ALLOWED: YES},
                                         {FILE: "x", ALLOWED: "yes"}])
def test_half_a_wish_for_wrong_time_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(Refused, match="unset both"):
        time_source(environment)


def test_without_a_wish_the_time_is_the_machines(tmp_path: Path) -> None:
    assert isinstance(time_source({}), MachineTime)
    say(tmp_path / "wrong", 0, 0)
    assert isinstance(time_source({FILE: str(tmp_path / "wrong"), ALLOWED: YES}), WrongTime)
