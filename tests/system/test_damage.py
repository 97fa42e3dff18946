"""Bytes flipped on one node's disk, or all of them gone: it says so, goes on, and gives nobody a wrong one."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from skuld_py import Client, SkuldError
from skuld_py.embedded.local import LocalCluster
from skuld_py.model import ids
from skuld_py.node.life.identity import load_identity
from skuld_py.partition.data.tables import prefix_of, promise_key
from skuld_py.partition.leadership.suspicion import damaged, suspects
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.runtime.zookeeper.clusters import read_registration
from system.conftest import linger

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PARTITIONS = 8
WAIT_S = 60.0


def data_of(cluster: LocalCluster, index: int) -> Path:
    return cluster.node_log(index).with_suffix("")


def flip(directory: Path, around: bytes, offset: int = 0) -> int:
    """Turn one bit in every place of the file that holds these bytes; says in how many."""
    with (directory / "data.mdb").open("r+b") as data:
        places = [found.start() + offset for found in re.finditer(re.escape(around), data.read())]
        for place in places:
            data.seek(place)
            byte = data.read(1)[0]
            data.seek(place)
            data.write(bytes([byte ^ 0x10]))
    return len(places)


def await_log(cluster: LocalCluster, index: int, words: str, meanwhile: Callable[[], object]) -> str:
    deadline = time.monotonic() + WAIT_S
    while words not in (text := cluster.node_log(index).read_text()):
        assert time.monotonic() < deadline, text
        meanwhile()
    return text


def await_true(is_true: Callable[[], bool], client: Client) -> None:
    """Return when it is; each look waits at a node."""
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < deadline
        linger(client)


def test_a_flipped_byte_under_a_running_node(cluster: LocalCluster) -> None:
    payloads = [secrets.token_bytes(100) for _ in range(50)]
    with Client(cluster.addresses, timeout_s=30) as client:
        task_ids = client.enqueue_many("q", payloads, w=3)
        before = cluster.node_process_id(2)
        assert flip(data_of(cluster, 2), payloads[7], 50)

        def read() -> None:
            assert [task.payload for task in client.get_many(task_ids)] == payloads
        await_log(cluster, 2, "starts over", read)
        read()
        assert cluster.node_process_id(2) == before
        assert len(client.enqueue_many("q", payloads, w=3)) == 50
        await_true(lambda: all(row.is_live for row in client.status().nodes), client)

    cluster.kill_node(2)
    partition = ids.partition_of(bytes(task_ids[7]), PARTITIONS)
    with closing(LmdbStore(data_of(cluster, 2))) as store:
        assert not damaged(store, PARTITIONS)
        assert set(suspects(store, PARTITIONS)) <= {partition}
        for task_id, payload in zip(task_ids, payloads, strict=True):
            record = store.get("body", prefix_of(ids.partition_of(bytes(task_id), PARTITIONS)) + bytes(task_id))
            assert record is None or record.endswith(payload)


def test_a_flipped_promise_costs_its_partition_and_a_wiped_directory_all(cluster: LocalCluster) -> None:
    where = data_of(cluster, 2)
    cluster.kill_node(2)
    assert flip(where, promise_key(3), len(promise_key(3)) + 5)
    cluster.start_node(2)
    await_log(cluster, 2, "does not trust its memory of partition 3", lambda: None)
    first = read_registration(cluster.zookeeper_hosts, cluster.name, cluster.addresses[2])
    cluster.kill_node(2)
    with closing(LmdbStore(where)) as store:
        assert set(suspects(store, PARTITIONS)) <= {3}

    shutil.rmtree(where)
    cluster.start_node(2)
    await_log(cluster, 2, "its data directory is new: it fills from the other nodes", lambda: None)

    second = read_registration(cluster.zookeeper_hosts, cluster.name, cluster.addresses[2])
    assert first is not None and second is not None
    assert first.incarnation != second.incarnation
    assert (first.starts, second.starts) == (2, 1)
    cluster.kill_node(2)
    with closing(LmdbStore(where)) as store:
        identity = load_identity(store)
        assert identity is not None and identity.incarnation == second.incarnation


def test_a_record_that_is_bad_again_and_again_ends_the_node(tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    from skuld_py.config import Parameters
    from skuld_py.errors import Corrupt
    from skuld_py.model.document import Member
    from skuld_py.runtime import server

    monkeypatch.setattr(server, "read_registration", lambda *_: None)
    monkeypatch.setattr(server.Server, "_live", lambda *_: (_ for _ in ()).throw(Corrupt("body", b"\0\1x")))
    with closing(LmdbStore(tmp_path / "data")) as store:
        node = server.Server("", Parameters("c", "id"), Member("n", "h", 1, ""), store, None,  # type: ignore[arg-type]
                             1_000)
        with pytest.raises(SkuldError, match="again after it was removed"):
            node.run(tmp_path)
        assert list(suspects(store, PARTITIONS)) == [1]
