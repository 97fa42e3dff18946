"""Mutants of the keys of clusters themselves: given to one that has none, and replaced."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SECURING = "tests/runtime/zookeeper/test_securing.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
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
)
