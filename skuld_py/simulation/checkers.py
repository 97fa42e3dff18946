"""The invariants, each a function from the evidence of a run to a verdict.

True: held, and was put to the test. False: broken, with the evidence. None: vacuous, nothing in the
run could have broken it; never a pass. Times are true times, so "before" means before in reality.

Names in brackets are those of the project's list of invariants. Checkers share no arithmetic with
the code they check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.ids import partition_of, split
from skuld_py.model.task import decode_body, encode_body, epoch_of
from skuld_py.simulation.history import History, Hold, Operation, Status
from skuld_py.simulation.registry import Write
from skuld_py.simulation.store import MemoryStore

EVIDENCE_MAX = 5


@attrs.frozen
class Evidence:
    """What is left of a run. ``owners`` is empty unless the cluster was healed and agrees on them."""

    history: History = attrs.field(factory=History)
    writes: Sequence[Write] = ()
    stores: Mapping[str, MemoryStore] = attrs.field(factory=dict)
    owners: Mapping[int, Sequence[str]] = attrs.field(factory=dict)
    replicas: int = 3
    partitions: int = 1

    def key(self, task_id: bytes) -> bytes:
        """A task's key in the tables that go by id."""
        return partition_of(task_id, self.partitions).to_bytes(2, "big") + task_id

    def owners_of(self, task_id: bytes) -> list[tuple[str, MemoryStore]]:
        """The final owners of a task, with their stores."""
        names = self.owners.get(partition_of(task_id, self.partitions), ())
        return [(name, self.stores[name]) for name in names]


@attrs.frozen
class Finding:
    """A checker's verdict."""

    invariant: str
    verdict: bool | None
    evidence: tuple[str, ...] = ()


Checker = Callable[[Evidence], Finding]


def judge(invariant: str, count: int, broken: Iterable[str]) -> Finding:
    """A verdict over ``count`` tests; what is broken speaks even then when nothing was counted."""
    evidence = tuple(line for line, _ in zip(broken, range(EVIDENCE_MAX), strict=False))
    return Finding(invariant, False if evidence else (True if count else None), evidence)


# -- tasks -------------------------------------------------------------------------------------------


def bodies_of(operation: Operation) -> Iterator[tuple[bytes, bytes]]:
    """(id, body record) of what an enqueue sent."""
    assert isinstance(operation.message, m.Enqueue)
    for batch in operation.message.batches:
        for task_id, payload in zip(split(batch.ids), batch.payloads.unpack(), strict=True):
            yield task_id, encode_body(batch.header, payload)


def acked_enqueues_survive(evidence: Evidence) -> Finding:
    """[D1] A task acknowledged is on every owner at last, as it was sent."""
    acked = [(task_id, body, operation) for operation in evidence.history.of(m.Enqueue, Status.OK)
             for task_id, body in bodies_of(operation)]

    def broken() -> Iterator[str]:
        for task_id, body, operation in acked:
            for name, store in evidence.owners_of(task_id):
                if store.get("body", evidence.key(task_id)) != body:
                    yield f"{name} has {store.get('body', evidence.key(task_id))!r} of {operation}"
    return judge("acknowledged enqueues are never lost", len(acked) if evidence.owners else 0, broken())


def nothing_from_nowhere(evidence: Evidence) -> Finding:
    """[D2, D3] Every body seen or stored was sent under its id; a refused one is seen nowhere."""
    sent: dict[bytes, list[bytes]] = {}
    for operation in evidence.history.of(m.Enqueue):
        if operation.status is not Status.FAIL:
            for task_id, body in bodies_of(operation):
                sent.setdefault(task_id, []).append(body)
    seen = list(_bodies_seen(evidence))
    broken = (f"{where}: {task_id.hex()} {body!r}, sent {sent.get(task_id)!r}"
              for where, task_id, body in seen if body not in sent.get(task_id, ()))
    return judge("nothing comes from nowhere, and nothing refused is there", len(seen), broken)


def _bodies_seen(evidence: Evidence) -> Iterator[tuple[str, bytes, bytes]]:
    for operation in evidence.history.of(m.Claim, Status.OK):
        if isinstance(operation.answer, m.Claimed):
            for batch in operation.answer.batches:
                for task_id, body in zip(split(batch.ids), batch.bodies.unpack(), strict=True):
                    yield str(operation), task_id, body
    for operation in evidence.history.of(m.Get, Status.OK):
        if isinstance(operation.answer, m.Got):
            for row in operation.answer.tasks:
                for body in row.body.unpack():
                    yield str(operation), row.id, body
    for name, store in evidence.stores.items():
        for key, body in store.rows("body").items():
            yield name, key[2:], body


