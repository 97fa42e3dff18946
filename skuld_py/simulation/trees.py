"""Whether the hash trees in living nodes say what their records say: looked at, at the end of a run, from inside.

The other checkers judge what is left of a run; a tree is in memory only. One that has parted from its records
hides differences for as long as it lives, and replicas that happen to be equal would not show it.
"""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.errors import Corrupt
from skuld_py.node.node import Node
from skuld_py.partition.data.merkle import Tree
from skuld_py.partition.data.replica import Replica
from skuld_py.simulation.checkers.evidence import Finding, judge

INVARIANT = "V2 hash trees say what a scan says"


def trees_follow_records(nodes: Mapping[str, Node]) -> Finding:
    """[V2] Each tree equals one drafted now, and no draft during the run disagreed with its tree."""
    count, broken = 0, []
    for name, node in nodes.items():
        for vnode in node.view.vnodes:
            tree = vnode.replica.tree
            count += tree.is_built and not vnode.replica.is_empty()
            if tree.corrections:
                broken.append(f"{name}, partition {vnode.partition}: a draft disagreed with its tree")
            if tree.is_built and not _is_right(vnode.replica):
                broken.append(f"{name}, partition {vnode.partition}: the tree is not that of its records")
    return judge(INVARIANT, count, broken)


def _is_right(replica: Replica) -> bool:
    fresh = Tree(replica.store, replica.prefix)
    try:
        while fresh.is_drafting:
            fresh.advance(1_000)
    except Corrupt:
        return True  # a damaged record that was not read yet: no tree can be compared with it
    return fresh.nodes.is_same(replica.tree.nodes)
