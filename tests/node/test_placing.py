"""A node takes the placement that it is told with the nodes, and works out the one that it is not told."""

from __future__ import annotations

import pytest

from skuld_py.cluster.placement import place
from skuld_py.config import Parameters
from skuld_py.model.document import Member
from skuld_py.model.events import NodesChanged
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node import node as node_module
from skuld_py.node.node import Node

PARAMETERS = Parameters("test", "id", 64, 3)
NAMES = tuple(f"10.0.0.{n}:13000" for n in range(8))
ANNA = Member(NAMES[0], "10.0.0.0", 13000, "boot")


def test_a_node_takes_the_placement_it_is_told_and_works_out_the_one_it_is_not(
        monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(ANNA, PARAMETERS, MemoryStore(), lambda most: 0, 1)
    node.step(0, NodesChanged(NAMES[:4]))
    assert [node.view.vnodes[partition].owners for partition in range(64)] == list(place(NAMES[:4], 64, 3))
    monkeypatch.setattr(node_module, "place", None)

    node.step(0, NodesChanged(NAMES, (), place(NAMES, 64, 3)))

    assert [node.view.vnodes[partition].owners for partition in range(64)] == list(place(NAMES, 64, 3))
