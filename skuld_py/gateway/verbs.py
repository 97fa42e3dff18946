"""The table of the verbs that makes them routes. One more verb is one more row here.

What each asks of the cluster: ``enqueueing``, ``holding``, ``reading``, ``pausing``; what it may be asked:
``requests``; what it answers: ``verbs.documents``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from skuld_py.errors import SkuldError
from skuld_py.gateway import (
    enqueue_requests,
    enqueueing,
    holding,
    limiting,
    pausing,
    periodic,
    reading,
    requests,
)
from skuld_py.gateway.access import Scope
from skuld_py.gateway.call import Call
from skuld_py.gateway.problems import Problem, problem_of
from skuld_py.gateway.values import Asked
from skuld_py.verbs import documents

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
    Verb("POST", "/v1/tasks/enqueue", Scope.ENQUEUE, enqueueing.enqueue, enqueue_requests.Enqueue,
         documents.Enqueued, "Store a task. With an id of the caller's it may be sent again and again."),
    Verb("POST", "/v1/tasks/enqueue_many", Scope.ENQUEUE, enqueueing.enqueue_many, enqueue_requests.EnqueueMany,
         documents.EnqueuedMany, "Store many tasks."),
    Verb("GET", "/v1/ids", Scope.ENQUEUE, enqueueing.mint, enqueue_requests.Mint, documents.Ids,
         "Make ids for tasks yet to be enqueued; stores nothing."),
    Verb("POST", "/v1/tasks/claim", Scope.WORK, holding.claim, requests.Claim, documents.Claimed,
         "Hold tasks under a lease, best first; wait for one. Not to be sent again when its outcome is uncertain:"
         " a lease may be out that nobody holds, and lapses.", is_repeatable=False),
    Verb("POST", "/v1/tasks/renew", Scope.WORK, holding.renew, requests.Renew, documents.Renewed,
         "Hold on to a claim; 409 when it is lost."),
    Verb("POST", "/v1/tasks/renew_many", Scope.WORK, holding.renew_many, requests.RenewMany, documents.RenewedMany,
         "Hold on to many claims; says of each whether it is held."),
    Verb("POST", "/v1/tasks/release", Scope.WORK, holding.release, requests.Claims, documents.Done,
         "Give claims back: their tasks wait again. A claim already lost is no error."),
    Verb("POST", "/v1/tasks/append", Scope.WORK, holding.append, requests.Append, documents.Appended,
         "Add numbered entries to a claim's log."),
    Verb("POST", "/v1/tasks/complete", Scope.WORK, holding.complete, requests.Complete, documents.Done,
         "Record that a task is done: from any of its claims, however late, and for good."),
    Verb("POST", "/v1/tasks/complete_many", Scope.WORK, holding.complete_many, requests.CompleteMany,
         documents.Done, "Record that many tasks are done."),
    Verb("POST", "/v1/tasks/fail", Scope.WORK, holding.fail, requests.Fail, documents.Done,
         "Record that an attempt has failed; the task is tried again, or is dead. 409 when the claim is lost."),
    Verb("POST", "/v1/tasks/fail_many", Scope.WORK, holding.fail_many, requests.FailMany, documents.FailedMany,
         "Record that many attempts have failed; says of each whether it was held."),
    Verb("POST", "/v1/tasks/snooze", Scope.WORK, holding.snooze, requests.Snooze, documents.Done,
         "Give a task back for later; no attempt is counted. 409 when the claim is lost."),
    Verb("POST", "/v1/tasks/cancel", Scope.ENQUEUE, enqueueing.cancel, enqueue_requests.Cancel, documents.Done,
         "Let nobody claim these tasks any more. It cannot be taken back."),
    Verb("POST", "/v1/tasks/retry", Scope.ADMIN, enqueueing.retry, enqueue_requests.Retry, documents.Done,
         "Let dead tasks begin anew; 409 about those that are not dead, the others are retried."),
    Verb("GET", "/v1/tasks/list", Scope.READ, reading.list_tasks, requests.Page, documents.TaskDocument,
         "Tasks in id order, which is the order of their making, one JSON document a line.", is_stream=True),
    Verb("GET", "/v1/tasks/count", Scope.READ, reading.count, requests.Count, documents.Counted,
         "How many tasks there are, completed ones included, or how many in some states."),
    Verb("POST", "/v1/tasks/results", Scope.READ, reading.results, requests.Results, documents.Ends,
         "How tasks have ended, with their results; waits until all of them have. 404 when one is collected."),
    Verb("GET", "/v1/queues", Scope.READ, reading.queues, requests.NoInput, documents.Queues,
         "All queues, with how many tasks are in each state."),
    Verb("POST", "/v1/queues/pause", Scope.ADMIN, pausing.pause, requests.QueueName, documents.Paused,
         "Let nothing more be claimed from a queue. Claims that are held stay, tasks may be added."),
    Verb("POST", "/v1/queues/resume", Scope.ADMIN, pausing.resume, requests.QueueName, documents.Paused,
         "Let a queue's tasks be claimed again."),
    Verb("POST", "/v1/schedules/put", Scope.ADMIN, periodic.put_schedule, periodic.PutSchedule,
         documents.Scheduled, "Have a task enqueued at each tick of a cron line, or every so many seconds."),
    Verb("POST", "/v1/schedules/remove", Scope.ADMIN, periodic.remove_schedule, periodic.RemoveSchedule,
         documents.Scheduled, "Have no more tasks enqueued by a schedule; 404 when there is none.",
         is_repeatable=False),
    Verb("GET", "/v1/schedules", Scope.READ, periodic.schedules, requests.NoInput, documents.Schedules,
         "The periodic tasks."),
    Verb("GET", "/v1/queues/paused", Scope.READ, pausing.paused, requests.NoInput, documents.PausedQueues,
         "The queues that are paused."),
    Verb("POST", "/v1/tasks/get_many", Scope.READ, reading.get_many, requests.GetMany, documents.TaskDocument,
         "The tasks among these ids that exist, with their logs, one JSON document a line.", is_stream=True),
    Verb("GET", "/v1/tasks/{id}", Scope.READ, reading.get, requests.Get, documents.TaskDocument,
         "A task with all its claims and their logs."),
    Verb("GET", "/v1/tasks/{id}/log", Scope.READ, reading.log, requests.Follow, documents.LogLine,
         "The log of a task's claims, one entry a line; with follow, what comes as well.", is_stream=True),
    Verb("POST", "/v1/queues/limit", Scope.ADMIN, limiting.set_limits, requests.SetLimits, documents.Limited,
         "Limit how much of a queue is claimed at once, or in a time. These replace all limits that it had."),
    Verb("POST", "/v1/queues/unlimit", Scope.ADMIN, limiting.remove_limits, requests.QueueName, documents.Limited,
         "Limit a queue no more."),
    Verb("GET", "/v1/queues/limits", Scope.READ, limiting.limits, requests.LimitedQueue, documents.LimitsOfQueues,
         "The limits of queues."),
    Verb("GET", "/v1/status", Scope.ADMIN, reading.status, requests.NoInput, documents.Status,
         "The cluster as one of its nodes sees it: nodes, partitions, leaders, data on the move."),
    Verb("GET", "/v1/health", None, reading.health, requests.NoInput, documents.Health,
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
