"""Mutants of unique names: which content stands, and who is told that a task was there already."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

BODY, REPLICA, ROWS = "model/body.py", "partition/replica.py", "partition/rows.py"
STORING, ASKING, MERGING = "node/storing.py", "node/asking.py", "node/merging.py"
OWN, MACHINES = "tests/partition/test_names.py::", "tests/node/test_names.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("unique-last-wins", "the content asked for last takes the place of the first", BODY,
           "return first is not None and second is not None and first < second",
           "return first is not None and second is not None and first > second", "C18",
           OWN + "test_a_later_body_is_refused_and_an_earlier_one_is_not", seeds=30),
    mutant("unique-first-heard-stands", "copies keep what they heard first", REPLICA,
           "            self._replace(now_ms, first, known)\n", "", "V2",
           OWN + "test_copies_that_hear_bodies_in_any_order_are_equal", seeds=0),
    mutant("nameless-give-way", "a content without a name is replaced", BODY,
           "    return (Body.decode(record).made_ms, record) if header.prelude & NAMED else None\n",
           "    return Body.decode(record).made_ms, record\n", "D3",
           OWN + "test_a_body_without_a_name_gives_way_to_none_and_takes_the_place_of_none", seeds=0),
    mutant("later-copy-covers", "a copy goes although it alone has the content that stands", ROWS,
           "    if mine.body != theirs.body and len(mine.body) and stands_over(",
           "    if False and stands_over(", "D1",
           OWN + "test_who_stands_is_told_by_all_alike", seeds=0),
    mutant("reader-takes-any", "a reader shows a content that has given way", MERGING,
           "    return b if not len(a) or stands_over(*b.unpack(), *a.unpack()) else a\n",
           "    return b if not len(a) else a\n", "A3", OWN + "test_who_stands_is_told_by_all_alike", seeds=0),
    mutant("duplicate-not-told", "who asks again is told that the task is new", STORING,
           "        self._duplicates = dict.fromkeys(duplicates)\n",
           "        self._duplicates = dict[int, None]()\n", "C18",
           MACHINES + "test_of_a_request_those_that_were_there_are_told_by_number", seeds=30),
    mutant("rival-not-told", "of two at the same time both are told that theirs is new", STORING,
           "                    self._duplicates.update(", "                    dict[int, None]().update(", "C18",
           MACHINES + "test_of_two_at_the_same_time_the_one_that_no_majority_took_is_told", seeds=0),
    mutant("name-not-asked-for", "a later call by a clock that is behind rewrites what was acknowledged", ASKING,
           "        Naming(then).begin(now_ms, self._node, origin, [*named], self._peek)\n",
           "        then(now_ms, {})\n", "C18",
           MACHINES + "test_a_later_call_by_a_clock_that_is_behind_changes_nothing_and_is_told", seeds=60),
    mutant("no-more-copies", "what is there is not copied to as many nodes as are asked for", ASKING,
           "        if self._w(message.w) > majority(", "        if self._w(message.w) > 2 * majority(", "D7",
           MACHINES + "test_more_copies_of_what_is_there_are_made_for_who_asks_for_them", seeds=0),
    mutant("names-refused-twice", "a request of many names is answered more than once", "node/naming.py",
           "        if not self._naming.is_refused:\n", "        if True:\n", "A2",
           MACHINES + "test_names_without_a_majority_are_refused_and_nothing_is_written", seeds=0),
    mutant("as-old-as-its-window", "a task of a unique name is shown as old as its window", "model/task.py",
           "        return self.made_ms or time_of(self.id)\n", "        return time_of(self.id)\n", "A3",
           "tests/testing/test_memory.py::test_a_unique_name_stands_for_its_task_whatever_becomes_of_it", seeds=0),
    mutant("any-clock-names", "a clock far behind replaces what was acknowledged long ago", ASKING,
           "    if not now_ms - skew_ms - LATE_MS_MAX <= made_ms", "    if not 0 <= made_ms", "A2",
           MACHINES + "test_a_clock_that_is_far_off_names_nothing", seeds=0),
    mutant("window-longer-than-kept", "a name is promised for longer than its task is kept", ASKING,
           "    if keep_ms and window_ms > keep_ms:\n", "    if False:\n", "D10",
           MACHINES + "test_a_window_longer_than_ended_tasks_are_kept_is_refused_by_name_and_remedy", seeds=0),
    mutant("names-with-dependencies", "what is met of one content is taken for what another waits for",
           "model/prelude.py", "        if self.deps and self.unique:\n", "        if False:\n", "C13",
           "tests/model/test_body.py::test_a_named_task_has_no_dependencies", seeds=0),
)
