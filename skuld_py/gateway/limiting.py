"""What limits a queue, as routes: an operator sets it for all callers alike.

Limits are set all together, as the client does: what a request leaves out is not limited.
"""

from __future__ import annotations

from skuld_py.gateway import requests
from skuld_py.gateway.call import Call
from skuld_py.verbs import documents


async def set_limits(call: Call, asked: requests.SetLimits) -> documents.Limited:
    """Limit how much is claimed."""
    missing = await call.backend.set_limits(**asked.model_dump())
    return documents.Limited(queue=asked.queue, is_limited=True, missing=missing)


async def remove_limits(call: Call, asked: requests.QueueName) -> documents.Limited:
    """Limit nothing more."""
    missing = await call.backend.remove_limits(asked.queue)
    return documents.Limited(queue=asked.queue, is_limited=False, missing=missing)


async def limits(call: Call, asked: requests.LimitedQueue) -> documents.LimitsOfQueues:
    """What limits there are."""
    found = await call.backend.limits(asked.queue)
    return documents.LimitsOfQueues(queues=[documents.limits_of(queue, of) for queue, of in found.items()])
