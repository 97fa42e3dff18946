"""Mutants of a member's life in the coordination log: joining, breaks, reading, appending, duties."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

MEMBERSHIP, READING, OUTBOX, COLLECTING, SLOTS, GC, DERIVING, TELLING = (
    f"cluster/{name}.py" for name in ("membership", "reading", "outbox", "collecting", "slots", "commands/gc",
                                      "deriving", "telling"))
PLACED = "tests/simulation/test_coordination_talking.py::test_every_schedule_comes_to_rest_with_every_mix[versions]"
SCHEDULES = "tests/simulation/test_coordination.py::test_every_schedule_comes_to_rest_as_it_should"


def broken(name: str, rule: str, file: str, old: str, new: str, *tests: str, invariant: str = "L2") -> Mutant:
    """One edit that a test of the machine must notice; without one, the schedules of the harness."""
    named = tuple(f"tests/cluster/test_membership.py::{test}" for test in tests) or (SCHEDULES,)
    return mutant(name, rule, file, old, new, invariant, *named, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    broken("joins-before-the-end", "a joiner asks before it has read the log", MEMBERSHIP,
           "now_ms >= self._join_ms and self._reader.is_at_end:", "now_ms >= self._join_ms:",
           "test_it_asks_for_its_pulse_before_all_else_and_for_the_origin_before_the_entries"),
    broken("gone-said-once", "a leave that came to nothing is not written again", MEMBERSHIP,
           "self._gone[member] = now_ms + self.settings.repeat_ms", "self._gone[member] = now_ms + 1_000_000",
           "test_a_pulse_that_is_gone_is_reported_once_and_again_if_nothing_comes_of_it"),
    broken("expelled-behind-the-horizon", "who was taken out in entries that are gone takes itself for a joiner",
           MEMBERSHIP, "or (self._was_in and not self.is_in)):", "or False):",
           "test_its_own_leave_behind_the_horizon_begins_a_new_life"),
    broken("owed-by-entries-only", "a step of a join is lost with the entry that was jumped over", MEMBERSHIP,
           "        self._want(owed(replica, self.me))\n", "",
           "test_an_observer_that_jumped_over_the_entry_notifies_all_the_same"),
    broken("owed-by-entries-only-at-large", "the same, as the harness sees it", MEMBERSHIP,
           "        self._want(owed(replica, self.me))\n", ""),
    broken("appends-without-pulse", "a member appends while its pulse is in doubt", MEMBERSHIP,
           "        if self._has_pulse:\n            self._outbox.prune(", "        if self.me:\n            self._outbox.prune(",
           "test_an_append_in_doubt_waits_for_the_pulse"),
    broken("connected-before-it-is-in", "the node acts before its process is a member", MEMBERSHIP,
           "        if self._has_pulse and self.is_in:\n", "        if self._has_pulse:\n",
           "test_who_finds_no_observer_comes_back_after_a_pause"),
    broken("the-past-is-told", "the node is told of what the log said long ago", MEMBERSHIP,
           "        if self._is_current:\n", "        if True:\n", "test_nothing_is_told_of_the_past"),
    broken("own-pulse-gone", "a member whose pulse is gone goes on", MEMBERSHIP,
           "        if member == self.me:\n            self._end_life()\n", "        if member == self.me:\n            pass\n",
           "test_a_pulse_of_its_own_that_is_gone_begins_a_new_life"),
    broken("loss-keeps-the-life", "a life goes on in the next session", MEMBERSHIP,
           "            self._watching = ()\n            self._end_life()\n", "            self._watching = ()\n",
           "test_a_lost_session_ends_the_life_and_the_next_one_reads_on"),
    broken("gap-played-over", "entries behind a gap are played", READING,
           "            if position != self._next:\n", "            if position < self._next:\n",
           "test_a_gap_within_a_batch_is_not_played_over"),
    broken("collected-entry-awaited", "who is behind the origin does not compare with it", READING,
           "self._must_compare = event.is_missing or beyond >= 0", "self._must_compare = False",
           "test_a_reader_behind_the_origin_jumps_there"),
    broken("gap-not-passed", "a number that no entry ever got stops the reader", READING,
           "self._next = max(self._next, self._resumes_at)", "self._next = max(self._next, -1)",
           "test_a_gap_that_no_origin_explains_is_passed"),
    broken("anybody-collects", "all members collect at once", COLLECTING,
           "        if 2 * excess < turn * self.settings.length_max and now_ms < self._due_ms(turn):\n", "        if False:\n",
           "test_the_next_in_line_collects_when_the_elected_one_does_not"),
    broken("nobody-takes-over", "a dead member's collection is nobody's", COLLECTING,
           "return self._since_ms + turn * self.settings.takeover_ms", "return self._since_ms + turn * 1_000_000_000",
           "test_the_next_in_line_collects_when_the_elected_one_does_not"),
    broken("no-grace", "readers on their way lose their entries", COLLECTING,
           "max(played.position - self.settings.grace, 0)", "max(played.position, 0)",
           "test_the_elected_member_collects_a_long_log_and_writes_the_origin"),
    broken("origin-written-once", "an origin whose writing was lost with the session is not written", COLLECTING,
           "        \"\"\"The session is lost.\"\"\"\n        self._is_writing = False\n", "        \"\"\"The session is lost.\"\"\"\n",
           "test_the_origin_is_written_again_in_a_new_session"),
    broken("forgotten-at-once", "a node that is down for a moment is forgotten", COLLECTING,
           "due_ms = down.seen_ms + limit_ms + rank", "due_ms = down.seen_ms + rank",
           "test_a_node_that_stays_down_is_forgotten_unless_copies_need_its_place"),
    broken("copies-without-place", "nodes are forgotten until too few are left", COLLECTING,
           "has_spare = len(placed(replica)) > replica.replicas", "has_spare = True",
           "test_a_node_that_stays_down_is_forgotten_unless_copies_need_its_place"),
    broken("collected-twice-in-a-row", "a second collection drops what the first had kept", GC,
           "        if self.after not in (since, ANY):\n", "        if False:\n",
           "test_two_that_collect_at_once_collect_once", invariant="L1"),
    broken("slots-never-taken-back", "a slot that is gone counts on", SLOTS,
           "return [*self._missing(replica, me), *self._needless(replica, me)]", "return [*self._missing(replica, me)]",
           "test_slots_are_brought_taken_back_and_brought_again_by_the_next_life"),
    broken("placement-of-other-nodes", "nodes are told with a placement that lags behind them", TELLING,
           "nodes = self._nodes if is_lagging else attrs.evolve(", "nodes = attrs.evolve(",
           "test_the_log_goes_on_while_a_placement_is_pending_and_the_node_is_told_of_both_together"),
    mutant("placement-of-other-nodes-at-large", "the same, as the harness sees it", TELLING,
           "nodes = self._nodes if is_lagging else attrs.evolve(", "nodes = attrs.evolve(", "L2", PLACED, seeds=0),
    broken("placed-before-a-jump", "versions go on with a replica that was jumped over", DERIVING,
           "        if self._scheme is not None and replica is not self._last:\n",
           "        if self._scheme is not None and self._last is None:\n",
           "test_nothing_is_derived_of_the_past_and_over_a_jump_everything_anew"),
    mutant("placed-before-a-jump-at-large", "the same, as the harness sees it", DERIVING,
           "        if self._scheme is not None and replica is not self._last:\n",
           "        if self._scheme is not None and self._last is None:\n", "L2", PLACED, seeds=0),
    mutant("jump-is-placed-at-once", "a placement from before a jump counts as that of the nodes behind it",
           DERIVING, "(version, placement) if version >= self._begun else self._earlier", "(version, placement)",
           "L2", "tests/cluster/test_deriving.py::"
           "test_over_a_jump_the_placement_stands_until_the_next_one_is_decided", seeds=0),
    mutant("overtaken-is-asked", "each entry of a step asks, although only the last one counts", DERIVING,
           "            self._wanted.pop(effect.hash, None)\n", "            pass\n", "L2",
           "tests/cluster/test_deriving.py::test_what_is_overtaken_within_a_step_is_never_asked", seeds=0),
)
