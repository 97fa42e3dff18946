"""A data directory is put back as it was earlier, in the same start of its node, which has led and granted since.

The copy is made by LMDB from under the running node: one state of the store, as a snapshot of its file system is.
Rejected: a copy of a stopped node. ZooKeeper counts starts, so the next one tells such a copy for what it is; one
of the newest start is told by the partition documents only, and may say nothing before they were read.

So that each document can tell, others lead every partition when the copy is made, and of those one is down when
they elect again: the vote that the copy has forgotten was needed for each leader. Then tasks are claimed, for
long. Two nodes are left in the end, of which one was away then, and the other one has forgotten it: with that
one's vote they would grant the same tasks again. They must wait for the third, and who claimed still holds.

A node reads its documents within milliseconds here, so one that votes before that passes. In simulations the
registry is out of its reach at first.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from faults import registry
from faults.load import PATIENCE_S, Held, claim_held
from faults.recorder import RecordedClient
from faults.stores import read_store
from faults.world import World
from machines.node import Node
from skuld_py.errors import SkuldError
from skuld_py.model.document import Document
from skuld_py.model.ids import partition_of
from skuld_py.partition.leadership.promise import load_promise
from skuld_py.simulation.checkers.evidence import judge

FOUND_OUT = "F1 an old copy of a data directory is found out"
STILL_HELD = "F2 what a node granted is still held after an old copy of its data was put back"
RULES = ("F1", "F2")
_QUEUE = "kept"
_TASKS = 32
_LEASE_S = 90.0
"""Longer than all that happens between a claim and the look whether it is still held."""
_RIVAL_LEASE_S = 1.0
_RIVAL_S = 6.0
"""Three sessions, in which the two that are left try to elect a leader again and again."""
_FOUND_S = 15.0
_WAIT_S = 40.0


@attrs.frozen
class _Copy:
    """A copy of a node's data, and what it had promised in each partition by then."""

    node: Node
    path: Path
    promised: dict[int, int]


def old_copy(world: World) -> None:
    """Each node in turn leads and grants, is killed, and starts on a copy of its data from before that."""
    for number, victim in enumerate(world.nodes):
        absent, keeper = (world.nodes[(number + step) % len(world.nodes)] for step in (1, 2))
        with world.recorder.client(world.town.addresses, f"holder-{number}", PATIENCE_S) as client:
            _enqueue(world, client)
            copy = _copy_while_others_lead(world, victim)
            with world.fault("kill", [absent]):
                _elect_with(world, copy, absent, keeper)
                held = _claim_all(world, client)
                world.run(3)
                granted = _granted_by(world, victim, held)
                with world.fault("old copy", [victim], f"of {victim} while {keeper} is down"):
                    _put_back(world, copy, absent, keeper)
            _judge_held(world, client, held, granted)
        world.run(2)


def _enqueue(world: World, client: RecordedClient) -> None:
    """Tasks that every node has, in all partitions."""
    ids = [task_id for _ in range(_TASKS) for task_id in client.new_ids()]

    def lacks() -> list[str]:
        with contextlib.suppress(SkuldError):
            client.enqueue_many(_QUEUE, [b"kept"] * _TASKS, ids=ids, w=len(world.nodes))
            return []
        return ["tasks are not on all nodes"]
    world.until(lacks, _WAIT_S, "enqueue on all nodes")


def _copy_while_others_lead(world: World, victim: Node) -> _Copy:
    with world.fault("kill", [victim]):
        world.kill([victim])
        world.until(lambda: [f"partition {partition}" for partition, document in _documents(world).items()
                             if document.leader == victim.name], _WAIT_S, f"other leaders than {victim}")
        world.start([victim])
        path = victim.copy()
    store, _ = read_store(path)
    partitions = range(world.town.shape.partitions)
    return _Copy(victim, path, {partition: load_promise(store, partition).epoch for partition in partitions})


def _elect_with(world: World, copy: _Copy, absent: Node, keeper: Node) -> None:
    """No leader is left, and of the voters two: the copied node is one of them."""
    with world.fault("kill", [keeper]):
        world.kill([absent, keeper])
        world.start([keeper])
        world.until(lambda: _untold(world, copy), _WAIT_S, f"leaders elected with the vote of {copy.node}")
        world.await_served()


def _untold(world: World, copy: _Copy) -> list[str]:
    """Partitions whose documents do not tell more than the copy knows."""
    me = copy.node.name
    return [f"partition {partition}: {document}" for partition, document in _documents(world).items()
            if document.promises.get(me, 0) <= copy.promised[partition]]


