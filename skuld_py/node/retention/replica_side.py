"""Every replica's side of collection: take nothing new up to a time, take nothing at all, delete.

Each answers by its own records and its own options, so the most careful one decides. A replica that is to keep
ended tasks for longer refuses to be closed that far, and one that wants an archive deletes only what is promised
to be in it. So options that differ from node to node, for a while or by mistake, lose nothing.

See ``slices`` for the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.garbage import drop, ripe
from skuld_py.partition.copies.remains import Remains, digests_of, remains_of
from skuld_py.partition.data.needs import needed
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.vnode import Role, Vnode


def _refuses(vnode: Vnode, role: Role, epoch: int) -> bool:
    """Whether this copy is in doubt or has records to hand off, or has voted for a newer leader."""
    is_voter = vnode.standing.includes(vnode.me.name)
    return not vnode.has_read or role in (Role.SUSPECT, Role.ZOMBIE) or (is_voter and epoch < vnode.promise.epoch)


def _allowed_ms(view: View, now_ms: int) -> int:
    """What had ended by then this node's option lets go; 0 where it keeps all."""
    keep_ms: int = view.retention.keep_ms
    return max(0, now_ms - keep_ms) if keep_ms else 0


def _keeps_longer(view: View, allowed_ms: int, upto_ms: int) -> bool:
    """Whether this node's option keeps what has ended by then, whatever others have closed it to meanwhile."""
    return upto_ms > (allowed_ms + view.parameters.skew_ms if allowed_ms else 0)


def ebb(operations: Operations, now_ms: int, vnode: Vnode, request: m.Ebb) -> m.Ebbed:
    """Close, or seal, this copy."""
    watermark, promised = vnode.replica.watermark, vnode.promise.epoch
    role = vnode.role
    if _refuses(vnode, role, request.epoch):
        return m.Ebbed(request.request, False, promised if vnode.standing.includes(vnode.me.name) else 0, 0)
    allowed_ms = _allowed_ms(operations.view, now_ms)
    if _keeps_longer(operations.view, allowed_ms, request.upto_ms):
        return m.Ebbed(request.request, False, 0, 0, allowed_ms)
    if role is not Role.STRANGER and not watermark.life:
        watermark.begin_life(next(operations.numbers))
    life = 0 if role is Role.STRANGER else watermark.life
    if not request.life:
        watermark.close(request.upto_ms)
    elif request.life == life:
        watermark.seal(request.upto_ms)
    else:
        return m.Ebbed(request.request, False, 0, life)
    return m.Ebbed(request.request, True, 0, life)


def delete(view: View, now_ms: int, vnode: Vnode, request: m.Collect) -> m.Collected:
    """Delete, or say whether this copy would. A node that keeps nothing of the partition says what its own tasks
    need. One that came back with an option to keep more agrees on no page more of what it was sealed for."""
    replica = vnode.replica
    role = vnode.role
    if role is Role.STRANGER:
        return m.Collected(request.request, True, _needed_by_a_stranger(view, request))
    if _refuses(vnode, role, request.epoch) or replica.watermark.sealed_ms < request.upto_ms:
        return m.Collected(request.request, False, b"")
    if request.is_trial and _keeps_longer(view, _allowed_ms(view, now_ms), request.upto_ms):
        return m.Collected(request.request, False, b"")
    if view.retention.archives and not request.is_archived:
        return m.Collected(request.request, False, b"")
    task_ids = ids.split(request.ids)
    if request.is_trial and is_as_told(replica, task_ids, request.digests, request.upto_ms):
        held = held_back(view, task_ids)
        return m.Collected(request.request, True, columns.pack_u64([
            index for index, task_id in enumerate(task_ids) if task_id in held] if held else []))
    remains = remains_of(replica, task_ids)
    agreed = agreed_on(replica, remains, request.digests, request.upto_ms)
    kept: dict[int, None] = {}
    if len(agreed) < len(task_ids):
        going = dict.fromkeys(agreed)
        kept = {index: None for index, task_id in enumerate(task_ids) if index not in going and not (
            remains.is_nothing(index) and ids.time_of(task_id) <= request.upto_ms)}
    left = task_ids if not kept else [task_id for index, task_id in enumerate(task_ids) if index not in kept]
    held = held_back(view, left)
    if held:
        kept.update({index: None for index, task_id in enumerate(task_ids) if task_id in held})
        agreed = [index for index in agreed if index not in kept]
    if not request.is_trial:
        drop(replica, remains.at(agreed))
    return m.Collected(request.request, True, columns.pack_u64(list(kept)))


def is_as_told(replica: Replica, task_ids: Sequence[bytes], digests: bytes, upto_ms: int) -> bool:
    """Whether this copy would delete all of these, by their digests alone: what is equal to the leader's, which it
    has read, has ended just as that has; who waits for an end stands in a log, and here is none. They are read
    when they go; then damage is seen."""
    return bool(digests) and digests_of(replica, task_ids) == digests and ids.time_of(task_ids[-1]) <= upto_ms


def agreed_on(replica: Replica, remains: Remains, digests: bytes, upto_ms: int) -> Sequence[int]:
    """What this copy would delete, too, by index: what it holds as the leader does, is ripe, and not too new.
    Mostly that is all."""
    found = ripe(replica, remains, upto_ms)
    if remains.digests == digests and (not found or ids.time_of(max(remains.ids)) <= upto_ms):
        return found
    same = [one == other for one, other in zip(
        columns.unpack_u64(remains.digests), columns.unpack_u64(digests), strict=True)]
    return [index for index in found if same[index]
            and ids.time_of(remains.ids[index]) <= upto_ms]


def _needed_by_a_stranger(view: View, request: m.Collect) -> bytes:
    """The tasks, by index, that this node's tasks need. Asked about no task: 0 if any task that old is needed."""
    if not request.ids:
        is_any = any(vnode.replica.filing.needs.is_any_upto(request.upto_ms) for vnode in view.vnodes)
        return columns.pack_u64([0] if is_any else [])
    task_ids = ids.split(request.ids)
    held = held_back(view, task_ids)
    return columns.pack_u64([index for index, task_id in enumerate(task_ids) if task_id in held])


def held_back(view: View, task_ids: Sequence[bytes]) -> dict[bytes, None]:
    """Which of these tasks are needed by what this node keeps of any partition, if all of them go together."""
    return needed((vnode.replica.filing.needs for vnode in view.vnodes), task_ids)
