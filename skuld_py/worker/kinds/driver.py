"""A worker's side of a script's driver: its guardian is started, or found, and spoken to.

Everything here waits in steps: the order to stop a task arrives between two of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skuld_py.client.steady import steady_s
from skuld_py.embedded import python
from skuld_py.errors import Refused
from skuld_py.variables import handed_on
from skuld_py.worker.kinds.drivers import Intent
from skuld_py.worker.kinds.machine import CLAIM_VARIABLE, Machine, Process, is_of

PREFIX, OWNER = "skuld-driver-", "claim"
START_S, ANSWER_S = 60.0, 10.0
STEP_S = 0.25
SOCKET_CHARS_MAX = 90
_CREDENTIALS = struct.Struct("3i")


_guardians: list[subprocess.Popen[bytes]] = []
"""Those that this process started, and that may outlive it."""


class Gone(Exception):
    """The guardian is not there, or does not obey this claim."""


class Dismissed(Exception):
    """A newer claim has taken the driver."""


class Driver:
    """A driver, by the connection to its guardian, as the master with this token."""

    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link = link
        self._inbox = b""
        self._deadline = deadline

    def extend(self, deadline: float) -> None:
        """The lease lasts until then."""
        if deadline > self._deadline:
            self._deadline = deadline
            self._say(deadline=deadline)

    def order(self, what: str) -> None:
        """``go``, ``end`` or ``bye``."""
        self._say(order=what)

    def hear(self, timeout_s: float = STEP_S) -> dict[str, Any] | None:
        """What the guardian says next; None if it says nothing in time. ``Gone`` when it has gone, ``Dismissed``
        when it obeys a newer claim."""
        while b"\n" not in self._inbox:
            if not select.select([self._link], [], [], timeout_s)[0]:
                return None
            try:
                data = self._link.recv(65_536)
            except OSError:
                data = b""
            if not data:
                raise Gone("the guardian of the driver is gone")
            self._inbox += data
        line, _, self._inbox = self._inbox.partition(b"\n")
        words: dict[str, Any] = json.loads(line)
        if "dismissed" in words:
            raise Dismissed
        return words

    def close(self) -> None:
        """End the connection; the driver goes on unless it was told to end."""
        self._link.close()

    def _say(self, **words: Any) -> None:
        try:
            self._link.sendall(json.dumps(words).encode() + b"\n")
        except OSError:
            raise Gone("the guardian of the driver is gone") from None


def place() -> Path:
    """A new directory for a driver, which only this user can enter, in whose path there is room for a socket."""
    made = tempfile.mkdtemp(prefix=PREFIX)
    if len(made) > SOCKET_CHARS_MAX:
        os.rmdir(made)
        made = tempfile.mkdtemp(prefix=PREFIX, dir="/tmp")
    return Path(made)


def clear(intent: Intent) -> None:
    """Remove the directory of a driver that has ended, if it is one of that claim's."""
    directory = Path(intent.socket).parent
    with contextlib.suppress(OSError):
        if directory.name.startswith(PREFIX) and (directory / OWNER).read_text() == intent.claim:
            shutil.rmtree(directory, ignore_errors=True)


def guarded(claim: str, directory: Path, command: Sequence[str], environment: Mapping[str, str],
            machine: Machine, lease_s: float, adopt_s: float, working_directory: Path | None = None) -> Intent:
    """Start a guardian with a driver that waits for its start; what is to be written down before."""
    own = {**handed_on(python.environment()), CLAIM_VARIABLE: claim}
    reap()
    (directory / OWNER).write_text(claim)
    with (directory / "guardian.log").open("wb") as log:
        child = subprocess.Popen(python.module_command("skuld_py.worker.kinds.guardian"), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=log, env=own, start_new_session=True,
                                 cwd=working_directory)
    assert child.stdin is not None and child.stdout is not None
    spec = {"claim": claim, "directory": str(directory), "command": [*command], "environment": {**environment},
            "adopt_s": adopt_s}
    try:
        with child.stdin, child.stdout:
            with contextlib.suppress(OSError):
                child.stdin.write(json.dumps(spec).encode() + b"\n")
                child.stdin.flush()
            told = _first_line(child)
        if not told:
            why = (directory / "guardian.log").read_text(errors="replace")[-500:] or "no answer in time"
            raise Refused("no_guardian", f"the driver could not be started: {why}")
    except BaseException:  # the order to stop, too: nobody would attach to it
        child.kill()
        child.wait()
        shutil.rmtree(directory, ignore_errors=True)
        raise
    words = json.loads(told)
    _guardians.append(child)
    guardian, driver = (Process(**words[name]) for name in ("guardian", "driver"))
    return Intent(claim, machine, guardian, driver, words["socket"], lease_s, adopt_s)


def attached(intent: Intent, token: int, deadline: float) -> Driver:
    """The driver with this claim as its master. ``Gone`` if its guardian is not there, is another one than the
    intent says, or has a newer master."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(ANSWER_S)
        link.connect(intent.socket)
        process_id, user, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if process_id != intent.guardian.id or user != os.getuid() or not is_of(intent.claim, process_id):
            raise Gone("another process listens there")
        driver = Driver(link, deadline)
        driver._say(token=token, deadline=deadline)
        until = steady_s() + ANSWER_S
        while (words := driver.hear()) is None:
            if steady_s() > until:
                raise Gone("the guardian does not answer")
        if not words.get("is_master"):
            raise Gone("the guardian obeys a newer claim, or is ending the driver")
        return driver
    except OSError as error:
        link.close()
        raise Gone(f"the guardian is not there: {error}") from None
    except BaseException:
        link.close()
        raise


def reap() -> None:
    """Let go of guardians that have ended."""
    _guardians[:] = [child for child in _guardians if child.poll() is None]


def _first_line(child: subprocess.Popen[bytes]) -> bytes:
    assert child.stdout is not None
    line, until = b"", steady_s() + START_S
    while not line.endswith(b"\n") and steady_s() < until:
        if select.select([child.stdout], [], [], STEP_S)[0]:
            data = os.read(child.stdout.fileno(), 65_536)
            if not data:
                return b""
            line += data
    return line if line.endswith(b"\n") else b""
