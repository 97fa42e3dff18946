"""Mutants of what keeps many partitions and queues cheap: what is marked, remembered, summed, told in parts."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

TALLY, FILING, GOSSIPING = "partition/data/tally.py", "partition/data/filing.py", "node/leadership/gossip.py"
COUNTING = "node/reads/counts.py"
COUNTS = "tests/node/test_counting.py::"
IN_TURNS = (COUNTS
            + "test_all_queues_with_work_are_told_of_in_turns_when_they_are_too_many_for_one_message")
FEW_HEADS = COUNTS + "test_of_a_queue_in_many_partitions_few_are_looked_at_and_it_is_told_of_all_the_same"
BY_COPIES = COUNTS + "test_what_nobody_leads_is_counted_by_the_copy_that_knows_the_most"
MARKS = "tests/node/test_marks.py::"
TOLD = MARKS + "test_every_change_is_told_once_for_each_who_listens"
BURIED = "tests/node/test_waiting.py::test_what_expired_while_nobody_led_is_buried_by_who_comes_to_lead"
VNODE, ELECTION = "partition/vnode.py", "partition/leadership/election.py"
STEWARD, LAPSES, NODE = "node/leadership/elections.py", "node/claims/lapses.py", "node/node.py"

CHANGE = "            self._bulletin.change(self.partition)\n"


def _unmarked(name: str, rule: str, file: str, text: str, test: str = TOLD, instead: str = "") -> Mutant:
    """A change of which nobody is told: ``text`` is the line, the last of it without the mark."""
    return mutant(f"unmarked-{name}", rule, file, text, instead, "A3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    mutant("moves-beyond-the-room", "a node says more of data on its way than a client can read",
           "node/leadership/status.py",
           "partitions, within(moves, PARTITIONS_MAX),\n", "partitions, moves,\n", "A3",
           "tests/node/test_bounds.py::"
           "test_all_that_nodes_say_at_the_most_partitions_and_settings_can_be_read", seeds=0),
    mutant("moves-left-out-quietly", "nobody is told that there are more partitions on their way than listed",
           "node/leadership/status.py",
           "        if not kept[kind] and left_out > 0:\n", "        if False:\n", "A3",
           "tests/node/test_bounds.py::"
           "test_rows_beyond_the_room_are_counted_in_the_first_reason_of_their_kind", seeds=0),
    mutant("stock-misses-arrivals", "nobody hears in which partitions tasks began to wait", TALLY,
           "            self._bulletin.stock.add(queue, self._partition)\n", "", "A3",
           COUNTS + "test_a_claim_looks_only_where_tasks_of_its_queue_may_wait"),
    mutant("stock-not-taken", "after a start it is not known where tasks wait", FILING,
           "        self._take_stock()\n", "", "A3",
           COUNTS + "test_after_a_start_it_is_known_where_tasks_wait"),
    mutant("stock-keeps-what-is-gone", "claims look for ever where tasks once waited", FILING,
           "        if not rows and after is None:\n", "        if False:\n", "A3",
           COUNTS + "test_a_claim_looks_only_where_tasks_of_its_queue_may_wait", seeds=0),
    mutant("empty-counts-stay", "a queue of which nothing is left keeps its row", TALLY,
           "            if counts == _NONE:\n", "            if False:\n", "A3",
           COUNTS + "test_a_queue_of_which_nothing_is_left_has_no_row"),
    mutant("first-names-always", "the same first names are told of each time, whatever gained work", GOSSIPING,
           "            names |= dict.fromkeys(map(bytes.decode, stocked))\n",
           "            names = dict.fromkeys(map(bytes.decode, self._node.bulletin.stock.queues(b\"\", bits)))\n",
           "L1", COUNTS + "test_a_queue_behind_a_thousand_others_of_a_partition_wakes_who_waits_for_it"),
    mutant("first-queues-only", "the same queues are told of each time", GOSSIPING,
           "            self._next_queue = others[0].encode() if others else b\"\"\n", "            pass\n", "A3",
           IN_TURNS, seeds=0),
    mutant("all-heads-of-a-queue", "a queue with tasks in all partitions makes a gossip as dear as there are",
           GOSSIPING, "stocked[: timing.gossip_heads - looked]", "stocked", "A3", FEW_HEADS, seeds=0),
    mutant("cut-heads-say-nothing", "a queue is not told of where the first partitions looked at have nothing",
           GOSSIPING, "            elif len(seen) < len(stocked):\n                others.append(name)\n", "",
           "A3", FEW_HEADS, seeds=0),
    mutant("news-in-its-turn", "a queue that gained work is told of when its turn comes", GOSSIPING,
           "            self._fresh[queue] = None\n", "            pass\n", "A3",
           COUNTS + "test_what_gained_work_just_now_is_told_of_first", seeds=0),
    mutant("two-leaders-sum", "what two say they lead counts twice", COUNTING,
           "if all(leaders[partition] == 1 for partition in led[name])}", "}", "A6",
           COUNTS + "test_a_partition_that_two_say_they_lead_counts_once", seeds=0),
    mutant("led-by-nobody-not-counted", "only what is led counts", COUNTING,
           "        if self._rest:\n            self._ask(now_ms)\n",
           "        if False:\n            self._ask(now_ms)\n", "A6", BY_COPIES, seeds=0),
    mutant("any-copy-counts", "the last copy that answers is counted", COUNTING,
           "                if partition not in best or rank > best[partition][:2]:\n",
           "                if True:\n", "A6", BY_COPIES, seeds=0),
    mutant("pages-of-the-longest", "the next page begins behind the longest", COUNTING,
           "        upto = min(ends, default=\"\")\n", "        upto = max(ends, default=\"\")\n", "A6",
           COUNTS + "test_pages_of_many_queues_are_joined", seeds=0),
    mutant("count-of-the-first-page", "counts end with the first page", COUNTING,
           "        elif upto:\n", "        elif False:\n", "A6",
           COUNTS + "test_pages_of_many_queues_are_joined", seeds=0),
    _unmarked("leader", "nobody is told who leads", VNODE,
              "            self.leader, self.leader_epoch = leader, epoch\n" + CHANGE,
              instead="            self.leader, self.leader_epoch = leader, epoch\n"),
    _unmarked("no-leader", "nobody is told that a leader leads no more", VNODE,
              "        if self.leader == leader:\n            self.leader = \"\"\n"
              "            self._bulletin.change(self.partition)\n",
              instead="        if self.leader == leader:\n            self.leader = \"\"\n"),
    _unmarked("voters", "nobody is told who votes", VNODE,
              "            save_standing(self.store, self.partition, standing)\n"
              "            self._bulletin.change(self.partition)\n",
              instead="            save_standing(self.store, self.partition, standing)\n"),
    _unmarked("promise", "nobody is told of a promise", VNODE,
              "            self._bulletin.change(self.partition)\n            if candidate != self.me.name",
              instead="            if candidate != self.me.name"),
    _unmarked("doubt", "nobody is told that a memory is in doubt", VNODE,
              "        self.replica.watermark.is_trusted = not reason\n" + CHANGE[4:],
              instead="        self.replica.watermark.is_trusted = not reason\n"),
    _unmarked("phase", "nobody is told how a candidacy goes", ELECTION,
              "        self.phase = phase\n        self.changed(self.partition)\n",
              instead="        self.phase = phase\n"),
    _unmarked("document", "nobody is told that a leader wrote its document", ELECTION,
              "        self.document, self.version = document, version\n        self.changed(self.partition)\n",
              instead="        self.document, self.version = document, version\n"),
    _unmarked("outcome", "nobody is told how a write of the document ended", NODE,
              "        self.bulletin.change(event.partition)\n        self._horizons.wake(now_ms)\n\n",
              MARKS + "test_a_write_that_lost_is_made_again_by_what_was_written",
              "        self._horizons.wake(now_ms)\n\n"),
    _unmarked("failure", "nobody is told that a document could not be read", NODE,
              "on_read_failed(now_ms)\n                self.bulletin.change(event.partition)\n",
              MARKS + "test_a_write_that_lost_is_made_again_by_what_was_written", "on_read_failed(now_ms)\n"),
    _unmarked("session", "nothing is looked at when the registry is back", STEWARD,
              "        if could != self._could:\n", MARKS + "test_when_the_registry_is_back_candidates_stand",
              "        if False:\n"),
    _unmarked("silence", "nothing is looked at when a node falls silent", STEWARD,
              "        if heard != self._heard:\n", MARKS + "test_a_leader_that_falls_silent_is_stood_against",
              "        if False:\n"),
    _unmarked("placement", "nothing is looked at when owners change", NODE,
              "if owners != old[partition]])\n", MARKS + "test_data_moves_to_a_node_that_came", "if False])\n"),
    _unmarked("turn", "who may not move while others do is not looked at again", STEWARD,
              "            self._agenda.note(vnode.partition, now_ms)  # when others are through\n",
              MARKS + "test_data_moves_to_a_node_that_came"),
    _unmarked("tokens", "a leader whose tokens are spent is not looked at", VNODE,
              "        if self.is_spent:\n            self._bulletin.change(self.partition)\n",
              MARKS + "test_a_leader_that_must_wait_before_it_stands_again_does_so_then"),
    _unmarked("pause", "a leader that must wait before it moves again is not looked at", STEWARD,
              "        if self._node.candidacy(vnode).is_moving:\n",
              MARKS + "test_a_leader_that_must_wait_before_it_stands_again_does_so_then", "        if False:\n"),
    _unmarked("data", "nobody hears of data in a wrong place", STEWARD,
              "            if not vnode.takes_writes(self._node.owners(partition)):\n",
              MARKS + "test_what_comes_to_a_node_that_owns_nothing_of_it_is_handed_off",
              "            if False:\n"),
    _unmarked("due", "what comes due with time is not looked at", STEWARD,
              "                self._agenda.note(partition, self._see_to_leader(now_ms, vnode))\n",
              MARKS + "test_a_horizon_is_moved_before_it_is_near",
              "                self._see_to_leader(now_ms, vnode)\n"),
    _unmarked("lapse", "nobody looks at what lapses", LAPSES,
              "            self._lapses.note(vnode.partition, filing.next_lapse_ms)\n",
              MARKS + "test_tasks_that_expire_and_leases_that_end_are_seen_to", "            pass\n"),
    _unmarked("expiry", "nobody looks at what expires", LAPSES,
              "self._expiries.note(vnode.partition, max(filing.next_expiry_ms, self._next_burial_ms))\n",
              MARKS + "test_tasks_that_expire_and_leases_that_end_are_seen_to", "pass\n"),
    _unmarked("news", "what changed is told when its turn comes", GOSSIPING,
              "                self._news[partition] = TOLD_TIMES\n",
              MARKS + "test_what_changed_is_told_before_its_turn_comes", "                pass\n"),
    mutant("gossip-speaks-for-all", "what a gossip does not speak of is taken for not led", GOSSIPING,
           "    if not spans:\n", "    if True:\n", "A3",
           MARKS + "test_what_one_gossip_does_not_speak_of_stays_known", seeds=0),
    mutant("spans-of-anything", "any numbers are taken for spans", GOSSIPING,
           "    if len(spans) % 2 or ends != sorted(ends) or ends[-1] > count:\n", "    if False:\n", "X1",
           MARKS + "test_spans_that_are_none_are_malformed", seeds=0),
    mutant("clocks-heard-and-not-judged", "what is heard of a clock waits for the next round of questions",
           "node/leadership/clocks.py", "        self._is_news = True\n        self._plan()\n",
           "        self._is_news = True\n", "A2",
           "tests/node/test_timekeeping.py::"
           "test_news_of_clocks_is_judged_soon_and_not_in_the_next_round", seeds=0),
    mutant("rounds-of-comparing-forgotten", "copies that nobody missed are never compared",
           "node/copies/exchanges.py",
           "        self.rests_until_ms = min(self._next_round_ms, self._next_draft_ms)\n",
           "        self.rests_until_ms = self._next_draft_ms + (1 << 50)\n", "D6",
           "tests/node/test_comparing.py::"
           "test_a_node_compares_each_partition_with_another_owner_in_each_round", seeds=0),
    mutant("questions-put-off-for-ever", "who waits for others asks again only when its walk comes by",
           "node/dependencies/dependent_side.py", "            self.due_ms = min(self.due_ms, due_ms)\n",
           "            pass\n", "C17", "tests/node/test_dependencies.py", seeds=0),
    mutant("times-of-the-newly-led", "a new leader buries nothing until something else happens to the partition",
           LAPSES,
           "            if vnode.is_leading:\n                self._note(vnode)\n        self.risen.clear()",
           "            pass\n        self.risen.clear()", "C21", BURIED, seeds=0),
    mutant("times-noted-with-work-only", "who comes to lead notes no times while nothing is filed",
           NODE,
           "if self.bulletin.touched or self._lapses.risen:\n", "if self.bulletin.touched:\n", "C21",
           BURIED, seeds=0),
)
