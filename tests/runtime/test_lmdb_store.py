"""The store on a real disk: what was committed is there, what was not is gone, what is damaged is said."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skuld_py.errors import Corrupt, Refused
from skuld_py.model.ids import IdMint
from skuld_py.model.store import NO_DIGEST, TABLES, digests_of
from skuld_py.partition.copies.remains import digests_of as digests_of_tasks
from skuld_py.partition.copies.remains import remains_of
from skuld_py.partition.data.replica import Replica
from skuld_py.runtime.lmdb_store import COMMITS_PER_RELEASE, LmdbStore, StoreFailed

MAP_BYTES = 64 << 20
TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    opened = LmdbStore(tmp_path / "data", MAP_BYTES)
    yield opened
    opened.close()


def reopened(store: LmdbStore, path: Path) -> LmdbStore:
    store.close()
    return LmdbStore(path / "data", MAP_BYTES)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], cwd=TOP, text=True, timeout=60,
                          capture_output=True, check=False)


# -- one process ------------------------------------------------------------------------------------


def test_every_table_keeps_its_own_rows_over_a_restart(store: LmdbStore, tmp_path: Path) -> None:
    for number, table in enumerate(TABLES):
        store.put_many(table, [(b"key", bytes([number]) * number)])
    store.commit()

    again = reopened(store, tmp_path)
    assert [again.get(table, b"key") for table in TABLES] == [bytes([n]) * n for n in range(len(TABLES))]
    again.close()


@pytest.mark.parametrize("wanted", [range(10), range(3, 7), (0, 2, 4), (9,), (5, 99), ()])
def test_a_run_is_read_and_dropped_as_single_records_are(store: LmdbStore, wanted: Sequence[int]) -> None:
    rows = [(b"%02d" % number, b"x" * number) for number in range(10)]
    store.put_many("body", rows)
    keys = [b"%02d" % number for number in wanted]

    values, digests = store.get_run("body", keys)
    assert [*values] == [dict(rows).get(key) for key in keys]
    assert [*digests] == [NO_DIGEST if value is None else digests_of([key], [value])[0]
                          for key, value in zip(keys, values, strict=True)]
    is_run = keys == [key for key, _ in rows if keys and keys[0] <= key <= keys[-1]]
    assert store.sums_of_run("body", keys) == (store.get_digested("body", keys)[1] if is_run else [])
    assert store.keys("body", b"02", b"06", 3) == [b"02", b"03", b"04"]
    assert store.keys("body", b"08", b"99", 9) == [b"08", b"09"] and store.keys("body", b"03", b"03", 9) == []
    store.drop_run("body", keys)
    assert store.scan("body", b"", b"z", 99) == [row for row in rows if row[0] not in keys]


@pytest.mark.parametrize("left", [0, 3, 8, 16])
@pytest.mark.parametrize("table", ["body", "history"])
def test_a_record_cut_short_is_never_told_of_as_a_sound_one(store: LmdbStore, table: str, left: int) -> None:
    """What is told of it otherwise is not what a sound copy tells, so it is read, and then the damage is seen."""
    replica, made = Replica(0, store, 0), IdMint(1).mint(1_000, 3, 0)
    keys = [replica.prefix + task_id for task_id in made]
    for each in ("body", "history"):
        store.put_many(each, [(key, b"v" * 40) for key in keys])
    sound = digests_of_tasks(replica, made)
    assert len(sound) == 8 * len(made)

    store._cursor(table).put(keys[1], b"d" * left)
    told = digests_of_tasks(replica, made)
    assert told != sound and (told == b"" or left >= 8)
    with pytest.raises(Corrupt):
        remains_of(replica, made)


def test_a_batch_reads_its_own_writes(store: LmdbStore) -> None:
    store.put_many("body", [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    store.commit()

    store.put_many("body", [(b"b", b"two"), (b"d", b"4")])
    assert store.pop_many("body", [b"a", b"x", b"d"]) == [b"1", None, b"4"]

    assert store.get("body", b"a") is None
    assert store.get("body", b"b") == b"two"
    assert store.get_many("body", [b"d", b"c", b"b", b"a"]) == {b"c": b"3", b"b": b"two"}
    assert store.scan("body", b"", b"\xff", 10) == [(b"b", b"two"), (b"c", b"3")]
    assert not store.is_any_between("body", b"", b"a~")
    assert not store.is_any_between("body", b"d", b"z")


def test_scans_and_seeks_keep_to_their_bounds(store: LmdbStore) -> None:
    rows = [(b"k%02d" % number, b"%d" % number) for number in range(20)]
    store.put_many("ready", rows)

    assert store.scan("ready", b"k05", b"k08", 100) == rows[5:8]
    assert store.scan("ready", b"k05", b"k08", 2) == rows[5:7]
    assert store.scan("ready", b"k05", b"k08", 0) == []
    assert store.scan("ready", b"k18", b"z", 100) == rows[18:]
    assert store.scan("ready", b"l", b"z", 100) == []
    assert list(store.walk("ready", b"k05", b"k08")) == rows[5:8]
    assert list(store.walk("ready", b"l", b"z")) == []
    assert list(store.walk_back("ready", b"k05", b"k08")) == rows[7:4:-1]
    assert list(store.walk_back("ready", b"k05", b"z")) == rows[:4:-1]
    assert list(store.walk_back("ready", b"", b"k00")) == list(store.walk_back("ready", b"l", b"z")) == []
    assert store.is_any_between("ready", b"k07", b"k07")
    assert store.is_any_between("ready", b"k07x", b"k08")
    assert not store.is_any_between("ready", b"k07x", b"k07y")


def test_keys_of_500_bytes_and_values_of_any_size(store: LmdbStore, tmp_path: Path) -> None:
    sizes = (0, 1, 4_000, 1 << 20)
    rows = [(bytes([number]) * 500, os.urandom(size)) for number, size in enumerate(sizes, 1)]
    store.put_many("log", rows)
    store.commit()

    again = reopened(store, tmp_path)
    assert again.scan("log", b"", b"\xff", 10) == rows
    again.close()


def test_a_batch_without_operations_commits_nothing_and_one_of_reads_leaves_no_transaction(
        store: LmdbStore) -> None:
    store.commit()
    assert store.get("meta", b"key") is None
    store.commit()
    store.put_many("meta", [(b"key", b"value")])
    store.commit()
    assert store.get("meta", b"key") == b"value"


# -- crashes and other processes --------------------------------------------------------------------

CRASH = """
import os, sys
from pathlib import Path
from skuld_py.runtime.lmdb_store import LmdbStore
store = LmdbStore(Path(sys.argv[1]), 64 << 20)
store.put_many("body", [(b"kept", b"1")])
store.commit()
store.put_many("body", [(b"kept", b"2"), (b"lost", b"2")])
store.pop_many("body", [b"kept"])
os._exit(7)
"""

OPEN = """
import sys
from pathlib import Path
from skuld_py.errors import Refused
from skuld_py.runtime.lmdb_store import LmdbStore
try:
    LmdbStore(Path(sys.argv[1]), 64 << 20)