def acked_completions_stay(evidence: Evidence) -> Finding:
    """[D4] A completion acknowledged is on every owner at last."""
    acked = [(task_id, operation) for operation in evidence.history.of(m.Complete, Status.OK)
             if isinstance(operation.message, m.Complete) for task_id in split(operation.message.ids)]
    broken = (f"{name} does not have {task_id.hex()} completed: {operation}"
              for task_id, operation in acked for name, store in evidence.owners_of(task_id)
              if not any((store.get("history", evidence.key(task_id)) or b"")[:8]))
    return judge("acknowledged completions are never lost", len(acked) if evidence.owners else 0, broken)


def acked_entries_stay(evidence: Evidence) -> Finding:
    """[D5] A log entry acknowledged is on every owner at last, with the same content."""
    acked = [(operation, operation.message) for operation in evidence.history.of(m.Append, Status.OK)]

    def broken() -> Iterator[str]:
        for operation, message in acked:
            assert isinstance(message, m.Append)
            for index, entry in enumerate(message.entries.unpack()):
                place = message.token.to_bytes(8, "big") + (message.seq + index).to_bytes(4, "big")
                for name, store in evidence.owners_of(message.id):
                    if store.get("log", evidence.key(message.id) + place) != entry:
                        yield f"{name} lacks entry {index} of {operation}"
    return judge("acknowledged log entries are never lost", len(acked) if evidence.owners else 0, broken())


# -- claims ------------------------------------------------------------------------------------------


def claims_of(evidence: Evidence) -> Iterator[tuple[bytes, int, bytes, Operation]]:
    """(task, token, body, operation) of every claim a client was told of."""
    for operation in evidence.history.of(m.Claim, Status.OK):
        assert isinstance(operation.answer, m.Claimed)
        for batch in operation.answer.batches:
            rows = zip(split(batch.ids), batch.bodies.unpack(), strict=True)
            for index, (task_id, body) in enumerate(rows):
                yield task_id, batch.first_token + index, body, operation


def one_holder_per_token(evidence: Evidence) -> Finding:
    """[C1] A token of a partition is told to one client, once, for one task."""
    told: dict[tuple[int, int], str] = {}
    broken = []
    for task_id, token, _, operation in claims_of(evidence):
        what = f"{task_id.hex()} {operation.client}#{operation.request}"
        first = told.setdefault((partition_of(task_id, evidence.partitions), token), what)
        if first != what:
            broken.append(f"token {token:#x} is that of {first} and of {what}")
    return judge("a token has one holder", len(told), broken)


def tokens_rise(evidence: Evidence) -> Finding:
    """[C2] Of two claims of a task, one known before the other was asked for, the later has the higher."""
    by_task: dict[bytes, list[tuple[int, Operation]]] = {}
    for task_id, token, _, operation in claims_of(evidence):
        by_task.setdefault(task_id, []).append((token, operation))
    count, broken = 0, []
    for task_id, claims in by_task.items():
        for token, operation in claims:
            for later_token, later in claims:
                if operation.done_ms < later.invoked_ms:
                    count += 1
                    if later_token <= token:
                        broken.append(f"{task_id.hex()}: {later_token:#x} after {token:#x}: {later}")
    return judge("tokens of a task rise", count, broken)


def leases_do_not_overlap(evidence: Evidence) -> Finding:
    """[C3] While one worker may believe that a task is its own, no other may."""
    by_task: dict[bytes, list[Hold]] = {}
    for hold in evidence.history.holds:
        if hold.stop_ms > hold.start_ms:
            by_task.setdefault(hold.task, []).append(hold)
    count, broken = 0, []
    for holds in by_task.values():
        holds.sort(key=lambda hold: (hold.start_ms, hold.token))
        longest = holds[0]
        for hold in holds[1:]:
            count += 1
            if hold.start_ms < longest.stop_ms:
                broken.append(f"{longest}; {hold}")
            longest = max(longest, hold, key=lambda hold: hold.stop_ms)
    return judge("leases do not overlap", count, broken)


