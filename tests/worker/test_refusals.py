"""What a worker says when it is given nothing: an error if somebody must act, a warning if it passes."""

from __future__ import annotations

import logging

import pytest

from skuld_py.errors import KEY_CODES, Refused, Uncertain
from skuld_py.worker.counts import Counts
from skuld_py.worker.metrics import WorkerMetrics
from skuld_py.worker.refusals import note_refusal


def test_what_is_refused_to_a_key_is_an_error_and_all_else_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    for code in sorted(KEY_CODES):
        note_refusal(counts, Refused(code, "key: no"))
    note_refusal(counts, Uncertain("deadline", "no answer"))
    note_refusal(counts, Uncertain("deadline", "no answer"))

    assert [record.levelno for record in caplog.records] == [*[logging.ERROR] * 3, *[logging.WARNING] * 2]
    assert caplog.messages[0] == "nothing can be claimed: key: no [denied]"
    assert {sample.labels["code"]: sample.value for family in WorkerMetrics(counts, "q", 1).collect()
            for sample in family.samples if family.name == "skuld_worker_claims_refused"} == {
        "denied": 1, "key_needed": 1, "wrong_cluster_key": 1, "deadline": 2}
