"""D1 to D5, D10, D11: what was acknowledged is kept, nothing else appears, nothing changes or comes back.

What was acknowledged must be on every final owner; that is asked only of a healed cluster. What must not
be there must not be there at any time.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.model import messages as m
from skuld_py.model.body import Body, header_of
from skuld_py.simulation.checkers.evidence import (
    Entry,
    Evidence,
    Finding,
    Where,
    bodies_of,
    bodies_seen,
    cancelled_in,
    completions_of,
    entries_of,
    entries_seen,
    gives_way,
    histories_seen,
    holder_of,
    judge,
    numbers_told,
    outcomes_of,
    rows_of,
)
from skuld_py.simulation.checkers.mints import mints_astray
from skuld_py.simulation.checkers.ticks import definitions_of, is_tick
from skuld_py.simulation.history import Operation, Status
from skuld_py.workflow.definition.names import step_of

ATTEMPTS_UNHEARD = 25


def acked_enqueues_survive(evidence: Evidence) -> Finding:
    """[D1] A task acknowledged is on every owner at last, as it was sent, or as another of its unique name was;
    unless it was collected (D10)."""
    acked = [(task_id, body, operation, number in numbers_told(operation.answer))
             for operation in evidence.history.of(m.Enqueue, Status.OK) if evidence.is_binding(operation)
             for number, (task_id, body) in enumerate(bodies_of(operation)) if task_id not in evidence.collected]

    def broken() -> Iterator[str]:
        for task_id, body, operation, is_told in acked:
            for name, store in evidence.owners_of(task_id):
                found = store.get("body", evidence.key(task_id))
                if found is None or not (found == body or is_told or gives_way(body, found)):
                    yield f"{name} has {store.get('body', evidence.key(task_id))!r} of {operation}"
    return judge("D1 acknowledged enqueues are never lost", len(acked) if evidence.owners else 0, broken())


def nothing_from_nowhere(evidence: Evidence) -> Finding:
    """[D2] Every body, claim, log entry and completion seen or stored was sent by a client, or is a schedule's."""
    schedules = definitions_of(evidence)
    bodies = {sent for operation in evidence.history.of(m.Enqueue) for sent in bodies_of(operation)}
    entries = {sent for operation in evidence.history.of(m.Append) for sent in entries_of(operation)}
    entries |= {sent for kind in (m.Complete, m.Conclude) for operation in evidence.history.of(kind)
                for sent in outcomes_of(operation)}
    completions = {sent for operation in evidence.history.of(m.Complete) for sent in completions_of(operation)}
    holders = {holder_of(operation) for operation in evidence.history.of(m.Claim)}
    count, broken = 0, list[str]()

    def know(is_known: bool, where: Where, what: object) -> None:
        nonlocal count
        count += 1
        if not is_known:
            broken.append(f"nobody sent {what}: {where}")
    for where, task_id, body in bodies_seen(evidence):
        know((task_id, body) in bodies or is_tick(schedules, Body.decode(body)), where, (task_id.hex(), body))
    for where, entry in entries_seen(evidence):
        know(entry in entries, where, entry)
    for where, task_id, history in histories_seen(evidence):
        if history.completion.value is not None:
            know((task_id, history.completion.value[1]) in completions, where, history.completion)
        for token, claim in history.claims.entries.items():
            know(claim.holder in holders, where, (hex(token), claim))
    return judge("D2 nothing comes from nowhere", count, broken)


def bodies_are_immutable(evidence: Evidence) -> Finding:
    """[D3] All that is seen, stored or acknowledged of a task has one and the same body; but see C18."""
    first: dict[bytes, tuple[bytes, Where]] = {}
    repeats, broken = 0, list[str]()
    acked = ((operation, *sent) for operation in evidence.history.of(m.Enqueue, Status.OK)
             for sent in bodies_of(operation))
    for sightings in (acked, bodies_seen(evidence)):
        for where, task_id, body in sightings:
            known, before = first.setdefault(task_id, (body, where))
            repeats += before is not where
            if known != body and not (gives_way(known, body) or gives_way(body, known)):
                broken.append(f"{task_id.hex()} is {known!r} to {before} and {body!r} to {where}")
    return judge("D3 a task's body never changes", repeats, broken)


def acked_completions_stay(evidence: Evidence) -> Finding:
    """[D4] A completion acknowledged is on every owner at last. (The monitor sees that no replica ever drops one;
    A3 sees that later reads show it.)"""
    acked = [(task_id, operation) for operation in evidence.history.of(m.Complete, Status.OK)
             if evidence.is_binding(operation) for task_id, _ in completions_of(operation)
             if task_id not in evidence.collected]

    def broken() -> Iterator[str]:
        for task_id, operation in acked:
            for name, _ in evidence.owners_of(task_id):
                history = evidence.histories[name].get(task_id)
                if history is None or history.completion.value is None:
                    yield f"{name} does not have {task_id.hex()} completed: {operation}"
    return judge("D4 acknowledged completions stay", len(acked) if evidence.owners else 0, broken())


