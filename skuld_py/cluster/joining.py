"""How a process comes into the ring: by the three phases of the log, or another way that keeps these promises.

``begin`` is called when nothing is under way for this member, and again after ``repeat_ms`` if nothing came of it;
``received`` gets the messages of other members. Both return commands for the log and messages to send. Nothing
else depends on the way: a member is in when the replica says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from skuld_py.cluster.commands import AbortJoin, AcceptJoin, Command, NotifyJoin, PrepareJoin
from skuld_py.cluster.replica import Replica
from skuld_py.model.document import Member
from skuld_py.model.events import Received, Send


@attrs.frozen
class View:
    """What a member knows: its id, what it is, and the replica as it has played it."""

    me: str
    info: Member
    replica: Replica

    @property
    def is_in(self) -> bool:
        """Whether it is a member."""
        return self.me in self.replica.members


class Joining(Protocol):
    """A way into the ring."""

    def begin(self, now_ms: int, view: View) -> Sequence[Command | Send]:
        """Ask to be let in."""
        ...

    def received(self, now_ms: int, view: View, event: Received) -> Sequence[Command | Send]:
        """A message of another member, or of who wants to be one."""
        ...


class JoinByLog:
    """The three phases: every step is an entry."""

    def begin(self, now_ms: int, view: View) -> Sequence[Command | Send]:
        """First phase."""
        return [PrepareJoin(view.me, view.info)]

    def received(self, now_ms: int, view: View, event: Received) -> Sequence[Command | Send]:
        """Nobody asks off the log."""
        return []


def owed(replica: Replica, me: str) -> list[Command]:
    """The next steps of joins under way that wait for this member.

    The same as what the entries led to (``Command.reactions``); but who jumped over those entries learns it only
    from here, and nobody else can do it in its place.
    """
    joins = replica.joins
    steps: list[Command] = []
    if joiner := joins.prepared.get(me):
        steps.append(NotifyJoin(joiner))
    observer = joins.observers.get(me, "")
    if observer and joins.accepted.get(observer) == me:
        steps.append(AcceptJoin(observer, me))
    return steps


def is_due(replica: Replica, me: str, command: Command) -> bool:
    """Whether a command of the joining protocol would still change something, or tell its writer something."""
    match command:
        case PrepareJoin(joiner):
            return not replica.is_known(joiner) and joiner not in replica.left
        case NotifyJoin(joiner):
            return replica.joins.prepared.get(me) == joiner
        case AcceptJoin(observer, joiner):
            return replica.joins.accepted.get(observer) == joiner
        case AbortJoin(joiner):
            return joiner not in replica.members and joiner not in replica.left
    return True
