"""Whether a node and its cluster go by the same numbers: those that are fixed when a cluster is created.

ZooKeeper says what they are. The data directory remembers the ones it was filled by, for its records lie where the
number of partitions puts them: a cluster that was made again, or edited by hand, with other numbers would find
none of them. The command line may say what it expects. What differs from ZooKeeper is refused, with the field
and both values. How many copies are kept may have been changed since by an entry of the log: who expects the
number of now or that of before is right, for a change must not keep nodes from starting again. The rules are
compared with what this program can play, and so is the format of the directory. The cluster's name is remembered
with them, for the day on which ZooKeeper has lost it.

Source: Onyx's log parameters; a peer with other parameters refuses to join.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from skuld_py.config import RULES, Parameters
from skuld_py.errors import Corrupt, Refused
from skuld_py.runtime.lmdb_store import LmdbStore

FIXED = ("partitions", "replicas", "skew_ms", "rules")
STORE_FORMAT = 1
"""The format of what a data directory holds. A program that changes it reads what is older, or says how it is
converted; directories from before formats were noted have the first."""
_KEY, _FORMAT_KEY = b"parameters", b"format"


def check_expected(parameters: Parameters, expected: Mapping[str, int | None],
                   copies: Callable[[], int] | None = None) -> None:
    """``Refused`` when the cluster is not as the command line expects, or goes by rules that this program cannot
    play. ``copies``: reads how many copies of each task are kept now."""
    given = {field: value for field, value in expected.items() if value is not None}
    if copies is not None and given.get("replicas", parameters.replicas) != parameters.replicas:
        parameters = attrs.evolve(parameters, replicas=copies())
    _check(parameters, given, "the command line says",
           "leave the option out, or name the cluster that was created with it")
    if parameters.rules > RULES:
        raise Refused("unknown_rules", f"rules: cluster {parameters.cluster} goes by rules {parameters.rules},"
                      f" this program knows rules up to {RULES}; upgrade it", rules=parameters.rules)


def check_format(store: LmdbStore, data: Path) -> None:
    """Note the format of a data directory; ``Refused`` when a newer program has written it. The caller commits."""
    try:
        raw = store.get("meta", _FORMAT_KEY)
    except Corrupt:
        raw = None  # as good as wiped, which is for the identity to say
    found = STORE_FORMAT if raw is None else int(raw) if raw.isdigit() else 0
    if not 1 <= found <= STORE_FORMAT:
        raise Refused("newer_data", f"{data} was written by a newer release: its format is {raw!r}, and this"
                      f" program reads formats up to {STORE_FORMAT}; start the newer release on it, or give this"
                      " node an empty data directory, and it fills from the others", data=str(data))
    if raw is None:
        store.put_many("meta", [(_FORMAT_KEY, b"%d" % STORE_FORMAT)])


def remember(store: LmdbStore, parameters: Parameters, data: Path) -> None:
    """Keep the parameters with the data; ``Refused`` when it was filled under others. The caller commits."""
    try:
        raw = store.get("meta", _KEY)
        known = {} if raw is None else json.loads(raw)
    except (Corrupt, ValueError):
        known = {}
    _check(parameters, known, f"{data} was filled with",
           "give this node a data directory of its own, or create the cluster as it was")
    values = {field: getattr(parameters, field) for field in (*FIXED, "cluster")}
    if known != values:
        store.put_many("meta", [(_KEY, json.dumps(values, sort_keys=True).encode())])


def _check(parameters: Parameters, found: Mapping[str, Any], whose: str, remedy: str) -> None:
    for field in FIXED:
        wanted = getattr(parameters, field)
        if field in found and found[field] != wanted:
            raise Refused("other_parameters", f"{field}: {whose} {found[field]}, cluster {parameters.cluster} has"
                          f" {wanted}; {remedy}", field=field, found=str(found[field]), wanted=str(wanted))
