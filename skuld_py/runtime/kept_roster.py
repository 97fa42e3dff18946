"""The roster of a cluster with keys, kept with each node's data: what is left of it should ZooKeeper lose it.

Each node keeps the newest that it knows, and since when. Of several the newest counts, without any key that one of
them knows to be revoked: a clock that is wrong must not bring such a key back. Public keys only, so a backup may
hold it; the cluster's own secret is in its key file alone.

Rejected: a record of the store (the roster comes in the registry's thread, and the store is the loop's alone).
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from skuld_py.errors import Malformed, Refused
from skuld_py.keys.files import ClusterKey
from skuld_py.model.roster import Roster
from skuld_py.node.life.rebuilding import Remains
from skuld_py.runtime.node_keys import NODE_FILE, ROSTER_FILE

_log = logging.getLogger(__name__)


def keep_roster(data: Path, roster: Roster) -> None:
    """Keep it in a data directory, whole or as before. A disk that does not take it is named in the log: the node
    does not need it."""
    path, aside = data / ROSTER_FILE, data / f".{ROSTER_FILE}"
    try:
        if _is_kept(path, roster):
            return
        kept_ms = time.time_ns() // 1_000_000
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps({"kept_ms": kept_ms, "roster": json.loads(roster.encode())}).encode())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as problem:
        _log.error("%s is not kept up to date: %s", path, problem)


def roster_of(directories: Sequence[Path], key: ClusterKey | None) -> tuple[Roster | None, str]:
    """The roster of the cluster that data directories are of, and a warning, if there is cause; None for a cluster
    without keys. ``Refused`` when there is no key for a cluster with keys, or another one."""
    found = [kept for directory in directories if (kept := _read(directory / ROSTER_FILE)) is not None]
    keyed = [each for each in directories if (each / NODE_FILE).exists() or (each / ROSTER_FILE).exists()]
    if key is None:
        if keyed:
            raise Refused("no_cluster_key", f"cluster-key: {keyed[0]} is of a cluster with keys; give its key"
                          " file, or anybody could read and write what is restored", data=str(keyed[0]))
        return None, ""
    if not found:
        return Roster(cluster=(key.pair.public,)), (
            "none of the directories had kept the list of keys (releases before did not): the keys of clients are"
            " forgotten; put each back with 'skuld keys authorise', or make new ones with 'skuld keys make'")
    newest = max(found, key=lambda kept: kept[0])[1]
    newest.check_newest(key.pair.public)
    for gone in dict.fromkeys(one for _, roster in found for one in roster.revoked):
        newest = newest.revoking(gone)
    return newest, ""


def aged(roster: Roster | None, remains: Iterable[Remains]) -> str:
    """A warning, if there is a roster and any of the directories is a backup."""
    if roster is None or all(each.copied is None for each in remains):
        return ""
    return ("the list of keys may be as old as the newest backup: keys revoked since count again; see 'skuld keys"
            " list', and revoke them anew")


def _is_kept(path: Path, roster: Roster) -> bool:
    try:
        known = _read(path)
    except Refused:
        return False
    return known is not None and known[1] == roster


def _read(path: Path) -> tuple[int, Roster] | None:
    """Since when a roster was kept, and it; None where there is none. ``Refused`` when it cannot be read."""
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        return int(plain["kept_ms"]), Roster.decode(json.dumps(plain["roster"]).encode())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, Malformed) as problem:
        raise Refused("bad_roster", f"{path} cannot be read: {problem}; move it away, and the node keeps another"
                      " one", file=str(path)) from problem
