"""Mutants of what calls and results hold: what is written, how it is read again, what is shown of it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

RESULTS = "tests/calls/test_results.py::"
ARGUMENTS = "tests/calls/test_arguments.py::"
SIGHT = "tests/calls/test_sight.py::"
BACK = RESULTS + "test_a_value_comes_back_as_it_was"
AGAIN = RESULTS + "test_any_bytes_are_a_result_that_can_be_stored_again"
HOSTILE = RESULTS + "test_what_looks_tagged_and_is_not_well_formed_is_bytes"
THERE = ARGUMENTS + "test_an_argument_arrives_as_it_was_sent_in_every_place"
UNFIT = ARGUMENTS + "test_what_does_not_fit_is_refused_by_its_place"
LOST = ARGUMENTS + "test_what_would_arrive_as_something_else_is_refused_where_it_is_sent"
VERSIONS = ARGUMENTS + "test_only_what_annotations_have_a_part_in_is_written_as_version_2"
LINE = SIGHT + "test_a_line_is_short_and_printable_whatever_is_called"

MUTANTS: tuple[Mutant, ...] = (
    mutant("bytes-taken-for-tagged", "bytes that begin as a tagged result does are read as one",
           "results.encoded", " and not value.startswith(MARK):", ":", "W6", BACK, seeds=0),
    mutant("no-bytes-are-none", "empty bytes come back as nothing", "results.encoded",
           "if type(value) is bytes and value and", "if type(value) is bytes and", "W6", BACK, seeds=0),
    mutant("dollar-dict-unmarked", "a dict that looks like a marked value is read as that value",
           "results._marked_dict",
           "is_plain and not (len(value) == 1 and next(iter(value)).startswith(\"$\"))", "is_plain", "W6",
           BACK, seeds=0),
    mutant("damage-is-an-error", "a reader fails at a damaged result", "results.decode_result",
           "except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError):",
           "except ValueError:", "W6", HOSTILE, seeds=0),
    mutant("readers-go-deeper", "a reader takes a result that it cannot store again", "results._value_of",
           "    if depth > DEPTH_MAX:\n", "    if False:\n", "W6", HOSTILE, seeds=0),
    mutant("half-a-character", "a reader takes a text that it cannot store again", "results._value_of",
           "        found.encode()  # half of a pair, by an escape, is no text\n", "        pass\n", "W6", HOSTILE,
           seeds=0),
    mutant("result-unbounded", "a result of any size is written", "results.encode_result",
           "if len(stored) > DEFAULT_LIMITS.entry_bytes:", "if False:", "W6",
           RESULTS + "test_what_cannot_be_stored_is_refused_by_name", seeds=0),
    mutant("stored-twice", "a worker's result is tagged once more by its client", "results.encode_result",
           "    if type(value) is Stored:\n", "    if False:\n", "W6",
           RESULTS + "test_what_is_stored_once_is_not_stored_again", seeds=0),
    mutant("date-arrives-as-text", "an argument is sent though it will arrive as a text", "Arguments.encode",
           "                _check(plain, writer, where, parameter, shape)\n", "                pass\n", "W6",
           LOST, seeds=0),
    mutant("all-are-version-2", "workers of an older release run no call any more", "Arguments.encode",
           "        version = AS_IT_IS\n", "        version = BY_ANNOTATION\n", "W6", VERSIONS, seeds=0),
    mutant("version-1-is-changed", "what an older release sent is made into something else", "Arguments.rebuilt",
           "if self._is_plain or call.version == AS_IT_IS:", "if self._is_plain:", "W6",
           ARGUMENTS + "test_in_version_1_values_arrive_as_they_are", seeds=0),
    mutant("further-unannotated", "arguments behind the named ones arrive as text", "Arguments._places",
           "if index < len(self._in_order) else self._further", "if index < len(self._in_order) else (\"\", None)",
           "W6", THERE, seeds=0),
    mutant("strange-fields-dropped", "a field that a record does not have is taken", "shapes._dict_of",
           "    if strange:\n", "    if False:\n", "W6", UNFIT, seeds=0),
    mutant("union-by-guess", "a text that is no member of a union is taken", "shapes._union",
           "if plain and any(isinstance(value, kind) for kind in plain):", "if True:",
           "W6", UNFIT, seeds=0),
    mutant("line-moves-the-cursor", "a call in a list moves the cursor of who looks", "sight.escaped",
           "return text if text.isprintable() else", "return text if True else", "W6", LINE, seeds=0),
    mutant("line-without-end", "a call of a MiB is shown whole", "sight.line_of",
           "        if len(made) > most:\n", "        if False:\n", "W6", LINE, seeds=0),
    mutant("other-functions-listed", "a list of a function's calls has others", "Filter.suits",
           "function_of(task.payload) == self.function", "True", "W6",
           "tests/client/test_verbs.py::test_a_story[memory-calls_are_listed_by_their_function]", seeds=0),
    mutant("top-looks-for-ever", "top looks for what runs among all tasks there are", "running.running",
           "for _ in range(PAGES):", "for _ in range(1_000):", "W6",
           "tests/cli/test_top.py::test_a_search_without_end_is_not_made", seeds=0),
    mutant("attempts-by-claims", "a task that was given back counts as tried", "TaskContext.attempt_said",
           "self._task.attempts + 1", "self.attempt", "W6",
           "tests/worker/test_context.py::test_a_line_of_the_log_counts_attempts_not_claims", seeds=0),
)
