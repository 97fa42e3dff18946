"""The members that an entry concerns: those whose set of watches it can have changed. Of thousands it is a
handful.

``watched`` of a member reads five things: the member it watches in the ring, its joiner, its observer, whether
that one has accepted it, and the member that its observer watches. A command changes those of the members that it
names, of their watchers, observers and joiners before and after, and of the joiners of all these.

One case reaches further: a joiner that was told no watches one of those that are busy, whichever they are now. So
any entry can concern all of these; ``Standby`` answers for them at the price of one sorting for all.

The tests compare both with ``watched`` of all, over random logs.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    Command,
    JoinDirect,
    Leave,
    NotifyJoin,
    PrepareJoin,
)
from skuld_py.cluster.log.commands.prepare_join import busy
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.watched import watched


def concerned(old: Replica, new: Replica, command: Command) -> tuple[str, ...]:
    """Those whose watches may differ, except joiners that are told no both before and after; and those that came
    in."""
    if all(getattr(old, part) is getattr(new, part) for part in ("members", "ring", "joins", "aborted")):
        return ()
    near = dict.fromkeys(name for one in _named(command) for name in (one, *_around(old, one), *_around(new, one)))
    joiners = (replica.joins.joiner_of(name) for name in near for replica in (old, new))
    return tuple(name for name in dict.fromkeys((*near, *joiners)) if name)


def _named(command: Command) -> tuple[str, ...]:
    match command:
        case PrepareJoin(joiner) | NotifyJoin(joiner) | AbortJoin(joiner):
            return (joiner,)
        case AcceptJoin(observer, joiner):
            return (observer, joiner)
        case JoinDirect(observer, _, joiners):
            return (observer, *(each.id for each in joiners))
        case Leave(member):
            return (member,)
    return ()


def _around(replica: Replica, name: str) -> Iterator[str]:
    yield replica.joins.observers.get(name, "")
    yield replica.ring.watchers.get(name, "")


class Standby:
    """What joiners watch that are told no, as of one replica."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._taken = sorted(busy(replica)) if replica.aborted else []

    def watched(self, me: str) -> tuple[str, ...]:
        """The same as ``watched.watched``, for any member."""
        at = self.replica.aborted.get(me)
        if at is None or me in self.replica.joins.observers or me in self.replica.ring.pairs:
            return watched(self.replica, me)
        if not self._taken:
            return ()
        chosen = self._taken[at % len(self._taken)]
        return (chosen,) if chosen != me else ()
