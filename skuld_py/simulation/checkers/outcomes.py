"""C16: no task is tried more often than its policy allows, in one round of its life."""

from __future__ import annotations

from collections import Counter

from skuld_py.model.body import header_of
from skuld_py.model.history import EMPTY_HISTORY
from skuld_py.model.history import History as TaskHistory
from skuld_py.simulation.checkers.evidence import Evidence, Finding, judge, tokens_told

HARMLESS = (1, 2)
"""Endings that are no attempt: released, snoozed."""


def known_of(evidence: Evidence) -> dict[bytes, TaskHistory]:
    """What the owners know of each task together."""
    known: dict[bytes, TaskHistory] = {}
    for partition, owners in evidence.owners.items():
        for name in owners:
            for task_id, history in evidence.histories[name].items():
                if evidence.partition(task_id) == partition:
                    known[task_id] = known.get(task_id, EMPTY_HISTORY).merge(history)
    return known


def attempts_are_bounded(evidence: Evidence) -> Finding:
    """[C16] Of the claims that clients were told of in the last round of a task's life, no more than its policy
    allows failed or ended without a word."""
    known = known_of(evidence)
    most = {told.task: header_of(told.body).retry.max_attempts for told in evidence.told if told.body}
    attempts = Counter[bytes]()
    for task_id, token in tokens_told(evidence):
        history = known.get(task_id)
        claim = history.claims.entries.get(token) if history is not None else None
        if history is not None and claim is not None and token > history.base and claim.kind not in HARMLESS:
            attempts[task_id] += 1
    broken = (f"{task_id.hex()} was tried {count} times, {most[task_id]} are allowed"
              for task_id, count in sorted(attempts.items()) if count > most[task_id])
    return judge("C16 attempts are bounded", len(attempts), broken)
