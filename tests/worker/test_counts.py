"""How far a batch is, as its engine counts: over all jobs that it has had, since a crash makes several of one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skuld_py.worker import spark_worker
from skuld_py.worker.spark_worker import SparkEngine


def test_parts_are_those_of_all_jobs_of_a_batch_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second job of this one began after the first, of four parts, had crashed in its second."""
    stages = {7: (1, 4), 8: (2, 2), 9: (0, 3)}
    jobs = {1: (7,), 2: (8, 9)}
    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda name: list(jobs), getJobInfo=lambda job: SimpleNamespace(stageIds=jobs[job]),
        getStageInfo=lambda stage: SimpleNamespace(numCompletedTasks=stages[stage][0], numTasks=stages[stage][1]))
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    monkeypatch.setattr(spark_worker, "SparkContext", SimpleNamespace(_active_spark_context=context))
    monkeypatch.setattr(spark_worker, "_traffic", lambda context, stage: ((0, 0), (0, 0)))
    engine = SparkEngine(tmp_path)
    engine._stages["w:batch-1"] = {}

    assert engine.counts("w:batch-1") == {"jobs": 2, "stages": [1, 3], "tasks": [3, 9]}
