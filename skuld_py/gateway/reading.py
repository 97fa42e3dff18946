"""The verbs that change nothing.

What may be long comes as a stream, a page at a time: neither the gateway nor the cluster holds more of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.gateway import answers, requests
from skuld_py.gateway.call import Call
from skuld_py.gateway.problems import refusal

LOG_PAUSE_S = 0.5
"""Between two looks at a log that is followed."""


async def get(call: Call, _: requests.NoInput) -> answers.TaskDocument:
    """One task."""
    return answers.task(await call.backend.get(call.task_id), has_logs=True)


async def get_many(call: Call, asked: requests.GetMany) -> AsyncIterator[list[answers.TaskDocument]]:
    """Those that exist."""
    async for found in call.backend.get_many(list(dict.fromkeys(asked.ids))):
        yield [answers.task(view, has_logs=True) for view in found]


async def list_tasks(call: Call, asked: requests.Page) -> AsyncIterator[list[answers.TaskDocument]]:
    """All, in order."""
    async for found in call.backend.list(asked.queue, asked.limit):
        yield [answers.task(view, has_logs=False) for view in found]


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
        answers.QueueDepth(queue=queue, waiting=depth.waiting, claimed=depth.claimed, completed=depth.completed,
                           scheduled=depth.scheduled, blocked=depth.blocked, cancelled=depth.cancelled,
                           dead=depth.dead) for queue, depth in rows])


async def status(call: Call, _: requests.NoInput) -> dict[str, Any]:
    """The cluster."""
    found = attrs.asdict(await call.backend.status())
    return {name: value for name, value in found.items() if name != "request"}


async def health(_: Call, __: requests.NoInput) -> answers.Health:
    """The gateway."""
    return answers.Health(is_well=True)
