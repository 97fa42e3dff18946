"""Which tasks may be collected, and what all replicas must agree on before they are.

``has_ended`` is a function of a task's records and of one time, so every replica judges alike, whatever its clock
shows. A task that had ended by then, on a replica that is closed up to then, does not change any more: clients are
refused, its leader finds nothing open. So once all replicas hold it with one digest, it stays equal everywhere
until it goes, and it may go on one before it goes on the next.

What goes is read once more, whole, though no payload is taken out of its record. Rejected: to delete by keys, and
by the digests that stand beside records. Those cover a key and all of a record, so without its payload nobody
knows that the rest is sound; and the rest says of which queue there is one task less, and which rows of indexes go
with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model.body import Body
from skuld_py.model.columns import wrap
from skuld_py.model.history import History, decode_history
from skuld_py.model.ids import any_laned, is_laned
from skuld_py.model.prelude import DEPS
from skuld_py.model.state import State, has_ended
from skuld_py.partition.copies.remains import NEVER, Remains, ids_behind, joined, log_keys, remains_of
from skuld_py.partition.data import merkle
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import place_of_header, queue_of

_LAST = b"\xff" * 8
_STEP = 16
"""Tasks that are read before it is known how large they are."""


def ripe(replica: Replica, remains: Remains, upto_ms: int) -> Sequence[int]:
    """Which of these tasks may go, by index and by this replica's records: they have ended, and all partitions
    that wait for them were told. What was completed is known by the first bytes of its history."""
    news, bound = replica.filing.waiting.news_of(remains.ids), upto_ms.to_bytes(8, "big")
    if not news and _were_all_completed(remains, bound):
        return range(len(remains))
    found = [index for index, (history, body) in enumerate(zip(remains.histories, remains.bodies, strict=True))
             if (history[:8] <= bound if history is not None and history[:8] != NEVER else has_ended(
                 decode_history(history), None if body is None else Body.options_of(body), upto_ms))]
    return [index for index in found if remains.ids[index] not in news] if news else found


def _were_all_completed(remains: Remains, bound: bytes) -> bool:
    """Whether all were completed up to a time; most pages are so, and this takes a tenth of a look at each."""
    ends = remains.completions()
    return ends is not None and ends[0] > NEVER and ends[1] <= bound


def page_of(replica: Replica, after: bytes, upto_ms: int, limit: int) -> tuple[Remains, bytes]:
    """The tasks that may go, among the next ``limit`` behind ``after`` with ids up to a time; and the last id
    looked at, empty at the end. Fewer than ``limit`` are looked at where they are large."""
    ids = ids_behind(replica, after, upto_ms, limit + 1)
    end, parts = min(len(ids), limit), [remains_of(replica, [])]
    room, at, step = DEFAULT_LIMITS.page_bytes, 0, _STEP
    while at < end and room > 0:
        part = remains_of(replica, ids[at : min(at + step, end)])
        sizes, may_go = part.sizes(), ripe(replica, part, upto_ms)
        sums = list(accumulate(sizes[index] for index in may_go))
        full = bisect_left(sums, room)
        parts.append(part.at(may_go[: full + 1]))
        at += len(part) if full == len(sums) else may_go[full] + 1
        room -= sums[-1] if sums and full == len(sums) else room if sums else 0
        step = max(_STEP, room * len(part) // (2 * sum(sizes)))
    return joined(parts), ids[at - 1] if at < len(ids) else b""


def shut(replica: Replica, task_ids: Sequence[bytes]) -> dict[bytes, History | None]:
    """The tasks among these to which nothing is added any more: those that had ended when ids of their age were
    closed, and those without a history that were collected."""
    old = replica.watermark.closed_to(task_ids)
    if not old:
        return {}
    found: dict[bytes, History | None] = dict(replica.gone(old))
    known = replica.histories(old)
    for task_id, record in zip(old, replica.bodies(old), strict=True):
        history = decode_history(known.get(replica.prefix + task_id))
        if record is not None and has_ended(history, Body.options_of(record), replica.watermark.closed_ms):
            found[task_id] = history
    return found


def collect(replica: Replica, task_ids: Sequence[bytes]) -> None:
    """Delete all that is held of these tasks, index entries included."""
    drop(replica, remains_of(replica, task_ids))


def drop(replica: Replica, remains: Remains) -> None:
    """The same of what was read just now."""
    columns = zip(remains.ids, remains.histories, remains.bodies, strict=True)
    odd = _remove_completed(replica, remains)
    for index, (task_id, history, body) in enumerate(columns if odd else ()):
        if index in odd:
            replica.filing.remove(task_id, decode_history(history), body)
    for task_id in remains.logs:
        keys = log_keys(replica, task_id)
        found, digests = replica.store.get_digested("log", keys)
        replica.tree.toggle(merkle.ENTRY, list(found), digests)
        replica.store.drop_run("log", list(found))
    keys = wrap(remains.ids, replica.prefix)
    replica.tree.toggle_all(keys, remains.body_digests, remains.history_digests)
    replica.watermark.count(_drop_column(replica, "body", keys, remains.bodies))
    _drop_column(replica, "history", keys, remains.histories)


def _remove_completed(replica: Replica, remains: Remains) -> dict[int, None]:
    """Of these tasks, those that were completed, have no key, and needed and were needed by nobody, have no index
    entry: they are only counted no more. Gives the others, by index."""
    if replica.filing.waiting.has_any_of(remains.ids):
        return dict.fromkeys(range(len(remains)))
    odd: dict[int, None] = {}
    counts = _plain_of_one_place(remains)
    rows = enumerate(() if counts else zip(remains.ids, remains.histories, remains.bodies, strict=True))
    for index, (task_id, history, body) in rows:
        if history is not None and body is not None and history[:8] != NEVER and not is_laned(task_id):
            prelude, place = place_of_header(body[2 : 2 + int.from_bytes(body[:2], "big")])
            if not prelude & DEPS:
                counts[place] += 1
                continue
        odd[index] = None
    for place, count in counts.items():
        replica.filing.tally.move(queue_of(place), State.COMPLETED, None, count)
    return odd


def _plain_of_one_place(remains: Remains) -> Counter[bytes]:
    """How many wait where, when all tasks were completed, have one header, no key and no need; else none. Most
    pages are so, and this takes a fifth of the time of a look at each."""
    first = remains.bodies[0] if remains.ids else None
    if first is None or any_laned(b"".join(remains.ids)) or not _were_all_completed(remains, _LAST):
        return Counter()
    header = first[: 2 + int.from_bytes(first[:2], "big")]
    prelude, place = place_of_header(header[2:])
    bodies = [body for body in remains.bodies if body is not None]
    is_one = not prelude & DEPS and len(bodies) == len(remains) and (
        min(bodies).startswith(header) and max(bodies).startswith(header))  # so what is between them does, too
    return Counter({place: len(remains)} if is_one else {})


def _drop_column(replica: Replica, table: str, keys: Sequence[bytes], values: Sequence[bytes | None]) -> int:
    held = keys
    if None in values:
        held = [key for key, value in zip(keys, values, strict=True) if value is not None]
    replica.store.drop_run(table, held)
    return len(held)
