"""A data directory whose node does not run, opened to read what it remembers of its cluster."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from skuld_py.errors import Refused
from skuld_py.node.life.rebuilding import Remains, read_remains
from skuld_py.runtime.agreement import check_format
from skuld_py.runtime.backup import MANIFEST_FILE, check_backup
from skuld_py.runtime.lmdb_store import LmdbStore


def remains_in(directory: Path) -> Remains:
    """What a data directory, or a backup, has to say; ``Refused`` when it is in use, or none, or a backup that is
    not as it was written. It is left as it was."""
    if not (directory / "data.mdb").is_file():
        raise Refused("no_data", f"from: {directory} is no data directory: it has no data.mdb",
                      data=str(directory))
    with closing(LmdbStore(directory)) as store:
        check_format(store, directory)
        found = read_remains(store, str(directory))
        store.abort()
    if found.copied is not None and (directory / MANIFEST_FILE).exists():
        check_backup(directory)
    return found
