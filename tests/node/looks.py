"""What the copies have, as lines of a text: copies that are alike stand together.

A look takes the cluster, what its tasks are called, and which ones are meant; what looks at whole copies ignores
these. It asks nobody: it reads the replicas themselves, and their indexes rather than what follows from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from node.machines import Machines
from node.trace import Names, node_of, span
from skuld_py.model import ids
from skuld_py.model.checkpoint import SLOT, Checkpoint
from skuld_py.model.history import History, decode_history
from skuld_py.model.notes import MET, SUB, TOLD, split_met, split_told
from skuld_py.model.outcomes import ERROR_SEQ, RESULT_SEQ
from skuld_py.model.state import State
from skuld_py.model.task import DEATHS, ENDINGS
from skuld_py.partition.data.replica import Replica

FILED = {"ready": State.WAITING, "lease": State.CLAIMED, "time": State.SCHEDULED, "dep": State.BLOCKED}
"""Where a replica files what has not ended."""
OUTCOMES = {RESULT_SEQ: "result", ERROR_SEQ: "error"}
NOTHING = "nothing"
Look = Callable[[Machines, Names, bytes], Iterable[str]]
Told = TypeVar("Told", str, tuple[str, tuple[int, ...]])


def _alike(told: Iterable[tuple[str, Told]]) -> Iterable[tuple[str, Told]]:
    """Nodes by what is told of them."""
    found: dict[Told, list[str]] = {}
    for name, each in told:
        found.setdefault(each, []).append(node_of(name))
    return ((" ".join(nodes), each) for each, nodes in found.items())


def _by_node(machines: Machines, look: Callable[[str], str]) -> Iterable[str]:
    return (f"{nodes}: {words}" for nodes, words in _alike((name, look(name)) for name in machines.names))


def _of_tasks(look: Callable[[Replica, bytes], str]) -> Look:
    def of_tasks(machines: Machines, names: Names, blob: bytes) -> Iterable[str]:
        return names.beside((task_id, _copied(machines, task_id, look)) for task_id in ids.split(blob))
    return of_tasks


def _copied(machines: Machines, task_id: bytes, look: Callable[[Replica, bytes], str]) -> str:
    partition = ids.partition_of(task_id, machines.parameters.partitions)
    told = [*_alike((name, look(node.view.vnodes[partition].replica, task_id))
                    for name, node in machines.nodes.items())]
    return told[0][1] if len(told) == 1 else ", ".join(f"{words} on {nodes}" for nodes, words in told)


def _history(replica: Replica, task_id: bytes) -> History:
    return decode_history(replica.histories([task_id]).get(replica.prefix + task_id))


def _rows(replica: Replica, table: str) -> Iterable[bytes]:
    return (key for key, _ in replica.store.scan(table, replica.prefix, replica.prefix + b"\xff" * 30, 10_000))


def _filed(replica: Replica, task_id: bytes) -> str:
    """Where a task is filed, which is one place."""
    held = [FILED[table].name for table in FILED if any(key.endswith(task_id) for key in _rows(replica, table))]
    dead = replica.store.get("dead", replica.prefix + task_id)
    if _history(replica, task_id).completion.value is not None:
        held.append(State.COMPLETED.name)
    elif dead is not None:
        held.append(State(dead[0]).name)
    return " and ".join(held).lower() or "not here"


def _noted(replica: Replica, task_id: bytes) -> str:
    """What tasks know of each other."""
    told = []
    for token, seq, _ in replica.entries(task_id)[0]:
        if token == MET:
            told.append("dependency {}: {}".format(*_said(split_met(seq))))
        elif token == TOLD:
            told.append("partition {} told: {}".format(*_said(split_told(seq))))
        elif token == SUB:
            told.append(f"partition {seq} waits")
    return "; ".join(told) or NOTHING


def _said(note: tuple[int, State]) -> tuple[int, str]:
    return note[0], note[1].name.lower()


def _marked(replica: Replica, task_id: bytes) -> str:
    """How far a task is."""
    found = [data for token, seq, data in replica.entries(task_id)[0] if (token, seq) == SLOT]
    return "; ".join(Checkpoint.decode(data).data.decode() for data in found) or NOTHING


def _untold(replica: Replica, task_id: bytes) -> str:
    """How many partitions are still to be told of a task's end."""
    return str(sum(key[3:23] == task_id for key in _rows(replica, "tell")))


def _lived(replica: Replica, task_id: bytes) -> str:
    history = _history(replica, task_id)
    claims = [f"{claim.holder} {ENDINGS[claim.kind]}".rstrip() for claim in history.claims.entries.values()]
    facts = ["claimed by " + ", ".join(claims) if claims else "",
             f"round {history.round}" if history.round else "",
             "cancelled" if history.cancelled.value is not None else "",
             "completed" if history.completion.value is not None else "",
             f"dead: {DEATHS[history.died.value & 0xFF]}" if history.died.value else "",
             *(f"{OUTCOMES[seq]} {data.decode()}" for _, seq, data in replica.entries(task_id)[0]
               if seq in OUTCOMES)]
    return "; ".join(filter(None, facts)) or NOTHING


def _counts(machines: Machines, _: Names, __: bytes) -> Iterable[str]:
    """Tasks of the queue q by state."""
    def of_node(name: str) -> str:
        tallies = (vnode.replica.filing.tally for vnode in machines.nodes[name].view.vnodes)
        sums = map(sum, zip(*(tally.row(b"q") for tally in tallies), strict=True))
        return ", ".join(f"{count} {State(at).name.lower()}" for at, count in enumerate(sums) if count) or NOTHING
    return _by_node(machines, of_node)


def _copies(machines: Machines, names: Names, _: bytes) -> Iterable[str]:
    """Which tasks each node has, and of which others it knows something. Nodes stand together only if their trees
    are equal too."""
    def roots(name: str) -> tuple[int, ...]:
        return tuple(vnode.replica.tree.root for vnode in machines.nodes[name].view.vnodes)

    def of_node(name: str) -> str:
        store = machines.stores[name]
        bodies = [key[2:] for key in store.rows("body")]
        known = {key[2:22] for table in ("history", "log", "need") for key in store.rows(table)}
        others = b"".join(sorted(known.difference(bodies)))
        traces = f", traces of {names.of(others)}" if others else ""
        return (names.of(b"".join(bodies)) or NOTHING) + traces
    return (f"{nodes}: {words}" for nodes, (words, _) in
            _alike((name, (of_node(name), roots(name))) for name in machines.names))


def _watermarks(machines: Machines, _: Names, __: bytes) -> Iterable[str]:
    """Up to how old ids each copy of partition 0 is closed and sealed, and how many tasks it has collected."""
    def of_copy(name: str) -> str:
        mark = machines.nodes[name].view.vnodes[0].replica.watermark
        ages = [f"{word} {span(machines.now_ms - upto_ms)} ago" for word, upto_ms in
                (("closed", mark.closed_ms), ("sealed", mark.sealed_ms)) if upto_ms]
        return ", ".join([*ages, f"{mark.collected} collected"])
    return _by_node(machines, of_copy)


LOOKS: Mapping[str, Look] = {
    "states": _of_tasks(_filed), "notes": _of_tasks(_noted), "untold": _of_tasks(_untold),
    "checkpoints": _of_tasks(_marked), "histories": _of_tasks(_lived), "counts": _counts, "copies": _copies,
    "watermarks": _watermarks}
