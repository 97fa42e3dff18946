"""A program of a machine, that can be killed, paused and brought back; all its lives write one log."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from machines.machine import Machine
from skuld_py.embedded import process, python

READY_S = 60.0
GRACE_S = 15.0
LOOK_S = 0.02


@attrs.define(eq=False)
class Program:
    """``arguments``: of ``skuld``. It has its machine for itself, so that what befalls one befalls the other."""

    machine: Machine
    log: Path
    arguments: Sequence[str]
    variables: dict[str, str] = attrs.field(factory=dict)
    """Of its environment, besides those of this process."""
    process: subprocess.Popen[bytes] | None = None
    _log_start: int = 0

    def __str__(self) -> str:
        return self.machine.name

    def is_running(self) -> bool:
        """Whether its process exists."""
        if self.process is not None and self.process.poll() is not None:
            self.note_end(self.process.returncode)
            self.process = None
        return self.process is not None

    def note_end(self, status: int) -> None:
        """It has ended without having been asked to."""

    def launch(self) -> None:
        """Start it, and do not wait."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        command = python.module_command("skuld_py", self.arguments)
        self.process = self.machine.spawn(command, self.log, self.variables)

    def await_ready(self) -> None:
        """Until it says that it is ready; raises when it ends instead."""
        deadline = time.monotonic() + READY_S
        while " is ready" not in self.said():
            if not self.is_running():
                raise RuntimeError(f"{self} did not start:\n{process.tail(self.log)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self} is not ready after {READY_S} s:\n{process.tail(self.log)}")
            time.sleep(LOOK_S)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        self.await_ready()

    def await_end(self, timeout_s: float) -> bool:
        """Whether it ended by itself in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process is not None:
                self.process.wait(timeout_s)
        return not self.is_running()

    def kill(self) -> None:
        """``kill -9`` of all that runs there; also when paused."""
        if self.is_running() and self.process is not None:
            self.machine.lose_power()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """SIGTERM, and time to leave."""
        if self.is_running() and self.process is not None:
            process.stop(self.process, GRACE_S)
            self.process = None

    def pause(self) -> None:
        """Stand still."""
        self.machine.freeze()

    def resume(self) -> None:
        """Go on as if nothing had been."""
        self.machine.thaw()

    def said(self) -> str:
        """What it has printed in its present life, or the last one."""
        with contextlib.suppress(FileNotFoundError), self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")
        return ""


def start_all(programs: Iterable[Program]) -> None:
    """All at once, until each is ready."""
    programs = list(programs)
    for program in programs:
        program.launch()
    for program in programs:
        program.await_ready()
