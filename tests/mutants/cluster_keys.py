"""Mutants of the keys of clusters themselves: given to one that has none, and replaced."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

ROTATION, TOGETHER = "tests/runtime/zookeeper/test_rotation.py::", (
    "test_while_two_keys_count_either_opens_what_the_other_has_made")
RUNNING = "test_a_node_that_runs_makes_for_both_once_it_is_told_and_for_the_new_one_alone_at_the_end"
ROSTER = "tests/model/test_roster.py::test_the_cluster_s_key_is_replaced_by_the_next_once_no_live_node_shows_it"
SWEEP = "tests/runtime/zookeeper/test_entry_sweep.py::"
PATHS = "tests/runtime/zookeeper/test_paths.py::"
SECURING = "tests/runtime/zookeeper/test_securing.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by("tests/keys/test_pair.py::test_a_fresh_key_is_none_that_a_command_line_takes_for_an_option",
             "key-as-option", "a fresh key may begin as an option does", "pair.fresh",
             '        if not public.startswith(b"-"):\n            return', "        return"),
    mutant("path-of-the-first", "the path behind the servers belongs to the first cluster below it",
           "clusters._make_path",
           "client.create_async(path, acl=ROOT_ACL)", "client.create_async(path)", "A4",
           PATHS + "test_clusters_with_keys_of_their_own_are_below_one_path", seeds=0),
    mutant("path-of-one-part", "of a path behind the servers only the last part is made", "clusters._make_path",
           "for end in range(1, len(parts) + 1):", "for end in range(len(parts), len(parts) + 1):", "A4",
           PATHS + "test_clusters_with_keys_of_their_own_are_below_one_path", seeds=0),
    mutant("path-looked-at", "who may not look at the path behind the servers gets nothing below it",
           "clusters.start", "with suppress(NoAuthError):", "with suppress(BadVersionError):", "A4",
           PATHS + "test_a_path_that_is_somebody_s_hinders_no_cluster_below_it", seeds=0),
    _seen_by(SECURING + "test_nothing_is_changed_while_nodes_live_and_they_are_named", "secured-under-nodes",
             "a cluster is taken from under its nodes", "secure_cluster",
             "        _check_stopped(client, hosts, cluster, timeout_s)\n        owners", "        owners"),
    _seen_by(SECURING + "test_a_node_that_came_up_meanwhile_is_named", "secured-under-newcomers",
             "a node that came up meanwhile stays in a cluster that it cannot read", "secure_cluster",
             "        _check_stopped(client, hosts, cluster, timeout_s)\n        has_changed",
             "        has_changed"),
    _seen_by(SECURING + "test_what_was_interrupted_goes_on", "secured-in-part",
             "what was interrupted is taken for done", "secure_cluster",
             "has_changed = own_all(client, root, owners, timeout_s) > 0 or has_changed",
             "has_changed = has_changed and own_all(client, root, owners, timeout_s) > 0"),
    _seen_by(SECURING + "test_all_that_a_cluster_keeps_becomes_its_owners", "folders-alone-secured",
             "what is in a folder stays open to all", "own_all",
             "            folders += [", "            _ = ["),
    _seen_by(SECURING + "test_the_folder_of_all_clusters_is_closed_where_it_was_left_open",
             "root-left-open", "anyone gives the folder of all clusters to himself", "secure_cluster",
             "        _close_root(client, timeout_s)\n", ""),
    _seen_by(SECURING + "test_a_roster_that_a_stranger_has_put_there_counts_for_nothing", "planted-rosters-taken",
             "a roster that anyone put there while he could makes him an admin", "secure_cluster",
             "planted = _remove_planted(client, root, owners, timeout_s)", "planted = None"),
    _seen_by(SECURING + "test_a_roster_that_a_stranger_has_put_there_counts_for_nothing", "own-rosters-removed",
             "to secure a cluster twice removes its keys", "_remove_planted",
             "            return None\n        planted", "            pass\n        planted"),
    _seen_by("tests/node/test_new_keys.py::"
             "test_no_key_that_a_stranger_has_noted_counts_for_longer_than_the_one_that_is_replaced",
             "planted-former-keys", "a former key that a stranger noted proves claims for ever",
             "with_first_own_key", "min(each.until_ms, last.until_ms)", "each.until_ms"),
    # -- of nodes that are forgotten ----------------------------------------------------------------
    _seen_by("tests/cli/test_log_on_zookeeper.py", "forgotten-node-s-key",
             "the key of a node that was forgotten opens the cluster for ever", "cli.cluster.forget",
             "    drop_node(hosts, name, node, timeout_s)\n", ""),
    _seen_by(SWEEP + "test_keys_of_nodes_that_are_neither_placed_nor_have_an_entry_go", "keys-unswept",
             "the keys of nodes that were forgotten by themselves open the cluster for ever", "EntrySweep._run",
             "            self._drop_keys(*roster)\n", "            pass\n"),
    _seen_by(SWEEP + "test_keys_of_nodes_that_are_neither_placed_nor_have_an_entry_go", "needed-keys-swept",
             "a node that is needed still loses its key", "EntrySweep._drop_keys",
             '{*self._placed, *self._ask(client.get_children_async(f"{self._root}/nodes"))}', "{*self._placed}"),
    _seen_by(SWEEP + "test_a_key_that_came_meanwhile_stays", "starting-keys-swept",
             "a node that starts loses its key", "EntrySweep._drop_keys",
             "roster.without_nodes(gone).encode(), version)", "roster.without_nodes(gone).encode())"),
    _seen_by(SWEEP + "test_a_node_that_lives_puts_its_key_back", "live-without-key",
             "a node that was forgotten at its start lives on unheard", "RosterWatch.look",
             "            if wanted is not None:\n", "            if False:\n"),
    _seen_by(SWEEP + "test_a_node_that_lives_puts_its_key_back", "revoked-puts-itself-back",
             "a node puts back its key that was revoked, or fights for a place", "Keyring.put",
             "mine.key in roster.revoked or roster.node(mine.name)", "mine.key in roster.by_key"),
    # -- replaced -----------------------------------------------------------------------------------
    _seen_by("tests/runtime/test_keys.py::"
             "test_a_client_that_knows_two_keys_of_the_cluster_follows_a_node_from_one_to_the_other",
             "second-key-not-dialled", "a client that knows two keys of the cluster tries the first alone",
             "dial.dial", "key.clusters, strict=False)", "key.clusters[:1], strict=False)"),
    _seen_by(ROTATION + TOGETHER, "key-before-not-shown",
             "a node with the new file cannot read what one with the old file has made", "ClusterKey.logins",
             "(self.zookeeper,) if self.before is None else (self.zookeeper, self.before.zookeeper)",
             "(self.zookeeper,)"),
    _seen_by(ROTATION + RUNNING, "owners-not-heeded",
             "a node that runs makes znodes for the owner of its own file alone, or for one that has ended",
             "heed_owners", "    if client.default_acl:\n", "    if False:\n"),
    _seen_by(ROTATION + "test_at_the_end_the_key_before_opens_nothing", "operators-make-for-both",
             "what an operator makes stays open to a key that has ended", "log_following.command",
             "        clusters.heed_owners(client, root, timeout_s)\n", ""),
    _seen_by(ROTATION + RUNNING, "root-keeps-its-owner", "nodes never hear that two keys count",
             "begin_rotation", "clusters.owners_of(key.logins)", "clusters.owners_of(key.logins[1:])"),
    _seen_by(ROTATION + "test_at_the_end_the_key_before_opens_nothing", "old-key-opens-the-old",
             "what was made before the end stays open to a key that has ended", "end_rotation",
             "        changed = own_all(client, root, owners, timeout_s)\n        while True:\n",
             "        changed = 8\n        while False:\n"),
    _seen_by(ROTATION + "test_the_key_before_is_not_ended_while_a_live_node_shows_it", "ended-under-nodes",
             "a key is ended that a live node shows", "end_rotation",
             "known.settled(key.pair.public, _live(client, root, timeout_s))",
             "known.settled(key.pair.public, ())"),
    _seen_by(ROSTER, "silent-nodes-pass", "a node that has not said which key it shows counts for one of the new",
             "Roster.settled", "if not (rows := self.node(name)) or rows[-1].shows != key",
             "if (rows := self.node(name)) and rows[-1].shows != key"),
    _seen_by(ROSTER, "three-keys-at-once", "a key is replaced while it takes the place of another one",
             "Roster.succeeded", "        if len(self.cluster) > 1:\n", "        if False:\n"),
    _seen_by(ROSTER, "old-files-for-new-clients", "new clients get a key that is about to end",
             "Roster.check_newest", "        if self.cluster and key != self.cluster[0]:\n",
             "        if False:\n"),
    _seen_by(ROTATION + "test_a_node_does_not_start_with_a_key_that_the_cluster_does_not_go_by_yet",
             "keys-of-no-roster-shown", "a node shows a key of the cluster that no client can know",
             "open_keyring", "    roster.check_shown(key.pair.public)\n", ""),
    _seen_by("tests/model/test_roster.py::test_the_cluster_s_own_keys_stay_whatever_becomes_of_others",
             "cluster-keys-forgotten", "who changes a key in the roster drops the cluster's own",
             "Roster.revoking", "attrs.evolve(self, rows=rows, revoked=(",
             "attrs.evolve(Roster(), rows=rows, revoked=("),
)
