"""A small disk of a node's own, which can be filled: a file system in memory. Needs root."""

from __future__ import annotations

import subprocess
from pathlib import Path


class SmallDisk:
    """``place`` is where it is mounted."""

    def __init__(self, place: Path, mebibytes: int) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        options = f"size={mebibytes}m,mode=0700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "skuld", str(place)], check=True)

    @property
    def _ballast(self) -> Path:
        return self.place / "ballast"

    def fill(self) -> None:
        """Leave no room."""
        subprocess.run(["dd", "if=/dev/zero", f"of={self._ballast}", "bs=64k"], check=False, capture_output=True)

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it out."""
        subprocess.run(["umount", "-l", str(self.place)], check=False)
