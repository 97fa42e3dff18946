"""The verbs: what each asks of the cluster, and the table that makes them routes. One more verb is one more row.

A caller may go while its claim waits. That is noticed, the claim is cancelled, and what comes for it all the same
is given back at once instead of lying idle until its lease ends.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from skuld_py.client.claims import ClaimName
from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError, Uncertain
from skuld_py.gateway import answers, requests
from skuld_py.gateway.access import Bearer, Scope
from skuld_py.gateway.backend import Backend
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.problems import Problem, problem_of, refusal
from skuld_py.gateway.values import Asked
from skuld_py.model.ids import TaskId, to_text
from skuld_py.model.leases import RATE, holder_deadline

LOG_PAUSE_S = 0.5
"""Between two looks at a log that is followed."""


@attrs.frozen
class Call:
    """One request: who sends it, when it arrived, and what it may use."""

    backend: Backend
    limits: Limits
    bearer: Bearer
    arrived: float
    id: TaskId | None
    gone: Callable[[], Awaitable[None]]
    """Returns once nobody is there any more to take the answer, or the gateway stops."""
    is_stopping: Callable[[], bool]

    @property
    def task_id(self) -> TaskId:
        """The id in the path."""
        assert self.id is not None
        return self.id


# -- writing -------------------------------------------------------------------------------------


async def _ids_of(call: Call, tasks: Sequence[requests.Content]) -> list[TaskId]:
    """Those given, or fresh ones: with them it can be done again when it is in doubt."""
    return [task.id for task in tasks if task.id is not None] or await call.backend.new_ids(len(tasks))


@contextmanager
def _naming(ids: list[TaskId], *, is_repeatable: bool) -> Iterator[None]:
    """When it is in doubt the answer has the ids, to do it again with."""
    try:
        yield
    except Uncertain as doubt:
        raise problem_of(doubt, is_repeatable=is_repeatable, ids=[to_text(made) for made in ids]) from doubt


async def enqueue(call: Call, asked: requests.Enqueue) -> answers.Enqueued:
    """Store one task."""
    ids = await _ids_of(call, [asked])
    with _naming(ids, is_repeatable=asked.id is not None):
        await call.backend.enqueue(asked.queue, asked.content, ids[0], priority=asked.priority, w=asked.w)
    return answers.Enqueued(id=to_text(ids[0]))


async def enqueue_many(call: Call, asked: requests.EnqueueMany) -> answers.EnqueuedMany:
    """Store many."""
    ids = await _ids_of(call, asked.tasks)
    with _naming(ids, is_repeatable=asked.tasks[0].id is not None):
        await call.backend.enqueue_many(asked.queue, [task.content for task in asked.tasks], ids,
                                        priority=asked.priority, w=asked.w)
    return answers.EnqueuedMany(ids=[to_text(made) for made in ids])


async def mint(call: Call, asked: requests.Mint) -> answers.Ids:
    """Make ids."""
    return answers.Ids(ids=[to_text(task_id) for task_id in await call.backend.new_ids(asked.count)])


async def claim(call: Call, asked: requests.Claim) -> answers.Claimed:
    """Hold tasks, waiting for the first."""
    wait_s = min(asked.wait_s, call.limits.wait_s)
    claiming = asyncio.ensure_future(call.backend.claim(
        asked.queue, n=asked.n, lease_s=asked.lease_s, wait_s=wait_s,
        holder=asked.holder or f"gateway:{call.bearer.name}"[:200]))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((claiming, going), return_when=asyncio.FIRST_COMPLETED)
        if claiming.done():
            found = claiming.result()
        else:  # what comes for it yet, the client gives back
            found = []
        if found and going.done():
            with suppress(SkuldError):  # then they lapse
                await call.backend.release(found)
            found = []
    finally:
        claiming.cancel()
        going.cancel()
    return answers.Claimed(claims=[answers.held(held, _floor_ms((held.deadline - call.arrived) * (1 - 2 * RATE)))
                                   for held in found])


async def renew(call: Call, asked: requests.Renew) -> answers.Renewed:
    """Hold on to one claim."""
    await call.backend.renew(ClaimName(asked.id, asked.token), asked.lease_s)
    return answers.Renewed(id=to_text(asked.id), token=str(asked.token), valid_s=_valid_s(asked.lease_s))


async def renew_many(call: Call, asked: requests.RenewMany) -> answers.RenewedMany:
    """Hold on to many."""
    held = await call.backend.renew_many(_names(asked), asked.lease_s)
    rows = [answers.Renewal(id=to_text(claim.id), token=str(claim.token), is_held=is_held)
            for claim, is_held in zip(asked.claims, held, strict=True)]
    return answers.RenewedMany(claims=rows, valid_s=_valid_s(asked.lease_s))


async def release(call: Call, asked: requests.Claims) -> answers.Done:
    """Give back."""
    await call.backend.release(_names(asked))
    return answers.Done(count=len(asked.claims))


async def append(call: Call, asked: requests.Append) -> answers.Appended:
    """Add to a log."""
    entries = [entry.content for entry in asked.entries]
    next_seq = await call.backend.append(ClaimName(asked.id, asked.token), entries, seq=asked.seq, w=asked.w)
    return answers.Appended(next_seq=next_seq)


async def complete(call: Call, asked: requests.Complete) -> answers.Done:
    """End one task."""
    await call.backend.complete(ClaimName(asked.id, asked.token), asked.content, asked.w)
    return answers.Done(count=1)


async def fail(call: Call, asked: requests.Fail) -> answers.Done:
    """End an attempt."""
    await call.backend.fail(ClaimName(asked.id, asked.token), asked.error, asked.retry_in_s)
    return answers.Done(count=1)


async def snooze(call: Call, asked: requests.Snooze) -> answers.Done:
    """Put off."""
    await call.backend.snooze(ClaimName(asked.id, asked.token), asked.delay_s)
    return answers.Done(count=1)


async def cancel(call: Call, asked: requests.Cancel) -> answers.Done:
    """Take back."""
    await call.backend.cancel(asked.ids, asked.w)
    return answers.Done(count=len(asked.ids))


async def retry(call: Call, asked: requests.Retry) -> answers.Done:
    """Begin anew."""
    await call.backend.retry(asked.ids)
    return answers.Done(count=len(asked.ids))


async def complete_many(call: Call, asked: requests.CompleteMany) -> answers.Done:
    """End many."""
    await call.backend.complete_many(_names(asked), asked.w)
    return answers.Done(count=len(asked.claims))


def _names(asked: requests.Claims) -> list[ClaimName]:
    return [ClaimName(claim.id, claim.token) for claim in asked.claims]


def _valid_s(lease_s: float) -> float:
    """How long a renewal holds, from when the caller sent it: it arrived here before the lease was counted.

    The caller's clock is one more whose rate may be wrong, beside the three that the deadline allows for.
    """
    return _floor_ms(holder_deadline(0.0, lease_s) * (1 - 2 * RATE))


def _floor_ms(seconds: float) -> float:
    return max(0.0, math.floor(seconds * 1000) / 1000)


# -- reading -------------------------------------------------------------------------------------


async def get(call: Call, _: requests.NoInput) -> answers.TaskDocument:
    """One task."""
    return answers.task(await call.backend.get(call.task_id), answers.now_ms(), has_logs=True)


async def get_many(call: Call, asked: requests.GetMany) -> AsyncIterator[list[answers.TaskDocument]]:
    """Those that exist."""
    async for found in call.backend.get_many(list(dict.fromkeys(asked.ids))):
        yield [answers.task(view, answers.now_ms(), has_logs=True) for view in found]


async def list_tasks(call: Call, asked: requests.Page) -> AsyncIterator[list[answers.TaskDocument]]:
    """All, in order."""
    async for found in call.backend.list(asked.queue, asked.limit):
        yield [answers.task(view, answers.now_ms(), has_logs=False) for view in found]


async def log(call: Call, asked: requests.Follow) -> AsyncIterator[list[answers.LogLine]]:
    """What claims have noted; then what they note."""
    until = steady_s() + min(asked.wait_s, call.limits.wait_s)
    shown: dict[int, int] = {}
    while True:
        view = await call.backend.get(call.task_id)
        claims = [claim for claim in view.claims if asked.token in (None, claim.token)]
        if asked.token is not None and not claims:
            raise refusal("no_such_claim", f"token: the task was never claimed with {asked.token}", field="token")
        yield [line for claim in claims for line in answers.log_lines(claim, shown.get(claim.token, 0))]
        shown |= {claim.token: len(claim.log) for claim in claims}
        if not asked.follow or view.is_completed or steady_s() >= until or call.is_stopping():
            return
        await asyncio.sleep(max(0.0, min(LOG_PAUSE_S, until - steady_s())))


async def count(call: Call, asked: requests.Queue) -> answers.Counted:
    """How many."""
    return answers.Counted(count=await call.backend.count(asked.queue))


async def queues(call: Call, _: requests.NoInput) -> answers.Queues:
    """How many of each queue, in which state."""
    rows = sorted((await call.backend.depths()).items())
    return answers.Queues(queues=[
        answers.QueueDepth(queue=queue, waiting=depth.waiting, claimed=depth.claimed, completed=depth.completed)
        for queue, depth in rows])


async def status(call: Call, _: requests.NoInput) -> dict[str, Any]:
    """The cluster."""
    found = attrs.asdict(await call.backend.status())
    return {name: value for name, value in found.items() if name != "request"}


async def health(_: Call, __: requests.NoInput) -> answers.Health:
    """The gateway."""
    return answers.Health(is_well=True)


# -- the table -----------------------------------------------------------------------------------

Handler = Callable[[Call, Any], Any]


@attrs.frozen
class Verb:
    """A route. ``asks`` is its body for POST, its query for GET; ``answers`` its answer, or one line of it.

    ``is_repeatable``: sent twice it does the same as once, so that what is uncertain may be sent again. Without a
    scope it is open to everybody.
    """

    method: str
    path: str
    scope: Scope | None
    handler: Handler
    asks: type[Asked]
    answers: Any
    summary: str
    is_repeatable: bool = True
    is_stream: bool = False

    @property
    def name(self) -> str:
        """The name of the operation in the OpenAPI document."""
        return self.handler.__name__

    @property
    def has_id(self) -> bool:
        """Whether the path names a task."""
        return "{id}" in self.path


VERBS = (
    Verb("POST", "/v1/tasks/enqueue", Scope.ENQUEUE, enqueue, requests.Enqueue, answers.Enqueued,
         "Store a task. With an id of the caller's it may be sent again and again."),
    Verb("POST", "/v1/tasks/enqueue_many", Scope.ENQUEUE, enqueue_many, requests.EnqueueMany,
         answers.EnqueuedMany, "Store many tasks."),
    Verb("GET", "/v1/ids", Scope.ENQUEUE, mint, requests.Mint, answers.Ids,
         "Make ids for tasks yet to be enqueued; stores nothing."),
    Verb("POST", "/v1/tasks/claim", Scope.WORK, claim, requests.Claim, answers.Claimed,
         "Hold tasks under a lease, best first; wait for one. Not to be sent again when its outcome is uncertain:"
         " a lease may be out that nobody holds, and lapses.", is_repeatable=False),
    Verb("POST", "/v1/tasks/renew", Scope.WORK, renew, requests.Renew, answers.Renewed,
         "Hold on to a claim; 409 when it is lost."),
    Verb("POST", "/v1/tasks/renew_many", Scope.WORK, renew_many, requests.RenewMany, answers.RenewedMany,
         "Hold on to many claims; says of each whether it is held."),
    Verb("POST", "/v1/tasks/release", Scope.WORK, release, requests.Claims, answers.Done,
         "Give claims back: their tasks wait again. A claim already lost is no error."),
    Verb("POST", "/v1/tasks/append", Scope.WORK, append, requests.Append, answers.Appended,
         "Add numbered entries to a claim's log."),
    Verb("POST", "/v1/tasks/complete", Scope.WORK, complete, requests.Complete, answers.Done,
         "Record that a task is done: from any of its claims, however late, and for good."),
    Verb("POST", "/v1/tasks/complete_many", Scope.WORK, complete_many, requests.CompleteMany, answers.Done,
         "Record that many tasks are done."),
    Verb("POST", "/v1/tasks/fail", Scope.WORK, fail, requests.Fail, answers.Done,
         "Record that an attempt has failed; the task is tried again, or is dead. 409 when the claim is lost."),
    Verb("POST", "/v1/tasks/snooze", Scope.WORK, snooze, requests.Snooze, answers.Done,
         "Give a task back for later; no attempt is counted. 409 when the claim is lost."),
    Verb("POST", "/v1/tasks/cancel", Scope.ENQUEUE, cancel, requests.Cancel, answers.Done,
         "Let nobody claim these tasks any more. It cannot be taken back."),
    Verb("POST", "/v1/tasks/retry", Scope.ADMIN, retry, requests.Retry, answers.Done,
         "Let dead tasks begin anew; 409 about those that are not dead, the others are retried."),
    Verb("GET", "/v1/tasks/list", Scope.READ, list_tasks, requests.Page, answers.TaskDocument,
         "Tasks in id order, which is the order of their making, one JSON document a line.", is_stream=True),
    Verb("GET", "/v1/tasks/count", Scope.READ, count, requests.Queue, answers.Counted,
         "How many tasks there are, completed ones included."),
    Verb("GET", "/v1/queues", Scope.READ, queues, requests.NoInput, answers.Queues,
         "All queues, with how many tasks wait, are claimed, are completed."),
    Verb("POST", "/v1/tasks/get_many", Scope.READ, get_many, requests.GetMany, answers.TaskDocument,
         "The tasks among these ids that exist, with their logs, one JSON document a line.", is_stream=True),
    Verb("GET", "/v1/tasks/{id}", Scope.READ, get, requests.NoInput, answers.TaskDocument,
         "A task with all its claims and their logs."),
    Verb("GET", "/v1/tasks/{id}/log", Scope.READ, log, requests.Follow, answers.LogLine,
         "The log of a task's claims, one entry a line; with follow, what comes as well.", is_stream=True),
    Verb("GET", "/v1/status", Scope.ADMIN, status, requests.NoInput, answers.Status,
         "The cluster as one of its nodes sees it: nodes, partitions, leaders, data on the move."),
    Verb("GET", "/v1/health", None, health, requests.NoInput, answers.Health,
         "Whether the gateway runs."),
)


def by_path() -> Mapping[str, Mapping[str, Verb]]:
    """The verbs of each path, by method; literal paths before those with an id, as they are matched."""
    found: dict[str, dict[str, Verb]] = {}
    for verb in sorted(VERBS, key=lambda verb: verb.has_id):
        found.setdefault(verb.path, {})[verb.method] = verb
    return found


def problem_for(error: SkuldError, verb: Verb) -> Problem:
    """What a verb's error is to its caller."""
    return problem_of(error, is_repeatable=verb.is_repeatable)