except Refused as refusal:
    print(refusal)
"""


def test_a_crash_loses_exactly_the_batch_that_was_not_committed(tmp_path: Path) -> None:
    assert run(CRASH, str(tmp_path)).returncode == 7

    store = LmdbStore(tmp_path, MAP_BYTES)
    assert store.scan("body", b"", b"\xff", 10) == [(b"kept", b"1")]
    store.close()


def test_closing_loses_the_batch_too(store: LmdbStore, tmp_path: Path) -> None:
    store.put_many("body", [(b"key", b"value")])
    again = reopened(store, tmp_path)
    assert again.get("body", b"key") is None
    again.close()


def test_a_second_process_is_refused_and_told_where_and_what_to_do(store: LmdbStore, tmp_path: Path) -> None:
    said = run(OPEN, str(tmp_path / "data")).stdout
    assert "data_in_use" in said
    assert str(tmp_path / "data") in said
    assert "stop that one" in said

    store.close()
    assert run(OPEN, str(tmp_path / "data")).stdout == ""


def test_a_second_store_in_this_process_is_refused(store: LmdbStore, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="data_in_use"):
        LmdbStore(tmp_path / "data", MAP_BYTES)


def test_a_directory_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(Refused, match="data_unusable"):
        LmdbStore(Path("/proc/skuld"), MAP_BYTES)


def test_what_is_no_store_is_refused_and_let_go(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else" * 1_000)
    for _ in range(2):
        with pytest.raises(Refused, match="data_unusable"):
            LmdbStore(tmp_path, MAP_BYTES)


# -- failing disks ----------------------------------------------------------------------------------


def test_a_full_map_is_fatal_and_nothing_is_answered_after_it(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, 1 << 20)
    store.put_many("meta", [(b"key", b"value")])
    store.commit()
    with pytest.raises(StoreFailed, match="store_failed"):
        for number in range(1_000):
            store.put_many("body", [(b"%d" % number, os.urandom(10_000))])
            store.commit()
    for operation in (store.commit, lambda: store.get("meta", b"key"),
                      lambda: store.put_many("meta", [(b"key", b"other")])):
        with pytest.raises(StoreFailed):
            operation()
    store.close()

    again = LmdbStore(tmp_path, MAP_BYTES)
    assert again.get("meta", b"key") == b"value"
    again.close()


FAIL_TO_SYNC = """
import resource, signal, sys
from pathlib import Path
from skuld_py.runtime.lmdb_store import COMMITS_PER_RELEASE, LmdbStore, StoreFailed
store = LmdbStore(Path(sys.argv[1]), 64 << 20)
store.put_many("body", [(b"key", b"first")])
store.commit()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
store.put_many("body", [(b"key", bytes(1 << 20))])
for _ in range(2):
    try:
        store.commit()
    except StoreFailed as problem:
        print(problem.code)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    store.get("body", b"key")
except StoreFailed as problem:
    print(problem.code)
"""


def test_a_disk_that_refuses_a_write_fails_the_commit_for_good(tmp_path: Path) -> None:
    done = run(FAIL_TO_SYNC, str(tmp_path))
    assert done.stdout.split() == ["store_failed"] * 3, done.stderr

    store = LmdbStore(tmp_path, MAP_BYTES)
    assert store.get("body", b"key") == b"first"
    store.close()


FILL_UP = """
import resource, signal, sys
from pathlib import Path
from skuld_py.runtime import lmdb_store
from skuld_py.runtime.lmdb_store import LmdbStore, StoreFailed
store = LmdbStore(Path(sys.argv[1]), 64 << 20)
if sys.argv[2] == "full":
    lmdb_store._FULL_BYTES = 1 << 62
store.put_many("body", [(b"key", b"first")])
store.commit()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
store.put_many("body", [(b"key", bytes(1 << 20))])
try:
    store.commit()
except StoreFailed as problem:
    print(problem.message)
"""


def test_a_new_store_on_a_full_disk_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB maps its lock file, which has no room: the node ended by SIGBUS, without a word."""
    free = [1_000]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 30, 0, free[0]))
    for _ in range(2):  # it is not held
        with pytest.raises(StoreFailed, match="its disk is full: make room there, then start the node again"):
            LmdbStore(tmp_path / "data")
    free[0] = 1 << 30
    with closing(LmdbStore(tmp_path / "data", MAP_BYTES)) as store:
        store.put_many("meta", [(b"key", b"value")])
        store.commit()
    free[0] = 1_000
    with closing(LmdbStore(tmp_path / "data", MAP_BYTES)) as store:
        assert store.get("meta", b"key") == b"value"


@pytest.mark.parametrize(("is_full", "remedy"), [
    ("full", "its disk is full: make room there, then start the node again; nothing that was acknowledged is"
     " lost"),
    ("not", "check the disk's health, its free space and this user's quota, then start the node again")])
def test_a_disk_that_takes_a_part_of_a_write_is_not_called_damaged(tmp_path: Path, is_full: str,
                                                                   remedy: str) -> None:
    done = run(FILL_UP, str(tmp_path / "data"), is_full)

    assert "Input/output error" in done.stdout, "what LMDB calls a write that came short"
    assert remedy in done.stdout and "away" not in done.stdout
    store = LmdbStore(tmp_path / "data", MAP_BYTES)
    assert store.get("body", b"key") == b"first"
    store.close()


