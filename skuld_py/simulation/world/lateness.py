"""The worst moment to be late: just before the news that makes one old.

A message of an election that is only slow mostly comes when its kind is not waited for any more. What is *held up*
here waits, itself or a copy of it, until another one of its kind and partition but of another epoch goes to the
same node, and arrives just before that one: while its receiver is in the very phase in which it would count.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from skuld_py.model.messages import (
    ClaimPage,
    ClaimsKept,
    Message,
    PullClaims,
    PushClaims,
    RequestVote,
    Sync,
    Synced,
    Vote,
)

Link = tuple[str, str]
Envelope = tuple[Message, ...]
Electoral = RequestVote | Vote | PullClaims | ClaimPage | Sync | Synced | PushClaims | ClaimsKept
SHARE = 0.5
"""Of what goes to a victim."""
LOST = 0.3
"""Share of what is held up that does not arrive at once as well."""


class Lateness:
    """What is held up on its way to some nodes. ``counts``: how often it came to that."""

    def __init__(self, random: Random, counts: Counter[str]) -> None:
        self._random = random
        self._counts = counts
        self._victims: Counter[str] = Counter()
        self._held: dict[tuple[str, type, int], tuple[Link, Electoral]] = {}
        """By receiver, kind and partition."""

    def begin(self, name: str) -> None:
        """Hold up some of what is sent to a node."""
        self._victims[name] += 1

    def end(self, name: str) -> None:
        """Take one beginning back. What is held up waits on."""
        self._victims[name] -= 1

    def clear(self) -> None:
        """Forget all of it."""
        self._victims.clear()
        self._held.clear()

    def sift(self, link: Link, messages: Envelope) -> tuple[Envelope, list[tuple[Link, Envelope]]]:
        """What goes on its way, and what goes just before it, each with its own link."""
        passing: list[Message] = []
        freed: list[tuple[Link, Envelope]] = []
        for message in messages:
            if not isinstance(message, Electoral) or getattr(message, "is_trial", False):
                passing.append(message)
                continue
            key = (link[1], type(message), message.partition)
            held = self._held.get(key)
            if held is not None and held[1].epoch != message.epoch:
                freed.append((held[0], (held[1],)))
                self._counts["held up"] += 1
                del self._held[key]
            if self._is_held_up(link[1], key):
                self._held[key] = (link, message)
                if self._random.random() < LOST:
                    continue
            passing.append(message)
        return tuple(passing), freed

    def _is_held_up(self, name: str, key: tuple[str, type, int]) -> bool:
        return self._victims[name] > 0 and key not in self._held and self._random.random() < SHARE
