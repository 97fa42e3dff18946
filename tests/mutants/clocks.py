"""Mutants of clocks that were wrong for a while: what they leave behind binds nobody once they are right."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

DOUBTFUL = ("--profile", "doubtful")
NODES = "tests/node/test_scheduling.py::"
MINTS, ASKING = "tests/client/test_minting.py::", "tests/node/test_asking.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("mint-stays-ahead", "a mint goes on from where a wrong clock drove it", "Minter.mint",
           "            if self._mint.time_ms > max(", "            if False and self._mint.time_ms > max(", "D11",
           MINTS + "test_ids_rise_above_what_was_acknowledged_whatever_the_clock_does",
           seeds=60, options=DOUBTFUL),
    mutant("fresh-mint-forgets", "a fresh mint makes ids below those that were acknowledged", "Minter.mint",
           "                self._mint = self._begun(self._acknowledged_ms[0])\n            self._mint.raise",
           "                self._mint = self._begun()\n            self._mint.raise", "A2",
           MINTS + "test_ids_rise_above_what_was_acknowledged_whatever_the_clock_does", seeds=0),
    mutant("fresh-mint-often", "each small step back of a clock begins a mint", "Minter.mint",
           "max(floor_ms, now_ms, self._acknowledged_ms[0]) + AHEAD_MS:",
           "max(floor_ms, now_ms, self._acknowledged_ms[0]):", "A2",
           MINTS + "test_a_clock_that_is_set_back_a_little_leaves_the_mint_alone", seeds=0),
    mutant("refused-binds", "what a node with a wrong clock acknowledged binds although it is refused",
           "Minter.note_refused",
           "            self._acknowledged_ms = binding or [0]\n", "", "A2",
           MINTS + "test_what_was_acknowledged_by_a_wrong_clock_binds_nobody_once_it_is_refused", seeds=0),
    mutant("leap-forgets-what-was-before", "what was acknowledged before a clock leapt is forgotten with the leap",
           "Minter.note_acknowledged", "self._acknowledged_ms = [time_ms, *self._acknowledged_ms[:LEAPS_MAX]]",
           "self._acknowledged_ms = [time_ms]", "D11",
           MINTS + "test_what_was_acknowledged_before_a_leap_binds_when_the_leap_does_not", seeds=0),
    mutant("floor-of-the-future-binds", "a floor that no node takes is kept to", "Minter.mint",
           "                floor_ms = 0\n", "                pass\n", "A2",
           MINTS + "test_a_floor_that_no_node_takes_is_passed_over", seeds=0),
    mutant("future-not-asked-again", "a refusal by a right clock is the caller's, though the next call succeeds",
           "Enqueueing._store_each", "        if late:\n", "        if False and late:\n", "A2",
           MINTS + "test_a_floor_that_no_node_takes_is_passed_over", seeds=0),
    mutant("floor-of-the-future-told", "a node tells a floor that it has from a wrong clock",
           "Floor.told",
           "        self.ms = min(self.ms, now_ms + FUTURE_MS_MAX)\n", "", "A2",
           ASKING + "test_a_floor_of_the_future_is_told_as_one_that_ids_may_be_above", seeds=0),
    mutant("definition-of-tomorrow-kept", "a schedule is kept as made when a wrong clock says", "Schedule.upto",
           "since_ms=min(self.since_ms, now_ms))", "since_ms=max(self.since_ms, 0 * now_ms))", "C20",
           NODES + "test_a_schedule_put_again_ticks_from_now_on_though_its_version_is_of_tomorrow",
           seeds=60, options=DOUBTFUL),
    mutant("definition-of-tomorrow-awaited", "a schedule of a node whose clock was wrong is silent until then",
           "Ticks._plan", "Plan(schedule, schedule.since_ms, now_ms)",
           "Plan(schedule, schedule.since_ms, max(now_ms, schedule.since_ms))", "C20",
           NODES + "test_a_schedule_that_was_put_by_a_node_a_day_ahead_ticks_today", seeds=0),
    mutant("seen-in-the-future", "ticks that a wrong clock has shown are awaited", "Node._settle",
           "            self._ticks.forget()\n", "            pass\n", "C20",
           NODES + "test_a_leader_whose_clock_jumps_ahead_and_back_loses_no_tick_and_makes_none_twice", seeds=0),
    mutant("granted-in-times-to-come", "a leader whose clock was set ahead grants what is held",
           "Replica.objections", "if now_ms is not None and grant.start_ms > now_ms + self.skew_ms:", "if False:",
           "C3", "tests/node/test_setting_clocks.py::"
           "test_a_leader_whose_clock_is_set_ahead_gives_no_task_a_second_holder", seeds=0),
    mutant("measured-by-a-wrong-clock", "a clock that fell back goes by what it measured before", "Node._settle",
           "            self.timekeeper.forget()\n", "            pass\n", "A2",
           NODES + "test_a_leader_whose_clock_jumps_ahead_and_back_loses_no_tick_and_makes_none_twice", seeds=0),
)
