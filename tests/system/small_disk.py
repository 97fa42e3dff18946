"""A small disk that fills up, becomes read-only and goes away, for processes that start there. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

SIZE_KB = 200


@attrs.frozen
class Disk:
    """A small disk at ``root``, which only processes that are started here see; ``seen`` is this one's view. It is
    mounted at ``store``, too, so that it can be taken away at one place and brought back as it was."""

    root: Path
    store: Path
    holder: subprocess.Popen[str]

    @property
    def seen(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/root{self.root}")

    @property
    def kept(self) -> Path:
        """The same where it never goes away."""
        return Path(f"/proc/{self.holder.pid}/root{self.store}")

    def within(self, *command: str) -> list[str]:
        """A command, there."""
        return ["nsenter", "--mount", f"--target={self.holder.pid}", "--", *command]

    def does(self, *command: str) -> None:
        subprocess.run(self.within(*command), check=True)

    def may_be_written(self, is_so: bool) -> None:
        """Or only read."""
        self.does("mount", "-o", f"remount,bind,{'rw' if is_so else 'ro'}", str(self.root))

    def holds(self, size_kb: int) -> None:
        """So much, from now on."""
        self.does("mount", "-o", f"remount,size={size_kb}k", str(self.store))

    def used_kb(self) -> int:
        """How much is on it."""
        found = os.statvfs(self.seen)
        return (found.f_blocks - found.f_bfree) * found.f_frsize // 1024

    def goes(self) -> None:
        """Where it was is an empty directory."""
        self.does("umount", "--lazy", str(self.root))

    def comes_back(self) -> None:
        """As it was."""
        self.does("mount", "--bind", str(self.store), str(self.root))


@contextmanager
def a_disk(place: Path, size_kb: int = SIZE_KB) -> Iterator[Disk]:
    """For as long as the block lasts."""
    store, root = place / "store", place / "root"
    for each in (store, root):
        each.mkdir()
    script = (f"mount -t tmpfs -o size={size_kb}k tmpfs {store} && mount --bind {store} {root} && echo mounted"
              " && exec cat")
    with subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", script],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "mounted\n"
        yield Disk(root, store, holder)
        holder.communicate("")
