"""A node on its machine, with data of its own that can be lost, put back and kept on a disk that fails.

A node that ends without having been asked to is remembered: unless the scenario announced it, that is a violation
by itself, whatever the histories say.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import attrs
import lmdb

from machines.disk import Disk
from machines.machine import Machine
from machines.program import Program
from skuld_py.embedded import process
from skuld_py.model.store import TABLES
from skuld_py.runtime.wrong_time import ALLOWED, FILE, YES

PORT = 13_000
_STORE = ("data.mdb", "lock.mdb")
"""Files of LMDB's."""


@attrs.define(eq=False)
class Node(Program):
    """``directory``: where its data and what belongs to them are. ``disk``: what is mounted there, if anything."""

    directory: Path = attrs.field(kw_only=True)
    disk: Disk | None = None
    ipv6: bool = False
    """Whether others find it by its IPv6 address."""
    may_end: bool = False
    """Whether the scenario expects this process to end by itself."""
    ended: list[str] = attrs.field(factory=list)

    @property
    def host(self) -> str:
        """Where it listens and dials from."""
        return host_of(self.machine, self.ipv6)

    @property
    def name(self) -> str:
        """What the cluster calls it."""
        return f"{self.host}:{PORT}"

    @property
    def address(self) -> str:
        """Where clients dial it."""
        return f"[{self.host}]:{PORT}" if self.ipv6 else self.name

    @property
    def data(self) -> Path:
        """Where its store is."""
        return self.directory / "data"

    @property
    def clock_file(self) -> Path:
        """What makes its time wrong."""
        return self.directory.with_suffix(".clock")

    def note_end(self, status: int) -> None:
        """A violation, unless the scenario announced it."""
        if not self.may_end:
            self.ended.append(f"{self} ended by itself with status {status}:\n{process.tail(self.log)}")

    def launch(self) -> None:
        """Start it, and do not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.variables = {FILE: str(self.clock_file), ALLOWED: YES} if self.clock_file.exists() else {}
        super().launch()

    def await_ready(self) -> None:
        """Until it says that it is a member, with the time that it was given."""
        super().await_ready()
        if self.clock_file.exists() and "FAULT TEST" not in self.said():
            raise RuntimeError(f"{self} takes no notice of {self.clock_file}")

    def wipe(self) -> None:
        """Lose all data, as a disk that was replaced has."""
        shutil.rmtree(self.data)

    def copy(self) -> Path:
        """All data as they are at this moment, beside those that the node goes on with."""
        copy = self.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy, ignore=shutil.ignore_patterns(*_STORE))
        environment = lmdb.Environment(str(self.data), readonly=True, max_dbs=len(TABLES), create=False)
        try:  # one state, while it is being written: pages as they stand in the file, nothing compacted away
            environment.copy(str(copy), compact=False)
        finally:
            environment.close()
        return copy

    def put_back(self, copy: Path) -> None:
        """Have the data of a copy again, and nothing newer."""
        self.wipe()
        shutil.copytree(copy, self.data)

    def set_clock(self, offset_ms: int, rate_ppm: int) -> None:
        """Make its time wrong: the offset from its next start, the rate from now when it has this file."""
        fresh = self.clock_file.with_suffix(".new")
        fresh.write_text(json.dumps({"offset_ms": offset_ms, "rate_ppm": rate_ppm}))
        fresh.replace(self.clock_file)


def host_of(machine: Machine, ipv6: bool) -> str:
    """By what a machine is found."""
    return machine.host6 if ipv6 else machine.host
