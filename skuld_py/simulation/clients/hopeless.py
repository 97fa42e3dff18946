"""Tasks that wait for what never comes: at the end of a run they are cancelled, as an operator would.

A task that waits on although what it needs has failed, or that gives a very long time to one that was never
enqueued, is blocked for good; so are tasks that need it in turn. What the cluster has to decide by itself is left
to it: to let tasks go, to let them die with what they need, or when their time for unknown ones is over. """

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_WAIT, Body, header_of
from skuld_py.model.history import EMPTY_HISTORY, TIME_MS_MAX, History, decode_history
from skuld_py.model.memory_store import MemoryStore
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.options import NEVER_MS

LOOK_MS = 400
CANCELLED_MAX = 100


def cancel_hopeless(client: Client, stores: Sequence[MemoryStore]) -> None:
    """Cancel what waits in vain by what these stores know together; and look again, since others may need it."""
    ids = list(dict.fromkeys(hopeless(stores)))[:CANCELLED_MAX]
    if ids:
        client.ask(lambda request: m.Cancel(request, 0, 0, b"".join(ids)), lambda operation: None)


def hopeless(stores: Sequence[MemoryStore]) -> Iterator[bytes]:
    """Blocked tasks that nothing lets go any more."""
    bodies = {key[2:]: body for store in stores for key, body in store.rows("body").items()}
    histories: dict[bytes, History] = {}
    for store in stores:
        for key, record in store.rows("history").items():
            histories[key[2:]] = histories.get(key[2:], EMPTY_HISTORY).merge(decode_history(record))
    for store in stores:
        for key in store.rows("dep"):
            dep, task_id = key[3:23], key[23:]
            if not key[2] and task_id in bodies and _is_in_vain(
                    Body.decode(bodies[task_id]), bodies.get(dep), histories.get(dep, EMPTY_HISTORY)):
                yield task_id


def _is_in_vain(body: Body, dep: bytes | None, history: History) -> bool:
    if history.completion.value is not None:
        return False
    if dep is None:
        return body.header.dep_wait_ms >= NEVER_MS
    has_failed = history.cancelled.value is not None or history.death(
        header_of(dep).retry.max_attempts, TIME_MS_MAX) != 0
    return has_failed and body.header.policy == ON_FAILURE_WAIT
