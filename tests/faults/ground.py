"""The machine a run stands on: what it must offer, and a network namespace for each run.

A run is a process of its own inside ``ip netns exec``, which gives it an empty network (its own loopback is
brought up, nothing else exists there) and its own mounts. Its nodes, its ZooKeeper and its clients are inside
with it and die with it; so when it has ended, or was killed, only the namespace's name is left, and that is
removed here. What a run before us could not remove, because it was killed as well, we remove first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator

_PREFIX = "skuld-faults-"
PACKAGES = {"ip": "iproute2", "nft": "nftables", "mount": "mount", "mkfs.ext4": "e2fsprogs", "strace": "strace"}


def lacks(programs: Iterable[str]) -> list[str]:
    """What this machine does not offer, each with its remedy; nothing when all is well."""
    missing = []
    if os.geteuid() != 0:
        missing.append("root: network namespaces, mounts and packet filters need it; run it with sudo")
    elif not _can_enclose():
        missing.append("network namespaces: this kernel or container refuses them; use a virtual machine, or a"
                       " privileged container")
    missing += [f"{program}: apt-get install {PACKAGES[program]}" for program in programs
                if shutil.which(program) is None]
    return missing


@contextlib.contextmanager
def namespace(name: str) -> Iterator[list[str]]:
    """A network namespace with nothing but loopback; gives the words that run a command in it."""
    full = f"{_PREFIX}{os.getpid()}-{name}"
    _ip("netns", "add", full)
    try:
        _ip("-n", full, "link", "set", "lo", "up")
        yield ["ip", "netns", "exec", full]
    finally:
        subprocess.run(["ip", "netns", "delete", full], capture_output=True, check=False)


def remove_stale() -> None:
    """Remove namespaces whose makers are gone."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _can_enclose() -> bool:
    if shutil.which("ip") is None:
        return True  # that is said of the program
    try:
        with namespace("probe"):
            return True
    except RuntimeError:
        return False


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout
