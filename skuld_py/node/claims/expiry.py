"""The leader's word that tasks have expired: a mark that a majority records, like any end.

A follower's clock makes no task dead. What the leader has marked on its own copy it grants no more, also while the
cohort has not answered; if it is deposed before a majority knows, the next leader finds the tasks in ``expiry``
again, and the two marks are the same.
"""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.model.history import DIED, EXPIRED, decode_history
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.operation import Host, Origin
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.vnode import Vnode


def bury_expired(host: Host, vnode: Vnode, now_ms: int, limit: int) -> None:
    """See to up to ``limit`` tasks of a partition led here."""
    change = deaths(vnode, now_ms, limit)
    if change.marks:
        operation = AmendOperation(host, Origin(0), now_ms, {vnode: change}, m.Revived(0, b""))
        operation.has_answered = True
        host.start(operation, now_ms)


def deaths(vnode: Vnode, now_ms: int, limit: int) -> Change:
    """Of those that nobody claims and whose time is over."""
    task_ids = vnode.replica.filing.expired(now_ms, limit)
    known = vnode.replica.histories(task_ids)
    rounds = [decode_history(known.get(vnode.replica.prefix + task_id)).round for task_id in task_ids]
    return Change((), [Mark(task_id, DIED, number + 1, EXPIRED)
                       for task_id, number in zip(task_ids, rounds, strict=True)])
