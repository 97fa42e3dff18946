"""The check of the hash trees at the end of a run can fail."""

from __future__ import annotations

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.simulation.trees import trees_follow_records


def run() -> Machines:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 3),)))
    machines.pass_time(200)
    return machines


def test_trees_of_working_nodes_follow_their_records() -> None:
    assert trees_follow_records(run().nodes).verdict is True


def test_a_tree_that_has_parted_from_its_records_is_found() -> None:
    machines = run()
    machines.nodes[machines.names[1]].view.vnodes[0].replica.tree.nodes.change(7, 1)

    assert trees_follow_records(machines.nodes).verdict is False


def test_a_tree_that_had_to_be_corrected_is_found() -> None:
    machines = run()
    tree = machines.nodes[machines.names[1]].view.vnodes[0].replica.tree
    tree.nodes.change(7, 1)
    tree.redraft()
    tree.advance(1_000)

    assert trees_follow_records(machines.nodes).verdict is False


def test_empty_nodes_prove_nothing() -> None:
    assert trees_follow_records({}).verdict is None
    assert trees_follow_records(Machines(partitions=1).nodes).verdict is None
