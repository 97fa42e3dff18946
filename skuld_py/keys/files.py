"""Key files: what an operator hands out, one for each owner, readable by nobody else.

A *cluster's* file goes to nodes and operators: the pair that clients know the cluster by, and the name and
password by which ZooKeeper knows its nodes. A *node's* file has its own pair; it makes one by itself. A *client's*
file has its pair and the public key of the cluster, so that it needs nothing else.

Whoever can read a file is its owner. So a file that others may read is refused, and one that exists is never
written over. TOML, with a line about what it is; ``secret`` lines are what must not be shown.

A cluster's key that takes the place of another names that one too: while both count, its owner is shown what only
the owner of the other may see. And a client's file may name two keys that nodes may show.
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.keys.pair import Pair
from skuld_py.model.roster import check_key

CLUSTER_FILE = "cluster.key"
_MODE = 0o600
_BEFORE = ("public_before", "zookeeper_before")
_HEAD = "# A key of Skuld ({kind} {name}). Whoever can read this file can act in that name: keep it to yourself.\n"


@attrs.frozen
class Before:
    """Of the cluster's key that another takes the place of: what clients know it by, and NAME:PASSWORD."""

    public: str
    zookeeper: str = attrs.field(repr=False)


@attrs.frozen
class ClusterKey:
    """``cluster``: its name. ``zookeeper``: NAME:PASSWORD. ``before``: of the key that it takes the place of."""

    cluster: str
    pair: Pair
    zookeeper: str = attrs.field(repr=False)
    before: Before | None = None

    @property
    def logins(self) -> tuple[str, ...]:
        """By which ZooKeeper may know its owner; its own first."""
        return (self.zookeeper,) if self.before is None else (self.zookeeper, self.before.zookeeper)

    @property
    def text(self) -> str:
        """The file."""
        before = {} if self.before is None else {"public_before": self.before.public,
                                                 "zookeeper_before": self.before.zookeeper}
        return _text("cluster", self.cluster, {"public": self.pair.public, "secret": self.pair.secret,
                                               "zookeeper": self.zookeeper, **before})


@attrs.frozen
class NodeKey:
    """``name``: the node's, HOST:PORT."""

    name: str
    pair: Pair

    @property
    def text(self) -> str:
        """The file."""
        return _text("node", self.name, {"public": self.pair.public, "secret": self.pair.secret})


@attrs.frozen
class ClientKey:
    """``cluster``: the public key that its nodes show. ``also``: another one that they may show, while the
    cluster's key is replaced."""

    name: str
    pair: Pair
    cluster: str
    also: str = ""

    @property
    def clusters(self) -> tuple[str, ...]:
        """All keys that nodes may show."""
        return (self.cluster, self.also) if self.also else (self.cluster,)

    @property
    def text(self) -> str:
        """The file."""
        return _text("client", self.name, {"public": self.pair.public, "secret": self.pair.secret,
                                           "cluster": self.cluster, **({"also": self.also} if self.also else {})})


