"""Mutants of coming and going: seats of newcomers, clean stops, visitors, and votes that are needed."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

EVALUATOR = "tests/partition/test_evaluator.py"
ELECTIONS = "tests/partition/test_election.py::"
STOPPING = "tests/node/test_stopping.py::"
PROCESS = "tests/node/test_process.py::"
LIVES = "tests/cluster/test_next_lives.py::"
SHOWING = "tests/cli/test_showing.py"
WORLD = "tests/simulation/test_process.py::"
VISITED = ("--profile", "visited")

MUTANTS: tuple[Mutant, ...] = (
    # seats
    mutant("newcomer-seated-at-once", "a node that has just come takes the vote of one that is able",
           "next_cohort",
           "if (name in filled and name not in fresh) or (name in cohort and name in able)]",
           "if name in filled or (name in cohort and name in able)]", "V1", options=VISITED),
    mutant("nobody-is-new", "the leader does not look how long a node has been up", "Steward._facts",
           "if now_ms - self._since_ms.get(name, now_ms) < view.timing.seat_ms],", "if False],", "V1",
           STOPPING + "test_a_newcomer_fills_at_once_and_votes_once_it_has_been_up_for_a_while", seeds=0),
    mutant("newcomer-forgotten", "nothing wakes the leader when a newcomer may have its seat",
           "Steward._next_tending_ms",
           "        due_ms = min([due_ms, *(each_ms for each_ms in seasoned_ms if each_ms > now_ms)])\n", "", "V1",
           STOPPING + "test_a_newcomer_fills_at_once_and_votes_once_it_has_been_up_for_a_while", seeds=0),
    mutant("newcomer-never-stands-in", "a newcomer waits although a voter is dead", "next_cohort",
           "chosen = dict.fromkeys((*ready, *staying, *filled, *absent))",
           "chosen = dict.fromkeys((*ready, *staying, *absent, *filled))", "V1",
           STOPPING + "test_a_newcomer_stands_in_for_a_dead_voter_without_waiting", seeds=0),
    mutant("dead-owner-keeps-its-seat", "an able voter leaves for an owner that is dead", "next_cohort",
           "(name in cohort and name in able)]", "name in cohort]", "V1", EVALUATOR, seeds=0),
    mutant("leaver-counts-as-able", "a node that is about to stop is seated, and leads", "evaluator.able",
           "if name not in facts.leavers and name", "if name", "V1", EVALUATOR, seeds=0),
    mutant("votes-lost-at-the-swap", "a cohort is settled whose new members have gone meanwhile",
           "Candidacy._advance",
           "        if election.has_pushed() and election.would_lose_votes(vnode.live):\n"
           "            vnode.resign(now_ms)\n", "", "V1",
           STOPPING + "test_a_cohort_is_not_settled_whose_new_member_has_gone", seeds=0),
    mutant("fewer-votes-settled", "a cohort with fewer live voters is settled while they are a majority",
           "Election.would_lose_votes",
           "return sum(name in live for name in new) < sum(name in live for name in old) or not quorum",
           "return not quorum", "V1",
           ELECTIONS + "test_a_cohort_with_fewer_live_voters_is_not_settled", seeds=0),

    # handing over
    mutant("leaves-at-once", "a process leaves the log before others lead", "Process.depart",
           "        return [] if self._is_handing_over else self._leave(now_ms)\n",
           "        return self._leave(now_ms)\n", "V1",
           PROCESS + "test_it_departs_once_others_lead_what_its_node_led", seeds=0),
    mutant("leaves-amid-the-next-election", "a node leaves when it leads no more, whether another one does or not",
           "Steward.is_handing_over", "else not self.is_led(now_ms, vnode))", "else False)", "V1",
           STOPPING + "test_it_is_through_only_when_it_hears_the_next_leader", seeds=0),
    mutant("hands-over-for-ever", "a node that nobody succeeds never stops", "Steward.is_handing_over",
           "if now_ms >= self._handed_until_ms or not self._view.is_connected:",
           "if not self._view.is_connected:", "V1",
           STOPPING + "test_it_tries_for_a_while_and_then_leaves", seeds=0),
    mutant("hands-over-without-the-registry", "a node without a session waits for successors",
           "Steward.is_handing_over",
           "if now_ms >= self._handed_until_ms or not self._view.is_connected:",
           "if now_ms >= self._handed_until_ms:", "V1",
           STOPPING + "test_without_the_registry_it_leaves_at_once", seeds=0),
    mutant("leaver-takes-over", "a node that is about to stop stands for what it is asked to lead",
           "LeadershipRequests._abdicate", "if self._view.may_grant and not self._view.is_leaving:",
           "if self._view.may_grant:", "V1",
           STOPPING + "test_a_node_that_stops_takes_nothing_over", seeds=0),
    mutant("clockless-heir-takes-over", "a node that may not grant yet takes a leadership over",
           "LeadershipRequests._abdicate", "if self._view.may_grant and not self._view.is_leaving:",
           "if self._view.is_connected and not self._view.is_leaving:", "V1",
           STOPPING + "test_a_node_that_may_not_grant_yet_does_not_take_over", seeds=0),
    mutant("leaver-stands", "a node that is about to stop stands for what has no leader", "Steward._see_to_leader",
           "if not view.may_grant or view.is_leaving:", "if not view.may_grant:", "V1",
           STOPPING + "test_a_node_that_stops_takes_nothing_over", seeds=0),
    mutant("leaving-not-told", "others are not told that a node is about to stop", "Moves.row",
           "if self._view.is_leaving and self._view.vnodes[partition].role in STAYING:", "if False:", "V1",
           STOPPING + "test_nodes_that_all_stop_do_not_wait_for_each_other", seeds=0),
    mutant("leaver-lets-clients-in", "a node that is about to stop takes requests that it will not answer",
           "ClientDoor._check_load",
           "if self._view.is_leaving and not isinstance(message, OF_ONLOOKERS):", "if False:", "A2",
           STOPPING + "test_clients_are_sent_to_other_nodes_those_that_wait_too", seeds=0),
    mutant("leaver-keeps-claims-waiting", "claims wait at a node that is gone", "Node.hand_over",
           "        self._parked.dismiss(now_ms)\n", "", "A2",
           STOPPING + "test_clients_are_sent_to_other_nodes_those_that_wait_too", seeds=0),
    mutant("stop-amid-a-commit", "the simulated process ends between its turn and its commit", "Process._depart",
           "        if self._is_busy:\n            self._call_later(1, self._depart)\n            return\n", "",
           "D7",
           WORLD + "test_a_process_that_is_stopped_goes_on_until_its_machine_is_out", seeds=0),

    # forgetting
    mutant("needed-vote-forgotten", "a node is forgotten while partitions need its vote", "Forgetter.wish",
           "if not needs_vote_of(name)), None)", "if name), None)", "V1",
           LIVES + "test_no_node_is_forgotten_that_partitions_need", seeds=0),
    mutant("needs-are-not-asked-for", "the process does not tell its membership which votes are needed",
           "node.process.Process.__init__", "        membership.needs_vote_of = node.needs_vote_of\n", "", "V1",
           PROCESS + "test_the_log_is_told_which_votes_the_node_knows_to_be_needed", seeds=0),
    mutant("no-vote-is-needed", "a node does not know which votes are needed", "Node.needs_vote_of",
           "return any(name in group and not has_majority(group, others)",
           "return any(name in group and not has_majority((), others)", "V1",
           STOPPING + "test_it_says_which_votes_are_needed", seeds=0),
    mutant("visitor-keeps-its-place", "a node that came for a moment is placed for a day", "Forgetter._due",
           "patience_ms = min(limit_ms, self.settings.return_ms) if name in self._brief else limit_ms",
           "patience_ms = limit_ms", "V1", LIVES + "test_a_visitor_that_stopped_cleanly_is_forgotten_soon",
           seeds=0),
    mutant("resident-taken-for-a-visitor", "a node that stopped after long is forgotten as soon",
           "Forgetter._is_young", "now_ms - self._joined_ms[name] < self.settings.brief_ms", "True", "V1",
           LIVES + "test_no_other_node_is", seeds=0),
    mutant("old-hands-taken-for-visitors", "what is played to catch up counts as coming now",
           "Forgetter.on_played", "if not is_current or played.entry is None:", "if played.entry is None:", "V1",
           LIVES + "test_no_other_node_is", seeds=0),
    mutant("dead-taken-for-a-visitor", "a newcomer that died is forgotten as if it had stopped",
           "Forgetter.on_played",
           "if isinstance(command, Leave) and command.member == played.entry.writer:",
           "if isinstance(command, Leave):", "V1", LIVES + "test_no_other_node_is", seeds=0),
    mutant("election-promised-in-vain", "status says that an election takes seconds where none can be won",
           "attention._partitions",
           "not row.leader and row.partition not in stuck]", "not row.leader]", "V1", SHOWING, seeds=0),
)
