"""V1 to V4: healed, replicas become equal, in bounded time, and then have nothing more to say.

Equal means byte for byte: the records are canonical, so equal states are equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.model.history import EMPTY_HISTORY
from skuld_py.model.history import History as TaskHistory
from skuld_py.simulation.checkers.evidence import Evidence, Finding, judge
from skuld_py.simulation.checkers.settings import unequal_settings
from skuld_py.simulation.notes import What

REPLICATED = ("body", "history", "log")
ROUNDS_TO_QUIET = 2


def convergence_is_bounded(evidence: Evidence) -> Finding:
    """[V1] Replicas are equal within the bound after the last fault."""
    name = "V1 replicas converge in bounded time"
    if evidence.calm_ms is None or not evidence.bound_ms:
        return Finding(name, None)
    broken = []
    if evidence.equal_ms is None:
        broken.append(f"calm since {evidence.calm_ms} ms, not equal until {evidence.end_ms} ms")
    elif evidence.equal_ms - evidence.calm_ms > evidence.bound_ms:
        broken.append(f"calm since {evidence.calm_ms} ms, equal only at {evidence.equal_ms} ms")
    rows = sum(len(store.rows("body")) for store in evidence.stores.values())
    return judge(name, rows, broken)


def replicas_are_equal(evidence: Evidence) -> Finding:
    """[V2] Records of a partition are equal, byte for byte, on all its owners; and settings on all nodes."""
    rows = 0

    def broken() -> Iterator[str]:
        nonlocal rows
        for partition, owners in sorted(evidence.owners.items()):
            prefix = partition.to_bytes(2, "big")
            for table in REPLICATED:
                first, *others = (evidence.stores[name].rows(table, prefix) for name in owners)
                rows += len(first) if others else 0
                for name, other in zip(owners[1:], others, strict=True):
                    keys = sorted(key for key in {**first, **other} if first.get(key) != other.get(key))
                    yield from (f"{table} {key.hex()}: {owners[0]} has {first.get(key)!r}, {name} has"
                                f" {other.get(key)!r}" for key in keys)
    lines = [*broken(), *unequal_settings(evidence)]
    return judge("V2 replicas are equal after healing", rows, lines)


def merge_keeps_its_laws(evidence: Evidence) -> Finding:
    """[V3] The states that replicas really reached join to one state in any order and grouping, each is within
    the join, joining again changes nothing, and its record is the canonical one."""
    by_task: dict[bytes, list[tuple[TaskHistory, bytes]]] = {}
    for store in evidence.stores.values():
        for key, record in store.rows("history").items():
            by_task.setdefault(key[2:], []).append((TaskHistory.decode(record), record))

    def broken() -> Iterator[str]:
        for task_id, states in by_task.items():
            for state, record in states:
                if state.encode() != record:
                    yield f"{task_id.hex()} is stored as {record.hex()}, not {state.encode().hex()}"
            yield from (f"{task_id.hex()}: {law}" for law in _broken_laws([state for state, _ in states]))
    return judge("V3 merge keeps the laws of a join", len(by_task), broken())


def _broken_laws(states: list[TaskHistory]) -> Iterator[str]:
    left, right = EMPTY_HISTORY, EMPTY_HISTORY
    for state in states:
        left = left.merge(state)
    for state in reversed(states):
        right = right.merge(state)
    if left != right:
        yield f"joined in order {left}, in reverse {right}"
    for state in states:
        if state.merge(left) != left:
            yield f"joined again, {left} becomes {state.merge(left)}"
        if not state.claims.entries.keys() <= left.claims.entries.keys() or _is_later(left, state):
            yield f"the join {left} does not contain {state}"


def _is_later(one: TaskHistory, other: TaskHistory) -> bool:
    """Whether it is completed later than the other, or never."""
    done, before = one.completion.value, other.completion.value
    return before is not None and (done is None or done > before)


def quiet_replicas_are_silent(evidence: Evidence) -> Finding:
    """[V4] Once all are equal, exchanges carry nothing from the third round of a pair of owners on. A node that is
    no owner takes nothing, so it goes on differing until it has dropped what it has."""
    if evidence.equal_ms is None:
        return Finding("V4 exchanges between equal replicas carry nothing", None)
    rounds: dict[tuple[int, str, str], int] = {}
    count, broken = 0, []
    for note in evidence.noted(What.EXCHANGED):
        owners = evidence.owners.get(note.partition, (note.node, note.whom))
        if note.time_ms > evidence.equal_ms and note.node in owners and note.whom in owners:
            pair = (note.partition, note.node, note.whom)
            rounds[pair] = rounds.get(pair, 0) + 1
            if rounds[pair] > ROUNDS_TO_QUIET:
                count += 1
                if note.amount:
                    broken.append(f"all equal since {evidence.equal_ms} ms: {note}")
    return judge("V4 exchanges between equal replicas carry nothing", count, broken)
