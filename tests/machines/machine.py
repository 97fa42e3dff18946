"""Machines made of network namespaces: each has addresses of its own, and processes that know no other.

A switch joins them, a bridge in a namespace of its own: so nothing is changed outside, sites may have the same
addresses, and names are all that is left of one whose maker was killed. The next maker removes those.

What differs from real machines: they share a kernel, a clock and a disk. A pulled cable is a link that is down, so
packets are lost without a word; cuts between two machines are made at the switch, see ``network``.

Programs are put onto a machine with ``nsenter`` and not with ``ip netns exec``, which would give each a view of
its own of what is mounted: a disk that lost its power could not be mounted anew while such a view holds the old
one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from skuld_py.embedded import process, python

PREFIX = "skuld-site-"
SWITCH = "switch"
_SITES = itertools.count()
_GONE_S = 10.0
_LOOK_S = 0.01


def ip(*arguments: str) -> str:
    """Have the kernel's network changed, or told of."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


def entered(namespace: str) -> list[str]:
    """The words that run a command in a network namespace."""
    return ["nsenter", f"--net=/var/run/netns/{namespace}"]


@attrs.frozen
class Machine:
    """``number``: what its addresses end with. ``site``: the site's label."""

    name: str
    number: int
    site: str

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

    def build(self) -> None:
        """Plug it into the switch."""
        ip("netns", "add", self.namespace)
        self._at_switch("add", "name", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        self._at_switch("set", "dev", self.name, "master", SWITCH, "up")
        for command in (("addr", "add", f"{self.host}/24", "dev", "eth0"),
                        ("addr", "add", f"{self.host6}/64", "dev", "eth0", "nodad"),
                        ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
            ip("-n", self.namespace, *command)

    def spawn(self, command: Sequence[str], log: Path,
              environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a program on it; the process is the program's own."""
        return process.spawn([*entered(self.namespace), *command], log=log,
                             environment={**python.environment(), **(environment or {})})

    def cut(self) -> None:
        """Pull its cable."""
        self._at_switch("set", "dev", self.name, "down")

    def mend(self) -> None:
        """Plug it in again."""
        self._at_switch("set", "dev", self.name, "up")

    def freeze(self) -> None:
        """Let all its processes stand still."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def lose_power(self) -> None:
        """End all its processes at once."""
        deadline = time.monotonic() + _GONE_S
        while self._signal(signal.SIGKILL):
            if time.monotonic() > deadline:
                raise RuntimeError(f"what runs on {self.name} does not end: {self._processes()}")
            time.sleep(_LOOK_S)

    def _at_switch(self, *command: str) -> None:
        ip("-n", switch_of(self.site), "link", *command)

    def _signal(self, number: signal.Signals) -> bool:
        """Whether there was anybody to hear it."""
        heard = self._processes()
        for each in heard:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)
        return bool(heard)

    def _processes(self) -> list[int]:
        """Those that programs on it have started, too."""
        return [int(line) for line in ip("netns", "pids", self.namespace).split()]


def switch_of(site: str) -> str:
    """The namespace of a site's switch."""
    return f"{site}-{SWITCH}"


def machines_of(site: str, names: Sequence[str]) -> dict[str, Machine]:
    """The machines of a site that has those names, wherever one stands."""
    return {name: Machine(name, number, site) for number, name in enumerate(names, 1)}


@contextlib.contextmanager
def site(names: Sequence[str]) -> Iterator[dict[str, Machine]]:
    """Machines of these names on one switch; all of it is gone afterwards."""
    label = f"{PREFIX}{os.getpid()}-{next(_SITES)}"
    machines = machines_of(label, names)
    try:
        ip("netns", "add", switch_of(label))
        ip("-n", switch_of(label), "link", "add", "name", SWITCH, "type", "bridge")
        ip("-n", switch_of(label), "link", "set", SWITCH, "up")
        for machine in machines.values():
            machine.build()
        yield machines
    finally:
        for machine in machines.values():
            with contextlib.suppress(RuntimeError):
                machine.lose_power()
        for namespace in (*(machine.namespace for machine in machines.values()), switch_of(label)):
            with contextlib.suppress(RuntimeError):
                ip("netns", "delete", namespace)


def remove_stale() -> None:
    """Remove namespaces whose makers are gone."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            with contextlib.suppress(RuntimeError):  # another one did
                ip("netns", "delete", name)
