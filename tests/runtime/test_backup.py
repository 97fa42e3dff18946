"""Backups are whole or not there, and what is not as it was written is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.keys.files import ClusterKey, write_new
from skuld_py.keys.pair import fresh
from skuld_py.model.roles import Role
from skuld_py.model.roster import Roster, make_row
from skuld_py.node.life.backup import load_copied
from skuld_py.node.life.identity import Identity, record_of
from skuld_py.node.life.rebuilding import CLUSTER_KEY, NODE_KEY, PARAMETERS_KEY
from skuld_py.runtime.backup import check_backup, read_manifest, take_backup
from skuld_py.runtime.kept_roster import aged, keep_roster, roster_of
from skuld_py.runtime.lmdb_store import COMMITS_PER_RELEASE, LmdbStore
from skuld_py.runtime.remains import remains_in
from skuld_py.runtime.zookeeper import restoring

FIXED = b'{"cluster":"c","partitions":1,"replicas":3,"skew_ms":500,"rules":2}'
_READER = """
import lmdb, sys, time
environment = lmdb.Environment(sys.argv[1], readonly=True, max_dbs=32, map_size=64 << 30)
transaction = environment.begin()
print("reads", flush=True)
time.sleep(60)
"""


def served(data: Path) -> LmdbStore:
    store = LmdbStore(data)
    store.put_many("meta", [(b"identity", record_of(Identity("data", 1))), (CLUSTER_KEY, b"id"),
                            (NODE_KEY, b"h:1"), (PARAMETERS_KEY, FIXED)])
    store.put_many("body", [(b"%08d" % number, b"x" * 100) for number in range(1_000)])
    store.commit()
    return store


def test_a_store_in_use_is_copied_with_what_was_committed_and_read_through(tmp_path: Path) -> None:
    store = served(tmp_path / "data")
    store.put_many("body", [(b"staged", b"")])
    place = tmp_path / "to" / "h-1"
    words = ["-m", "skuld_py", "backup", "take", str(tmp_path / "to"), "--from", str(tmp_path / "data")]
    told = subprocess.run([sys.executable, *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    store.commit()
    manifest = read_manifest(place)
    assert f"{place}: node h:1 of cluster c at " in told
    assert manifest.node == "h:1" and manifest.records["body"] == 1_000
    assert check_backup(place) == manifest
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["h-1"]
    assert {path.name for path in place.iterdir()} == {"data.mdb", "manifest.json"}
    assert {path.stat().st_mode & 0o077 for path in place.iterdir()} == {0}
    found = remains_in(place)
    assert found.copied is not None and found.copied.taken_ms == manifest.taken_ms
    assert load_copied(store) is None
    store.close()
    with pytest.raises(Refused, match="exists"):
        take_backup(tmp_path / "data", tmp_path / "to")


@pytest.mark.parametrize(("name", "at"), [("data.mdb", 20_000), ("data.mdb", None), ("manifest.json", 1)])
def test_a_backup_with_a_changed_or_missing_byte_is_refused_by_name(tmp_path: Path, name: str,
                                                                    at: int | None) -> None:
    served(tmp_path / "data").close()
    place, _ = take_backup(tmp_path / "data", tmp_path / "to")
    raw = bytearray((place / name).read_bytes())
    if at is None:
        del raw[-4096:]
    else:
        raw[at] ^= 1
    (place / name).write_bytes(raw)
    with pytest.raises(Refused, match=str(place)):
        check_backup(place)
    if name == "data.mdb":
        with pytest.raises(Refused, match=str(place)):
            remains_in(place)


def test_a_damaged_record_is_not_carried_into_a_backup(tmp_path: Path) -> None:
    served(tmp_path / "data").close()
    path = tmp_path / "data" / "data.mdb"
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"00000500" + b"x" * 50, b"00000500" + b"y" * 50))
    with pytest.raises(Refused, match="body"):
        take_backup(tmp_path / "data", tmp_path / "to")
    assert not [*(tmp_path / "to").iterdir()]


def test_what_a_killed_run_has_left_is_taken_away_and_what_a_live_one_makes_is_not(tmp_path: Path) -> None:
    import fcntl
    import os

    served(tmp_path / "data").close()
    for name in (".dead.part", ".live.part"):
        (tmp_path / "to" / name).mkdir(parents=True)
    handle = os.open(tmp_path / "to" / ".live.part", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    take_backup(tmp_path / "data", tmp_path / "to")
    os.close(handle)
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == [".live.part", "h-1"]


def test_a_node_gives_up_the_snapshot_of_a_process_that_was_killed(tmp_path: Path) -> None:
    store = served(tmp_path)
    reader = subprocess.Popen([sys.executable, "-c", _READER, str(tmp_path)], stdout=subprocess.PIPE)
    assert reader.stdout is not None and reader.stdout.readline() == b"reads\n"
    reader.kill()
    reader.wait()
    reader.stdout.close()
    for number in range(3 * COMMITS_PER_RELEASE):
        if number == COMMITS_PER_RELEASE:
            size = (tmp_path / "data.mdb").stat().st_size
        store.put_many("body", [(b"%08d" % each, b"%08d" % number * 12) for each in range(200)])
        store.commit()
    assert (tmp_path / "data.mdb").stat().st_size <= size + (1 << 20)
    store.close()


def test_who_restores_from_backups_is_told_that_revoked_keys_may_count_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "write_cluster", lambda *_, **__: None)
    write_new(tmp_path / "c.key", ClusterKey("c", pair := fresh(), "n:p").text)
    served(tmp_path / "data").close()
    keep_roster(tmp_path / "data", Roster(cluster=(pair.public,)))
    place, _ = take_backup(tmp_path / "data", tmp_path / "to")

    def told(directory: Path) -> str:
        words = ["cluster", "restore", "c", "--cluster-key", str(tmp_path / "c.key"), "--accept-loss"]
        ran = CliRunner().invoke(main, [*words, "--from", str(directory)])
        assert ran.exit_code == 0, ran.output
        return ran.output
    assert "keys revoked since count again" in told(place)
    assert "keys" not in told(tmp_path / "data")
    assert not aged(None, [remains_in(place)])


def test_the_newest_roster_counts_without_the_keys_that_any_knows_to_be_revoked(tmp_path: Path) -> None:
    key = ClusterKey("c", fresh(), "n:p")
    rows = [make_row(fresh().public, f"client{number}", (Role.READER.value,)) for number in range(3)]
    first = Roster(rows=tuple(rows[:2]), cluster=(key.pair.public,))
    newest, revoking = first.authorised(rows[2]), first.revoking(rows[0].key)
    for name, at_ms, roster in (("a", 1, revoking), ("b", 2, newest), ("d", 0, first)):
        (tmp_path / name).mkdir()
        keep_roster(tmp_path / name, roster)
        kept = json.loads((tmp_path / name / "roster.json").read_text())
        (tmp_path / name / "roster.json").write_text(json.dumps({**kept, "kept_ms": at_ms}))
        keep_roster(tmp_path / name, roster)  # which is kept already
    directories = [tmp_path / name for name in "abd"]
    found, warning = roster_of(directories, key)
    assert found is not None and not warning
    assert [row.name for row in found.rows] == ["client1", "client2"] and found.revoked == (rows[0].key,)
    with pytest.raises(Refused, match="cluster with keys"):
        roster_of(directories, None)
    with pytest.raises(Refused, match="replaced"):
        roster_of(directories, ClusterKey("c", fresh(), "n:p"))
    (tmp_path / "e").mkdir()
    assert roster_of([tmp_path / "e"], None) == (None, "")
    assert "keys of clients are forgotten" in roster_of([tmp_path / "e"], key)[1]
    (tmp_path / "a" / "roster.json").write_text("{")
    with pytest.raises(Refused, match="cannot be read"):
        roster_of(directories, key)
    keep_roster(tmp_path / "a", first)
    assert roster_of(directories[:1], key)[0] == first
