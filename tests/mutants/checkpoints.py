"""Mutants of what is promised of checkpoints: which one stands, who sets one, and when it is written."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

LAWS = "tests/crdt/test_laws.py::"
NEWER = LAWS + "test_of_two_checkpoints_the_larger_record_is_that_of_the_newer"
COPIES = "tests/partition/test_checkpoints.py::"
OVER = COPIES + "test_a_claim_that_is_over_for_good_is_told_so"
KNOWN = COPIES + "test_what_is_here_is_known_though_its_claim_be_over_and_a_number_is_bound_to_its_data"
ORDERS = COPIES + "test_copies_that_hear_the_same_in_any_order_are_equal_and_only_news_changes_the_tree"
PEERS = COPIES + "test_peers_bring_none_that_is_none_or_of_an_epoch_that_nobody_has_come_to"
NODES = "tests/node/test_checkpoints.py::"
LATE = "tests/wire/test_late_fields.py::"
WORKERS = "tests/worker/test_checkpoints.py::"
REFUSED = WORKERS + "test_a_task_whose_checkpoint_is_refused_is_completed_all_the_same"
OVERTAKEN = script("who was overtaken by another claim sets no checkpoint and adds no entry beside one")

MUTANTS: tuple[Mutant, ...] = (
    mutant("older-checkpoint-stands", "of two checkpoints the older stands", "checkpoint.newer",
           "max(one, other)", "min(one, other)", "V2", NEWER),
    mutant("checkpoint-by-time", "a clock that is ahead decides which checkpoint stands", "Checkpoint.encode",
           "_HEAD.pack(self.token, self.number, self.at_ms)", "_HEAD.pack(self.token, self.at_ms, self.number)",
           "V2", NEWER, seeds=0),
    mutant("zombie-sets-checkpoint", "a claim that was overtaken sets a checkpoint", "checkpoints.judged",
           "open_claim(history, said.token, now_ms) is not None", "said.token in history.claims.entries", "C23",
           OVER, OVERTAKEN),
    mutant("doubt-is-a-no", "a copy that may be behind says for good that a claim is over", "checkpoints.judged",
           "return Word.OVER if is_over else Word.UNSURE", "return Word.OVER", "A2",
           COPIES + "test_a_claims_word_is_taken_while_it_is_open_here", seeds=0),
    mutant("number-not-bound", "a checkpoint's number stands for two contents", "checkpoints.judged",
           "Word.KNOWN if known.data == said.data else Word.BOUND", "Word.KNOWN", "D13", KNOWN, seeds=0),
    mutant("repeat-is-fenced", "a checkpoint that was stored is refused when it is said again",
           "checkpoints.judged", "if record is not None:", "if False:", "A1", KNOWN, OVERTAKEN, seeds=0),
    mutant("checkpoint-goes-back", "an older checkpoint that comes late replaces a newer one",
           "checkpoints.join_checkpoint", "known is not None and known >= record", "known == record", "V3",
           ORDERS),
    mutant("checkpoint-of-the-collected", "a checkpoint that comes late revives a collected task",
           "checkpoints.join_checkpoint", " or replica.gone([task_id])", "", "D10",
           COPIES + "test_it_goes_with_its_task_and_does_not_come_back", seeds=0),
    mutant("checkpoint-stays-in-tree", "a checkpoint that was replaced still counts into the tree",
           "checkpoints.join_checkpoint", "[] if known is None else [digests_of([key], [known])]", "[]", "V2",
           ORDERS),
    mutant("entry-beside-a-fenced-one", "an update whose checkpoint is refused leaves its entries",
           "Keeper._append", "        if word in (Word.OVER, Word.UNSURE):\n",
           "        vnode.replica.append(message.id, message.token, message.seq, entries)\n"
           "        if word in (Word.OVER, Word.UNSURE):\n",
           "A2", WORKERS + "test_a_zombie_sets_none_and_a_claim_counts_by_itself", seeds=0),
    mutant("fenced-copy-counts", "a copy that refused a checkpoint is counted", "Keeper._append",
           "self._ownership.without(unkept, [message.id]), cohorts,\n                          fenced=fenced)",
           "unkept, cohorts, fenced=fenced)", "D7", OVERTAKEN),
    mutant("fenced-is-definite", "a refusal is definite although a copy may have stored the checkpoint",
           "WriteOperation._say_what_is_missing", '"fenced", _fenced(list(self._fenced)), is_definite)',
           '"fenced", _fenced(list(self._fenced)), True)', "A2",
           script("a copy that missed a later claim takes nothing from the one before"), seeds=0),
    mutant("checkpoint-on-one-copy", "w=1 is enough for a checkpoint, which the next claim then may not see",
           "WriteRequests._append", "needs_majority=has_checkpoint", "needs_majority=False", "D7",
           script("a majority keeps it even where one copy would do")),
    mutant("checkpoint-under-old-rules", "a node of an older release gets a task that it takes for malformed",
           "WriteRequests._append", "has_checkpoint and view.protocol < CHECKPOINT_PROTOCOL", "False", "A2",
           NODES + "test_a_cluster_with_nodes_that_may_not_know_of_checkpoints_takes_none_and_no_entry_beside_one",
           seeds=0),
    mutant("checkpoint-lost-in-a-join", "a reader, or a node that hands off, joins two checkpoints to the older",
           "outcomes.join_entries", "joined[SLOT] = newer(mine[SLOT], theirs[SLOT])", "joined[SLOT] = mine[SLOT]",
           "A3", COPIES + "test_a_log_that_is_cut_and_a_reader_with_less_leave_it"),
    mutant("checkpoint-of-no-epoch", "a peer's checkpoint of a token that nobody granted stands for ever",
           "rows._check_checkpoint", "if token > replica.token_max:", "if False:", "D2", PEERS, seeds=0),
    mutant("checkpoint-lost-on-the-wire", "a checkpoint is left off in silence for a receiver that knows of none",
           "schema.dump_of", "_dump_unless(of.__name__, vital, dump, version) if vital else dump", "dump", "A2",
           LATE + "test_a_checkpoint_is_not_lost_on_the_way_to_who_does_not_know_of_any", seeds=0),
    mutant("checkpoint-shown-to-old-readers", "a client of an older release cannot read a task with a checkpoint",
           "schema.dump_of", 'getattr(of, "grew_with", 0) > version', "False", "A3",
           LATE + "test_readers_of_an_older_protocol_are_shown_a_task_without_its_checkpoint", seeds=0),
    mutant("last-checkpoint-waits", "a claim ends without its last checkpoint", "Journal._due_mark",
           "self._is_closed or now_s >= self._next_mark_s", "now_s >= self._next_mark_s", "W1",
           WORKERS + "test_the_last_one_is_written_when_the_log_is_closed_and_none_behind_it", seeds=0),
    mutant("checkpoint-each-time", "a task that says its checkpoint all the time is written all the time",
           "Journal._due_mark", "self._is_closed or now_s >= self._next_mark_s", "True", "W1",
           WORKERS + "test_only_the_newest_is_written_and_once_in_a_flush_with_the_entries", seeds=0),
    mutant("checkpoint-numbered-once", "a claim's second checkpoint has the number of the first",
           "Journal._due_mark", "        self._mark_number += 1\n", "", "W1",
           WORKERS + "test_only_the_newest_is_written_and_once_in_a_flush_with_the_entries", seeds=0),
    mutant("checkpoint-after-the-end", "what a function says after its claim was concluded is written",
           "Journal.checkpoint", "if self._takes_marks and not self._is_closed:", "if self._takes_marks:", "W1",
           WORKERS + "test_the_last_one_is_written_when_the_log_is_closed_and_none_behind_it", seeds=0),
    mutant("refused-checkpoint-again", "a checkpoint that was refused is tried again for ever",
           "Journal.forgo_checkpoint", "        self._takes_marks = False\n", "", "W1",
           WORKERS + "test_one_that_is_refused_leaves_the_log_and_none_follows", seeds=0),
    mutant("refused-checkpoint-fails-a-task", "a task fails for its checkpoint, where it would only begin anew",
           "Scribe._flush", 'batch.checkpoint is not None and (error.code == "fenced" or not is_passing(error))',
           "False", "W1", REFUSED, seeds=0),
    mutant("overtaken-holds-up-others", "a claim that was overtaken keeps its neighbours from their ends",
           "Scribe._flush", 'error.code == "fenced" or not is_passing(error)', "not is_passing(error)",
           "W1", REFUSED, seeds=0),
    mutant("resumed-from-itself", "a claim takes its own checkpoint for that of an earlier one",
           "context._value_of", "checkpoint.token < token", "checkpoint.token <= token", "W1",
           WORKERS + "test_the_next_claim_is_given_what_the_one_before_said_and_nothing_of_its_own", seeds=0),
    mutant("resumed-late", "a task that sets its checkpoint first is told of none", "TaskContext.checkpoint",
           "        self._has_marked = True\n", "", "W1",
           WORKERS + "test_it_is_asked_for_before_its_place_is_taken", seeds=0),
)
