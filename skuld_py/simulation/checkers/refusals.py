"""What refusals promise, as parts of A2: what was refused by row has not happened, nor what a whole call was.

A leader's answer about claims and dead tasks refuses some of its rows and grants others. A call of the library is
refused as a whole, though an earlier attempt of it may have been carried out whose answer was lost: then it must
not be refused. What may have happened by the word of another client, or by one in doubt, does not bind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.ids import split
from skuld_py.model.setting import SETTING_PREFIX, decode_setting
from skuld_py.simulation.checkers.evidence import Evidence, endings_of, histories_seen, renewals_of
from skuld_py.simulation.checkers.settings import rank
from skuld_py.simulation.history import Operation, Status

Row = tuple[bytes, int, int]
"""A task, a token, and the kind of the ending, 0 for a renewal."""


def done_though_refused(evidence: Evidence) -> Iterator[str]:
    """All operations that were refused although they were carried out."""
    yield from _ended(evidence)
    yield from _revived(evidence)
    yield from _set(evidence)


def _ended(evidence: Evidence) -> Iterator[str]:
    """Claims that are stored as ended, or with a later end than any renewal gave, by words that were refused."""
    refused: dict[Row, Operation] = {}
    allowed: dict[Row, None] = {}
    for operation in evidence.history.operations:
        for row, is_refused in _rows_of(operation):
            if is_refused:
                refused.setdefault(row, operation)
            else:
                allowed[row] = None
    ends = _last_ends(evidence)
    for where, task_id, history in histories_seen(evidence) if refused else ():
        for token, claim in history.claims.entries.items():
            row = task_id, token, claim.kind
            if claim.kind and row in refused and row not in allowed:
                yield f"{where} shows an ending that was refused: {refused[row]}"
            row = task_id, token, 0
            if row in refused and row not in allowed and claim.end.value > ends.get(row[:2], claim.end.value):
                yield f"{where} shows a renewal that was refused: {refused[row]}"


def _rows_of(operation: Operation) -> Iterator[tuple[Row, bool]]:
    """Each claim that it would end or renew, and whether that was refused. A renewal that was granted says itself
    until when."""
    message, answer = operation.message, operation.answer
    if not isinstance(message, m.Conclude | m.Renew) or _is_forged(answer):
        return
    rows = list(endings_of(operation)) or [(task_id, token, 0) for task_id, token in zip(
        split(message.ids), unpack_u64(message.tokens), strict=True)]
    ends = unpack_u64(answer.ends) if isinstance(answer, m.Renewed) else [0] * len(rows)
    unsure = unpack_u64(answer.unknown) if isinstance(answer, m.Renewed) else range(len(rows))
    for index, (row, end_ms) in enumerate(zip(rows, ends, strict=True)):
        if row[2] or not end_ms:
            yield row, operation.is_refused or not (end_ms or index in unsure)


def _is_forged(answer: m.Message | None) -> bool:
    """Whether it was refused for its proof: it names another's claim, which its holder may end and renew."""
    return isinstance(answer, m.Failed) and answer.code == "unknown_claim"


def _last_ends(evidence: Evidence) -> dict[tuple[bytes, int], int]:
    """Claim -> the last end that it can have by what was granted. A coordinator may ask a leader for a renewal
    twice, until it answers; then the end that it tells is not the last one. Where links repeat messages, it may be
    asked twice unknown to its coordinator, at any time."""
    if evidence.repeats or any(fault.kind == "replay" for fault in evidence.faults):
        return {}
    ends = {(told.task, told.token): told.end_ms for told in evidence.told}
    fastest_ms = evidence.wall_start_ms + evidence.skew_ms // 2 + evidence.skew_excess_ms
    for operation in evidence.history.of(m.Renew, Status.OK):
        assert isinstance(operation.message, m.Renew)
        last_ms = fastest_ms + operation.done_ms + operation.message.lease_ms
        for task_id, token, end_ms in renewals_of(operation):
            if end_ms:
                ends[task_id, token] = max(end_ms, last_ms, ends.get((task_id, token), 0))
    return ends


def _revived(evidence: Evidence) -> Iterator[str]:
    """Tasks that were revived more often than may have been asked for, among those whose revival was refused to a
    client that had asked before. The refusal of a single question says nothing: a task that is not dead may die,
    and the links of the simulator may bring the question once more."""
    refused: dict[bytes, Operation] = {}
    allowed = Counter[bytes]()
    for operation in evidence.history.of(m.Revive):
        assert isinstance(operation.message, m.Revive)
        for task_id in split(operation.message.ids):
            if operation.is_refused and operation.call is not None and operation.call.is_asked_again:
                refused[task_id] = operation
            else:
                allowed[task_id] += 1
    for where, task_id, history in histories_seen(evidence) if refused else ():
        if task_id in refused and history.round > allowed[task_id]:
            yield f"{where} shows {history.round} revivals of {task_id.hex()}: {refused[task_id]}"


def _set(evidence: Evidence) -> Iterator[str]:
    """Settings that are stored with values that no client may have put."""
    refused: dict[tuple[str, str, int, str], Operation] = {}
    allowed: dict[tuple[str, str, int, str], None] = {}
    for operation in evidence.history.of(m.PutSetting):
        assert isinstance(operation.message, m.PutSetting)
        key = operation.message.kind, operation.message.name, *rank(operation)[:2]
        if operation.is_refused:
            refused[key] = operation
        else:
            allowed[key] = None
    for name, store in evidence.stores.items() if refused else ():
        for register, record in store.rows("meta", SETTING_PREFIX).items():
            row = decode_setting(register, record)
            found = row.kind, row.name, row.version, row.writer
            if found in refused and found not in allowed:
                yield f"{name} has {row}, which was refused: {refused[found]}"
