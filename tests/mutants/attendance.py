"""Mutants of what is known of workers: who is listed, for how long, and when the coordination log hears of it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WORKERS = "tests/node/test_workers.py::"
GONE = WORKERS + "test_a_worker_is_gone_when_its_lease_is_over_and_at_once_when_it_says_so"
FLEET = WORKERS + "test_a_fleet_that_starts_is_one_change"
SLOWLY = WORKERS + "test_a_fleet_that_comes_slowly_is_not_waited_for_for_ever"
ROOM = WORKERS + "test_a_full_node_refuses_new_workers_and_hears_those_it_knows"
BYTES = WORKERS + "test_what_workers_say_of_themselves_is_bounded_in_bytes"
MOVED = WORKERS + "test_a_worker_that_changed_its_node_is_listed_once_as_it_reported_last"
LOG = "tests/node/test_process.py::test_what_the_nodes_workers_can_hold_is_brought_into_the_log_when_it_changes"

MUTANTS: tuple[Mutant, ...] = (
    mutant("workers-for-ever", "a dead worker stays listed", "Attendance.expire",
           "now_ms >= present.until_ms or ", "", "A1", GONE, seeds=0),
    mutant("workers-without-goodbye", "a worker that stops stays listed", "Attendance.note",
           "        if old is not None:\n", "        if old is not None and lease_ms:\n", "A1", GONE, seeds=0),
    mutant("workers-without-end", "as many workers as there are fill a node's memory", "Attendance.note",
           "len(self) >= self._workers_max", "False", "A1", ROOM, seeds=0),
    mutant("talkative-workers", "what workers say fills a node's memory", "Attendance.note",
           "> BYTES_MAX", "> BYTES_MAX << 20", "A1", BYTES, seeds=0),
    mutant("workers-of-any-key", "a worker speaks for one of another key", "attendance.name_of",
           "return row.holder, row.key", 'return row.holder, ""', "A1",
           WORKERS + "test_nobody_speaks_for_a_worker_of_another_key", seeds=0),
    mutant("reports-under-any-key", "a worker's report is kept under the key that it names itself",
           "clearance.signed", "attrs.evolve(row, key=name)", "row", "A1",
           "tests/runtime/test_clearance.py::test_a_report_is_kept_under_the_name_of_its_key_alone", seeds=0),
    mutant("older-report-counts", "a worker that changed its node is listed as it was", "MusterOperation._page",
           "row.age_ms < known.age_ms", "row.age_ms > known.age_ms", "A1", MOVED, seeds=0),
    mutant("workers-wait-for-the-dead", "none is listed while a node is silent", "MusterOperation.on_deadline",
           "self.answer(self._page())", "pass", "A1",
           WORKERS + "test_a_node_that_is_silent_is_named_and_the_others_are_listed", seeds=0),
    mutant("slots-at-once", "each worker that starts is an entry of the log", "workers.capacity.QUIET_MS",
           "QUIET_MS = 5_000", "QUIET_MS = 0", "A1", FLEET, seeds=0),
    mutant("slots-never", "a fleet that comes slowly is never in the log", "Capacity._due_ms",
           "min(self._changed_ms + self.quiet_ms, self._differs_ms + self.patience_ms)",
           "self._changed_ms + self.quiet_ms", "A1", SLOWLY, seeds=0),
    mutant("slots-often", "the log hears of every change at once", "Capacity._due_ms",
           "max(due_ms, self._told_ms + self.pause_ms)", "due_ms", "A1", SLOWLY, seeds=0),
    mutant("slots-untold", "nobody brings what workers can hold", "Process._round_up",
           "        if self._slots != self._node.slots:\n", "        if False:\n", "A1", LOG, seeds=0),
    mutant("slots-by-count", "a slot of many claims counts as one", "slots.units",
           "(int(count) for", "(1 for", "A1", LOG, seeds=0),
    mutant("reports-all-over", "a worker reports to each node in turn", "Nodes.note_answered",
           "            self._reported_to = name\n", "            pass\n", "A1",
           "tests/client/test_pursuit.py::test_a_report_goes_to_the_node_that_took_the_one_before", seeds=0),
    mutant("batches-without-end", "what a worker tells of its batches is not counted", "Attendance.note",
           "ROW_BYTES * (1 + len(row.batches))", "ROW_BYTES", "A1", BYTES, seeds=0),
    mutant("batches-of-others", "a worker tells of batches in queues that its key does not reach",
           "clearance._queues_of", "            yield from (batch.queue for batch in row.batches)\n", "", "A1",
           "tests/runtime/test_clearance.py::test_a_worker_of_other_queues_is_none_of_a_key_of_some", seeds=0),
)
