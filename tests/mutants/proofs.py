"""Mutants of the proofs of claims: who is given one, what is asked for without, and what becomes of it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

PROVING, ASKING, HOLDING = "node/knowledge/notary.py", "node/client_door.py", "client/holding.py"
PROOFS = "tests/node/test_proving.py::"
DRAWN = PROOFS + "test_a_key_is_drawn_while_nodes_run_and_claims_from_before_count_for_a_while"
NEVER = PROOFS + "test_what_was_never_granted_does_nothing"
AGAIN = PROOFS + "test_an_answer_is_known_again_as_a_whole_and_nothing_else_is"
CHECK = "        self._check_claims(now_ms, message.ids, message.tokens, message.proofs)\n"

MUTANTS: tuple[Mutant, ...] = (
    mutant("complete-by-anybody", "a completion is stored under a token that nobody was granted", ASKING,
           CHECK + '        self._check_entries("results", message.results)\n',
           '        self._check_entries("results", message.results)\n', "C22"),
    mutant("append-by-anybody", "an entry is stored under a token that nobody was granted", ASKING,
           "        self._check_claims(now_ms, message.id, columns.pack_u64([message.token]), message.proofs)\n",
           "", "C22"),
    mutant("conclude-by-anybody", "who only reads ends the claims of others", ASKING,
           CHECK + '        self._check_entries("errors", message.errors)\n',
           '        self._check_entries("errors", message.errors)\n', "C22", NEVER + "[fail]"),
    mutant("renew-by-anybody", "who only reads renews the claims of others", ASKING,
           CHECK + "        self._group(message.ids)\n        return RenewOperation",
           "        self._group(message.ids)\n        return RenewOperation", "C22", NEVER + "[renew]"),
    mutant("proof-of-the-token-alone", "one claim's proof is that of all tasks", "model/proofs.py",
           "map(key.__add__, task_ids)", "map(key.__add__, map(bytes, [0] * len(task_ids)))", "C22", NEVER),
    mutant("proof-of-the-id-alone", "one claim's proof is that of all later ones", "model/proofs.py",
           "map(add, map(key.__add__, task_ids), tokens)", "map(key.__add__, task_ids)", "C22", NEVER),
    mutant("known-without-proofs", "whose claims were given lately needs no proofs of them", PROVING,
           '"big"), *claims)), digest_size=16)', '"big"), *claims[:2])), digest_size=16)', "C22", AGAIN, seeds=0),
    mutant("answers-kept-for-ever", "every answer of claims takes memory for ever", PROVING,
           "                del self._given[next(iter(self._given))]\n", "                pass\n", "A3", AGAIN,
           seeds=0),
    mutant("unproven-taken", "a claim without a proof is taken for granted", PROVING,
           "excused = b\"\" if self.demands(now_ms) else NO_PROOF", "excused = NO_PROOF", "C22", NEVER),
    mutant("no-proofs-no-check", "a request without proofs is not looked at", PROVING,
           "if not self._key or not (proofs or self.demands(now_ms)):", "if not self._key or not proofs:",
           "C22", NEVER),
    mutant("proofs-demanded-at-once", "claims from before the key are lost the moment it is drawn", PROVING,
           "return bool(self._key) and now_ms >= self._from_ms", "return bool(self._key)", "C22",
           DRAWN, seeds=0),
    mutant("proofs-never-demanded", "a key that is drawn changes nothing", PROVING,
           "return bool(self._key) and now_ms >= self._from_ms", "return bool(self._key) and not self._from_ms",
           "C22", DRAWN, seeds=0),
    mutant("proofs-between-nodes", "nodes of the release before are sent a field that they cannot read", ASKING,
           "eras=self._eras(partitions), proofs=b\"\")", "eras=self._eras(partitions))", "C22",
           PROOFS + "test_proofs_go_to_who_claims_and_to_nobody_else", seeds=0),
    mutant("proofs-to-old-clients", "a client of the release before is sent a field that it cannot read",
           "node/claims/claim.py",
           "if self.wish.takes_proofs else granted.batches", "if True else granted.batches",
           "C22", DRAWN, seeds=0),
    mutant("old-client-holds", "a client that can complete nothing is given claims", ASKING,
           "if self._node.notary.demands(now_ms) and not message.takes_proofs:", "if False:", "C22",
           PROOFS + "test_a_client_that_keeps_no_proofs_is_told_so_before_it_holds_anything", seeds=0),
    mutant("late-fields-always-travel", "the release before is sent what it does not know", "wire/schema.py",
           "            if values[-1] != default:\n                break\n            values.pop()\n",
           "            if values[-1] != default:\n                break\n", "C22",
           "tests/wire/test_late_fields.py", seeds=0),
    mutant("late-fields-wanted", "the release before is not understood", "wire/schema.py",
           "if not self.least <= count <= len(self.names):", "if count != len(self.names):", "C22",
           "tests/wire/test_late_fields.py", seeds=0),
    mutant("stray-claims-unproven", "claims that nobody heard of cannot be given back", HOLDING,
           "proofs=b\"\".join(batch.proofs for batch in answer.batches)))", "proofs=b\"\"))", "C22",
           "tests/client/test_leases.py", seeds=0),
    mutant("archive-stops-at-one-task", "a task that cannot be written keeps all others from the archive",
           "archive/archiver.py", "                if half:\n", "                if False:\n", "D5",
           "tests/archive/test_archiver.py", seeds=0),
    mutant("archive-confirms-the-unwritten", "a task that could not be written is deleted", "archive/archiver.py",
           "                      if not any(task.id in refused for task in page.tasks))\n",
           "                      if page is not None or refused)\n", "D5", "tests/archive/test_archiver.py",
           seeds=0),
)
