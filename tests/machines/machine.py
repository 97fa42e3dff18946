"""Machines made of network namespaces: each has an address of its own on one bridge, and processes that know no
other.

What differs from real ones: they share a kernel, a clock and a disk. A cut is a link that is down, so packets are
lost without a word, as when a cable is pulled. Needs root and ``ip``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from skuld_py.embedded import process, python

_SITES = itertools.count()
"""So that no site has the names of one before it, of which the kernel may still be letting go."""
MISSING_TOOLS = [tool for tool in ("ip",) if shutil.which(tool) is None]


def why_not() -> str:
    """Why this machine cannot hold others; empty if it can."""
    if os.geteuid() != 0:
        return "needs root"
    if MISSING_TOOLS:
        return f"needs {', '.join(MISSING_TOOLS)} (apt-get install iproute2)"
    try:
        ip("netns", "add", f"skuld-try-{os.getpid()}")
        ip("netns", "del", f"skuld-try-{os.getpid()}")
    except subprocess.CalledProcessError as problem:
        return f"cannot make a network namespace: {problem.stderr.strip()}"
    return ""


def ip(*arguments: str) -> str:
    """Have the kernel's network changed."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@attrs.define(eq=False)
class Machine:
    """``number``: what its addresses end with."""

    name: str
    number: int
    site: str
    running: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    @property
    def namespace(self) -> str:
        """Its network namespace."""
        return f"{self.site}-{self.name}"

    @property
    def host(self) -> str:
        """Its IPv4 address."""
        return f"10.77.0.{self.number}"

    @property
    def host6(self) -> str:
        """Its IPv6 address."""
        return f"fd77::{self.number}"

    @property
    def _link(self) -> str:
        return f"{self.site}v{self.number}"

    def build(self) -> None:
        """Plug it into the bridge."""
        ip("netns", "add", self.namespace)
        ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        ip("link", "set", self._link, "master", self.site, "up")
        for command in (("addr", "add", f"{self.host}/24", "dev", "eth0"),
                        ("addr", "add", f"{self.host6}/64", "dev", "eth0", "nodad"),
                        ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
            ip("-n", self.namespace, *command)

    def spawn(self, command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None,
              stdin: int | None = None) -> subprocess.Popen[bytes]:
        """Start a program on it."""
        made = process.spawn(["ip", "netns", "exec", self.namespace, *command], log=log, stdin=stdin,
                             environment={**python.environment(), **(environment or {})})
        self.running.append(made)
        return made

    def skuld(self, arguments: Sequence[str], log: Path, **options: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a verb on it."""
        return self.spawn(python.module_command("skuld_py", arguments), log, **options)

    def cut(self) -> None:
        """Pull its cable."""
        ip("link", "set", self._link, "down")

    def mend(self) -> None:
        """Plug it in again."""
        ip("link", "set", self._link, "up")

    def freeze(self) -> None:
        """Let all its processes stand still."""
        for each in self.running:
            if each.poll() is None:
                each.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for each in self.running:
            if each.poll() is None:
                each.send_signal(signal.SIGCONT)

    def lose_power(self) -> None:
        """End all its processes at once."""
        for each in self.running:
            process.stop(each, grace_s=0)
        self.running.clear()


@contextlib.contextmanager
def site(names: Sequence[str]) -> Iterator[dict[str, Machine]]:
    """Machines of these names on one bridge; all of it is gone afterwards."""
    label = f"sk{os.getpid() % 10_000}{chr(ord('a') + next(_SITES) % 26)}"
    machines = {name: Machine(name, number, label) for number, name in enumerate(names, 1)}
    try:
        ip("link", "add", "name", label, "type", "bridge")
        ip("link", "set", label, "up")
        for machine in machines.values():
            machine.build()
        yield machines
    finally:
        for machine in machines.values():
            machine.lose_power()
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", machine.namespace)
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("link", "del", label)
