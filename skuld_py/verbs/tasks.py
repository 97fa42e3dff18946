"""The verbs about tasks that need no claim: decide about them, or read them. Tasks are named by their ids, several
at once, and all of these may be repeated safely.

Each door does streams, and waits that can be given up, by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skuld_py.verbs import documents as d
from skuld_py.verbs.options import (
    ANY_QUEUE,
    ARGUMENT,
    COPIES,
    ERROR,
    FUNCTION,
    HEADER,
    IDS,
    IN_STATES,
    LOG_WAIT_S,
    OF_KEY,
    SAFE_MAX,
    SINCE,
    TOKEN,
    UNTIL,
    WAIT,
    Option,
    Plain,
    Request,
    Whole,
)
from skuld_py.verbs.verb import Scope, by_hand, verb
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient


def _cancelled(done: d.Cancelled) -> str:
    words = f"{many(done['count'], 'task')} cancelled"
    return f"{words}, {done['completed']} had been completed" if done["completed"] else words


@verb("POST /v1/tasks/cancel", Scope.ENQUEUE,
      Request("Cancel", "Tasks that nobody wants done any more.", (IDS, COPIES)), d.Cancelled,
      "Let nobody claim these tasks any more; says how many had been completed. It cannot be taken back.",
      command="cancel", says=lambda done, _: (_cancelled(done), {"cancelled": done["count"],
                                                                 "completed": done["completed"]}))
async def cancel(client: AsyncClient, ids: Sequence[bytes], w: int | None) -> d.Cancelled:
    """Cancel the tasks ID...: nobody claims them any more, and who holds one learns it when he renews.

    Says how many are cancelled, and how many had been completed before, which stay as they are. One that was
    cancelled before counts as cancelled, so it may be said again.

    \b
    Example:
      skuld cancel 000006cvl5s5o0000000e1k0g5u3k7qh
    """
    named = dict.fromkeys(ids)
    count = await client.cancel(*named, w=w)
    return d.Cancelled(count=count, completed=len(named) - count)


@verb("POST /v1/tasks/retry", Scope.ADMIN, Request("Retry", "Dead tasks that are to begin anew.", (IDS,)), d.Done,
      "Let dead tasks begin anew; 409 about those that are not dead, the others are retried.", command="retry",
      says=lambda done, _: (f"{many(done['count'], 'task')} revived", {"revived": done["count"]}))
async def retry(client: AsyncClient, ids: Sequence[bytes]) -> d.Done:
    """Let the dead tasks ID... be claimed again, with all their attempts before them.

    \b
    Example:
      skuld retry 000006cvl5s5o0000000e1k0g5u3k7qh
    """
    await client.retry(*ids)
    return d.Done(count=len(ids))


get = by_hand(
    "get", "GET /v1/tasks/{id}", Scope.READ,
    Request("Get", "What a task must show at least.", (
        Option(
            "min_seq", Whole(0, SAFE_MAX), 0, shown="none", typed=Whole(0),
            help="Fail when less is known than the seq that an earlier get --json showed.",
            told="The seq of what was seen before: who knows less is not believed."),)),
    d.TaskDocument, "A task with all its claims and their logs.", command="get")

get_many = by_hand(
    "get_many", "POST /v1/tasks/get_many", Scope.READ, Request("GetMany", "Tasks by their ids.", (IDS,)),
    d.TaskDocument, "The tasks among these ids that exist, with their logs, one JSON document a line.",
    is_stream=True)

results = by_hand(
    "results", "POST /v1/tasks/results", Scope.READ,
    Request("Results", "Tasks by their ids, and how long to wait until all of them have ended.", (
        IDS, WAIT._replace(
            help="Wait until all of them have ended, for so long; fail if they have not by then.",
            told="The gateway waits no longer than its own limit."))),
    d.Ends, "How tasks have ended, with their results; waits until all of them have. 404 when one is collected.",
    command="results")

log = by_hand(
    "log", "GET /v1/tasks/{id}/log", Scope.READ,
    Request("Follow", "Which part of a log to read, and whether to wait for what comes.", (
        TOKEN,
        Option(
            "follow", Plain.FLAG, False, flag="-f/--follow",
            help="Go on with what is added, as it comes, until the task has ended or Ctrl-C.",
            told="Go on with what comes, for wait_s or until the task is completed."),
        WAIT._replace(
            default=LOG_WAIT_S,
            told="How long to follow; the gateway follows no longer than its own limit."))),
    d.LogLine, "The log of a task's claims, one entry a line; with follow, what comes as well.", command="log",
    is_stream=True)

list_tasks = by_hand(
    "list_tasks", "GET /v1/tasks/list", Scope.READ,
    Request("Page", "Which tasks to list.", (
        ANY_QUEUE,
        Option(
            "limit", Whole(1), None, shown="all",
            help="How many tasks at most.",
            told="At most so many; all if left out."),
        IN_STATES, SINCE, UNTIL, FUNCTION, ARGUMENT, HEADER, ERROR, OF_KEY,
        Option(
            "after", Plain.ID, None, shown="the beginning",
            help="Only what stands behind this task, such as the last one of a page before.",
            told=None))),
    d.TaskDocument, "Tasks in id order, which is the order of their making, one JSON document a line.",
    command="list", is_stream=True)


@verb("GET /v1/tasks/count", Scope.READ, Request("Count", "Which tasks to count.", (ANY_QUEUE, IN_STATES)),
      d.Counted, "How many tasks there are, completed ones included, or how many in some states.", command="count",
      says=lambda done, given: (str(done["count"]), {"queue": given["queue"], **done}))
async def count(client: AsyncClient, queue: str | None, states: Sequence[str]) -> d.Counted:
    """Print how many tasks QUEUE holds, or the whole cluster; whatever their state.

    \b
    Examples:
      skuld count
      skuld count reports --state waiting
      skuld count reports --json
    """
    from skuld_py.model.names import check_name

    if queue is not None:
        check_name("queue", queue)
    return d.Counted(count=await client.count(queue, states=states))


VERBS = (cancel, retry, get, get_many, results, log, list_tasks, count)
