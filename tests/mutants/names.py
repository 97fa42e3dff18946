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
           "                    self._duplicates.update(", "                    dict[int, None]().update(", "C18",
           MACHINES + "test_the_second_of_a_name_is_told_so_whatever_node_it_asks", seeds=30),
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
