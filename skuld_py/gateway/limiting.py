"""What limits a queue, as routes: an operator sets it for all callers alike.

Limits are set all together, as the client does: what a request leaves out is not limited.
"""

from __future__ import annotations

from skuld_py.gateway import answers, requests
from skuld_py.gateway.call import Call


async def set_limits(call: Call, asked: requests.SetLimits) -> answers.Limited:
    """Limit how much is claimed."""
    missing = await call.backend.set_limits(**asked.model_dump())
    return answers.Limited(queue=asked.queue, is_limited=True, missing=missing)


async def remove_limits(call: Call, asked: requests.QueueName) -> answers.Limited:
    """Limit nothing more."""
    missing = await call.backend.remove_limits(asked.queue)
    return answers.Limited(queue=asked.queue, is_limited=False, missing=missing)


async def limits(call: Call, asked: requests.LimitedQueue) -> answers.LimitsOfQueues:
    """What limits there are."""
    found = await call.backend.limits(asked.queue)
    return answers.LimitsOfQueues(queues=[answers.limits_of(queue, of) for queue, of in found.items()])
