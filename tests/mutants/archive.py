"""Mutants of the archive: what is confirmed before it is durable, and what is read twice."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

NAMED = "test_a_unique_name_has_the_time_of_its_asking_and_the_day_of_its_id"
ORDER, DISK, FORM = (f"tests/archive/test_{name}.py::" for name in ("archiver", "places", "rows"))

MUTANTS: tuple[Mutant, ...] = (
    mutant("archive-unwritten", "what is offered is confirmed without being written", "Archiver._write",
           "self._sink.write(self._name_batch(), [row.task for row in part])", "self._name_batch()", "D7",
           ORDER + "test_all_that_is_offered_is_written_once_and_then_deleted", seeds=0),
    mutant("archive-too-soon", "a page is confirmed before it is written", "Archiver._round",
           "            batch.add(page)\n", "            self._confirm(page)\n            batch.add(page)\n", "D7",
           ORDER + "test_pages_of_all_partitions_go_into_one_batch_and_are_confirmed_behind_it", seeds=0),
    mutant("archive-other-page", "a page counts as written as soon as one of its partition was",
           "Archiver._unwritten",
           "                if written.get(task.id) != digests[task.id] and task.id not in self.report.refused]\n",
           "                if not written]\n", "D7",
           ORDER + "test_what_comes_again_in_another_page_is_not_written_again_unless_it_has_changed", seeds=0),
    mutant("archive-again-in-other-pages", "what comes again in another page is written again",
           "Archiver._unwritten",
           "                if written.get(task.id) != digests[task.id] and task.id not in self.report.refused]\n",
           "                if written != digests]\n", "D7",
           ORDER + "test_what_comes_again_in_another_page_is_not_written_again_unless_it_has_changed", seeds=0),
    mutant("archive-changed-since", "what has changed since it was written is not written again",
           "Archiver._unwritten",
           "if written.get(task.id) != digests[task.id] and", "if task.id not in written and", "D7",
           ORDER + "test_what_comes_again_in_another_page_is_not_written_again_unless_it_has_changed", seeds=0),
    mutant("archive-unsynced", "a batch is confirmed that a power cut may take", "LocalPlace.finish",
           "        sync_tree(written)\n", "", "D7",
           DISK + "test_a_batch_is_synced_whole_then_renamed_and_that_is_synced", seeds=0),
    mutant("archive-name-unsynced", "a batch is confirmed whose name a power cut may take", "LocalPlace.finish",
           "        sync(self._root)\n        sync(self._writing)\n", "", "D7",
           DISK + "test_a_batch_is_synced_whole_then_renamed_and_that_is_synced", seeds=0),
    mutant("archive-two-at-once", "a second archiver wipes what the first has under way", "LocalPlace.held",
           "        with process.held(self._writing):\n", "        with contextmanager(lambda: iter([None]))():\n",
           "D7", DISK + "test_one_archiver_at_a_time_and_what_it_left_unfinished_is_wiped", seeds=0),
    mutant("archive-null-queue", "a queue may be called as Spark calls null", "archive.rows.row_of",
           'check_name("queue", task.queue)', "task.queue", "D7",
           FORM + "test_a_queue_that_a_directory_could_not_be_called_after_is_refused", seeds=0),
    mutant("archive-name-as-old-as-its-window", "a unique name is as old in the archive as its window",
           "archive.rows.row_of",
           "task.death, task.enqueued_ms, ended_ms(task)", "task.death, time_of(task.id), ended_ms(task)", "A3",
           FORM + NAMED, seeds=0),
    mutant("archive-day-of-asking", "who looks for a unique name by its id looks into another day",
           "archive.rows.row_of",
           "day_of_id(task.id), task.priority", "day_of(task.enqueued_ms), task.priority", "A3", FORM + NAMED,
           seeds=0),
    mutant("archive-forgets-the-asking", "a unique name comes back from the archive as old as its window",
           "rows._made_ms",
           "    return 0 if enqueued_ms == time_of(from_text(row[\"id\"])) else enqueued_ms\n",
           "    return 0 if enqueued_ms else enqueued_ms\n", "A3", FORM + NAMED, seeds=0),
)
