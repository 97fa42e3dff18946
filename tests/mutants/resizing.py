"""Mutants of clusters that are to keep more copies of each task, or fewer."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

RESIZING = "tests/node/test_resizing.py::"
NEXT = RESIZING + "test_who_goes_next"
GROWN = RESIZING + "test_from_one_copy_to_three_all_tasks_are_on_all_nodes_and_new_ones_were_taken_meanwhile"
SHRUNK = RESIZING + "test_from_three_copies_to_one_voters_go_one_at_a_time_and_no_task_goes_with_them"
CONFORMANCE = "tests/cluster/test_conformance.py"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "D1", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(NEXT, "voters-go-all-at-once", "voters become fewer one at a time", "evaluator._move",
             "    if 0 < len(facts.owners) < len(document.cohort):\n", "    if False:\n"),
    _seen_by(NEXT, "voters-go-uncompared", "a voter goes once those who stay were compared", "evaluator._part",
             "    if not facts.is_gathered:\n", "    if False:\n"),
    _seen_by(NEXT, "the-able-go-first", "voters that are down go before those that are able", "evaluator._part",
             "key=lambda name: (name in trusted, name == me))", "key=lambda name: name == me)"),
    _seen_by(NEXT, "gone-without-a-majority", "those who stay are a majority that can vote", "evaluator._part",
             " and quorum.has_majority(cohort, trusted)):", "):"),
    _seen_by("tests/node/test_quarantine.py::"
             "test_nobody_who_is_there_is_passed_over_though_a_majority_was_compared", "some-compared",
             "those who stay are all compared", "Gatherings.is_through",
             "any(name in self._view.live for name in gathering.lacking)", "False"),
    _seen_by(SHRUNK, "never-gathered-for-a-cut", "a leader gathers where owners are fewer", "gatherings._reason",
             "document.epoch if 0 < len(vnode.owners) < len(document.cohort) else None", "None"),
    _seen_by(RESIZING + "test_a_smaller_cohort_loses_no_more_live_voters_than_it_is_smaller",
             "fewer-than-it-loses", "a smaller cohort loses no more live voters than it is smaller",
             "Election.would_lose_votes", "lost > max(0, len(old) - len(new))", "lost > len(old)"),
    _seen_by(RESIZING + "test_a_copy_is_not_enough_before_the_voters_are_fewer", "majority-of-what-is-to-be",
             "a write has a majority of the voters that there are", "Need.copies",
             "if is_majority and len(group)", "if False and len(group)"),
    _seen_by(GROWN, "learners-are-no-copies", "owners that fill count where voters are few", "Need.copies",
             "len(self.have) if 0 < len(group) < wanted and", "len(self.have) if False and"),
    _seen_by(RESIZING + "test_while_there_is_one_voter_owners_that_fill_count_as_copies", "one-copy-for-three",
             "a write has as many copies as a majority of those that are wanted", "WriteOperation.__init__",
             "max(w, operations.view.majority)", "max(w, 1)"),
    _seen_by(GROWN, "copies-as-created", "a node places by the number that the log says", "Node._on_nodes",
             "self.view.replicas = event.replicas or self.view.parameters.replicas",
             "self.view.replicas = self.view.parameters.replicas"),
    _seen_by("tests/cluster/test_membership.py::test_a_node_is_told_how_many_copies_are_kept_when_that_changes",
             "copies-untold", "nodes are told when the number of copies changes", "Teller.tell",
             " and replica.replicas == self._replicas", ""),
    _seen_by("tests/cluster/test_membership.py::test_a_node_is_told_how_many_copies_are_kept_when_that_changes",
             "placed-by-old-copies", "a placement that is decided aside is made anew for another number of copies",
             "versions.placing", 'frozenset({"nodes", "copies"})', 'frozenset({"nodes"})'),
    _seen_by(CONFORMANCE, "copies-without-nodes", "no more copies than nodes", "SetReplicas.apply",
             "        if len(nodes) < self.replicas:\n", "        if False:\n"),
    _seen_by(CONFORMANCE, "copies-under-old-rules", "older releases play the entry alike", "SetReplicas",
             "    since = REPLICAS_SINCE\n", "    since = 1\n"),
    _seen_by("tests/cli/test_showing.py::test_what_needs_attention[voters on their way]",
             "under-target-in-silence", "status tells of partitions with too few voters", "attention._off_target",
             "    if fewer:\n", "    if False:\n"),
    _seen_by("tests/node/test_identity.py::test_the_only_copy_is_not_filled_as_the_log_says_now",
             "only-copies-as-created", "how many copies there are is as the log says", "start.prepare",
             "count = copies or (lambda: parameters.replicas)", "count = lambda: parameters.replicas"),
    mutant("copies-of-a-name", "a name that stands for a task tells of copies that are not there",
           "WriteRequests._write_unsettled",
           "is_as_created = self._view.replicas == self._view.parameters.replicas", "is_as_created = True", "D7",
           RESIZING + "test_a_name_that_stands_for_a_task_tells_of_no_more_copies_than_there_are", seeds=0),
    _seen_by("tests/node/test_rebuilding.py::"
             "test_without_a_kept_log_as_many_copies_stay_as_there_are_voters_and_no_fewer_than_at_creation",
             "restored-with-fewer-copies", "copies are given up by a restore without the log",
             "rebuilding._copies", "*(len(document.seats) for document in documents.values()), 0)", "0)"),
    _seen_by("tests/runtime/test_server.py::test_who_expects_the_copies_of_now_or_of_creation_is_right",
             "copies-of-creation-alone", "a node that is told of the copies of now is refused",
             "agreement.check_expected", "        parameters = attrs.evolve(parameters, replicas=copies())\n",
             "        pass\n"),
)
