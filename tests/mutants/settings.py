"""Mutants of settings: which row stands, who must know it, what a pause stops; and of the router of claims."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SETTINGS, CONFIGURING, ROUTING = "node/knowledge/settings.py", "node/writes/setting.py", "node/knowledge/heads.py"
REGISTERS = "tests/node/test_settings.py::"
CLUSTER = "tests/node/test_configuring.py::"
ROUTES = "tests/node/test_routing.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("pause-ignored", "a paused queue is granted from", SETTINGS,
           "        return queue in self._paused\n", "        return False\n", "C12",
           CLUSTER + "test_nothing_is_granted_of_a_paused_queue_and_all_when_it_is_resumed"),
    mutant("pause-only-where-asked", "a leader leaves it to coordinators to know of a pause",
           "node/claims/grant.py",
           "        if self.host.settings.is_paused(self.queue):\n", "        if False:\n", "C12",
           CLUSTER + "test_a_leader_that_knows_of_the_pause_grants_nothing_to_a_coordinator_that_does_not"),
    mutant("setting-older-wins", "the row that comes last stands", SETTINGS,
           "            if known is None or rank_of(row) > rank_of(known):\n",
           "            if row != known:\n", "V3",
           REGISTERS + "test_an_older_row_changes_nothing"),
    mutant("setting-first-wins", "the row that comes first stands", SETTINGS,
           "            if known is None or rank_of(row) > rank_of(known):\n",
           "            if known is None:\n", "A3",
           REGISTERS + "test_rows_stand_whatever_the_order_and_however_often_they_come"),
    mutant("setting-of-a-minority", "a change is acknowledged without a majority", CONFIGURING,
           "        if has_majority(self.nodes, self._have):\n", "        if self._have:\n", "D7",
           CLUSTER + "test_a_minority_is_no_acknowledgement_and_no_refusal_either"),
    mutant("setting-acked-before-commit", "a copy of a setting is acknowledged before its fsync",
           "model/messages/settings.py",
           "the nodes ``missing`` have not said so (yet).\"\"\"\n\n",
           "the nodes ``missing`` have not said so (yet).\"\"\"\n\n    is_promise = False\n", "D7"),
    mutant("setting-not-durable", "settings are kept in memory alone", SETTINGS,
           '                self._store.put_many("meta", [(key, record)])\n', "", "D7",
           REGISTERS + "test_what_was_committed_is_known_after_a_restart"),
    mutant("setting-read-from-one", "one node's word is enough for a read of settings", CONFIGURING,
           "        if has_majority(self.nodes, self._answers):\n", "        if self._answers:\n", "A3",
           CLUSTER + "test_a_read_shows_what_a_majority_stored_at_a_node_that_has_not_heard_of_it"),
    mutant("version-by-the-clock", "a change takes its version from a clock alone", CONFIGURING,
           "        version = max([self._now_ms, *(answer.version for answer in self._answers.values())])\n",
           "        version = self._now_ms\n", "A3",
           CLUSTER + "test_a_later_change_wins_whichever_nodes_had_the_one_before_and_whatever_their_clocks_show"),
    mutant("version-without-the-clock", "where disks were lost an old setting comes back", CONFIGURING,
           "        version = max([self._now_ms, *(answer", "        version = max([1, *(answer", "A3",
           CLUSTER + "test_a_version_is_never_below_the_clock_so_lost_disks_do_not_bring_the_past_back", seeds=0),
    mutant("setting-not-gossiped", "who missed a change never learns it", "node/leadership/gossip.py",
           "        if gossip.settings != node.settings.digest:\n", "        if False:\n", "V1",
           CLUSTER + "test_who_missed_a_change_learns_it_from_the_gossip"),
    mutant("resume-wakes-nobody", "a claim that waits is not served when its queue is resumed",
           "node/claims/parked.py",
           "        resumed = settings.take_resumed() if settings.resumed else []\n",
           "        resumed = list[str]()\n", "O3",
           CLUSTER + "test_a_claim_that_waits_is_served_as_soon_as_the_queue_is_resumed", seeds=0),
    mutant("best-head-ignored", "a claim tries its own node first, whatever others have", ROUTING,
           "        return [*peers[:better], self._me, *peers[better:]]\n",
           "        return [self._me, *peers]\n", "O2",
           ROUTES + "test_who_has_a_task_of_higher_priority_is_asked_before_oneself", seeds=0),
    mutant("worst-head-first", "a claim tries the worst of the others' heads first", ROUTING,
           "                      key=lambda name: (nodes[name], name))\n",
           "                      key=lambda name: (nodes[name], name), reverse=True)\n", "O2",
           ROUTES + "test_the_best_head_comes_first_by_priority_then_by_age", seeds=0),
    mutant("heads-stand-still", "what was granted meanwhile is still taken for a head", ROUTING,
           "            nodes[node] = max([nodes[node], *(_last_of(batch) for batch in batches if batch.ids)])\n",
           "            pass\n", "O2",
           ROUTES + "test_what_was_granted_is_not_there_any_more", seeds=0),
)
