"""The verbs that set what holds for a whole queue.

A setting is in force where it is known, so the answer names the nodes that have not confirmed it.
"""

from __future__ import annotations

from skuld_py.gateway import answers, requests
from skuld_py.gateway.call import Call


async def pause(call: Call, asked: requests.QueueName) -> answers.Paused:
    """Let nothing more be claimed."""
    return answers.Paused(queue=asked.queue, is_paused=True, missing=await call.backend.pause(asked.queue))


async def resume(call: Call, asked: requests.QueueName) -> answers.Paused:
    """Let it be claimed again."""
    return answers.Paused(queue=asked.queue, is_paused=False, missing=await call.backend.resume(asked.queue))


async def paused(call: Call, _: requests.NoInput) -> answers.PausedQueues:
    """Which are."""
    return answers.PausedQueues(queues=await call.backend.paused())