def write_new(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all; ``Refused`` if there is one, or if it cannot
    be written."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists():
            raise FileExistsError(path)
        aside.unlink(missing_ok=True)
        try:
            _write_synced(aside, text)
            _name(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    except FileExistsError as problem:
        raise Refused("key_exists", f"{path} exists; choose another file, or move it away",
                      file=str(path)) from problem
    except OSError as problem:
        raise Refused("key_unwritten", f"{path} cannot be written: {problem.strerror}",
                      file=str(path)) from problem


def _write_synced(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _name(aside: Path, path: Path) -> None:
    """Give a file its name, in the place of no other one. Where a file can have one name only, another process may
    come between the look and the renaming."""
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:
        if path.exists():
            raise FileExistsError(path) from None
        aside.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_where_told(path: Path, text: str) -> None:
    """The same for a place that somebody named: in a directory that is there, or a slip makes one, and the key is
    lost in it."""
    if not path.parent.is_dir():
        raise Refused("key_unwritten", f"{path} cannot be written: there is no directory {path.parent}; make it"
                      " first", file=str(path))
    write_new(path, text)


def read_cluster_key(path: Path) -> ClusterKey:
    """The cluster's key; ``Refused`` naming the file and what is wrong with it."""
    plain = _read(path, "cluster", ("zookeeper",), _BEFORE)
    before = None
    if _BEFORE[0] in plain and _BEFORE[1] in plain:
        before = Before(check_key(f"{path}: {_BEFORE[0]}", plain[_BEFORE[0]]), plain[_BEFORE[1]])
    return ClusterKey(plain["name"], _pair(path, plain), plain["zookeeper"], before)


def read_node_key(path: Path) -> NodeKey:
    """A node's key."""
    plain = _read(path, "node", ())
    return NodeKey(plain["name"], _pair(path, plain))


def read_client_key(path: Path) -> ClientKey:
    """A client's key."""
    plain = _read(path, "client", ("cluster",), ("also",))
    also = check_key(f"{path}: also", plain["also"]) if "also" in plain else ""
    return ClientKey(plain["name"], _pair(path, plain), check_key(f"{path}: cluster", plain["cluster"]), also)


def read_password(field: str, path: Path) -> str:
    """The password that is the only line of a file."""
    try:
        check_private(path, "the password")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise Refused("bad_password_file", f"{field}: {path} cannot be read: {reason}",
                      file=str(path)) from problem
    if len(lines) != 1 or not lines[0]:
        raise Refused("bad_password_file", f"{field}: {path} has {len(lines)} lines; write the password, and"
                      " nothing else, into its first", file=str(path))
    return lines[0]


def check_private(path: Path, secret: str = "the key") -> None:
    """``Refused`` when others may read a file that holds a secret; raises ``OSError`` when there is none."""
    _check_mode(path, stat.S_IMODE(path.stat().st_mode), secret)


def _check_mode(path: Path, mode: int, secret: str = "the key") -> None:
    if mode & 0o077:
        raise Refused("exposed_key", f"{path} may be read by others (mode {mode:04o}); make it yours alone ('chmod"
                      f" 600 {path}'), and replace {secret} if anyone else has been on this machine",
                      file=str(path))


_WHENCE = {
    "cluster": "copy the file here that 'skuld cluster create --secure' has written",
    "client": "make one with 'skuld keys make', or copy it here",
    "node": "remove it from the data directory, and the node makes another one"}
"""By kind, how one comes by a key file."""


def _read(path: Path, kind: str, more: tuple[str, ...], perhaps: tuple[str, ...] = ()) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            plain: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError as problem:
        raise Refused("no_key", f"there is no key file {path}; {_WHENCE[kind]}",
                      file=str(path)) from problem
    except (OSError, ValueError) as problem:
        raise Refused("bad_key_file", f"{path} cannot be read as a key: {problem}", file=str(path)) from problem
    _check_mode(path, mode)
    if plain.get("kind") != kind:
        raise Refused("bad_key_file", f"{path} holds the key of a {plain.get('kind', 'stranger')}, not of a"
                      f" {kind}; {_WHENCE[kind]}", file=str(path))
    for field in ("name", "public", "secret", *more, *(field for field in perhaps if field in plain)):
        if not isinstance(plain.get(field), str):
            raise Refused("bad_key_file", f"{path} has no {field}", file=str(path))
    return plain


def _pair(path: Path, plain: dict[str, str]) -> Pair:
    pair = Pair(check_key(f"{path}: public", plain["public"]), check_key(f"{path}: secret", plain["secret"]))
    if not pair.fits:
        raise Refused("bad_key_file", f"{path} is damaged: its public key is not that of its secret one; copy it"
                      " again from where it was made", file=str(path))
    return pair


def _text(kind: str, name: str, fields: dict[str, str]) -> str:
    lines = [f'{field} = "{value}"\n' for field, value in {"kind": kind, "name": name, **fields}.items()]
    return _HEAD.format(kind=kind, name=name) + "".join(lines)
