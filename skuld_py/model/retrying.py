"""How long a task that failed waits for its next attempt, from its policy alone.

The jitter is drawn from the task's id and the claim's token, not by chance: every node computes the same pause,
and tasks that failed together still part.
"""

from __future__ import annotations

from hashlib import blake2b

from skuld_py.model.body import Retry


def pause_ms(policy: Retry, attempts: int, task_id: bytes, token: int) -> int:
    """The pause after the ``attempts``-th failure: the backoff times the factor for each one before it, at most
    the longest; give or take the jitter."""
    pause = min(policy.backoff_ms, policy.backoff_max_ms)
    for _ in range(attempts - 1):
        if not pause or pause >= policy.backoff_max_ms:
            break
        pause = min(policy.backoff_max_ms, pause * policy.factor_percent // 100)
    spread = pause * policy.jitter_percent // 100
    drawn = int.from_bytes(blake2b(task_id + token.to_bytes(8, "big"), digest_size=8).digest(), "big")
    return pause - spread + drawn % (2 * spread + 1)
