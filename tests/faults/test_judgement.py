"""A fault run must be able to fail: each thing it reads and each way in which it can prove nothing."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import attrs
import lmdb
import pytest
import zmq
from click.testing import CliRunner

from faults import __main__ as faults_main
from faults import catalogue, judgement
from faults.judgement import NO_DAMAGE, NO_UNASKED_END
from faults.recorder import Fault, RecordedConnection, Recorder
from faults.registry import password_of
from faults.stores import read_store
from faults.transactions import writes_of
from machines import ground, network
from machines.machine import Machine
from machines.node import Node
from skuld_py.client.connection import Connection
from skuld_py.errors import Refused, Uncertain
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.document import Document, seats_of
from skuld_py.model.history import HISTORY_HEAD, RELEASED, token_of
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.leadership.promise import Promise, load_promise, save_promise
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.simulation.campaign import LIVENESS
from skuld_py.simulation.checkers import Evidence
from skuld_py.simulation.checkers.evidence import Finding
from skuld_py.simulation.checkers.evidence import judge as judge_rule
from skuld_py.simulation.history import Hold, Status
from skuld_py.simulation.world.zookeeper.documents import Write

(TASK,) = IdMint(1).mint(1_000, 1, 0)
HEADER = Header("work").encode()
NODES = ("n1", "n2", "n3")
DOCUMENT = Document(epoch=1, leader="n1", boot="b", seats=seats_of(NODES), write_id="w1")
FAULT = Fault("kill", ("n1",), "n1", 100, 200)


def evidence(tmp_path: Path, at_ms: int = 120) -> Evidence:
    """A run in which one task was enqueued, claimed twice and completed, around a moment."""
    history = Recorder().history

    def tell(number: int, message: m.Message, answer: m.Message, start_ms: int, client: str = "") -> None:
        operation = history.invoke(start_ms, client or f"c{number}", "any", number, message)
        history.finish(start_ms + 5, operation, answer)
    body = encode_body(HEADER, b"payload")
    tell(1, m.Enqueue(1, 0, (m.TaskBatch(HEADER, TASK, pack([b"payload"])),)), m.Acked(1, 3), at_ms)
    for number, token in ((2, token_of(1, 1)), (3, token_of(1, 2))):
        tell(number, m.Claim(number, "work", 1, 50, 0, "w"),
             m.Claimed(number, 0, (m.ClaimBatch(TASK, token, 999, pack([body])),)), at_ms + 10 * number)
        start_ms = at_ms + 10 * number + 5
        history.holds.append(Hold(TASK, token, f"w{number}", at_ms, start_ms, start_ms + 2))
    tell(4, m.Complete(4, 0, 0, TASK, pack_u64([token_of(1, 2)])), m.Acked(4, 3), at_ms + 40, "c3")
    stores = {}
    for name in NODES:
        store = LmdbStore(tmp_path / name)
        store.put_many("body", [(b"\0\0" + TASK, body)])
        store.put_many("history", [(b"\0\0" + TASK, HISTORY_HEAD.pack(5, token_of(1, 2), 0))])
        store.put_many("counts", [(b"\0\0work", struct.pack(">7q", 0, 0, 1, 0, 0, 0, 0))])
        store.commit()
        store.close()
        stores[name], damaged = read_store(tmp_path / name)
        assert not damaged
    return Evidence(history, [Write(at_ms - 1, 0, 0, DOCUMENT)], stores, {0: NODES}, 3, 1, calm_ms=300,
                    equal_ms=310)


def judge(found: Evidence, faults: tuple[Fault, ...] = (FAULT,), lacks: tuple[str, ...] = (),
          unasked: tuple[str, ...] = (), damaged: tuple[str, ...] = ()) -> judgement.Judgement:
    return judgement.judge(attrs.evolve(found, faults=faults), lacks, unasked, damaged, 2_000, elects=True)


def test_a_good_run_passes_and_is_counted(tmp_path: Path) -> None:
    verdict = judge(evidence(tmp_path))
    assert not verdict.violated and not verdict.vacuous
    assert (verdict.acks, verdict.acks_in_faults, verdict.elections_in_faults) == (4, 4, 1)


def test_an_acknowledged_task_that_a_file_lacks_is_a_violation(tmp_path: Path) -> None:
    found = evidence(tmp_path)
    store = found.stores["n2"]
    assert isinstance(store, MemoryStore)
    store.pop_many("body", [b"\0\0" + TASK])
    assert "D1 acknowledged enqueues are never lost" in judge(found).violated


def test_a_claim_of_a_deposed_leader_is_a_violation(tmp_path: Path) -> None:
    found = evidence(tmp_path)
    late = Write(121, 0, 1, attrs.evolve(DOCUMENT, epoch=2, leader="n2", write_id="w2"))
    assert "C4 deposed leaders grant nothing" in judge(attrs.evolve(found, writes=[*found.writes, late])).violated


def test_what_only_real_processes_can_do_wrong_is_a_violation(tmp_path: Path) -> None:
    verdict = judge(evidence(tmp_path), lacks=("a leader",), unasked=("n1 ended",), damaged=("a record",))
    assert [*verdict.violated] == [LIVENESS, NO_UNASKED_END, NO_DAMAGE]


LATE = Fault("pause", ("n1",), "n1", 300, 400)


@pytest.mark.parametrize("faults, words", [((), "no fault was injected"), ((LATE,), "no acknowledged operation")])
def test_a_run_without_work_during_its_faults_is_vacuous(tmp_path: Path, faults: tuple[Fault, ...],
                                                         words: str) -> None:
    verdict = judge(evidence(tmp_path), faults)
    assert any(words in line for line in verdict.vacuous), verdict.vacuous


def test_a_run_without_an_election_is_vacuous_where_one_was_due(tmp_path: Path) -> None:
    found = evidence(tmp_path, at_ms=101)
    early = attrs.evolve(found, writes=[Write(1, 0, 0, DOCUMENT), Write(150, 0, 1, DOCUMENT)])
    assert "no leader changed during any fault" in judge(early).vacuous


def test_a_run_that_did_not_test_what_it_is_about_is_vacuous(tmp_path: Path) -> None:
    found = attrs.evolve(evidence(tmp_path), faults=[FAULT])
    verdict = judgement.judge(found, (), (), (), 2_000, elects=True, tests=("D8",))
    assert verdict.vacuous == ("nothing tested the rule D8",)


def test_what_a_scenario_finds_itself_is_judged_and_must_be_found_where_it_says_so(tmp_path: Path) -> None:
    found = attrs.evolve(evidence(tmp_path), faults=[FAULT])

    def judged(*findings: Finding) -> judgement.Judgement:
        return judgement.judge(found, (), (), (), 2_000, elects=True, tests=("F1",), findings=findings)
    assert judged(judge_rule("F1 rule", 3, [])).vacuous == judged(judge_rule("F1 rule", 0, ["a"])).vacuous == ()
    assert judged().vacuous == judged(judge_rule("F1 rule", 0, [])).vacuous == ("nothing tested the rule F1",)
    assert judged(judge_rule("F1 rule", 3, ["a"]), judge_rule("F1 rule", 3, [])).violated == {"F1 rule": ("a",)}


def test_a_run_in_which_nothing_was_done_is_vacuous(tmp_path: Path) -> None:
    verdict = judge(Evidence(stores=evidence(tmp_path).stores, owners={0: NODES}))
    assert any("nothing was enqueued" in line for line in verdict.vacuous)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    evidence(tmp_path)
    environment = lmdb.Environment(str(tmp_path / "n1"), max_dbs=7)
    with environment.begin(environment.open_db(b"body"), write=True) as transaction:
        record = bytearray(transaction.get(b"\0\0" + TASK) or b"")
        record[3] ^= 1
        transaction.put(b"\0\0" + TASK, bytes(record))
    environment.close()
    assert "body" in read_store(tmp_path / "n1")[1][0]


def test_a_copy_of_a_nodes_data_that_is_put_back_knows_nothing_newer(tmp_path: Path) -> None:
    node = Node(Machine("n1", 1, "site"), tmp_path / "n1.log", [], directory=tmp_path)
    older, newer = Promise(4, "n1"), Promise(5, "n2")

    def promise(promised: Promise) -> None:
        store = LmdbStore(node.data)
        save_promise(store, 3, promised)
        store.commit()
        store.close()

    def promised() -> Promise:
        return load_promise(read_store(node.data)[0], 3)
    promise(older)
    (node.data / "node.key").write_text("its key")
    copy = node.copy()
    promise(newer)
    assert promised() == newer
    node.put_back(copy)
    assert promised() == older
    assert (node.data / "node.key").read_text() == "its key"


# -- what is recorded, read and cut -------------------------------------------------------------------


def test_what_a_client_is_refused_is_recorded_as_refused_and_what_stays_open_as_in_doubt() -> None:
    recorder = Recorder()
    with recorder.client(["127.0.1.250:1"], "nobody", 0.2) as client, pytest.raises(Refused):
        client.claim("work")
    claim, greeting = recorder.history.operations
    assert isinstance(claim.message, m.Claim) and isinstance(greeting.message, m.Greet)
    assert claim.status is greeting.status is Status.FAIL

    with zmq.Context() as context, context.socket(zmq.ROUTER) as mute:
        port = mute.bind_to_random_port("tcp://127.0.0.1")
        with recorder.client([f"127.0.0.1:{port}"], "nobody", 0.5) as client, pytest.raises(Uncertain):
            client.status()
    assert recorder.history.operations[-1].status is Status.INFO


def _transaction(zxid: int, time_ms: int, kind: int, record: bytes) -> bytes:
    payload = struct.pack(">qiqqi", 7, 1, zxid, time_ms, kind) + record
    return struct.pack(">qi", zlib.adler32(payload), len(payload)) + payload + b"B"


def _put(path: str, raw: bytes) -> bytes:
    return struct.pack(">i", len(path)) + path.encode() + struct.pack(">i", len(raw)) + raw + bytes(4)


def test_the_registrys_log_tells_all_writes_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "version-2").mkdir()
    path, raw = "/skuld/faults/partitions/3", DOCUMENT.encode()
    newer = attrs.evolve(DOCUMENT, epoch=2).encode()
    inner = _put(path, newer)
    multi = struct.pack(">iii", 1, 5, len(inner)) + inner
    header = struct.pack(">4siq", b"ZKLG", 2, 0)
    (tmp_path / "version-2" / "log.5").write_bytes(header + _transaction(5, 1_500, 14, multi) + bytes(64))
    (tmp_path / "version-2" / "log.1").write_bytes(
        header + _transaction(1, 1_100, -10, bytes(4)) + _transaction(2, 1_200, 1, _put(path, raw))
        + _transaction(3, 1_300, 1, _put("/skuld/other/partitions/3", raw)) + b"\0\0\0\0\0\0")

    writes = writes_of([tmp_path], "faults", 1_000)

    assert [(write.time_ms, write.partition, write.version, write.document.epoch) for write in writes] == [
        (200, 3, 0, 1), (500, 3, 1, 2)]


def test_a_damaged_log_of_the_registry_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "version-2").mkdir()
    log = bytearray(struct.pack(">4siq", b"ZKLG", 2, 0) + _transaction(1, 1, 5, _put("/x", b"data")))
    log[-3] ^= 1
    (tmp_path / "version-2" / "log.1").write_bytes(log)
    with pytest.raises(ValueError, match="damaged"):
        writes_of([tmp_path], "faults", 0)


def _log(directory: Path, *transactions: bytes) -> Path:
    (directory / "version-2").mkdir(parents=True)
    (directory / "version-2" / "log.1").write_bytes(struct.pack(">4siq", b"ZKLG", 2, 0) + b"".join(transactions))
    return directory


def test_a_write_counts_that_a_majority_of_the_registrys_servers_has_logged(tmp_path: Path) -> None:
    first, second, third = (
        _transaction(zxid, 1_000 + zxid, kind, _put("/skuld/town/partitions/0", document.encode()))
        for zxid, kind, document in ((1, 1, DOCUMENT), (2, 5, attrs.evolve(DOCUMENT, epoch=2)),
                                     (3, 5, attrs.evolve(DOCUMENT, epoch=3))))
    servers = [_log(tmp_path / "zk1", first, second, third), _log(tmp_path / "zk2", first, second),
               _log(tmp_path / "zk3", first)]

    assert [write.document.epoch for write in writes_of(servers, "town", 1_000)] == [1, 2]


def test_in_a_ring_each_of_five_reaches_its_neighbours_only() -> None:
    order = ["n3", "n1", "n4", "n5", "n2"]
    cut = {*network.ring(order)}
    for place, number in enumerate(order):
        reached = {other for other in order if other != number and (number, other) not in cut}
        assert reached == {order[place - 1], order[(place + 1) % 5]}
    assert {(other, one) for one, other in cut} == cut


def test_a_bridge_is_reached_from_both_sides_which_do_not_reach_each_other() -> None:
    cut = {*network.between(["n1", "n2"], ["n4", "n5"])}
    assert {("n1", "n4"), ("n4", "n1")} <= cut and len(cut) == 8
    assert not any("n3" in pair for pair in cut)
    assert ("n1", "n2") not in cut


def test_a_password_of_a_session_is_16_bytes_that_depend_on_it() -> None:
    assert len(password_of(0x1000_0000_0000)) == 16
    assert password_of(1) != password_of(2)


def test_without_root_nothing_is_tested_and_that_is_said_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    done = CliRunner().invoke(faults_main.main, ["--quick"])
    assert done.exit_code == faults_main.CANNOT == 77
    assert "NOTHING was tested" in done.output and "root" in done.output


def test_a_scenario_that_does_not_exist_is_no_success() -> None:
    done = CliRunner().invoke(faults_main.main, ["--only", "kil"])
    assert done.exit_code == 2 and "kil" in done.output


def test_what_a_machine_lacks_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda program: None)
    missing = ground.lacks(["strace"])
    assert "root" in missing[0] and "apt-get install iproute2" in missing[1] and "strace" in missing[-1]


def test_the_help_counts_the_quick_scenarios() -> None:
    quick = [scenario.name for scenario in catalogue.ALL if scenario.is_quick]
    done = CliRunner().invoke(faults_main.main, ["--help"])
    assert len(quick) == 9 and "old-copy" in quick
    assert "the nine that every change should pass" in done.output and "Only the nine short ones." in done.output


@pytest.mark.parametrize("is_asked_again", [False, True])
def test_what_is_lost_when_it_is_asked_again_is_written_down_as_unknown(
        is_asked_again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = m.Renewed(1, pack_u64([0]))

    def call(_: Connection, message: m.Message, timeout_s: float, **options: Any) -> m.Message:
        answer: m.Message = options["doubted"](lost) if is_asked_again else lost
        return answer
    monkeypatch.setattr(Connection, "call", call)
    recorder = Recorder()
    connection = RecordedConnection(recorder, "c", ["127.0.0.1:1"])
    release = m.Conclude(1, RELEASED, 0, TASK, pack_u64([token_of(1, 2)]))

    assert connection.call(release, 1.0) == lost
    operation, = recorder.history.operations
    assert isinstance(operation.answer, m.Renewed)
    assert operation.answer.unknown == (pack_u64([0]) if is_asked_again else b"")
    connection.close()
