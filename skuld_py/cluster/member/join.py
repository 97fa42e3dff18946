"""How a process comes into the ring by the log: which steps of a join are owed, and which still mean anything.

A way beside the log (``scale.peers``) ends in an entry as well: a member is in when the replica says so.
"""

from __future__ import annotations

from skuld_py.cluster.log.commands import AbortJoin, AcceptJoin, Command, JoinDirect, NotifyJoin, PrepareJoin
from skuld_py.cluster.log.replica import Replica


def owed(replica: Replica, me: str) -> list[Command]:
    """The next steps of joins under way that wait for this member.

    The entries led to the same (``Command.reactions``); but a member that jumped over those entries learns it only
    from here, and no other member can take these steps.
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
        case JoinDirect(observer, before, joiners):
            is_placed = observer == me and me in replica.members and replica.ring.after(me) == before
            return is_placed and any(not replica.is_known(each.id) and each.id not in replica.left
                                     for each in joiners)
    return True
