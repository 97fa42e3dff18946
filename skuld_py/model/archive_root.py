"""Into which archive a cluster's ended tasks go: one register of its settings, so that a second is noticed.

The value is canonical JSON: ``archive`` is the name that a manifest gives itself, the same wherever its directory
is mounted, or empty where there is none; ``root`` is what the archiver was told, and counts where there is none.
``formers``, where there are any: the roots of which this one, a copy of theirs, has taken the place. They have the
same name, so who archives to one of them is known by its root. A release that does not know them takes such an
archiver for one of an archive that was moved.
"""

from __future__ import annotations

import json

import attrs

ARCHIVE = "archive"
"""The kind of the register, and its name."""
ROOT_CHARACTERS_MAX = 4_096
FORMERS_MAX = 4


@attrs.frozen
class ArchiveRoot:
    """Where ended tasks go."""

    root: str
    archive: str = ""
    formers: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """The value of the register."""
        said = {name: value for name, value in attrs.asdict(self).items() if name != "formers" or value}
        return json.dumps(said, separators=(",", ":"), sort_keys=True).encode()

    def behind(self, found: ArchiveRoot | None, replaces: bool) -> ArchiveRoot:
        """This one as it is noted where another stood, whose place it takes, or to which it was moved."""
        if found is None or not found.is_of(self):
            return self
        formers = (found.root, *found.formers) if replaces and found.root != self.root else found.formers
        return attrs.evolve(self, formers=tuple(each for each in formers if each != self.root)[:FORMERS_MAX])

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
    formers = found.get("formers", [])
    if type(formers) is not list or len(formers) > FORMERS_MAX or not all(
            type(each) is str and 0 < len(each) <= ROOT_CHARACTERS_MAX for each in formers):
        raise ValueError("formers that cannot be")
    return ArchiveRoot(root, archive, tuple(formers))


def is_root(value: bytes) -> bool:
    """Whether a register may have it."""
    try:
        decode_root(value)
    except ValueError:
        return False
    return True
