"""Candidacies as they can be told from outside, by what passes between nodes."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from skuld_py.model import messages as m


def is_majority(some: Collection[str], of: Collection[str]) -> bool:
    """Whether ``some`` include more than half of a cohort; an empty one needs none."""
    return not of or 2 * sum(name in some for name in of) > len(of)


@attrs.define
class Bid:
    """A candidacy as it can be told from outside. ``cursors``: the page last asked for, by voter; ``pushed``: the
    page last sent. ``is_forced``: by all who remain, after an operator's word."""

    epoch: int
    old: Collection[str]
    new: Collection[str]
    votes: dict[str, None] = attrs.field(factory=dict)
    cursors: dict[str, bytes] = attrs.field(factory=dict)
    read: dict[str, None] = attrs.field(factory=dict)
    filled: dict[str, None] = attrs.field(factory=dict)
    pushed: dict[str, m.PushClaims] = attrs.field(factory=dict)
    kept: dict[str, None] = attrs.field(factory=dict)
    is_forced: bool = False

    @property
    def is_voted_in(self) -> bool:
        """Whether enough have voted for it."""
        if self.is_forced:
            return all(name in self.votes for name in self.new)
        return is_majority(self.votes, self.old) and is_majority(self.votes, self.new)

    def is_read_by(self, name: str) -> bool:
        """Whether this candidate has read the claims of enough of its voters."""
        read = {**self.read, name: None}
        return all(voter in read for voter in self.new) if self.is_forced else is_majority(read, self.old)
