"""The verbs about whole queues, periodic tasks and the cluster.

A setting is in force where it is known, so each answer names the nodes that have not confirmed it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from skuld_py.errors import Refused
from skuld_py.verbs import documents as d
from skuld_py.verbs import situations
from skuld_py.verbs.enqueueing import retry_of
from skuld_py.verbs.options import (
    ANY_QUEUE,
    CALLED,
    DAY_S,
    HEADERS,
    NAME,
    PAYLOAD,
    PRIORITY,
    QUEUE,
    RETRY,
    Line,
    Option,
    Plain,
    Request,
    Seconds,
    Whole,
)
from skuld_py.verbs.verb import Given, Said, Scope, by_hand, verb
from skuld_py.verbs.words import except_at, many, said

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient

NOTHING = Request("NoInput", "Nothing can be asked for.")
QUEUE_NAME = Request("QueueName", "A queue.", (QUEUE,))


@verb("POST /v1/queues/pause", Scope.ADMIN, QUEUE_NAME, d.Paused,
      "Let nothing more be claimed from a queue. Claims that are held stay, tasks may be added.", command="pause",
      says=lambda done, _: (f"{done['queue']} is paused{except_at(done['missing'])}", done))
async def pause(client: AsyncClient, queue: str) -> d.Paused:
    """Let nothing more be claimed from QUEUE until it is resumed.

    Claims that are held stay; tasks may be added.

    \b
    Example:
      skuld pause reports
    """
    return d.Paused(queue=queue, is_paused=True, missing=await client.pause(queue))


@verb("POST /v1/queues/resume", Scope.ADMIN, QUEUE_NAME, d.Paused, "Let a queue's tasks be claimed again.",
      command="resume", says=lambda done, _: (f"{done['queue']} is resumed{except_at(done['missing'])}", done))
async def resume(client: AsyncClient, queue: str) -> d.Paused:
    """Let the tasks of QUEUE be claimed again.

    \b
    Example:
      skuld resume reports
    """
    return d.Paused(queue=queue, is_paused=False, missing=await client.resume(queue))


@verb("GET /v1/queues/paused", Scope.READ, NOTHING, d.PausedQueues, "The queues that are paused.",
      command="paused", says=lambda done, _: ("\n".join(done["queues"]) or "no queue is paused", done))
async def paused(client: AsyncClient) -> d.PausedQueues:
    """Print the queues that are paused.

    \b
    Example:
      skuld paused --json
    """
    return d.PausedQueues(queues=await client.paused())


@verb("POST /v1/queues/purge", Scope.ADMIN, QUEUE_NAME, d.Done,
      "Cancel all tasks of a queue that wait, are scheduled or blocked; says how many. Claimed ones go on.",
      command="purge", is_long=True, says=lambda done, given: (
          f"{many(done['count'], 'task')} of {given['queue']} cancelled",
          {"queue": given["queue"], "cancelled": done["count"]}))
async def purge(client: AsyncClient, queue: str, progress: Callable[[int], None]) -> d.Done:
    """Cancel all tasks of QUEUE that wait, are scheduled or blocked. It cannot be taken back.

    Claimed ones go on, and are ended by their holders; what comes meanwhile is cancelled, too, so pause what
    enqueues first. A page at a time: after an error some are cancelled; run it again.

    \b
    Example:
      skuld purge reports
    """
    return d.Done(count=await client.purge(queue, progress=progress))


@verb("GET /v1/queues", Scope.READ, NOTHING, d.Queues, "All queues, with how many tasks are in each state.")
async def queues(client: AsyncClient) -> d.Queues:
    """How many of each queue, in which state."""
    rows = sorted((await client.depths()).items())
    return d.Queues(queues=[d.depth(queue, of) for queue, of in rows])


# -- periodic tasks ------------------------------------------------------------------------------


def _check_ticks(asked: Any) -> None:
    if asked.call is not None and (asked.payload is not None or asked.payload_base64 is not None):
        raise Refused("bad_payload", "payload: give a payload or a call, not both")
    if (asked.cron is None) == (asked.every_s is None):
        raise Refused("bad_schedule", "cron: give either cron or every_s")


@verb("POST /v1/schedules/put", Scope.ADMIN,
      Request("PutSchedule", "A periodic task; the schedule of this name that there was is replaced.", (
          NAME, QUEUE,
          PAYLOAD._replace(default=b"", is_word=True, told="Each task's content"), CALLED,
          Option(
              "cron", Line(1, 255, "30 2 * * *"), None, word="LINE", shown=False,
              help="Five fields: minute, hour, day of the month, month, day of the week.",
              told="Minute, hour, day of the month, month, day of the week."),
          Option(
              "zone", Line(0, 255), "UTC", word="ZONE",
              help="The time zone of --cron, as Europe/Berlin.",
              told="The time zone of cron."),
          Option(
              "every_s", Seconds(0.1, 366 * DAY_S), None, shown=False,
              help="Instead of --cron: at the multiples of this since 1970.",
              told="Instead of cron: at the multiples of so many seconds since 1970."),
          PRIORITY,
          Option(
              "catch_up", Whole(0, 100), 0,
              help="How many missed ticks are made up for, besides the newest.",
              told=None),
          RETRY, HEADERS), either=("cron", "every_s"), checks=(_check_ticks,)),
      d.Scheduled, "Have a task enqueued at each tick of a cron line, or every so many seconds.",
      command="schedule put", says=lambda done, given: (
          f"schedule {done['name']} is put{except_at(done['missing'])}", {**done, "queue": given["queue"]}))
async def put_schedule(client: AsyncClient, name: str, queue: str, payload: bytes, called: bytes | None,
                       retry: Given | None, **options: Any) -> d.Scheduled:
    """Have a task with PAYLOAD enqueued to QUEUE at each tick of the schedule NAME, from now on.

    \b
    Examples:
      skuld schedule put nightly reports all --cron '30 2 * * *' --zone Europe/Berlin
      skuld schedule put beat health --every 10s
      skuld schedule put sums shop --call shop:add --arg 2 --arg b=3 --every 1h
    """
    if called is not None and payload:
        raise Refused("bad_payload", "payload: give a payload or a call, not both")
    missing = await client.put_schedule(name, queue, called or payload, retry=retry_of(retry), **options)
    return d.Scheduled(name=name, missing=missing)


def _say_schedules(done: d.Schedules, _: Given) -> Said:
    rows = [{**row, "when": _when(row), "next": _next(row, time.time_ns() // 1_000_000)}
            for row in done["schedules"]]
    words = [f"{row['name']}  {row['when']}  queue {row['queue']}  next {row['next'] or 'unknown'}"
             + (f"  {row['call']}" if row["call"] else "") for row in rows]
    return "\n".join(words) or "there are no schedules", {"schedules": rows}


def _when(row: d.ScheduleDocument) -> str:
    return f"cron {row['cron']} {row['zone']}" if row["cron"] else f"every {said(row['every_s'] or 0)}"


def _next(row: d.ScheduleDocument, now_ms: int) -> str | None:
    """The next tick by this machine's clock and time zones."""
    from datetime import UTC, datetime

    from skuld_py.almanac import next_tick

    try:
        every_ms = round((row["every_s"] or 0) * 1000)
        tick_ms = (next_tick(row["cron"], row["zone"], now_ms) if row["cron"]
                   else (now_ms // every_ms + 1) * every_ms)
    except Refused:
        return None
    return None if tick_ms is None else datetime.fromtimestamp(tick_ms / 1000, UTC).isoformat()


@verb("GET /v1/schedules", Scope.READ, NOTHING, d.Schedules, "The periodic tasks.", command="schedule list",
      says=_say_schedules)
async def schedules(client: AsyncClient) -> d.Schedules:
    """Print the schedules, and when each is due next.

    \b
    Example:
      skuld schedule list --json
    """
    return d.Schedules(schedules=[d.schedule(made) for made in await client.schedules()])


@verb("POST /v1/schedules/remove", Scope.ADMIN, Request("RemoveSchedule", "A schedule that is to end.", (NAME,)),
      d.Scheduled, "Have no more tasks enqueued by a schedule; 404 when there is none.", command="schedule remove",
      says=lambda done, _: (f"schedule {done['name']} is removed{except_at(done['missing'])}", done),
      is_repeatable=False)
async def remove_schedule(client: AsyncClient, name: str) -> d.Scheduled:
    """Have nothing more enqueued by the schedule NAME. Tasks that are there stay.

    \b
    Example:
      skuld schedule remove nightly
    """
    return d.Scheduled(name=name, missing=await client.remove_schedule(name))


# -- limits --------------------------------------------------------------------------------------


@verb("POST /v1/queues/limit", Scope.ADMIN,
      Request("SetLimits", "The limits of a queue; what is left out is not limited.", (
          QUEUE,
          Option(
              "concurrency", Whole(1, 1_000_000), None, typed=Whole(1),
              help="So many tasks claimed at once, by all workers together.",
              told="So many tasks claimed at once."),
          Option(
              "rate", Whole(1, 1_000_000), None, typed=Whole(1),
              help="So many tasks claimed in the time of --per.",
              told="So many tasks claimed in per_s."),
          Option(
              "per_s", Seconds(0.001, DAY_S), 1.0,
              help="The time that --rate is for.",
              told="The time that the rate is for."),
          Option(
              "burst", Whole(1, 1_000_000), None, shown="what the rate gives in a second", typed=Whole(1),
              help="So many more than the rate in any time.",
              told="So many more than the rate in any time; if left out, what the rate gives in a second."),
          Option(
              "key_concurrency", Whole(1, 1_000), None, shown="1", typed=Whole(1),
              help="So many tasks of one ordering key claimed at once.",
              told="So many tasks of one ordering key claimed at once; 1 if left out."),
          Option(
              "holder_concurrency", Whole(1, 1_000_000), None, typed=Whole(1),
              help="So many tasks claimed at once by one holder, as its leaders see it.",
              told="So many tasks claimed at once by one holder, as its leaders see it: a holder that asks several"
                   " nodes in the same moment may get more."),
          Option(
              "longest_lease_s", Seconds(0.001, DAY_S), None, flag="--longest-lease",
              help="Nobody may claim for longer.",
              told="Who claims for longer than so many seconds is refused (lease_too_long); renewals are not."))),
      d.Limited, "Limit how much of a queue is claimed at once, or in a time. These replace all limits that it"
      " had.",
      command="limit", says=lambda done, _: (f"{done['queue']} is limited{except_at(done['missing'])}", done))
async def set_limits(client: AsyncClient, queue: str, **limits: Any) -> d.Limited:
    """Limit how much of QUEUE is claimed at once, or in a time.

    These replace all limits that the queue had. Claims that are held stay.

    \b
    Examples:
      skuld limit reports --concurrency 3
      skuld limit mails --rate 100 --per 1m --burst 10
      skuld limit reports --holder-concurrency 5 --longest-lease 10m
    """
    return d.Limited(queue=queue, is_limited=True, missing=await client.set_limits(queue, **limits))


@verb("POST /v1/queues/unlimit", Scope.ADMIN, QUEUE_NAME, d.Limited, "Limit a queue no more.", command="unlimit",
      says=lambda done, _: (f"{done['queue']} has no limits{except_at(done['missing'])}", done))
async def remove_limits(client: AsyncClient, queue: str) -> d.Limited:
    """Limit QUEUE no more.

    \b
    Example:
      skuld unlimit reports
    """
    return d.Limited(queue=queue, is_limited=False, missing=await client.remove_limits(queue))


def _say_limits(done: d.LimitsOfQueues, given: Given) -> Said:
    rows = {row["queue"]: {name: number for name, number in row.items() if name != "queue"}
            for row in done["queues"]}
    lines = [f"{queue}: {_in_words(limits)}" for queue, limits in rows.items()]
    nothing = "no queue is limited" if given["queue"] is None else f"{given['queue']} has no limits"
    return "\n".join(lines) or nothing, {"queues": rows}


def _in_words(limits: Mapping[str, Any]) -> str:
    words = []
    if "concurrency" in limits:
        words.append(f"{limits['concurrency']} claimed at once")
    if "rate" in limits:
        words.append(f"{limits['rate']} claimed in {said(limits['window_ms'] / 1000)}, and {limits['burst']} more")
    if "key_concurrency" in limits:
        words.append(f"{limits['key_concurrency']} of a key claimed at once")
    if "holder_concurrency" in limits:
        words.append(f"{limits['holder_concurrency']} claimed at once by one holder")
    if "lease_ms" in limits:
        words.append(f"claimed for {said(limits['lease_ms'] / 1000)} at most")
    return ", ".join(words)


@verb("GET /v1/queues/limits", Scope.READ, Request("LimitedQueue", "Whose limits to tell.", (ANY_QUEUE,)),
      d.LimitsOfQueues, "The limits of queues.", command="limits", says=_say_limits)
async def limits(client: AsyncClient, queue: str | None) -> d.LimitsOfQueues:
    """Print the limits of QUEUE, or of all queues that have some.

    \b
    Examples:
      skuld limits
      skuld limits reports --json
    """
    found = await client.limits(queue)
    return d.LimitsOfQueues(queues=[d.limits_of(name, of) for name, of in found.items()])


# -- quotas --------------------------------------------------------------------------------------

PREFIX = Option(
    "prefix", Plain.NAME, is_word=True, told="How the names of the queues begin, as 'team-a.'.")


@verb("POST /v1/quotas/put", Scope.ADMIN,
      Request("SetQuota", "How many tasks may be open of all queues that begin alike.", (
          PREFIX,
          Option(
              "open", Whole(1, 1_000_000_000), typed=Whole(1),
              help="So many tasks that have not ended.",
              told="So many tasks that have not ended, about: each node counts by its copies, once a second."))),
      d.QuotaSet, "Let only so many tasks be open of all queues that begin alike: what is enqueued beyond is"
      " refused (quota_full).", command="quota", says=lambda done, _: (
          f"of queues that begin with {done['prefix']} {done['open']} tasks may be open"
          f"{except_at(done['missing'])}", done))
async def set_quota(client: AsyncClient, prefix: str, open: int) -> d.QuotaSet:
    """Let only so many tasks be open of all queues that begin with PREFIX.

    Open is what has not ended. What is enqueued beyond is refused; what is there stays. Each node counts by its
    own copies, about once a second, so it may be exceeded by what other nodes let in meanwhile.

    \b
    Example:
      skuld quota team-a. --open 100000
    """
    return d.QuotaSet(prefix=prefix, open=open, missing=await client.set_quota(prefix, open))


@verb("POST /v1/quotas/remove", Scope.ADMIN, Request("RemoveQuota", "A quota that is to end.", (PREFIX,)),
      d.QuotaSet, "Let any number of tasks be open of the queues that begin so.", command="unquota",
      says=lambda done, _: (f"{done['prefix']} has no quota{except_at(done['missing'])}", done))
async def remove_quota(client: AsyncClient, prefix: str) -> d.QuotaSet:
    """Let any number of tasks be open of the queues that begin with PREFIX.

    \b
    Example:
      skuld unquota team-a.
    """
    return d.QuotaSet(prefix=prefix, open=None, missing=await client.remove_quota(prefix))


def _say_quotas(done: d.Quotas, _: Given) -> Said:
    lines = [f"{row['prefix']}: {'?' if row['tasks'] is None else row['tasks']} open, {row['open']} at most"
             for row in done["quotas"]]
    return "\n".join(lines) or "there are no quotas", {"quotas": done["quotas"]}


@verb("GET /v1/quotas", Scope.READ, NOTHING, d.Quotas,
      "How many tasks may be open, by how queues begin, and how many are.", command="quotas", says=_say_quotas)
async def quotas(client: AsyncClient) -> d.Quotas:
    """Print the quotas, and how many tasks are open beside each.

    A question mark stands for what cannot be counted now: a majority of some partition is missing, or there are
    very many queues.

    \b
    Example:
      skuld quotas --json
    """
    return d.Quotas(quotas=[d.Quota(prefix=prefix, open=use.open, tasks=use.tasks)
                            for prefix, use in (await client.quota_use()).items()])


# -- the cluster ---------------------------------------------------------------------------------

status = by_hand(
    "status", "GET /v1/status", Scope.ADMIN, NOTHING, situations.Status,
    "The cluster as one of its nodes sees it: nodes, partitions, leaders, data on the move.")
health = by_hand("health", "GET /v1/health", None, NOTHING, situations.Health, "Whether the gateway runs.")
ready = by_hand("ready", "GET /v1/ready", None, NOTHING, situations.Ready, "Whether a node answers; 503 if not.")

VERBS = (pause, resume, paused, purge, queues, put_schedule, schedules, remove_schedule, set_limits, remove_limits,
         limits, set_quota, remove_quota, quotas, status, health, ready)
