"""The place of a process that writes to an archive in a directory: its drafts, its view of the manifest, what it
writes with, and its compaction. What writers that died left is swept when it begins.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

import attrs

from skuld_py.archive.arrow_store import TRIES, ArrowStore
from skuld_py.archive.compaction import GRACE_MS, Compacted, Compaction, OnPart
from skuld_py.archive.delta_log import DeltaLog
from skuld_py.archive.drafts import Drafts, sweep, unwritable
from skuld_py.archive.manifest import Change, Manifest
from skuld_py.archive.rows import BatchNames
from skuld_py.errors import Refused


@attrs.frozen
class Site:
    """What one process has below a root."""

    root: Path
    drafts: Drafts
    manifest: Manifest
    store: ArrowStore
    delta: DeltaLog

    @classmethod
    @contextmanager
    def held(cls, root: Path, *, begins_delta: bool = False) -> Iterator[Site]:
        """For as long as the block lasts; with ``begins_delta`` it is a Delta table from now on. ``Refused`` when
        nothing can be written there."""
        drafts = Drafts(root, secrets.token_hex(8))
        manifest = Manifest(root, drafts.own)
        with drafts.held():
            try:
                sweep(root, manifest.refresh)
            except OSError as error:
                raise unwritable(root, error) from error
            delta = DeltaLog(root, Manifest(root), drafts.own)
            made = cls(root, drafts, manifest, ArrowStore(root, drafts, manifest, now_ms, delta.follow), delta)
            if begins_delta:
                made.begin_delta()
            yield made

    def check_delta(self) -> None:
        """``Refused`` where it is a Delta table that another program has changed."""
        try:
            self.delta.check()
        except OSError as error:
            raise unwritable(self.root, error) from error

    def begin_delta(self) -> None:
        """Make it a Delta table, too, unless it is one."""
        try:
            self.delta.begin()
        except OSError as error:
            raise unwritable(self.root, error) from error

    @property
    def archive(self) -> str:
        """The name of the archive, which its first change gives it, or ``rename``."""
        for _ in range(TRIES):
            if name := self.manifest.name():
                return name
            try:
                self.manifest.put(Change(now_ms()))
            except OSError as error:
                raise unwritable(self.root, error) from error
        raise Refused("not_written", "root: other archivers were faster; run fewer on one root")

    def rename(self) -> None:
        """Have another name than the archive that this one is a copy of."""
        assert self.archive
        try:
            self.manifest.rename()
        except OSError as error:
            raise unwritable(self.root, error) from error

    def compact(self, *, least: int = 2, grace_ms: int = GRACE_MS, keep_days: int | None = None,
                takes_over: bool = True, on_part: OnPart | None = None) -> Compacted:
        """See ``Compaction.run``."""
        made = Compaction(self.root, self.drafts, self.manifest, now_ms,
                          BatchNames(now_ms, secrets.randbits(32)), self.delta.follow,
                          self.delta.removed_since)
        return made.run(least=least, grace_ms=grace_ms, keep_days=keep_days, takes_over=takes_over,
                        on_part=on_part)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return round(time() * 1000)
