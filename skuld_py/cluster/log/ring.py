"""The ring of watches: one ring over the members, each the watcher of the next.

A member alone watches no other, so ``pairs`` is empty for none and for one. ``watchers`` is the same map the other
way round, kept so that nothing that happens to a member costs a walk over the ring.

Source: Onyx's ring of stitched peers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attrs


def _inverse(pairs: Mapping[str, str]) -> dict[str, str]:
    return {watched: watcher for watcher, watched in pairs.items()}


@attrs.frozen
class Ring:
    """``pairs`` maps each watcher to the member that it watches."""

    pairs: Mapping[str, str] = attrs.field(factory=dict)
    watchers: Mapping[str, str] = attrs.field(
        default=attrs.Factory(lambda self: _inverse(self.pairs), takes_self=True), eq=False, repr=False)

    def after(self, member: str) -> str:
        """The member that a member watches; itself when it is alone."""
        return self.pairs.get(member, member)

    def stitched(self, watcher: str, joiners: Sequence[str]) -> Ring:
        """With ``joiners`` in a row behind a watcher."""
        pairs, watchers = dict(self.pairs), dict(self.watchers)
        chain = [watcher, *joiners, self.after(watcher)]
        for one, following in pairwise(chain):
            pairs[one] = following
            watchers[following] = one
        return Ring(pairs, watchers)

    def without(self, member: str) -> Ring:
        """Without a member: its watcher watches the member that it watched."""
        if member not in self.pairs:
            return self
        pairs, watchers = dict(self.pairs), dict(self.watchers)
        following, watcher = pairs.pop(member), watchers.pop(member)
        if following == watcher:
            return Ring()
        pairs[watcher], watchers[following] = following, watcher
        return Ring(pairs, watchers)

    def walk(self) -> Iterator[str]:
        """The members in the order of watching, from the first by name."""
        first = here = min(self.pairs, default="")
        while here:
            yield here
            here = self.pairs[here] if self.pairs[here] != first else ""
