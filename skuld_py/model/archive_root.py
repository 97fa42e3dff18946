"""Into which archive a cluster's ended tasks go: one register of its settings, so that a second is noticed.

The value is canonical JSON: ``archive`` is the name that a manifest has, the same wherever its directory is
mounted, or empty where there is none; ``root`` is what the archiver was told, and counts where there is none.
"""

from __future__ import annotations

import json

import attrs

ARCHIVE = "archive"
"""The kind of the register, and its name."""
ROOT_CHARACTERS_MAX = 4_096


@attrs.frozen
class ArchiveRoot:
    """Where ended tasks go."""

    root: str
    archive: str = ""

    def encode(self) -> bytes:
        """The value of the register."""
        return json.dumps(attrs.asdict(self), separators=(",", ":"), sort_keys=True).encode()

    def is_of(self, other: ArchiveRoot) -> bool:
        """Whether both are the same archive."""
        return self.archive == other.archive if self.archive and other.archive else self.root == other.root

    def says(self, other: ArchiveRoot) -> bool:
        """Whether nothing is to be noted of the other, the same archive: no other place, and no name."""
        return self.root == other.root and bool(self.archive or not other.archive)


def decode_root(value: bytes) -> ArchiveRoot:
    """The value of a register; raises ``ValueError`` when it is none."""
    found = json.loads(value)
    if not isinstance(found, dict):
        raise ValueError("no object")
    root, archive = found.get("root"), found.get("archive")
    if type(root) is not str or type(archive) is not str or not 0 < len(root) <= ROOT_CHARACTERS_MAX or (
            len(archive) > ROOT_CHARACTERS_MAX):
        raise ValueError("no root, or no archive")
    return ArchiveRoot(root, archive)


def is_root(value: bytes) -> bool:
    """Whether a register may have it."""
    try:
        decode_root(value)
    except ValueError:
        return False
    return True
