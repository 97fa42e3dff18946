"""What a computer must offer to hold a site of machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from machines.machine import remove_stale, site

PROGRAMS = ("ip", "nsenter", "nft")
"""Of every site."""
PACKAGES = {"ip": "iproute2", "nsenter": "util-linux", "nft": "nftables", "mount": "mount",
            "mkfs.ext4": "e2fsprogs", "strace": "strace", "openssl": "openssl"}


def lacks(programs: Iterable[str] = ()) -> list[str]:
    """What this computer does not offer, each with its remedy; nothing when all is well. What a site before us
    could not remove, because its maker was killed, is removed."""
    missing = [f"{program}: apt-get install {PACKAGES[program]}" for program in (*PROGRAMS, *programs)
               if shutil.which(program) is None]
    if os.geteuid() != 0:
        return ["root: network namespaces, mounts and packet filters need it; run it with sudo", *missing]
    return missing or _cannot_hold()


def _cannot_hold() -> list[str]:
    remove_stale()
    try:
        with site(["probe"]):
            return []
    except RuntimeError as problem:
        return [f"network namespaces: this kernel or container refuses them ({problem}); use a virtual machine, or"
                " a privileged container"]
