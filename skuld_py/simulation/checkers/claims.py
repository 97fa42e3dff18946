"""C1 to C3, C8 to C12, C14, C22: one holder at a time, under a token that only rises, for a task that may be
claimed.

Which node leads and may grant is in ``epochs``. A hold is what a worker believes, in true time; a claim is what it
was told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from skuld_py.model import messages as m
from skuld_py.model.body import header_of
from skuld_py.model.ids import split
from skuld_py.simulation.checkers.evidence import (
    LOSSES,
    Evidence,
    Finding,
    Told,
    cancelled_in,
    completions_of,
    conclusions_of,
    entries_of,
    entries_seen,
    judge,
    renewals_of,
)
from skuld_py.simulation.checkers.settings import granted_though_paused
from skuld_py.simulation.history import Hold, Operation, Status


class Newest:
    """The highest number known before a moment: built once, asked in logarithmic time."""

    def __init__(self, known: list[tuple[int, int]]) -> None:
        known.sort()
        self._times = [time_ms for time_ms, _ in known]
        self._highest = list(accumulate((number for _, number in known), max))

    def before(self, time_ms: int) -> int:
        """The highest, or 0 when nothing was known."""
        at = bisect_left(self._times, time_ms)
        return self._highest[at - 1] if at else 0


def newest_told(evidence: Evidence) -> dict[bytes, Newest]:
    """Task -> the newest token that a client had been told of, by time."""
    known: dict[bytes, list[tuple[int, int]]] = {}
    for told in evidence.told:
        known.setdefault(told.task, []).append((told.operation.done_ms, told.token))
    return {task_id: Newest(rows) for task_id, rows in known.items()}


def one_holder_per_token(evidence: Evidence) -> Finding:
    """[C1] A token of a partition is told to one client, once, for one task; and stored for one holder."""
    told_of: dict[tuple[int, int], str] = {}
    held_by: dict[tuple[int, int], str] = {}
    broken = []
    for told in evidence.told:
        what = f"{told.task.hex()} {told.operation.client}#{told.operation.request}"
        first = told_of.setdefault((evidence.partition(told.task), told.token), what)
        if first != what:
            broken.append(f"token {told.token:#x} is that of {first} and of {told.operation}")
    for name, histories in evidence.histories.items():
        for task_id, history in histories.items():
            for token, claim in history.claims.entries.items():
                what = f"{task_id.hex()} {claim.holder}"
                first = held_by.setdefault((evidence.partition(task_id), token), what)
                if first != what:
                    broken.append(f"token {token:#x} is that of {first}, on {name} of {what}")
    return judge("C1 a token has one holder", len(told_of), broken)


def tokens_rise(evidence: Evidence) -> Finding:
    """[C2] Of two claims of a task, one known before the other was asked for, the later has the higher."""
    newest = newest_told(evidence)
    count, broken = 0, []
    for told in evidence.told:
        before = newest[told.task].before(told.operation.invoked_ms)
        count += bool(before)
        if before >= told.token:
            broken.append(f"{told.task.hex()}: {told.token:#x} after {before:#x}: {told.operation}")
    return judge("C2 tokens of a task rise", count, broken)


def leases_do_not_overlap(evidence: Evidence) -> Finding:
    """[C3] While one worker may believe that a task is its own, no other may; where faults drove clocks or
    pauses beyond the bound, they overlap by no more than that."""
    count, broken = 0, []
    for holds in _holds_by_task(evidence).values():
        longest = holds[0]
        for hold in holds[1:]:
            count += 1
            if min(longest.stop_ms, hold.stop_ms) - hold.start_ms > evidence.skew_excess_ms:
                broken.append(f"{longest}; {hold}")
            longest = max(longest, hold, key=lambda hold: hold.stop_ms)
    return judge("C3 leases do not overlap", count, broken)


def _holds_by_task(evidence: Evidence) -> dict[bytes, list[Hold]]:
    by_task: dict[bytes, list[Hold]] = {}
    for hold in sorted(evidence.history.holds, key=lambda hold: (hold.start_ms, hold.token)):
        if hold.stop_ms > hold.start_ms:
            by_task.setdefault(hold.task, []).append(hold)
    return by_task


def only_holders_act(evidence: Evidence) -> Finding:
    """[C22] A client that completes, logs, renews or ends a claim with success was told of that claim; and no
    completion, result, error or log entry is stored under any other."""
    told_to = {(told.operation.client, told.task, told.token) for told in evidence.told}
    told = {(task_id, token) for _, task_id, token in told_to}
    acted = [(operation, task_id, token) for operation in evidence.history.operations
             for task_id, token in _acted_for(operation)]
    stored = [(name, entry.task, entry.token) for name, entries in evidence.logged.items() for entry in entries]
    stored += [(name, task_id, history.completion.value[1]) for name, histories in evidence.histories.items()
               for task_id, history in histories.items() if history.completion.value]

    def broken() -> Iterator[str]:
        for operation, task_id, token in acted:
            if (operation.client, task_id, token) not in told_to:
                yield f"{task_id.hex()} token {token:#x}: {operation}"
        for name, task_id, token in stored:
            if (task_id, token) not in told:
                yield f"{task_id.hex()} token {token:#x} stored on {name}"
    return judge("C22 only holders act", len(acted) + len(stored), broken())


def _acted_for(operation: Operation) -> list[tuple[bytes, int]]:
    """(id, token) of the claims for which an operation did something."""
    if not operation.is_ok:
        return []
    match operation.message:
        case m.Complete():
            return list(completions_of(operation))
        case m.Append():
            return [(operation.message.id, operation.message.token)]
        case m.Conclude():
            return [(task_id, token) for task_id, token, end_ms in conclusions_of(operation) if end_ms]
        case m.Renew():
            return [(task_id, token) for task_id, token, end_ms in renewals_of(operation) if end_ms]
    return []


def completed_is_not_granted(evidence: Evidence) -> Finding:
    """[C8] A task completed or cancelled on copies that any majority meets is not granted again."""
    done: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Complete, Status.OK):
        if evidence.is_seen_by_majorities(operation):
            for task_id, _ in completions_of(operation):
                done[task_id] = min(operation.done_ms, done.get(task_id, operation.done_ms))
    for operation in evidence.history.of(m.Cancel, Status.OK):
        if evidence.is_seen_by_majorities(operation):
            for task_id in cancelled_in(operation):
                done[task_id] = min(operation.done_ms, done.get(task_id, operation.done_ms))
    broken = (f"{told.task.hex()} token {told.token:#x}, over at {done[told.task]} ms: {told.operation}"
              for told in evidence.told
              if done.get(told.task, told.operation.invoked_ms) < told.operation.invoked_ms)
    first_ms = min(done.values(), default=0)
    count = sum(1 for told in evidence.told if done and told.operation.invoked_ms > first_ms)
    return judge("C8 a completed or cancelled task is not granted again", count, broken)


def renewals_are_the_holders(evidence: Evidence) -> Finding:
    """[C9] A renewal or another end than completion is by the holder of the task's newest claim, and no end ever
    moves back. An end that is asked for again may have come with the first asking."""
    newest = newest_told(evidence)
    holders = {(told.task, told.token): told.operation.client for told in evidence.told}
    ends: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
    for told in evidence.told:
        ends.setdefault((told.task, told.token), []).append((told.operation.done_ms, told.end_ms))
    renewals = list(granted_renewals(evidence))
    for operation, task_id, token, end_ms in renewals:
        ends.setdefault((task_id, token), []).append((operation.done_ms, end_ms))
    known = {claim: Newest(rows) for claim, rows in ends.items()}
    concluded = list(granted_conclusions(evidence))

    def broken() -> Iterator[str]:
        for operation, task_id, token, _ in renewals + concluded:
            what = f"{task_id.hex()} token {token:#x}"
            if holders.get((task_id, token)) != operation.client:
                yield f"{what} is held by {holders.get((task_id, token))}: {operation}"
            since_ms = operation.asked_ms if isinstance(operation.message, m.Conclude) else operation.invoked_ms
            if task_id in newest and newest[task_id].before(since_ms) > token:
                yield f"{what} is not the newest: {operation}"
        for operation, task_id, token, end_ms in renewals:
            if known[task_id, token].before(operation.invoked_ms) > end_ms:
                yield f"{task_id.hex()} token {token:#x} ends earlier than before: {operation}"
    return judge("C9 renewals are the newest holder's, and move ends forward", len(renewals) + len(concluded),
                 broken())


def granted_renewals(evidence: Evidence) -> Iterator[tuple[Operation, bytes, int, int]]:
    """(operation, id, token, new end) of every renewal, releases left out."""
    for operation in evidence.history.of(m.Renew, Status.OK):
        assert isinstance(operation.message, m.Renew)
        if operation.message.lease_ms:
            for task_id, token, end_ms in renewals_of(operation):
                if end_ms:
                    yield operation, task_id, token, end_ms


def granted_conclusions(evidence: Evidence) -> Iterator[tuple[Operation, bytes, int, int]]:
    """(operation, id, token, from when on the task may be claimed again) of claims ended by their holders."""
    for operation in evidence.history.of(m.Conclude, Status.OK):
        for task_id, token, end_ms in conclusions_of(operation):
            if end_ms:
                yield operation, task_id, token, end_ms


def stale_writers_are_fenced(evidence: Evidence) -> Finding:
    """[C10] A holder of an old token renews and ends nothing with it, nor does one that has ended its claim; and
    what it logs stays under that token."""
    newest = newest_told(evidence)
    ended: dict[tuple[bytes, int], int] = {}
    for operation, task_id, token, _ in granted_conclusions(evidence):
        ended[task_id, token] = min(operation.done_ms, ended.get((task_id, token), operation.done_ms))

    def is_stale(task_id: bytes, token: int, operation: Operation) -> bool:
        is_ended = ended.get((task_id, token), operation.invoked_ms) < operation.invoked_ms
        return is_ended or (task_id in newest and newest[task_id].before(operation.invoked_ms) > token)
    stale = {(entry.task, entry.data): entry for operation in evidence.history.of(m.Append)
             for entry in entries_of(operation) if is_stale(entry.task, entry.token, operation)}
    sent = {entry for operation in evidence.history.of(m.Append) for entry in entries_of(operation)}
    late = [(operation, task_id, token, end_ms) for operation in evidence.history.of(m.Renew, Status.OK)
            for task_id, token, end_ms in renewals_of(operation) if is_stale(task_id, token, operation)]
    late += [(operation, task_id, token, end_ms) for operation in evidence.history.of(m.Conclude, Status.OK)
             for task_id, token, end_ms in conclusions_of(operation)
             if task_id in newest and newest[task_id].before(operation.asked_ms) > token]

    def broken() -> Iterator[str]:
        for operation, task_id, token, end_ms in late:
            if end_ms:
                yield f"{task_id.hex()} token {token:#x} was ended, or not the newest: {operation}"
        for where, entry in entries_seen(evidence):
            if (entry.task, entry.data) in stale and entry not in sent:
                yield f"{stale[entry.task, entry.data]} stands as {entry}: {where}"
    return judge("C10 a stale writer changes nothing of a newer claim", len(late) + len(stale), broken())


def holders_are_pessimists(evidence: Evidence) -> Finding:
    """[C11] A worker stops before the task can be granted again by any clock within the bound.

    Granting waits until the end plus the skew bound, and a granting clock is at most half the bound ahead
    of true time. The end is what leaders told, and no later than any replica still has it recorded.
    """
    ends: dict[tuple[bytes, int], int] = {}
    for told in evidence.told:
        ends[told.task, told.token] = max(told.end_ms, ends.get((told.task, told.token), 0))
    for _, task_id, token, end_ms in granted_renewals(evidence):
        ends[task_id, token] = max(end_ms, ends.get((task_id, token), 0))
    for claim, end_ms in _recorded_ends(evidence).items():
        ends[claim] = min(end_ms, ends.get(claim, 0))
    spare_ms = evidence.skew_ms // 2 + evidence.skew_excess_ms
    holds = [hold for hold in evidence.history.holds if hold.stop_ms > hold.start_ms]
    broken = (f"lease to {ends.get((hold.task, hold.token), 0) - evidence.wall_start_ms} ms: {hold}"
              for hold in holds
              if hold.stop_ms + evidence.wall_start_ms > ends.get((hold.task, hold.token), 0) + spare_ms)
    return judge("C11 a holder gives up before its task is granted again", len(holds), broken)


def _recorded_ends(evidence: Evidence) -> dict[tuple[bytes, int], int]:
    """The latest end of each claim on any replica; none where disks may have forgotten it."""
    ends: dict[tuple[bytes, int], int] = {}
    for histories in evidence.histories.values() if not evidence.struck(LOSSES) else ():
        for task_id, history in histories.items():
            for token, claim in history.claims.entries.items():
                ends[task_id, token] = max(claim.end.value, ends.get((task_id, token), 0))
    return ends


def claims_are_of_the_queue(evidence: Evidence) -> Finding:
    """[C12] A claim gives tasks of the queue it names, each once, and no more than it asks for; and none while all
    nodes know the queue as paused, nor from a node that does."""
    broken = list(granted_though_paused(evidence))
    for told in evidence.told:
        message = told.operation.message
        assert isinstance(message, m.Claim)
        if not told.body or header_of(told.body).queue != message.queue:
            broken.append(f"{told.task.hex()} {told.body!r}: {told.operation}")
    for operation in evidence.history.of(m.Claim, Status.OK):
        assert isinstance(operation.message, m.Claim)
        assert isinstance(operation.answer, m.Claimed)
        tasks = [task_id for batch in operation.answer.batches for task_id in split(batch.ids)]
        if len(tasks) > operation.message.count or len({*tasks}) < len(tasks):
            broken.append(f"{len(tasks)} tasks, {len({*tasks})} different: {operation}")
    return judge("C12 a claim gives what it asks for", len(evidence.told), broken)


def tasks_are_mutexes(evidence: Evidence) -> Finding:
    """[C14] Grants and give-ups of a task are a history of a fenced mutex.

    In token order each grant must find a moment between its question and its answer, after the grant before
    it and after that holder had given up. The first such moment is the best choice, so no search is needed.
    """
    stops = {(hold.task, hold.token): hold.stop_ms for hold in evidence.history.holds
             if hold.stop_ms > hold.start_ms}
    by_task: dict[bytes, list[Told]] = {}
    for told in sorted(evidence.told, key=lambda told: told.token):
        by_task.setdefault(told.task, []).append(told)
    count, broken = 0, []
    for grants in by_task.values():
        count += len(grants) - 1
        free_ms, last = 0, 0
        for told in grants:
            at_ms = max(free_ms, told.operation.invoked_ms)
            if at_ms > told.operation.done_ms + evidence.skew_excess_ms or told.token <= last:
                broken.append(f"token {told.token:#x}, free from {free_ms} ms above {last:#x}: {told.operation}")
            free_ms, last = max(at_ms, stops.get((told.task, told.token), 0)), told.token
    return judge("C14 a task is a fenced mutex", count, broken)
