"""What the kernel of this machine says: which machine it is, which processes there are, and which are a claim's.

A process is known by its id and when it started, for ids are used again. Those of a claim are known by a variable
of their environment, which children inherit: so one that left its group is found, too, and no log entry, whoever
wrote it, makes a worker kill a process that is not the task's. One that has thrown its environment away, too, is
known to the driver's guardian alone, as its descendant.

Processes are seen in the space of process ids that the worker is in, a container's for example, and their
environment by their own user alone. Two workers that do not share both count as two machines.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

import attrs

from skuld_py.worker.renewer import look_at

CLAIM_VARIABLE = "SKULD_CLAIM"


@attrs.frozen
class Process:
    """A process, by its id and its start in ticks since the machine was booted."""

    id: int
    start: int

    @property
    def is_alive(self) -> bool:
        """Whether it is still there, and has not ended."""
        look = look_at(self.id)
        return look is not None and look.start == self.start and look.state not in "ZX"


@attrs.frozen
class Machine:
    """``boot``: this start of it; ``space``: of process ids and users, and which user."""

    host: str
    boot: str
    space: str


def here() -> Machine | None:
    """This machine; None where its kernel does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        spaces = (os.readlink(f"/proc/self/ns/{space}") for space in ("pid", "user"))
        return Machine(socket.gethostname(), boot, " ".join((*spaces, str(os.getuid()))))
    except OSError:
        return None


def process_of(process_id: int) -> Process | None:
    """The process that has this id now."""
    look = look_at(process_id)
    return None if look is None else Process(process_id, look.start)


def is_of(claim: str, process_id: int) -> bool:
    """Whether a process is this claim's."""
    try:
        variables = Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
        return f"{CLAIM_VARIABLE}={claim}".encode() in variables
    except OSError:
        return False


def kill_all(claim: str, *spared: int) -> bool:
    """Kill every process of a claim; whether there was one that had not ended."""
    found = False
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in spared and is_of(claim, int(entry)):
            process = process_of(int(entry))
            if process is not None and process.is_alive:
                found = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.id, signal.SIGKILL)
    return found


def kill_below(process_id: int) -> bool:
    """Kill every process that descends from this one; whether there was one that had not ended."""
    parents = {int(entry): _parent_of(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    below: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {process_id, *below}} - below:
        below |= more
    living = [process for process in map(process_of, below) if process is not None and process.is_alive]
    for process in living:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.id, signal.SIGKILL)
    return bool(living)


def _parent_of(process_id: str) -> int:
    try:
        return int(Path(f"/proc/{process_id}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
