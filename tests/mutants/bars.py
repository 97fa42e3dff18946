"""Mutants of how the progress of tasks is drawn: what goes back, is drawn as done, or reaches a terminal."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

PROGRESS = "tests/cli/test_progress.py::"
HOSTILE = PROGRESS + "test_whatever_was_written_moves_no_cursor"
WORDS = PROGRESS + "test_an_entry_in_words"
FOLLOWED = PROGRESS + "test_a_terminal_has_bars_while_the_log_goes_on_and_the_newest_in_words_at_its_end"
ANEW = PROGRESS + "test_another_claim_begins_anew_and_other_entries_change_nothing"

MUTANTS: tuple[Mutant, ...] = (
    mutant("bars-go-back", "a bar of Spark shrinks when more is known", "progress._risen",
           "filled=max(before.filled, now.filled)", "filled=now.filled", "W1",
           PROGRESS + "test_bars_of_spark_never_go_back", seeds=0),
    mutant("more-than-all", "more than all that is known makes a bar of no length", "progress._filled",
           "min(1.0, done / known)", "done / known % 1", "W1",
           PROGRESS + "test_almost_done_is_not_drawn_as_done", seeds=0),
    mutant("bars-of-another-claim", "a claim begins with the bars of the one before", "progress.followed",
           "    if before is None or before.token != token:\n", "    if before is None:\n", "W1", ANEW, seeds=0),
    mutant("raw-sentences", "what a task logs moves the cursor", "progress.sentence",
           'return harmless(said["text"])', 'return str(said["text"])', "W1", WORDS, seeds=0),
    mutant("raw-notes", "the note of a task's progress moves the cursor", "progress._read",
           "harmless(words[:NOTE_CHARS])", "words[:NOTE_CHARS]", "W1", WORDS, seeds=0),
    mutant("numbers-of-no-size", "what is no number is drawn as one", "progress._number",
           "or not 0 <= value < NUMBER_MAX", "", "W1", WORDS, seeds=0),
    mutant("times-of-no-year", "an entry with a time of no year breaks the list", "progress._time_in",
           " and 0 <= at_ms <= MOMENT_MS_MAX", "", "W1",
           PROGRESS + "test_times_are_local_and_what_is_none_is_left_out", seeds=0),
    mutant("progress-as-lines", "following a log on a terminal fills it with lines of progress", "log.draw",
           "            if progress.is_progress(entry.data):\n                newest = entry\n            else:\n",
           "            newest = entry\n            if True:\n", "W1",
           FOLLOWED, seeds=0),
)
