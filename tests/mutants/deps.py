"""Mutants of dependencies: what lets a task go too early, and what leaves it waiting for good."""

from __future__ import annotations

from mutants.mutant import Edit, Mutant, mutant

WATCHING, TELLING = "node/dependencies/dependent_side.py", "node/dependencies/dependency_side.py"
WAITING = "partition/data/waiting.py"
NOTES, FILING, DEPENDING = "model/notes.py", "partition/data/filing.py", "node/dependencies/both_sides.py"
DEPS = "tests/node/test_dependencies.py::"
REPLICAS = "tests/partition/test_replica.py::test_indexes_and_counts_follow_from_the_data"
WAITS = DEPS + "test_a_task_waits_until_what_it_needs_is_completed"
POLICIES = DEPS + "test_what_fails_does_what_the_policy_says"
UNKNOWN = DEPS + "test_what_nobody_knows_is_waited_for_until_the_deadline"
OVERDUE = "            if min(ends_ms, default=now_ms) < now_ms:\n"

MUTANTS: tuple[Mutant, ...] = (
    mutant("younger-of-its-key", "a task may need one that waits behind it", "model/prelude.py",
           "        if self.key and any(dep > task_id and", "        if self.key and any(False and", "O3",
           "tests/model/test_body.py::test_no_task_needs_a_younger_one_of_its_key",
           "tests/client/test_verbs.py::test_a_task_that_needs_a_younger_one_of_its_key_is_refused", seeds=0),
    mutant("blocked-is-granted", "a task is claimed before what it needs has ended", "model/state.py",
           "    if is_blocked:\n", "    if False:\n", "C13",
           DEPS + "test_a_task_whose_time_has_not_come_waits_for_that_as_well"),
    mutant("told-before-a-majority-knows", "an end is told that one copy alone may know", TELLING,
           "        self.host.start(AmendOperation(self.host, self.origin_of_parts, now_ms, {self._vnode: change}"
           ",\n                                       m.Told(self.request)), now_ms)\n",
           "        self.on_reply(now_ms, '', m.Told(self.request))\n        assert change\n", "C13",
           DEPS + "test_a_completion_that_no_majority_knows_is_told_to_nobody", seeds=0),
    Mutant("failed-counts-as-done", "what failed lets everybody go", (
        Edit(NOTES, "    return end is End.DONE or (policy == ON_FAILURE_IGNORE and end is not End.OPEN)\n",
             "    return end is not End.OPEN and (policy == ON_FAILURE_IGNORE or True)\n"),
        Edit(WATCHING, "{ON_FAILURE_IGNORE: 0, ON_FAILURE_FAIL: DEP_FAILED}.get(policy)",
             "{ON_FAILURE_IGNORE: 0, ON_FAILURE_FAIL: DEP_FAILED}.get(policy, 0)")), "C13", (POLICIES,)),
    mutant("failure-kills-nobody", "a task that is to die with what it needs waits on", WATCHING,
           "{ON_FAILURE_IGNORE: 0, ON_FAILURE_FAIL: DEP_FAILED}", "{ON_FAILURE_IGNORE: 0}", "C17", POLICIES,
           seeds=0),
    Mutant("one-of-several-is-enough", "a task goes when one of what it needs has ended", (
        Edit(WAITING, "        if left > 0:\n", "        if False:\n"),
        Edit(NOTES, "    return [index for index in range(count) if index not in met]\n",
             "    return [index for index in range(count) if not met]\n")), "C13",
        (DEPS + "test_one_that_needs_several_waits_for_the_last",)),
    Mutant("unknown-before-the-deadline", "a task dies, or goes, of what nobody knows yet", (
        Edit(WATCHING, OVERDUE, "            if True:\n"),
        Edit(WATCHING, "    if end is End.OPEN or (end is End.UNKNOWN and not is_overdue):\n",
             "    if end is End.OPEN:\n")), "C13",
        (UNKNOWN,)),
    mutant("unknown-to-the-leader-is-unknown", "a task is unknown by the word of one copy", TELLING,
           "        if not unknown or not self._question.is_last:\n", "        if True:\n", "C13",
           DEPS + "test_what_somebody_else_knows_is_not_unknown", seeds=0),
    mutant("never-unknown", "what nobody knows is waited for whatever the deadline", WATCHING, OVERDUE,
           "            if False:\n", "C17", UNKNOWN),
    mutant("told-without-notes", "who was told that a task is done does not note it", WATCHING,
           "                notes.append((task_id, MET, met_seq(index, end)))\n", "                pass\n", "C17",
           WAITS),
    mutant("gathered-and-forgotten", "what is asked about many tasks waits for the walk", WATCHING,
           "            self._again.append((due_ms, vnode.partition, deps))\n", "            pass\n", "C17",
           DEPS + "test_questions_about_many_are_gathered_and_those_about_few_are_not", seeds=0),
    mutant("no-room-and-forgotten", "questions about too many to remember wait for the walk", WATCHING,
           "        return has_room\n", "        return True\n", "C17",
           DEPS + "test_what_is_gathered_and_too_much_to_remember_is_asked_at_once", seeds=0),
    mutant("no-walk", "what was lost is never asked for again", WATCHING,
           "        has_walked = now_ms >= self._next_ms and self._walk(now_ms)\n",
           "        has_walked = False\n", "C17",
           DEPS + "test_a_new_leader_asks_what_the_old_one_had_no_answer_to", UNKNOWN),
    mutant("new-leader-asks-nobody", "a new leader does not ask what its tasks wait for", DEPENDING,
           "                    self._watching.begin(now_ms, partition)\n                    self._telling.begin",
           "                    self._telling.begin", "C17",
           DEPS + "test_a_new_leader_asks_what_the_old_one_had_no_answer_to"),
    mutant("new-leader-tells-nobody", "a new leader does not tell what the old one had to", DEPENDING,
           "                    self._telling.begin(now_ms, partition)\n            elif known",
           "            elif known", "C17",
           DEPS + "test_a_new_leader_tells_what_the_old_one_could_not"),
    mutant("told-once-only", "what could not be told is not told again", TELLING,
           "        turn.due_ms = now_ms if turn.after else now_ms + self._node.timing.resend_ms\n",
           "        turn.due_ms = now_ms if turn.after else FOREVER_MS\n", "C17",
           DEPS + "test_what_could_not_be_told_is_told_somewhat_later"),
    mutant("second-death-not-told", "who was told of a failure is not told of the next one", NOTES,
           "    number = min(round_number, _ROUNDS_END - 1) if end is End.FAILED else 0\n", "    number = 0\n",
           "X1", "tests/partition/test_waiting.py::test_a_second_death_is_told_again", seeds=0),
    mutant("revived-is-not-watched", "nobody hears of the end of a revived task", FILING,
           "            self.waiting.reopen(task_id)\n", "", "X1", REPLICAS,
           DEPS + "test_who_waits_for_a_dead_task_is_told_when_it_is_done_after_all"),
    mutant("completion-tells-nobody", "who waits for a claimed task does not hear of its completion", FILING,
           "        self.waiting.finish(ids)\n", "", "X1", WAITS),
    mutant("told-row-stays", "who was told is told for ever", FILING,
           "                self.waiting.told(task_id, seq, history.round)\n",
           "                pass\n", "X1", WAITS, seeds=0),
    mutant("wait-row-stays", "a task that is not blocked any more is still waited with", FILING,
           "        if self.waiting.unblock(task_id, body) or turn == CLOSED:\n", "        if turn == CLOSED:\n",
           "X1", REPLICAS),
    mutant("death-not-sealed", "a failure is told that each copy's clock may see otherwise", TELLING,
           "            marks.append(Mark(task_id, DIED, history.round + 1, reason))\n", "            pass\n",
           "C13", POLICIES, seeds=0),
    mutant("notes-stay-where-they-are", "a copy that missed a note does not get it by an exchange",
           "partition/data/rows.py",
           "            replica.note(now_ms, token, seq, [row.id])\n", "            pass\n",
           "V2", "tests/partition/test_waiting.py::test_a_copy_that_missed_a_note_gets_it_with_the_rest"),
    mutant("scrubbed-without-subscriptions", "after a scrub nobody knows who waits for a task",
           "partition/copies/scrub.py", "            if token == SUB:\n", "            if False:\n", "X1",
           "tests/partition/test_scrub.py::test_what_is_left_is_readable_indexed_and_can_be_filled_up"),
    mutant("bare-reads-show-blocked", "a read without logs shows a task as blocked that is not",
           "partition/data/rows.py",
           "if has_deps else []\n", "if has_deps and False else []\n", "A3",
           "tests/partition/test_waiting.py::test_a_bare_row_tells_what_is_met", seeds=0),
)
