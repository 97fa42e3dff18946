"""What inputs draw from other workflows is looked for when a workflow is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from skuld_py.testing import MemoryClient
from skuld_py.workflow.definition.faults import BadWorkflow


def flow(id: str, source: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "edges": [["a", "b"]], "catalog": {
        "a": {"kind": "input", **source}, "b": {"kind": "function", "function": "former:b"}}}


@pytest.mark.parametrize(("source", "faults"), [
    ("old", []),
    ({"id": "old", "step": "b"}, []),
    ({"id": "old", "step": "c"}, ["a.workflow.step: old has no step c; there is a, b"]),
    ("odl", ["a.workflow.id: the cluster knows no workflow odl; submit that one first"]),
    ("dead", ["a.workflow.id: dead was killed, and nobody knows which of its steps were finished; resume from it,"
              " naming those"]),
    ({"id": "dead", "step": "b", "content": "0f" * 32},
     ["a.workflow.content: step b of dead is not what was taken over; resume from that workflow's own"
      " definition"]),
])
def test_what_an_input_draws_from_is_there_when_its_workflow_is_submitted(source: Any, faults: list[str]) -> None:
    client = MemoryClient()
    for id in ("old", "dead"):
        client.submit_workflow(flow(id, {"files": "/x"}))
    client.kill_workflow("dead")
    new = flow("new", {"workflow": source})
    if not faults:
        assert client.submit_workflow(new).is_live
        return
    with pytest.raises(BadWorkflow) as refusal:
        client.submit_workflow(new)
    assert [str(fault) for fault in refusal.value.faults] == faults