def acked_entries_stay(evidence: Evidence) -> Finding:
    """[D5] A log entry acknowledged is on every owner at last; one number of a claim has one content."""
    acked = [(operation, entry) for operation in evidence.history.of(m.Append, Status.OK)
             if evidence.is_binding(operation) for entry in entries_of(operation)
             if entry.task not in evidence.collected]
    first: dict[tuple[bytes, int, int], tuple[bytes, Where]] = {}

    def broken() -> Iterator[str]:
        for operation, entry in acked:
            place = entry.token.to_bytes(8, "big") + entry.seq.to_bytes(4, "big")
            for name, store in evidence.owners_of(entry.task):
                if store.get("log", evidence.key(entry.task) + place) != entry.data:
                    yield f"{name} lacks entry {entry.seq} of {operation}"
        sightings: list[tuple[Where, Entry]] = [*acked, *entries_seen(evidence)]
        for where, entry in sightings:
            known, before = first.setdefault((entry.task, entry.token, entry.seq), (entry.data, where))
            if known != entry.data:
                yield f"entry {entry.seq} is {known!r} to {before} and {entry.data!r} to {where}"
    return judge("D5 acknowledged log entries are never lost", len(acked) if evidence.owners else 0, broken())


def garbage_stays_away(evidence: Evidence) -> Finding:
    """[D10] A task that was collected had been ended by a client, is in no later claim or read, and in no store.
    Nodes cancel what waits for a workflow that has ended, so to have it end may end its tasks. (The monitor sees
    that all replicas were sealed and equal when the first one deleted it.)"""
    gone, going = evidence.collected, {**evidence.collected, **evidence.going}

    def broken() -> Iterator[str]:
        ends = _ends_of_workflows(evidence) if going else {}
        for task_id, enqueued in _open(evidence).items() if going else ():
            if task_id in going and ends.get(_workflow_of(task_id, enqueued), going[task_id] + 1) > going[task_id]:
                yield f"collected at {going[task_id]} ms, and nobody had ended it: {enqueued}"
        for told in evidence.told:
            if going.get(told.task, told.operation.invoked_ms) < told.operation.invoked_ms:
                yield f"collected at {going[told.task]} ms and claimed: {told.operation}"
        for operation in evidence.history.of(m.Get, Status.OK):
            for row in rows_of(operation):
                if gone.get(row.id, operation.invoked_ms) < operation.invoked_ms:
                    yield f"collected at {gone[row.id]} ms and read: {operation}"
        for task_id, at_ms in gone.items():
            for name, store in evidence.stores.items():
                if store.get("body", evidence.key(task_id)) is not None:
                    yield f"{task_id.hex()} was collected at {at_ms} ms and is on {name}"
    return judge("D10 what was collected does not come back", len(gone), broken())


def _ends_of_workflows(evidence: Evidence) -> dict[str, int]:
    """Of each workflow since when it may have ended: somebody asked for a step towards that."""
    ends: dict[str, int] = {}
    for kind in (m.Kill, m.Advance):
        for operation in evidence.history.of(kind):
            assert isinstance(operation.message, m.Kill | m.Advance)
            name = operation.message.workflow
            ends[name] = min(operation.invoked_ms, ends.get(name, operation.invoked_ms))
    return ends


def _workflow_of(task_id: bytes, enqueued: Operation) -> str:
    """The workflow for which a task was enqueued, if any."""
    body = next(body for each, body in bodies_of(enqueued) if each == task_id)
    named = step_of(header_of(body).queue)
    return named[0] if named is not None else ""


def _open(evidence: Evidence) -> dict[bytes, Operation]:
    """Tasks that no client has ended, as far as clients know: acknowledged, never completed, cancelled or claimed,
    and lasting, whichever of the bodies that were sent stands."""
    ended = {task_id for operation in evidence.history.of(m.Complete) for task_id, _ in completions_of(operation)}
    ended |= {task_id for operation in evidence.history.of(m.Cancel) for task_id in cancelled_in(operation)}
    ended |= {told.task for told in evidence.told}
    ended |= {task_id for operation in evidence.history.of(m.Enqueue) for task_id, body in bodies_of(operation)
              if not _is_lasting(evidence, body)}
    return {task_id: operation for operation in evidence.history.of(m.Enqueue, Status.OK)
            for task_id, _ in bodies_of(operation) if task_id not in ended}


def _is_lasting(evidence: Evidence, body: bytes) -> bool:
    """Whether a task cannot end by itself: it waits for no other, has no end in this run, and has more attempts
    than can have been made unheard."""
    header = header_of(body)
    return (not header.policy and not evidence.may_expire(body)
            and header.retry.max_attempts >= ATTEMPTS_UNHEARD)


def ids_are_unique(evidence: Evidence) -> Finding:
    """[D11] No two clients make the same id, and those of each mint of a client rise in the order of their making,
    ids of tasks with a key and all others each among themselves; those of the library above what it was told of,
    whatever its clock has shown.

    A client may send an id again, and another one may do that for it with the same body; then it is the
    same task. Tokens, the other ids of the project, are C1 and C2.
    """
    makers: dict[bytes, tuple[Operation, bytes]] = {}
    newest: dict[tuple[str, bytes, bool], bytes] = {}
    broken = []
    for operation in sorted(evidence.history.of(m.Enqueue), key=lambda each: each.invoked_ms):
        for task_id, body in bodies_of(operation):
            if gives_way(body, body):
                continue
            maker, first_body = makers.setdefault(task_id, (operation, body))
            if maker is operation:
                mint = operation.client, task_id[12:16], task_id[8] > 0x7F
                if task_id <= newest.get(mint, b""):
                    broken.append(f"{task_id.hex()} is not above {newest[mint].hex()}: {operation}")
                newest[mint] = task_id
            elif maker.client != operation.client and first_body != body:
                broken.append(f"{task_id.hex()} is made by {maker} and by {operation}")
    return judge("D11 ids are unique and rise", len(makers) - len(newest), [*broken, *mints_astray(evidence)])


