"""What operators and deaths do to partition 0 in a script, and a look at its document: exactly what it says.

    down n0                 its process dies, and its pulse goes at once
    up n0                   a new process on its old disk
    place n0 n1 n3          the nodes that partitions are placed on; they own in the order of the placement
    freeze, freeze 5s       by an operator, for good or for a time; ``unfreeze``
    wish lead n1            ``reorder``, ``rebalance``; ``epoch=3`` and ``within=10s`` if it is said otherwise
    solo on, solo off
    scrawl promote 7        a field with a value by hand, as JSON
    document                what it says, and below it what each node is to the partition

A document's line is ``epoch LEADER / other voters in their order [learners]``, then what was before, then all that
is held or wished. ``up`` and ``down`` tell all nodes at once, as ZooKeeper would after the session's time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from node.machines import Machines
from node.trace import node_of
from skuld_py.model.document import Document, Freeze, Promotion
from skuld_py.model.events import MembersChanged, NodesChanged
from skuld_py.partition.leadership.evaluator import is_frozen

NOBODY = "-"


def _told(machines: Machines) -> None:
    alive = tuple(each for each in machines.members if each.name not in machines.down)
    for name in machines.names:
        machines.give(name, MembersChanged(alive))


def _change(machines: Machines, **changes: Any) -> None:
    machines.write(0, attrs.evolve(machines.documents[0][1], write_id="operator", **changes))


def down(machines: Machines, name: str) -> None:
    """A process dies; what it had on its way still arrives."""
    machines.down[name] = None
    _told(machines)


def up(machines: Machines, name: str) -> None:
    """A new process; what is on its way to the old one is lost."""
    del machines.down[name]
    machines.flying = type(machines.flying)(each for each in machines.flying if each[0] != name)
    machines.restart(name)
    _told(machines)


def place(machines: Machines, names: tuple[str, ...]) -> None:
    """The placement is of these nodes."""
    for name in machines.names:
        machines.give(name, NodesChanged(names))


def freeze(machines: Machines, milliseconds: int) -> None:
    """An operator holds leader and cohort; 0: until it is lifted."""
    until_ms = machines.now_ms + milliseconds if milliseconds else 0
    _change(machines, freeze=Freeze("f", "op", "why", machines.now_ms, until_ms))


def unfreeze(machines: Machines) -> None:
    """An operator lets go."""
    _change(machines, freeze=None)


def wish(machines: Machines, kind: str, target: str, epoch: int, milliseconds: int) -> None:
    """An operator wishes; epoch 0: the present one."""
    document = machines.documents[0][1]
    _change(machines, promote=Promotion("p", kind, target, epoch or document.epoch,
                                        machines.now_ms + milliseconds, "op"))


def solo(machines: Machines, word: str) -> None:
    """An operator wishes for no other nodes."""
    _change(machines, mode="solo" if word == "on" else "normal")


def scrawl(machines: Machines, field: str, value: str) -> None:
    """An operator writes by hand."""
    raw = {**json.loads(machines.documents[0][1].encode()), field: json.loads(value)}
    machines.write(0, Document.decode(json.dumps(raw).encode()))


def document(machines: Machines, *_: object) -> Iterable[str]:
    """What the document of partition 0 says, and what each node is."""
    if 0 not in machines.documents:
        yield "no document"
        return
    said = machines.documents[0][1]
    others = " ".join(node_of(name) for name in said.cohort if name != said.leader)
    learners = f" [{' '.join(map(node_of, said.learners))}]" if said.learners else ""
    previous = said.previous
    before = f", {node_of(previous.leader) or NOBODY} in {previous.epoch} before" if previous.epoch else ""
    held = [f", {word}" for word, is_so in (
        ("frozen", is_frozen(said, machines.now_ms)), ("solo", said.mode == "solo"),
        (f"quarantine {' '.join(node_of(row.node) for row in said.quarantine)}", said.quarantine),
        (f"malformed {' '.join(said.malformed)}", said.malformed)) if is_so]
    if said.promote is not None:
        held.append(f", {said.promote.kind} {node_of(said.promote.target)}".rstrip())
    yield f"{said.epoch} {node_of(said.leader)} / {others}{learners}{before}{''.join(held)}"
    yield ", ".join(f"{node_of(name)} {_role(machines, name)}" for name in machines.names)


def _role(machines: Machines, name: str) -> str:
    if name in machines.down:
        return "down"
    vnode = machines.nodes[name].view.vnodes[0]
    return f"leads {vnode.epoch}" if vnode.is_leading else vnode.role.value


LOOKS: Mapping[str, Callable[..., Iterable[str]]] = {"document": document}
