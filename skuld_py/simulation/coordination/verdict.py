"""What must hold once all is quiet: of the log and its members (``membership``), of slots, and of what nodes know.

At every position of the log the replicas are compared as they are played (``world.zookeeper.reference``).
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.simulation.coordination.stage import Stage
from skuld_py.simulation.membership import unsettled


def lacks(stage: Stage) -> list[str]:
    """What is still missing of rest; empty when there is nothing to wait for."""
    return [*unsettled(stage.processes, stage.registry), *_of_nodes(stage)]


def _of_nodes(stage: Stage) -> Iterator[str]:
    wanted, live = dict[str, tuple[str, tuple[str, ...]]](), stage.live
    for process in live:
        machine = process.membership
        assert machine is not None
        wanted |= {slot: (machine.me, tags) for slot, tags in machine.slots.items()}
        if not stage.listeners[process.name].is_connected:
            yield f"{process.name} was not told that it is in"
    counted = {slot: (each.member, each.tags) for slot, each in stage.registry.replica.slots.items()}
    if live and wanted != counted:
        yield f"slots are {counted}, not {wanted}"


def final(stage: Stage) -> list[str]:
    """What waiting cannot mend: digests that differ."""
    digest = stage.registry.replica.digest()
    return [f"{process.name} has another digest" for process in stage.live
            if process.membership is not None and process.membership.replica.digest() != digest]