# -- the file ---------------------------------------------------------------------------------------


def fill(store: LmdbStore, batches: int = 40) -> None:
    for number in range(batches):
        store.put_many("body", [(b"%04d" % (100 * number + row), os.urandom(200)) for row in range(100)])
        store.commit()


def commit_often(store: LmdbStore) -> None:
    for _ in range(COMMITS_PER_RELEASE):
        store.get("meta", b"key")
        store.commit()


def replace(path: Path) -> None:
    shutil.copyfile(path, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


@pytest.mark.parametrize("harm", [Path.unlink, replace, cut], ids=lambda harm: str(harm.__name__))
def test_a_file_that_is_gone_replaced_or_cut_ends_the_node_with_what_to_do(
        store: LmdbStore, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "data" / "data.mdb"
    fill(store)
    os.truncate(path, path.stat().st_size + 8192)  # beyond all pages, so that none that is cut is read
    commit_often(store)
    harm(path)

    with pytest.raises(StoreFailed, match=r"data\.mdb .* move \S+/data away .* fills from the other"):
        commit_often(store)
    with pytest.raises(StoreFailed):
        store.commit()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused_with_what_to_do_and_ends_nobody(
        store: LmdbStore, tmp_path: Path, share: float) -> None:
    fill(store)
    store.close()
    path = tmp_path / "data" / "data.mdb"
    os.truncate(path, round(path.stat().st_size * share) or 100)

    for _ in range(2):
        with pytest.raises(Refused, match=r"move \S+/data away and start the node again.*data_unusable"):
            LmdbStore(tmp_path / "data", MAP_BYTES)


def test_a_file_that_is_short_of_pages_that_were_freed_at_once_is_whole(store: LmdbStore, tmp_path: Path) -> None:
    for number in range(200):
        store.put_many("log", [(b"%d" % number, os.urandom(300_000))])
        store.pop_many("log", [b"%d" % number])
        store.put_many("body", [(b"%d" % number, b"value")])
        store.commit()
    assert store._is_short()

    again = reopened(store, tmp_path)
    assert len(again.scan("body", b"", b"\xff", 500)) == 200
    again.close()


@pytest.mark.parametrize("problem", [SystemError("a result with an exception set"), lmdb.CorruptedError("page"),
                                     lmdb.PageNotFoundError("page"), lmdb.PanicError("panic")])
def test_whatever_a_damaged_page_makes_of_an_operation_the_node_is_told_what_to_do(
        store: LmdbStore, problem: Exception) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise problem
    store._cursors["body"] = Broken()  # type: ignore[assignment]

    with pytest.raises(StoreFailed, match=r"move \S+ away"):
        store.purge("body", b"", b"\xff", 10)


# -- damage -----------------------------------------------------------------------------------------


def filled(path: Path) -> dict[bytes, bytes]:
    chance = random.Random(11)
    rows = {b"key%05d" % number: chance.randbytes(100) for number in range(2_000)}
    store = LmdbStore(path, MAP_BYTES)
    store.put_many("body", rows.items())
    store.commit()
    store.close()
    return rows


def flip(path: Path, place: int) -> None:
    with (path / "data.mdb").open("r+b") as data:
        data.seek(place)
        byte = data.read(1)[0]
        data.seek(place)
        data.write(bytes([byte ^ 0x10]))


@pytest.mark.parametrize("offset", [-1, 0, 50, 99, 101], ids=["key", "first", "middle", "last", "checksum"])
def test_a_flipped_bit_in_a_record_is_found_by_every_way_to_read_it(tmp_path: Path, offset: int) -> None:
    rows = filled(tmp_path)
    key = b"key01234"
    content = (tmp_path / "data.mdb").read_bytes()
    for copy in re.finditer(re.escape(rows[key]), content):
        flip(tmp_path, copy.start() + offset)

    store = LmdbStore(tmp_path, MAP_BYTES)
    with pytest.raises(Corrupt):
        store.scan("body", b"", b"\xff", 10_000)
    if offset >= 0:
        for read in (lambda: store.get("body", key), lambda: store.get_many("body", [b"key00001", key]),
                     lambda: store.pop_many("body", [key])):
            with pytest.raises(Corrupt) as caught:
                read()
            assert caught.value.facts["key"] == key
    assert store.get("body", b"key00001") == rows[b"key00001"]
    store.close()


@pytest.mark.parametrize("flipped", [-1, -2, -3, -8, 0, 50, 101], ids=str)
def test_purging_leaves_all_other_records_and_nothing_that_cannot_be_read(tmp_path: Path, flipped: int) -> None:
    """Flips before the value are in the key, which then lies out of order, up to beyond the range purged."""
    rows = filled(tmp_path)
    hurt = [b"key00000", b"key01234", b"key01235", b"key01999"]
    content = (tmp_path / "data.mdb").read_bytes()
    for key in hurt:
        for copy in re.finditer(re.escape(rows[key]), content):
            flip(tmp_path, copy.start() + flipped)
    store = LmdbStore(tmp_path, MAP_BYTES)

    for limit in (7, 500):
        start: bytes | None = b"key"
        while start is not None:
            _, start = store.purge("body", start, b"kez", limit)
            store.commit()

    assert dict(store.scan("body", b"key", b"kez", 10_000)) == {
        key: value for key, value in rows.items() if key not in hurt}
    store.close()


def test_a_scan_that_a_damaged_key_would_end_early_says_so_within_its_range(tmp_path: Path) -> None:
    rows = filled(tmp_path)
    content = (tmp_path / "data.mdb").read_bytes()
    for copy in re.finditer(re.escape(rows[b"key01234"]), content):
        flip(tmp_path, copy.start() - 8)

    store = LmdbStore(tmp_path, MAP_BYTES)
    with pytest.raises(Corrupt) as caught:
        store.scan("body", b"key01200", b"key01300", 1_000)

    assert caught.value.key == b"key01200"
    with pytest.raises(Corrupt) as caught:
        list(store.walk("body", b"key01200", b"key01300"))
    assert caught.value.key == b"key01200"
    store.close()


def test_an_aborted_batch_leaves_nothing_behind(store: LmdbStore) -> None:
    store.put_many("body", [(b"a", b"1")])
    store.commit()
    store.put_many("body", [(b"a", b"2"), (b"b", b"3")])

    store.abort()
    store.abort()

    assert store.get_many("body", [b"a", b"b"]) == {b"a": b"1"}
    store.put_many("body", [(b"b", b"4")])
    store.commit()
    assert store.get("body", b"b") == b"4"


def test_a_record_under_another_key_is_found(tmp_path: Path) -> None:
    LmdbStore(tmp_path, MAP_BYTES).close()
    foreign = lmdb.open(str(tmp_path), map_size=MAP_BYTES, max_dbs=len(TABLES))
    with foreign.begin(write=True) as transaction:
        body = foreign.open_db(b"body", transaction)
        store_record = b"value" + b"\0\0\0\0"
        transaction.put(b"key", store_record, db=body)
        transaction.put(b"short", b"abc", db=body)
        transaction.put(b"empty", b"", db=body)
    foreign.close()

    store = LmdbStore(tmp_path, MAP_BYTES)
    for key in (b"key", b"short", b"empty"):
        with pytest.raises(Corrupt):
            store.get("body", key)
    store.close()


READ_ALL = """
import random, sys
from pathlib import Path
from skuld_py.errors import SkuldError
from skuld_py.runtime.lmdb_store import LmdbStore
chance = random.Random(11)
rows = {b"key%05d" % number: chance.randbytes(100) for number in range(2_000)}
try:
    store = LmdbStore(Path(sys.argv[1]), 64 << 20)
except SkuldError:
    sys.exit(0)
found = 0
def look(read):
    global found
    try:
        return read()
    except SkuldError:
        found += 1
        return None
wrong = [key for key in rows if look(lambda: store.get("body", key)) not in (None, rows[key])]
for start in rows:
    for key, value in look(lambda: store.scan("body", start, b"\\xff", 20)) or ():
        if rows.get(key) != value:
            wrong.append(key)
print("WRONG" if wrong else "right", "found" if found else "nothing", wrong)
"""


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_damaged_no_wrong_value_is_returned(tmp_path: Path, seed: int) -> None:
    """The reader is a process of its own: LMDB may well crash on a page that is no longer one."""
    filled(tmp_path)
    chance = random.Random(seed)
    size = (tmp_path / "data.mdb").stat().st_size
    for _ in range(20):
        flip(tmp_path, chance.randrange(2 * 4096, size))

    done = run(READ_ALL, str(tmp_path))
    assert done.returncode < 0 or done.stdout.startswith("right found"), done.stdout


# -- against a model --------------------------------------------------------------------------------

KEYS = st.binary(min_size=1, max_size=3) | st.sampled_from([b"k" * 500, b"k" * 499 + b"l"])
VALUES = st.binary(max_size=40)


class StoreAgainstDict(RuleBasedStateMachine):
    """Any history of batches, commits and reopenings reads like two dicts: one staged, one durable."""

    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name)
        self.store = LmdbStore(self.path, MAP_BYTES)
        self.durable: dict[bytes, bytes] = {}
        self.staged: dict[bytes, bytes] = {}

    @rule(rows=st.lists(st.tuples(KEYS, VALUES), max_size=8))
    def put(self, rows: list[tuple[bytes, bytes]]) -> None:
        self.store.put_many("ready", rows)
        self.staged.update(rows)

    @rule(keys=st.lists(KEYS, max_size=8))
    def pop(self, keys: list[bytes]) -> None:
        assert self.store.pop_many("ready", keys) == [self.staged.pop(key, None) for key in keys]

    @rule(keys=st.lists(KEYS, max_size=8))
    def get(self, keys: list[bytes]) -> None:
        expected = {key: self.staged[key] for key in keys if key in self.staged}
        assert self.store.get_many("ready", keys) == expected
        assert [self.store.get("ready", key) for key in keys] == [self.staged.get(key) for key in keys]

    @rule(low=KEYS, high=KEYS, limit=st.integers(0, 5))
    def look(self, low: bytes, high: bytes, limit: int) -> None:
        rows = [row for row in sorted(self.staged.items()) if low <= row[0] < high]
        assert self.store.scan("ready", low, high, limit) == rows[:limit]
        assert self.store.is_any_between("ready", low, high) == any(low <= key <= high for key in self.staged)

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.durable = dict(self.staged)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = LmdbStore(self.path, MAP_BYTES)
        self.staged = dict(self.durable)

    @invariant()
    def is_the_same(self) -> None:
        if hasattr(self, "store"):
            assert self.store.scan("ready", b"", b"\xff" * 8, 10_000) == sorted(self.staged.items())
            assert list(self.store.walk("ready", b"", b"\xff" * 8)) == sorted(self.staged.items())
            assert list(self.store.walk_back("ready", b"", b"\xff" * 8)) == sorted(self.staged.items())[::-1]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.directory.cleanup()


StoreAgainstDict.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
test_any_history_reads_like_a_dict = StoreAgainstDict.TestCase


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is only let go of on Linux")
def test_resident_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """What a scan of 40 MB mapped is let go of again within few commits."""
    with closing(LmdbStore(tmp_path)) as store:
        for batch in range(40):
            numbers = range(batch * 1_000, batch * 1_000 + 1_000)
            store.put_many("body", [(number.to_bytes(8, "big"), bytes(1_000)) for number in numbers])
            store.commit()
        before = _resident_bytes()
        scanned = sum(len(store.scan("body", start.to_bytes(8, "big"), b"\xff" * 8, 1_000))
                      for start in range(0, 40_000, 1_000))
        during = _resident_bytes()
        for commit in range(COMMITS_PER_RELEASE):
            store.put_many("meta", [(b"key", b"%d" % commit)])
            store.commit()

        assert scanned == 40_000 and during - before > 20 << 20, "the scan mapped what it read"
        assert _resident_bytes() - before < 10 << 20
        assert store.get("body", (5).to_bytes(8, "big")) == bytes(1_000)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
