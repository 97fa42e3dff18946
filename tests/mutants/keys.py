"""Mutants of ordering keys: lanes, their vetoes, and what is left when a claim ends."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

LANES, FILING = "partition/lanes.py", "partition/filing.py"
REPLICA, GRANTING = "partition/replica.py", "node/granting.py"
LAW = "tests/partition/test_lanes.py::test_lanes_follow_from_the_data_while_their_width_changes"
OWN, MACHINES = "tests/partition/test_lanes.py::", "tests/node/test_lanes.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("lane-not-closed", "all tasks of a key are claimable at once", LANES,
           "flag = OPEN if index < left else CLOSED", "flag = OPEN", "C15",
           MACHINES + "test_tasks_of_a_key_are_claimed_one_at_a_time_in_their_order", seeds=30),
    mutant("lane-ignores-claims", "the next of a key is claimable while the one before is claimed", LANES,
           "(*places, value[1:]))) - len(places)", "(*places, value[1:])))", "C15", LAW, seeds=30),
    mutant("lane-ignores-claims-without-body", "a claim whose task is not known here fills no lane", FILING,
           "            self._count(place, State.CLAIMED, 1)\n            if is_laned(task_id):\n",
           "            self._count(place, State.CLAIMED, 1)\n            if False:\n", "X1",
           OWN + "test_a_claim_whose_task_is_not_known_here_fills_its_lane"),
    mutant("lane-not-vetoed", "a follower grants a claim in a lane that it knows to be full", REPLICA,
           "is_laned = max(map(_LANE_BYTE, grant.ids), default=0) >= 0x80", "is_laned = False", "C15",
           OWN + "test_a_claim_is_vetoed_while_another_of_its_lane_may_be_held", seeds=0),
    mutant("ended-claims-fill-lanes", "a claim that was given back keeps its lane full for others", LANES,
           "records.get(self._prefix + mate, b\"\")[16:24], \"big\") > over_ms]",
           "records.get(self._prefix + mate, b\"\")[16:24], \"big\") > -1]", "O3",
           OWN + "test_a_claim_is_vetoed_while_another_of_its_lane_may_be_held", seeds=0),
    mutant("two-of-a-grant", "a grant fills a lane twice", LANES,
           "                granted[task_id] = None\n", "                pass\n", "C15",
           OWN + "test_of_two_claims_of_a_lane_in_one_grant_the_second_is_vetoed", seeds=0),
    mutant("lane-not-reopened", "the next of a key waits for ever when a claim was completed", FILING,
           "        if not is_plain:\n", "        if False:\n", "O3",
           MACHINES + "test_tasks_of_a_key_are_claimed_one_at_a_time_in_their_order", seeds=30),
    mutant("lane-kept-by-a-lapse", "a claim that lapsed without its task known keeps its lane", FILING,
           "            else:\n                self._leave_lanes(now_ms, [key[10:]])\n", "", "X1",
           OWN + "test_a_claim_whose_task_is_not_known_here_fills_its_lane", seeds=0),
    mutant("youngest-first-in-lane", "the younger of a key goes first", LANES,
           "return self._prefix + kind + task_id[16:] + task_id",
           "return self._prefix + kind + task_id[16:] + bytes(255 - each for each in task_id[:8]) + task_id",
           "C15",
           MACHINES + "test_tasks_of_a_key_are_claimed_one_at_a_time_in_their_order", seeds=30),
    mutant("one-closed-row-is-the-end", "a task that comes into a narrower lane leaves others claimable", LANES,
           "if passed == 2:", "if passed == 1:", "C15",
           OWN + "test_a_task_that_comes_into_a_lane_which_became_narrower_finds_all_closed_that_must_be",
           seeds=0),
    mutant("lanes-stay-narrow", "what a queue allows of a key changes nothing", "partition/turns.py",
           "        self.lanes.widths[queue.encode()] = width\n", "", "O3",
           MACHINES + "test_a_queue_may_allow_more_at_a_time_and_less_again", seeds=0),
    mutant("lane-veto-without-lesson", "who objects because it missed the end of a claim is not told", GRANTING,
           "            if rows:\n                self.host.send(peer, m.Repair(", "            if False:\n"
           "                self.host.send(peer, m.Repair(", "O3",
           MACHINES + "test_a_follower_that_missed_the_end_of_a_claim_is_told_when_it_objects", seeds=0),
    mutant("lane-veto-teaches-nothing", "a leader does not read the claims that fill a lane", GRANTING,
           "        wanted = blockers + b\"\".join(", "        wanted = b\"\".join(", "C15",
           MACHINES + "test_a_leader_that_missed_a_claim_learns_it_from_who_objects", seeds=0),
)
