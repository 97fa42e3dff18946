"""A workflow in memory, from its submission to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import skuld_py
from skuld_py.model.ids import from_text, time_of
from skuld_py.testing import MemoryClient
from skuld_py.worker.workflows.sealing import seal_call
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.segments import seal_id


@skuld_py.task(name="memory.pair")
def pair(number: int) -> list[int]:
    return [number, 10 * number]


@skuld_py.task(name="memory.never")
def never(number: int) -> None:
    raise ValueError(f"not {number}")


def large(number: int) -> bool:
    return number >= 10


def test_a_workflow_runs_in_memory_to_its_end(tmp_path: Path) -> None:
    from worker.auditor import Auditor

    definition = read({
        "id": "sums", "edges": [["numbers", "pair"], ["pair", "out"], ["pair", "odd"], ["odd", "out"]],
        "catalog": {"numbers": {"kind": "input", "function": "memory.numbers"},
                    "pair": {"kind": "function", "function": "memory.pair"},
                    "odd": {"kind": "function", "function": "memory.never"},
                    "out": {"kind": "output", "path": str(tmp_path / "out")}},
        "conditions": [{"from": "pair", "to": ["out"], "when": f"{__name__}:large"},
                       {"from": "pair", "to": ["odd"], "when": ["not", f"{__name__}:large"]},
                       {"from": "odd", "to": ["out"], "exception": True}]})
    with MemoryClient() as client:
        client.submit_workflow(definition)
        steps = [*map(definition.queue, definition.order)]
        auditor: Any = Auditor(client, definition)  # type: ignore[arg-type]
        auditor.draw([1, 2])
        client.run_until_empty(*steps)
        assert auditor.is_over() and not auditor.repaired
        client.exhaust_input("sums", "numbers")
        life = time_of(from_text(client.workflow("sums").plan))
        client.enqueue_many(definition.queue("seal"), [seal_call("sums", "out", life)],
                            ids=[seal_id("sums", "out", client.cluster.wall_ms())])
        while client.workflow("sums").is_live:
            client.run_until_empty(definition.queue("seal"))
            client.advance(1)
        assert client.get(client.workflow("sums").plan).state == "completed"

    file, = (tmp_path / "out").glob("task=*/part.json")
    assert sorted(file.read_text().splitlines()) == sorted([
        "10", "20", '{"error": "ValueError", "message": "not 1", "segment": 1}',
        '{"error": "ValueError", "message": "not 2", "segment": 2}'])
