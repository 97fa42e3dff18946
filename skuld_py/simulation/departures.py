"""Nodes that go: taken out by an operator, ended cleanly, or come for a visit only.

A clean end takes its time, for the node hands over what it leads, and whatever else strikes may cut it short. A
visitor has lost its disk by the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from skuld_py.simulation.atlas import Atlas
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.zookeeper.registry import Registry

LEAVE_MS = 1_000
"""How long a node that has handed over may take to leave the log."""


class Scene(Protocol):
    """What departures need of a cluster."""

    seed: int
    scheduler: Scheduler
    registry: Registry
    processes: dict[str, Process]
    options: Options
    atlas: Atlas

    def restart(self, name: str) -> None:
        """Start a node that is down."""


class Departures:
    """Each begins with its fault, and says whether it does. ``at_stop`` plans what follows at the fault's end."""

    def __init__(self, scene: Scene, at_stop: Callable[..., None]) -> None:
        self._scene = scene
        self._at_stop = at_stop

    def leave(self, fault: Fault) -> bool:
        """An operator takes a node out, and mostly puts it back."""
        registry, name = self._scene.registry, fault.targets[0]
        if name not in registry.nodes or len(registry.nodes) <= self._scene.options.parameters.replicas:
            return False
        registry.set_leaving(name, True)
        if stream(self._scene.seed, f"fault {fault.number}").randint(0, 2):
            self._at_stop(fault, registry.set_leaving, name, False)
        return True

    def stop(self, fault: Fault) -> bool:
        """A node ends cleanly, and is started again."""
        process, downtime_ms = self._scene.processes[fault.targets[0]], fault.stop_ms - fault.start_ms
        may_stop = process.is_up and not process.is_paused and not process.is_stopping
        if may_stop:
            process.on_crash = lambda: self._scene.scheduler.after(downtime_ms, self._scene.restart, process.name)
            self._end(process)
        return may_stop

    def visit(self, fault: Fault) -> bool:
        """A node joins, ends cleanly, and comes with an empty disk the next time."""
        process = self._scene.processes[fault.targets[0]]

        def end() -> None:
            process.on_crash = partial(self._wipe, process)
            self._end(process)
        if process.is_up:
            return False
        self._scene.restart(process.name)
        self._at_stop(fault, end)
        return True

    def _end(self, process: Process) -> None:
        process.stop(self._scene.options.timing.handover_ms + LEAVE_MS)

    def _wipe(self, process: Process) -> None:
        process.store.wipe()
        self._scene.atlas.note_hurt(process.name)
