"""Mutants of fenced output: which claim's files become visible, what may be deleted, what readers trust."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

ORDERS = "tests/output/test_protocol.py::"
FILES = "tests/output/test_output.py::"
AT_ONCE = ORDERS + "test_two_claims_write_at_once_and_one_is_visible_whatever_dies_when"
OLD = ORDERS + "test_where_nothing_can_be_renamed_what_is_old_loses_only_what_is_older_than_it"
UNKNOWN = ORDERS + "test_what_nobody_knows_is_deleted_when_that_is_asked_for_and_it_is_abandoned"
LATE = FILES + "test_a_zombie_that_completes_late_changes_nothing"
EARLIER = FILES + "test_a_completion_that_becomes_known_late_and_is_earlier_changes_nothing"
MENDED = FILES + "test_a_sweep_mends_a_crash_between_completion_and_rename"
UNSEALED = FILES + "test_what_is_unknown_goes_when_that_is_asked_for_and_not_when_it_was_sealed"
TRUST = FILES + "test_a_manifest_that_is_not_the_completed_one_is_not_trusted"
ONCE = FILES + "test_a_directory_moves_once"
SEALED = FILES + "test_what_is_sealed_is_on_the_disk"
HOSTILE = FILES + "test_an_older_reader_gets_bytes"
PLACE = FILES + "test_a_file_stands_in_its_place_and_is_seen"
ROOM = FILES + "test_a_list_that_leaves_no_room_for_the_value_is_left_out"
LONG = FILES + "test_a_long_list_is_in_the_manifest_alone"
LOST = FILES + "test_a_lost_claim_writes_nothing"
READERS = FILES + "test_who_may_not_write_there_reads_what_is_not_published"
DATABASE = "tests/output/test_spark.py::test_a_database_has_the_rows_of_the_newest_claim_once"
WORKER = ("tests/worker/test_outputs.py::"
          "test_what_functions_write_is_published_and_a_crash_of_another_worker_mended")

MUTANTS: tuple[Mutant, ...] = (
    mutant("deleted-before-published", "a claim's output is deleted that may become the visible one",
           "protocol._has_lost", "    if is_published:\n", "    if True:\n", "W3", AT_ONCE, seeds=0),
    mutant("younger-ones-deleted", "the token alone says what a completed task may lose", "protocol._has_lost",
           "standing.token is not None and standing.is_old and token < standing.token",
           "standing.token is not None and token != standing.token", "W3", OLD, seeds=0),
    mutant("old-enough-at-once", "what lost is deleted before it is certain", "protocol._has_lost",
           "standing.is_old and token", "token", "W3", OLD, seeds=0),
    mutant("unknown-and-gone", "what nobody knows is deleted unasked", "protocol._has_lost",
           "return takes_unknown and bool(", "return bool(", "W3", UNKNOWN, seeds=0),
    mutant("sealed-and-gone", "what an archived completion may name is deleted", "Performer._do",
           "return not is_sealed and ", "return ", "W3", UNSEALED, seeds=0),
    mutant("age-unasked", "what is unknown is deleted however young it is", "Performer._do",
           " and self._store.idle_s(place) > self._idle_s", "", "W3", UNSEALED, seeds=0),
    mutant("never-mended", "a crash between completion and rename is for good", "protocol.sweep",
           "was_published or (yield from settle(task))", "was_published", "W3", AT_ONCE, MENDED, seeds=0),
    mutant("published-by-anybody", "what is published need not be what was completed", "performing.standing_of",
           "    if task.completed_token is None or task.completed_ms is None:\n        return Standing()\n",
           "    if task.completed_token is None or task.completed_ms is None:\n"
           "        return Standing(task.claims[-1].token if task.claims else None, True)\n", "W3", MENDED,
           seeds=0),
    mutant("moved-over-another", "a directory that is there is replaced", "LocalStore.move",
           "            os.rename(source, target)\n",
           "            shutil.rmtree(target, ignore_errors=True)\n            os.rename(source, target)\n", "W3",
           ONCE, seeds=0),
    mutant("published-is-not-asked", "a reader goes by a completion that came to stand later",
           "reading._looked_up", "is_others = is_published and manifest.token != token", "is_others = False", "W3",
           EARLIER, seeds=0),
    mutant("readers-leave-it", "a reader reads where it may be moved from", "reading.found_output",
           "is_published = performer.perform(settle(to_text(known.id)))", "is_published = False", "W3", LATE,
           seeds=0),
    mutant("readers-need-leave", "who may not rename cannot read", "store._REFUSALS",
           "errno.EACCES, ", "", "W3", READERS, seeds=0),
    mutant("any-manifest", "files are read that no completion named", "reading._looked_up",
           "and (is_whole or is_others) else None", "else None", "W3", TRUST, seeds=0),
    mutant("any-value", "a value is read that was not stored", "reading.read_reference",
           " and hashlib.sha256(content).hexdigest() == reference.sha256", "", "W3", TRUST, seeds=0),
    mutant("leads-elsewhere", "a manifest names files outside of its place", "outputs.checked_file",
           'part in (".", "..") or ', "", "W3", HOSTILE, seeds=0),
    mutant("hidden-from-spark", "a file is written that plain readers pass over", "Output._created",
           "        if any(map(is_hidden, checked.split(\"/\"))):\n", "        if False:\n", "W3", PLACE, seeds=0),
    mutant("sealed-in-a-cache", "a completion names files that a power cut takes", "LocalStore.seal",
           "        sync_tree(Path(place))\n", "", "W3", SEALED, seeds=0),
    mutant("written-by-the-lost", "a claim that is lost goes on to write", "Output._begin",
           "        self._check()\n", "", "W3", LOST, seeds=0),
    mutant("sealed-while-open", "a file is named that is not whole", "Output.seal",
           "                if not stream.closed:\n", "                if False:\n", "W3",
           FILES + "test_an_output_with_an_open_file_is_not_sealed", seeds=0),
    mutant("names-are-patterns", "a file's name has Spark read other files", "spark_frames.read_frame",
           "_PATTERN.sub(_LITERAL, file.path)", "file.path", "W3",
           "tests/output/test_spark.py::"
           "test_exactly_the_named_files_are_read_whatever_their_names_mean_to_spark", seeds=0),
    mutant("sealed-by-the-lost", "a claim that is lost says what it wrote", "Output.seal",
           "            self._check()\n", "", "W3", LOST, LATE, seeds=0),
    mutant("list-before-value", "a list of files makes a result too large", "results.encode_result",
           "stored = whole if is_fit else", "stored = whole if True else", "W3", ROOM, seeds=0),
    mutant("lists-without-end", "each read of a task carries ten thousand names", "outputs.packed",
           "    if with_files and len(whole) > LISTED_BYTES_MAX:\n", "    if False:\n", "W3", LONG, seeds=0),
    mutant("worker-publishes-nothing", "plain readers wait for a sweep", "Worker._on_done",
           '        if what == "completed":\n', "        if False:\n", "W3", WORKER, seeds=0),
    mutant("unsealed-by-threads", "a function's files are in no completion", "Run._endings",
           "self._ended_with(self.context.outputs.sealed(value), count)", "self._ended_with(value, count)", "W3",
           WORKER, seeds=0),
    mutant("unsealed-by-the-loop", "an async function's files are in no completion", "Run._awaited",
           "            if self.context.outputs.every:\n", "            if False:\n", "W3", WORKER, seeds=0),
    mutant("outputs-unarchived", "the archive forgets what a task wrote", "archive.rows.row_of",
           "packed(task.outputs, with_files=True).decode() if task.outputs else None", "None", "W3",
           "tests/archive/test_rows.py::test_what_a_task_wrote_is_archived_with_it", seeds=0),
    mutant("outputs-unshown", "nobody is shown what a task wrote", "outputs.outputs",
           "            for written in task.outputs]", "            for written in task.outputs[:0]]", "W3",
           FILES + "test_get_shows_what_a_task_wrote", seeds=0),
    mutant("turns-for-ever", "a worker remembers every path to which it ever wrote", "Turns.take",
           " if now < at + SWEEP_S}", "}", "W3",
           FILES + "test_a_path_has_its_turn_to_be_swept_now_and_then_and_those_of_long_ago_are_forgotten",
           seeds=0),
    mutant("worker-mends-nothing", "a crash is mended only when somebody asks", "Publisher._publish",
           "            swept = performer.perform(sweep())\n",
           "            swept = Swept()\n", "W3", WORKER, seeds=0),
    mutant("any-token-writes", "a zombie's rows replace those of a newer claim", "spark_jdbc.write_jdbc",
           "where task = ? and token <= ?\",", "where task = ? and token <= ? + 99\",", "W3", DATABASE, seeds=0),
    mutant("rows-twice", "the next claim's rows stand beside those of the one before", "spark_jdbc.write_jdbc",
           "            _changed(connection, f\"delete from {table} where {into[-1]} = ?\", task)\n", "", "W3",
           DATABASE, seeds=0),
)