def deposed_leaders_grant_nothing(evidence: Evidence) -> Finding:
    """[C4] A claim asked for after an epoch was written is of that epoch or a later one."""
    count, broken = 0, []
    for task_id, token, _, operation in claims_of(evidence):
        partition = partition_of(task_id, evidence.partitions)
        written = [write.document.epoch for write in evidence.writes
                   if write.partition == partition and write.time_ms < operation.invoked_ms]
        count += bool(written)
        if written and epoch_of(token) < max(written):
            broken.append(f"{task_id.hex()} token {token:#x}, epoch {max(written)} was written: {operation}")
        if not any(write.partition == partition and write.document.epoch == epoch_of(token)
                   for write in evidence.writes):
            broken.append(f"{task_id.hex()} token {token:#x} of an epoch never written: {operation}")
    return judge("deposed leaders grant nothing", count, broken)


def completed_is_not_granted(evidence: Evidence) -> Finding:
    """[C8] What was completed on ``w`` owners is not granted again, when that and a majority intersect."""
    done: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Complete, Status.OK):
        message = operation.message
        assert isinstance(message, m.Complete)
        majority = evidence.replicas // 2 + 1
        if (message.w or majority) + majority > evidence.replicas:
            for task_id in split(message.ids):
                done[task_id] = min(operation.done_ms, done.get(task_id, operation.done_ms))
    count, broken = 0, []
    for task_id, token, _, operation in claims_of(evidence):
        count += bool(done)
        if done.get(task_id, operation.invoked_ms) < operation.invoked_ms:
            broken.append(f"{task_id.hex()} token {token:#x}, completed at {done[task_id]} ms: {operation}")
    return judge("a completed task is not granted again", count, broken)


def claims_are_of_the_queue(evidence: Evidence) -> Finding:
    """[C12] A claim gives tasks of the queue it names, and no more of them than it asks for."""
    count, broken = 0, []
    for task_id, _, body, operation in claims_of(evidence):
        assert isinstance(operation.message, m.Claim) and isinstance(operation.answer, m.Claimed)
        count += 1
        if not body or decode_body(body)[0].queue != operation.message.queue:
            broken.append(f"{task_id.hex()} {body!r}: {operation}")
        if sum(len(split(batch.ids)) for batch in operation.answer.batches) > operation.message.count:
            broken.append(f"more than asked for: {operation}")
    return judge("a claim gives what it asks for", count, broken)


def renewals_are_the_holders(evidence: Evidence) -> Finding:
    """[C9] No renewal of a token after a newer claim of the task was known; ends never move back."""
    newest: dict[bytes, list[tuple[int, int]]] = {}
    for task_id, token, _, operation in claims_of(evidence):
        newest.setdefault(task_id, []).append((operation.done_ms, token))
    count, broken = 0, []
    ends: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
    for operation in evidence.history.of(m.Renew, Status.OK):
        message, answer = operation.message, operation.answer
        assert isinstance(message, m.Renew) and isinstance(answer, m.Renewed)
        if not message.lease_ms:
            continue
        rows = zip(split(message.ids), unpack_u64(message.tokens), unpack_u64(answer.ends), strict=True)
        for task_id, token, end_ms in rows:
            if not end_ms:
                continue
            count += 1
            claims = newest.get(task_id, ())
            if any(at_ms < operation.invoked_ms and other > token for at_ms, other in claims):
                broken.append(f"{task_id.hex()} token {token:#x} is not the newest: {operation}")
            known = ends.setdefault((task_id, token), [])
            if any(at_ms < operation.invoked_ms and end > end_ms for at_ms, end in known):
                broken.append(f"{task_id.hex()} token {token:#x} ends earlier than before: {operation}")
            known.append((operation.done_ms, end_ms))
    return judge("renewals are the newest holder's, and move ends forward", count, broken)


# -- epochs ------------------------------------------------------------------------------------------


def epochs_rise(evidence: Evidence) -> Finding:
    """[C5] Each document of a partition has a higher epoch than the last; so an epoch has one leader."""
    last: dict[int, Write] = {}
    broken = []
    for write in evidence.writes:
        before = last.get(write.partition)
        if before is not None and write.document.epoch <= before.document.epoch:
            broken.append(f"partition {write.partition}: {before} and then {write}")
        if len(write.document.cohort) != evidence.replicas:
            broken.append(f"partition {write.partition}: cohort of {len(write.document.cohort)}: {write}")
        last[write.partition] = write
    return judge("epochs rise, and each has one leader", len(evidence.writes), broken)
