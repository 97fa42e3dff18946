"""Mutants of a task's options: the form of its body, what the doors check, and what clients make of them."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

BODY, PRELUDE, RULES, ASKING = "model/body.py", "model/prelude.py", "wire/rules.py", "node/client_door.py"
OPTIONS, PRELUDES, CLAIMS = "client/options.py", "client/preludes.py", "client/claims.py"
BODIES = "tests/model/test_body.py::"
WIRE = "tests/wire/test_malformed.py::test_what_is_malformed_is_refused_by_field"
DOOR = "tests/node/test_asking.py::"
REFUSED = DOOR + "test_it_is_refused_by_name_and_nothing_is_sent_or_stored"
CANONICAL = BODIES + "test_a_header_that_is_none_is_refused_by_field"
SENT = "tests/client/test_options.py"
VERBS = "tests/client/test_verbs.py::"
CLAIMS_TEST = "tests/client/test_claims.py::test_each_claim_is_shown_with_its_own_header"

MUTANTS: tuple[Mutant, ...] = (
    mutant("later-flags-taken", "an option of a later version is taken and forgotten", BODY,
           "    if not flags or flags & ~_KNOWN:\n", "    if not flags:\n", "D3",
           BODIES + "test_a_flag_of_a_later_version_is_refused", seeds=0),
    mutant("default-retry-written-out", "one body has two records", BODY,
           "    if retry == DEFAULT_RETRY:\n", "    if False:\n", "D3", CANONICAL, seeds=0),
    mutant("header-keys-in-any-order", "one set of headers has several records", BODY,
           "    if any(key >= following for (key, _), (following, _) in pairwise(headers)):\n", "    if False:\n",
           "D3", CANONICAL, seeds=0),
    mutant("headers-without-a-bound", "headers are longer than a batch allows", BODY,
           "    if len(section) > HEADERS_BYTES_MAX:\n", "    if False:\n", "D3", CANONICAL, seeds=0),
    mutant("header-length-not-checked", "a record ends before its header", BODY,
           "    if len(record) < end:\n", "    if False:\n", "D3",
           BODIES + "test_a_header_that_ends_before_its_length_is_refused", seeds=0),
    mutant("retry-numbers-unchecked", "a retry that no machine can follow is stored", BODY,
           "    retry.check()\n", "", "D3", WIRE, seeds=0),
    mutant("expiry-before-waking", "the two times change places", PRELUDE,
           "(self.not_before_ms, self.expires_ms) if time_ms]",
           "(self.expires_ms, self.not_before_ms) if time_ms]",
           "D3", BODIES + "test_a_record_with_all_options_is_laid_out_as_the_format_says", seeds=0),
    mutant("preludes-unchecked-at-the-door", "a payload without its times is stored", RULES,
           "    if prelude:\n        _check_preludes(", "    if False:\n        _check_preludes(", "D3", WIRE,
           seeds=0),
    mutant("peers-preludes-unchecked", "a peer's body without its times is stored", "partition/data/rows.py",
           "Body.decode(record)\n", "Body.decode(bytes([0, 5 + record[6]]) + record[2 : 7 + record[6]])\n", "D3",
           "tests/partition/test_exchange.py::test_rows_of_a_stranger_are_checked", seeds=0),
    mutant("peers-ids-unchecked", "a peer's body of a key is stored under an id of no lane",
           "partition/data/rows.py",
           "            if problem:\n                raise ValueError(problem)\n", "", "D3",
           "tests/partition/test_exchange.py::test_rows_of_a_stranger_are_checked", seeds=0),
    mutant("dependencies-in-any-order", "one set of dependencies has several records", PRELUDE,
           "    if any(dep >= following for dep, following in pairwise(deps)):\n", "    if False:\n", "D3",
           BODIES + "test_a_prelude_that_is_none_is_refused_by_field", seeds=0),
    mutant("dependencies-without-a-bound", "a task waits for more than the machines are made for", PRELUDE,
           "not 1 <= count <= DEPS_MAX", "not count", "D3",
           BODIES + "test_a_prelude_that_is_none_is_refused_by_field", seeds=0),
    mutant("policy-without-dependencies", "one body has two records", BODY,
           "        if bool(flags & section) != bool(flags & prelude):\n", "        if False:\n", "D3", CANONICAL,
           seeds=0),
    mutant("waits-for-itself", "a task that can never be claimed is taken", PRELUDE,
           "        if task_id in self.deps:\n", "        if False:\n", "D3",
           BODIES + "test_a_task_that_waits_for_itself_is_found", seeds=0),
    mutant("lane-not-in-id", "a task with a key is taken under an id of another lane", PRELUDE,
           "        if self.key and ids.route_of(", "        if False and ids.route_of(", "D3",
           BODIES + "test_an_id_that_does_not_fit_its_task_is_found", seeds=0),
    mutant("slot-not-in-id", "a unique name is one task for ever", "model/ids.py",
           "_hash(queue, name, str(slot_ms), key)", "_hash(queue, name, key)", "C18",
           "tests/model/test_ids.py::test_a_unique_name_is_one_id_in_each_window", seeds=0),
    mutant("plain-tasks-in-lanes", "a task without a key is taken under an id of a lane", ASKING,
           "            elif ids.any_laned(batch.ids):\n", "            elif False:\n", "A2", REFUSED, seeds=0),
    mutant("times-measured-as-payload", "a payload within the limit is refused for its times", ASKING,
           "        payloads.append(rest[size:])\n", "        payloads.append(rest)\n", "A2",
           DOOR + "test_times_that_make_sense_are_taken_and_are_not_measured", seeds=0),
    mutant("payloads-with-times-unmeasured", "a payload beyond the limit is taken with a time", ASKING,
           "        payloads.append(rest[size:])\n", "        payloads.append(b\"\")\n", "A2", REFUSED, seeds=0),
    mutant("expiry-first", "a task that nobody can ever claim is taken", ASKING,
           "    if 0 < expires_ms <= not_before_ms:\n", "    if 0 < expires_ms < not_before_ms:\n", "A2",
           REFUSED, seeds=0),
    mutant("no-latest-time", "a time in another unit is taken", ASKING,
           "    if max(not_before_ms, expires_ms) > now_ms + AHEAD_MS_MAX:\n", "    if False:\n", "A2",
           REFUSED, seeds=0),
    mutant("one-batch-for-all", "tasks with and without times share a header", OPTIONS,
           "    if heads.count(heads[0]) == len(heads):\n", "    if True:\n", "D3", SENT, seeds=0),
    mutant("header-order-told", "the order in which headers are given makes other content", OPTIONS,
           "    pairs = tuple(sorted(headers.items()))\n", "    pairs = tuple(headers.items())\n", "D3", SENT,
           seeds=0),
    mutant("zones-guessed", "a time without a zone is taken for the local one", PRELUDES,
           "    if isinstance(given, datetime) and given.utcoffset() is None:\n", "    if False:\n", "A2",
           VERBS + "test_bad_input_is_refused_by_name_and_changes_nothing", seeds=0),
    mutant("times-shown-as-payload", "a worker gets the times in front of its payload", CLAIMS,
           "body[size + Prelude.decode(header.prelude, body[size:])[1]:]", "body[size:]", "A2",
           VERBS + "test_a_story", seeds=0),
    mutant("claims-of-one-header", "a worker gets the queue and priority of another task of its claim", CLAIMS,
           " and bodies[end].startswith(head):", ":", "A2", CLAIMS_TEST, seeds=0),
    mutant("headers-looked-at-once", "claims behind those of one header are lost", CLAIMS,
           "    while (start := len(claims)) < len(task_ids):\n", "    if not (start := len(claims)):\n", "A2",
           CLAIMS_TEST, seeds=0),
    mutant("names-of-any-length-kept", "who sends long texts for names fills memory with them", "wire/schema.py",
           " and len(value) <= LONGEST_NAME and (fits", " and (fits", "A3",
           "tests/wire/test_codec.py::test_what_is_too_long_for_a_name_is_not_kept", seeds=0),
)