def _claim_all(world: World, client: RecordedClient) -> list[Held]:
    held: list[Held] = []

    def lacks() -> list[str]:
        with contextlib.suppress(SkuldError):
            held.extend(claim_held(world.recorder, client, _QUEUE, _TASKS, _LEASE_S, 0))
        return [f"only {len(held)} of {_TASKS} are claimed"] * (len(held) < _TASKS)
    world.until(lacks, _WAIT_S, "claim of every task")
    return held


def _granted_by(world: World, victim: Node, held: Sequence[Held]) -> list[Held]:
    """Claims in partitions that this node leads."""
    led = [partition for partition, document in _documents(world).items() if document.leader == victim.name]
    granted = [each for each in held if partition_of(each.claim.id, world.town.shape.partitions) in led]
    world.say(f"{victim} leads {len(led)} partitions and granted {len(granted)} of {len(held)} claims")
    return granted


def _put_back(world: World, copy: _Copy, absent: Node, keeper: Node) -> None:
    """Until the copied node has filled again from both others."""
    victim = copy.node
    world.kill([victim, keeper])
    victim.put_back(copy.path)
    world.start([absent])
    world.start([victim])
    found: dict[int, None] = {}
    with contextlib.suppress(TimeoutError):
        world.until(lambda: _hidden(world, victim, found), _FOUND_S, f"doubt of {victim}")
    world.say(f"{victim} found out in {len(found)} of {len(copy.promised)} partitions that its data are old")
    world.findings.append(judge(FOUND_OUT, len(found), [
        f"{victim} does not say that its data of partition {partition} are an old copy"
        for partition in copy.promised if partition not in found]))
    _claim_in_vain(world)
    world.start([keeper])
    world.await_served()
    world.until(lambda: _doubts(world, victim), _WAIT_S, f"trust of {victim} in its memory")


def _hidden(world: World, victim: Node, found: dict[int, None]) -> list[str]:
    """Partitions of which the node has not said yet that its data are old; ``found`` gathers the others."""
    for view in world.describe().values():
        found.update((row.partition, None) for row in view.moves
                     if row.node == victim.name and "its data is an old copy" in row.reason)
    return [f"partition {number}" for number in range(world.town.shape.partitions) if number not in found]


def _doubts(world: World, victim: Node) -> list[str]:
    return [f"partition {row.partition}: {row.reason}" for view in world.describe(len(world.nodes)).values()
            for row in view.moves if row.node == victim.name and row.reason]


def _claim_in_vain(world: World) -> None:
    """Somebody else tries to claim the tasks that are held; whether that succeeds is for the checkers to say."""
    until = time.monotonic() + _RIVAL_S
    with world.recorder.client(world.town.addresses, "rival", PATIENCE_S) as client:
        while time.monotonic() < until:
            with contextlib.suppress(SkuldError):
                claim_held(world.recorder, client, _QUEUE, _TASKS, _RIVAL_LEASE_S, 0)
            world.run(0.2)


def _judge_held(world: World, client: RecordedClient, held: Sequence[Held], granted: Sequence[Held]) -> None:
    """Renew all claims, then complete them: none may have been lost."""
    verdicts: dict[bytes, bool] = {}

    def lacks() -> list[str]:
        left = [each.claim for each in held if each.claim.id not in verdicts]
        with contextlib.suppress(SkuldError):
            answers = zip(left, client.renew_many(left, lease_s=_LEASE_S), strict=True)
            verdicts.update((claim.id, is_held) for claim, is_held in answers if is_held is not None)
        return [f"{len(verdicts)} of {len(held)} claims are judged"] * (len(verdicts) < len(held))
    world.until(lacks, _WAIT_S, "renewal of every claim")
    lost = [f"{each.hold} is lost" for each in held if not verdicts[each.claim.id]]
    world.findings.append(judge(STILL_HELD, len(granted), lost))
    _complete(world, client, held)


def _complete(world: World, client: RecordedClient, held: Sequence[Held]) -> None:
    for each in held:
        each.believe_until(world.recorder.now_ms())

    def lacks() -> list[str]:
        with contextlib.suppress(SkuldError):
            client.complete_many([each.claim for each in held])
            return []
        return ["tasks are not completed"]
    world.until(lacks, _WAIT_S, "completion of what was held")


def _documents(world: World) -> dict[int, Document]:
    return registry.documents(world.town.registry)
