"""Key files: what is written is read, what others may read is refused, and nothing is written over."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skuld_py.errors import Refused
from skuld_py.keys import pair as pairs
from skuld_py.keys.files import (
    Before,
    ClientKey,
    ClusterKey,
    NodeKey,
    read_client_key,
    read_cluster_key,
    read_node_key,
    read_password,
    write_new,
)
from skuld_py.keys.pair import fresh
from skuld_py.runtime import node_keys

CASES: list[tuple[Any, Callable[[Path], Any]]] = [
    (ClusterKey("prod", fresh(), "skuld-prod:0123"), read_cluster_key),
    (NodeKey("h:13000", fresh()), read_node_key),
    (ClientKey("shop", fresh(), fresh().public), read_client_key),
    (ClusterKey("prod", fresh(), "skuld-prod:0123", Before(fresh().public, "skuld-prod:4567")), read_cluster_key),
    (ClientKey("shop", fresh(), fresh().public, fresh().public), read_client_key)]


@pytest.mark.parametrize(("key", "read"), CASES)
def test_what_is_written_is_read_and_is_its_owner_s_alone(tmp_path: Path, key: Any,
                                                          read: Callable[[Path], Any]) -> None:
    path = tmp_path / "keys" / "a.key"
    write_new(path, key.text)

    assert read(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert key.pair.secret not in repr(key) and "4567" not in repr(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.key"
    write_new(path, CASES[2][0].text)
    path.chmod(mode)

    with pytest.raises(Refused, match=r"may be read by others.*chmod 600.* replace the key if") as refused:
        read_client_key(path)
    assert refused.value.code == "exposed_key"


def test_no_file_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    write_new(path, "one")

    with pytest.raises(Refused, match="key_exists"):
        write_new(path, "two")
    assert path.read_text() == "one"


@pytest.mark.parametrize(("text", "words"), [
    ("x", "cannot be read as a key"), ('kind = "node"\n', "holds the key of a node, not of a client"),
    ("", "holds the key of a stranger"), ('kind = "client"\nname = "a"\n', "has no public"),
    ('kind = "client"\nname = "a"\npublic = "x"\nsecret = "s"\ncluster = "c"\n', "public: 'x' is no public"),
    ('kind = "client"\nname = 1\n', "has no name"),
    ('kind = "client"\nname = "a"\npublic = "x"\nsecret = "s"\ncluster = "c"\nalso = 1\n', "has no also")])
def test_what_is_no_key_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.key"
    write_new(path, text)

    with pytest.raises(Refused, match=words) as refused:
        read_client_key(path)
    assert str(path) in refused.value.message


def test_a_key_that_is_not_there_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no key file.*skuld keys make"):
        read_client_key(tmp_path / "none.key")


@pytest.mark.parametrize(("version", "has_curve"), [((4, 3, 4), True), ((4, 3, 5), False), ((3, 9, 9), True)])
def test_a_library_that_is_old_or_cannot_seal_is_refused(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...],
                                                         has_curve: bool) -> None:
    monkeypatch.setattr(pairs.zmq, "zmq_version_info", lambda: version)
    monkeypatch.setattr(pairs.zmq, "has", lambda what: has_curve)

    with pytest.raises(Refused, match=r"keys need libzmq 4\.3\.5"):
        fresh()


def test_a_password_is_the_only_line_of_a_file_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "password"
    write_new(path, "s3cret pass\n")
    assert read_password("zookeeper-password-file", path) == "s3cret pass"

    path.chmod(0o644)
    with pytest.raises(Refused, match="exposed_key"):
        read_password("zookeeper-password-file", path)


@pytest.mark.parametrize(("content", "words"), [
    (None, "cannot be read: No such file"), (b"", "has 0 lines"), (b"one\ntwo\n", "has 2 lines"),
    (b"\n", "write the password"), (b"\xff\n", "it is not UTF-8")])
def test_what_is_no_password_file_is_named_with_its_option(tmp_path: Path, content: bytes | None,
                                                           words: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.touch(0o600)
        path.write_bytes(content)

    with pytest.raises(Refused, match=f"^zookeeper-password-file: {path}.*{words}"):
        read_password("zookeeper-password-file", path)


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on a disk that is full: files are made, and nothing can be written into them."""
    def write(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "fsync", write)
    return tmp_path


def test_a_disk_that_is_full_leaves_no_half_of_a_key(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There was a traceback, and an empty file, which hindered the next run and stopped a node for good."""
    path = full / "a.key"
    with pytest.raises(Refused, match=r"a\.key cannot be written: No space left on device") as refused:
        write_new(path, CASES[0][0].text)
    assert refused.value.code == "key_unwritten" and not list(full.iterdir())

    monkeypatch.undo()
    write_new(path, CASES[0][0].text)
    assert [*full.iterdir()] == [path]


def test_a_key_is_written_where_a_file_has_one_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    monkeypatch.setattr(os, "link", link)
    write_new(tmp_path / "a.key", "one")

    with pytest.raises(Refused, match="key_exists"):
        write_new(tmp_path / "a.key", "two")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.key": "one"}


@pytest.mark.parametrize(("key", "read"), CASES)
def test_a_key_whose_halves_are_of_two_is_no_key(tmp_path: Path, key: Any, read: Callable[[Path], Any]) -> None:
    """A node with such a file of the cluster joined, and no client could reach it."""
    path = tmp_path / "a.key"
    write_new(path, key.text.replace(key.pair.secret, fresh().secret))
    with pytest.raises(Refused, match=r"a\.key is damaged: its public key is not that of its secret one"):
        read(path)


def test_a_node_says_what_to_do_about_its_damaged_key(tmp_path: Path) -> None:
    write_new(tmp_path / "node.key", "")
    with pytest.raises(Refused, match="or remove it, and start this node again"):
        node_keys._own(tmp_path / "node.key", "h:1")
