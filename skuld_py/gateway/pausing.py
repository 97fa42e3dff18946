"""The verbs that set what holds for a whole queue.

A setting is in force where it is known, so the answer names the nodes that have not confirmed it.
"""

from __future__ import annotations

from skuld_py.gateway import requests
from skuld_py.gateway.call import Call
from skuld_py.verbs import documents


async def pause(call: Call, asked: requests.QueueName) -> documents.Paused:
    """Let nothing more be claimed."""
    return documents.Paused(queue=asked.queue, is_paused=True, missing=await call.backend.pause(asked.queue))


async def resume(call: Call, asked: requests.QueueName) -> documents.Paused:
    """Let it be claimed again."""
    return documents.Paused(queue=asked.queue, is_paused=False, missing=await call.backend.resume(asked.queue))


async def paused(call: Call, _: requests.NoInput) -> documents.PausedQueues:
    """Which are."""
    return documents.PausedQueues(queues=await call.backend.paused())
