"""A file system per node, in a file: it can lose its power, be full, and be mounted again.

A cut of power is the file system's own shutdown without a flush of its log: from then on nothing reaches the
image, and what had not been synced is gone after the next mount. ``kill -9`` alone proves nothing of the kind,
the page cache outlives the process. The ioctl is one call per node, so all nodes lose power within a
millisecond.

Mounts are made in the mount namespace of the run (``ip netns exec`` makes one), so that they and their loop
devices vanish with its last process, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_SHUTDOWN = 0x8004587D  # XFS_IOC_GOINGDOWN, which ext4 understands as well
_NO_LOG_FLUSH = (2).to_bytes(4, "little")
_BYTES = 320 << 20  # XFS makes nothing smaller; the image is sparse
_BUSY_S = 10.0


class Disk:
    """One image, mounted at ``place``."""

    def __init__(self, image: Path, place: Path) -> None:
        self.place = place
        self._image = image
        self._filler = place / "filler"
        self._synced, self._unsynced = place / "synced", place / "unsynced"

    def make(self) -> None:
        """A fresh file system, mounted."""
        with self._image.open("wb") as image:
            image.truncate(_BYTES)
        program = "mkfs.xfs" if shutil.which("mkfs.xfs") else "mkfs.ext4"
        _run([program, "-q", str(self._image)])
        self.place.mkdir(parents=True, exist_ok=True)
        self.mount()

    def mount(self) -> None:
        """Bring back what reached the image."""
        _run(["mount", "-o", "loop", str(self._image), str(self.place)])

    def unmount(self) -> None:
        """Take it away, once the last that used it is gone; nothing when it is not mounted."""
        deadline = time.monotonic() + _BUSY_S
        while self._is_mounted():
            done = subprocess.run(["umount", str(self.place)], capture_output=True, text=True, check=False)
            if done.returncode and time.monotonic() > deadline:
                raise RuntimeError(f"cannot unmount {self.place}: {done.stderr.strip()}")
            if done.returncode:
                time.sleep(0.05)

    def _is_mounted(self) -> bool:
        """As the kernel says; ``os.path.ismount`` denies it of a disk without power."""
        places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        return str(self.place) in places

    def mark(self) -> None:
        """Write down, just before a cut, what must be there after it, and what must not."""
        for file in (self._synced, self._unsynced):
            file.unlink(missing_ok=True)
        with self._synced.open("wb", buffering=0) as synced:
            synced.write(b"kept")
            os.fsync(synced.fileno())
        self._unsynced.write_bytes(b"lost")

    def remount(self) -> None:
        """What a machine does when its power is back. Raises when the cut was none, or too much of one."""
        self.unmount()
        self.mount()
        is_lost = not self._unsynced.exists() or self._unsynced.read_bytes() != b"lost"  # the name may be there
        if self._synced.read_bytes() != b"kept" or not is_lost:
            raise RuntimeError(f"the power cut at {self.place} did not lose exactly what was not synced")

    def fill(self) -> None:
        """Take all the space that is left."""
        part = _BYTES
        with self._filler.open("wb") as filler:
            end = 0
            while part >= 4096:
                try:
                    os.posix_fallocate(filler.fileno(), end, part)
                    end += part
                except OSError as problem:
                    if problem.errno != errno.ENOSPC:
                        raise
                    part //= 2

    def free(self) -> None:
        """Give that space back."""
        self._filler.unlink(missing_ok=True)


def cut_power(disks: Sequence[Disk]) -> None:
    """All of them at once."""
    with contextlib.ExitStack() as held:
        handles = []
        for disk in disks:
            handles.append(os.open(disk.place, os.O_RDONLY | os.O_DIRECTORY))
            held.callback(os.close, handles[-1])
        for disk in disks:
            disk.mark()
        for handle in handles:
            fcntl.ioctl(handle, _SHUTDOWN, _NO_LOG_FLUSH)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")
