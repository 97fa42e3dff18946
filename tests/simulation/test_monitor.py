"""The monitor sees each rule broken at the moment it is broken."""

from __future__ import annotations

import attrs
import pytest

from simulation.story import record_of
from skuld_py.config import Parameters
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.history import HISTORY_HEAD, encode_claim
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.setting import PAUSED, YES, encode_setting, setting_key
from skuld_py.partition.data import tables
from skuld_py.simulation import monitor as rules
from skuld_py.simulation.history import History
from skuld_py.simulation.monitor import Monitor
from skuld_py.simulation.world.process import Process

HEADER = Header("q").encode()
TASK = IdMint(1).mint(1_000, 1, 0)[0]
KEY = tables.prefix_of(0) + TASK
BODY = encode_body(HEADER, b"payload")
PROMISE = tables.promise_key(0)


SLOT = tables.log_key(tables.prefix_of(0), TASK, 0, 0)
REGISTER = setting_key(PAUSED, "q")


def register(version: int, value: bytes = YES, writer: str = "w") -> bytes:
    return encode_setting(m.SettingRow(PAUSED, "q", version, writer, value))


class Stage:
    """Three nodes that are nothing but stores."""

    def __init__(self) -> None:
        self.history = History()
        self.processes = {name: _bare(name) for name in ("n1", "n2", "n3", "n4")}
        self.voters: tuple[str, ...] = ("n2", "n3", "n4")
        self.monitor = Monitor(Parameters("sim", "sim-1", 1, 3), self.processes, self.history,
                               lambda partition: self.voters)

    def put(self, table: str, key: bytes, value: bytes, *names: str) -> Stage:
        """Committed on the nodes named."""
        for name in names:
            self.processes[name].store.put_many(table, [(key, value)])
            self.processes[name].store.commit()
        return self

    def change(self, table: str, key: bytes, value: bytes) -> list[str]:
        """A commit of n1; gives the rules it breaks."""
        self.processes["n1"].store.put_many(table, [(key, value)])
        self.monitor.before_commit(self.processes["n1"])
        self.processes["n1"].store.commit()
        return list(self.monitor.violations)

    def drop(self, table: str, key: bytes) -> list[str]:
        """n1 deletes a record; gives the rules it breaks."""
        self.processes["n1"].store.pop_many(table, [key])
        self.monitor.before_commit(self.processes["n1"])
        return list(self.monitor.violations)

    def answer(self, question: m.Message, answer: m.Message) -> list[str]:
        """A node's answer; gives the rules it breaks."""
        self.history.invoke(1, "c", "n1", 7, question)
        self.monitor.on_answer("c", answer)
        return list(self.monitor.violations)

    def send(self, name: str, peer: str, message: m.Message) -> list[str]:
        """What a node tells a peer; gives the rules it breaks."""
        self.monitor.on_send(self.processes[name], peer, message)
        return list(self.monitor.violations)


def _bare(name: str) -> Process:
    process = Process.__new__(Process)
    process.name, process.store, process.boots = name, MemoryStore(), 1
    return process


def record(token: int, end_ms: int, done_ms: int = 0) -> bytes:
    claims = encode_claim(token, 10, end_ms, b"w") if token else b""
    return HISTORY_HEAD.pack(done_ms, 1 if done_ms else 0, end_ms) + claims


def promise(epoch: int, candidate: bytes) -> bytes:
    return epoch.to_bytes(8, "big") + candidate


ENQUEUE = m.Enqueue(7, 0, (m.TaskBatch(HEADER, TASK, pack([b"payload"])),))
COMPLETE = m.Complete(7, 0, 0, TASK, pack_u64([5]))
APPEND = m.Append(7, 0, TASK, 5, 0, pack([b"entry"]))
CLAIM = m.Claim(7, "q", 1, 50, 0, "w")
RENEW = m.Renew(7, 50, TASK, pack_u64([5]))


@pytest.mark.parametrize("question", [
    m.Append(7, 0, TASK, 5, 0, pack([b"entry"]), proofs=b"proofs12"),
    m.Complete(7, 0, 0, TASK, pack_u64([5]), proofs=b"proofs12"),
    m.Renew(7, 50, TASK, pack_u64([5]), b"proofs12"),
    m.Conclude(7, 1, 0, TASK, pack_u64([5]), proofs=b"proofs12")])
def test_a_claim_that_was_granted_is_never_unknown(question: m.Message) -> None:
    unknown = m.Failed(7, "unknown_claim", "", True)
    stage = Stage().put("history", KEY, record(5, 60), "n1", "n2", "n3")
    assert stage.answer(question, unknown) == [], "nobody was granted it"
    stage = Stage().put("history", KEY, record(5, 60), "n1", "n2", "n3")
    granted = m.ClaimBatch(TASK, 5, 60, pack([BODY]), b"proofs12")
    assert stage.answer(CLAIM, m.Claimed(7, 0, (granted,))) == []
    later = attrs.evolve(question, request=8)  # type: ignore[misc]
    stage.history.invoke(2, "c", "n1", 8, later)
    stage.monitor.on_answer("c", m.Failed(8, "busy", "", True))
    assert not stage.monitor.violations
    stage.monitor.on_answer("c", attrs.evolve(unknown, request=8))
    assert list(stage.monitor.violations) == [rules.CLAIM_IS_KNOWN]


def test_what_rises_may_rise() -> None:
    stage = Stage().put("history", KEY, record(0, 0, 50), "n1").put("meta", PROMISE, promise(3, b"n2"), "n1")

    assert stage.change("history", KEY, record(5, 99, 40)) == []
    assert stage.change("meta", PROMISE, promise(4, b"n1")) == []
    assert stage.monitor.counts[rules.COMPLETED_STAYS] == 1


def test_a_completion_may_neither_go_nor_move_later() -> None:
    for after in (record(0, 0), record(0, 0, 60)):
        stage = Stage().put("history", KEY, record(0, 0, 50), "n1")

        assert stage.change("history", KEY, after) == [rules.COMPLETED_STAYS]


def test_a_claim_may_not_go() -> None:
    assert Stage().put("history", KEY, record(5, 9), "n1").change("history", KEY, record(0, 0)) == [
        rules.HISTORY_GROWS]


def test_a_body_may_not_change() -> None:
    assert Stage().put("body", KEY, BODY, "n1").change("body", KEY, BODY + b"x") == [rules.BODY_STAYS]


@pytest.mark.parametrize(("table", "value", "more"), [
    ("body", BODY, BODY), ("history", record(5, 9), record(5, 19)),
    ("history", record(5, 9, 50), record(5, 9, 50))])
def test_what_is_dropped_is_held_by_most_voters_and_never_by_one_of_them(table: str, value: bytes,
                                                                         more: bytes) -> None:
    def stage(*holders: str, held: bytes = more) -> Stage:
        return Stage().put(table, KEY, value, "n1").put(table, KEY, held, *holders)

    assert stage("n2", "n4").drop(table, KEY) == []
    assert stage("n2").drop(table, KEY) == [rules.DROPPED_IS_ELSEWHERE]
    if table != "body":
        assert stage("n2", "n4", held=record(0, 0)).drop(table, KEY) == [rules.DROPPED_IS_ELSEWHERE]
    voter = stage("n2", "n4")
    voter.voters = ("n1", "n2", "n4")
    assert voter.drop(table, KEY) == [rules.DROPPED_IS_ELSEWHERE]


def test_a_body_may_be_dropped_where_most_voters_hold_another_one_under_its_id() -> None:
    def stage(*holders: str) -> Stage:
        return Stage().put("body", KEY, BODY, "n1").put("body", KEY, BODY + b"x", *holders)

    assert stage("n2", "n4").drop("body", KEY) == []
    assert stage("n2").drop("body", KEY) == [rules.DROPPED_IS_ELSEWHERE]
    voter = stage("n2", "n4")
    voter.voters = ("n1", "n2", "n4")
    assert voter.drop("body", KEY) == [rules.DROPPED_IS_ELSEWHERE]


def test_what_may_change_is_no_offence() -> None:
    stage = Stage().put("meta", b"floor", b"9", "n1").put("body", KEY, BODY, "n1")

    assert stage.change("meta", b"floor", b"1") == []
    assert stage.change("body", KEY, BODY) == []
    assert stage.change("meta", PROMISE, promise(3, b"n1")) == []


def test_a_promise_may_neither_fall_nor_change_hands() -> None:
    def stage() -> Stage:
        return Stage().put("meta", PROMISE, promise(3, b"n2"), "n1")

    assert stage().change("meta", PROMISE, promise(2, b"n2")) == [rules.PROMISE_RISES]
    assert stage().change("meta", PROMISE, promise(3, b"n3")) == [rules.ONE_CANDIDATE]


def test_a_vote_binds_what_is_told_later() -> None:
    stage = Stage()

    assert stage.send("n1", "n2", m.Vote(0, 3, True, False, 3, 0)) == []
    assert stage.send("n1", "n2", m.Vote(0, 3, True, False, 3, 0)) == []
    assert stage.send("n2", "n3", m.Granted(1, 0, 2, True, b"")) == []
    assert stage.send("n1", "n3", m.Granted(1, 0, 2, True, b"")) == [rules.PROMISE_RISES]


def test_an_epoch_has_one_candidate() -> None:
    stage = Stage()
    stage.send("n1", "n2", m.Vote(0, 3, True, False, 3, 0))

    assert stage.send("n1", "n3", m.Vote(0, 3, True, False, 3, 0)) == [rules.ONE_CANDIDATE]


def test_a_promise_told_must_be_there_after_a_restart() -> None:
    stage = Stage().put("meta", PROMISE, promise(3, b"n2"), "n1")
    stage.send("n1", "n2", m.Vote(0, 3, True, False, 3, 0))
    stage.send("n3", "n2", m.Vote(0, 3, True, False, 3, 0))

    stage.monitor.on_start(stage.processes["n1"])
    assert stage.monitor.violations == {}

    stage.monitor.on_start(stage.processes["n3"])
    assert list(stage.monitor.violations) == [rules.PROMISE_KEPT]


def test_an_enqueue_answered_has_its_copies_committed() -> None:
    assert Stage().put("body", KEY, BODY, "n1", "n2").answer(ENQUEUE, m.Acked(7, 2)) == []
    assert Stage().put("body", KEY, BODY, "n1").answer(ENQUEUE, m.Acked(7, 2)) == [rules.ACK_IS_FSYNCED]
    assert Stage().put("body", KEY, BODY, "n1").answer(ENQUEUE, m.Acked(7, 1)) == [rules.ACK_IS_FSYNCED]


def test_what_is_staged_is_no_copy() -> None:
    stage = Stage().put("body", KEY, BODY, "n1")
    stage.processes["n2"].store.put_many("body", [(KEY, BODY)])

    assert stage.answer(ENQUEUE, m.Acked(7, 2)) == [rules.ACK_IS_FSYNCED]


def test_a_completion_and_an_entry_answered_have_their_copies_too() -> None:
    key = tables.log_key(tables.prefix_of(0), TASK, 5, 0)

    assert Stage().put("history", KEY, record(5, 9, 50), "n1", "n3").answer(COMPLETE, m.Acked(7, 2)) == []
    assert Stage().put("history", KEY, record(5, 9), "n1", "n3").answer(COMPLETE, m.Acked(7, 2)) != []
    assert Stage().put("log", key, b"entry", "n1", "n3").answer(APPEND, m.Acked(7, 2)) == []
    assert Stage().put("log", key, b"other", "n1", "n3").answer(APPEND, m.Acked(7, 2)) != []


def test_a_checkpoint_answered_is_committed_on_a_majority_or_a_newer_one_is() -> None:
    said = m.Append(7, 1, TASK, 5 << 32, 0, pack([]), number=1, checkpoint=pack([b"mark"]))

    for record in (record_of(5 << 32, 1), record_of(5 << 32, 2), record_of(6 << 32, 0)):
        assert Stage().put("log", SLOT, record, "n1", "n3").answer(said, m.Acked(7, 2)) == []
        assert Stage().put("log", SLOT, record, "n1").answer(said, m.Acked(7, 1)) != []
    assert Stage().put("log", SLOT, record_of(5 << 32, 0), "n1", "n3").answer(said, m.Acked(7, 2)) != []


@pytest.mark.parametrize(("after", "broken"), [
    (record_of(5 << 32, 2), []), (record_of(6 << 32, 0), []), (record_of(5 << 32, 0), [rules.CHECKPOINT_RISES]),
    (record_of(4 << 32, 9), [rules.CHECKPOINT_RISES])])
def test_a_checkpoint_never_gives_way_to_an_older_one(after: bytes, broken: list[str]) -> None:
    assert Stage().put("log", SLOT, record_of(5 << 32, 1), "n1").change("log", SLOT, after) == broken


def test_a_claim_answered_is_recorded_by_a_majority() -> None:
    claimed = m.Claimed(7, 0, (m.ClaimBatch(TASK, 5, 99, pack([BODY])),))

    def broken(token: int, *names: str) -> list[str]:
        return Stage().put("history", KEY, record(token, 99), *names).answer(CLAIM, claimed)

    assert broken(5, "n1", "n2") == []
    assert broken(5, "n1") == [rules.CLAIM_IS_RECORDED]
    assert broken(4, "n1", "n2") == [rules.CLAIM_IS_RECORDED]


def test_a_renewal_answered_is_recorded_by_a_majority() -> None:
    def stage() -> Stage:
        return Stage().put("history", KEY, record(5, 99), "n1", "n2")

    assert stage().answer(RENEW, m.Renewed(7, pack_u64([99]))) == []
    assert stage().answer(RENEW, m.Renewed(7, pack_u64([0]))) == []
    assert stage().answer(RENEW, m.Renewed(7, pack_u64([120]))) == [rules.CLAIM_IS_RECORDED]


# -- settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "broken"), [
    (register(5), []), (register(6, b""), []), (register(5, YES, "x"), []), (register(4), [rules.SETTING_RISES]),
    (register(5, b""), [rules.SETTING_RISES]), (register(5, YES, "a"), [rules.SETTING_RISES])])
def test_a_setting_never_gives_way_to_an_older_one(after: bytes, broken: list[str]) -> None:
    assert Stage().put("meta", REGISTER, register(5), "n1").change("meta", REGISTER, after) == broken


def test_a_setting_is_never_dropped() -> None:
    assert Stage().put("meta", REGISTER, register(5), "n1").drop("meta", REGISTER) == [rules.SETTING_RISES]


@pytest.mark.parametrize(("names", "missing", "is_broken"), [
    (("n1", "n2", "n3"), ("n4",), False), (("n1", "n2"), ("n4",), True), (("n1", "n2", "n3"), ("n3", "n4"), False),
    (("n1", "n2", "n3"), ("n2", "n3", "n4"), True)])
def test_a_setting_acknowledged_is_committed_on_a_majority(names: tuple[str, ...], missing: tuple[str, ...],
                                                           is_broken: bool) -> None:
    stage = Stage().put("meta", REGISTER, register(4), "n1", "n2", "n3", "n4")
    stage.put("meta", REGISTER, register(5), names[0]).put("meta", REGISTER, register(7, b""), *names[1:])

    found = stage.answer(m.PutSetting(7, PAUSED, "q", 5, "w", YES), m.SettingPut(7, 3, missing))

    assert found == ([rules.ACK_IS_FSYNCED] if is_broken else [])


# -- garbage ---------------------------------------------------------------------------------------


LOG_KEY = tables.log_key(tables.prefix_of(0), TASK, 1 << 32, 0)
DONE = record(0, 0, 50)
LINE = (1 << 32, 0, b"a line")


def sealed_to(time_ms: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in (time_ms, time_ms, 1, 0))


def deleting(*sealed: str, done: bytes = DONE) -> Stage:
    """A task on all nodes, with a line of its log; n1 and some others are sealed above it."""
    stage = Stage()
    for table, key, value in (("body", KEY, BODY), ("history", KEY, done), ("log", LOG_KEY, LINE[2])):
        stage.put(table, key, value, *stage.processes)
    return stage.put("meta", tables.watermark_key(0), sealed_to(5_000), "n1", *sealed)


def test_what_ended_and_all_sealed_voters_hold_alike_may_be_deleted() -> None:
    assert deleting("n2", "n3", "n4").drop("body", KEY) == []
    assert deleting("n2", "n4").drop("body", KEY) == [rules.GARBAGE_IS_AGREED]
    assert deleting("n2", "n3", "n4", done=record(0, 0)).drop("body", KEY) == [rules.GARBAGE_IS_AGREED]
    other = deleting("n2", "n3", "n4").put("log", LOG_KEY, b"another line", "n3")
    assert other.drop("body", KEY) == [rules.GARBAGE_IS_AGREED]


@pytest.mark.parametrize(("holder", "sealed", "found"), [
    ("n1", ("n2", "n3", "n4"), []), ("n1", ("n2", "n4"), [rules.GARBAGE_IS_AGREED]),
    ("n3", ("n2", "n3", "n4"), [rules.GARBAGE_IS_AGREED])])
def test_what_came_too_late_for_all_voters_is_dropped(holder: str, sealed: tuple[str, ...],
                                                      found: list[str]) -> None:
    stage = Stage().put("meta", tables.watermark_key(0), sealed_to(5_000), "n1", *sealed)
    stage.put("body", KEY, BODY, "n1", holder)

    assert stage.drop("body", KEY) == found
    assert (TASK in stage.monitor.going) == bool(found)


def test_what_no_voter_can_have_refused_must_have_ended() -> None:
    stage = Stage().put("meta", tables.watermark_key(0), sealed_to(5_000), "n1").put("body", KEY, BODY, "n1")
    stage.voters = ()

    assert stage.drop("body", KEY) == [rules.GARBAGE_IS_AGREED]


@pytest.mark.parametrize(("upto_ms", "found"), [(1_000, []), (999, [rules.GARBAGE_IS_AGREED])])
def test_a_seal_reaches_up_to_the_ids_of_its_time(upto_ms: int, found: list[str]) -> None:
    stage = deleting("n2", "n4").put("meta", tables.watermark_key(0), sealed_to(upto_ms), "n3")

    assert stage.drop("body", KEY) == found


@pytest.mark.parametrize(("body", "history", "line", "is_archived"), [
    (BODY, DONE, LINE, True), (BODY + b"x", DONE, LINE, False), (BODY, record(0, 0, 51), LINE, False),
    (BODY, DONE, (*LINE[:2], b"a li"), False)])
def test_what_is_deleted_was_archived_just_so(
    body: bytes, history: bytes, line: tuple[int, int, bytes], is_archived: bool,
) -> None:
    stage = deleting("n2", "n3", "n4")
    stage.monitor.archives = True
    stage.history.archive([m.TaskRow(TASK, pack([body]), history, pack_u64(line[:1]), pack_u64(line[1:2]),
                                     pack([line[2]]))])

    assert stage.drop("body", KEY) == ([] if is_archived else [rules.GARBAGE_IS_ARCHIVED])
    assert stage.monitor.counts[rules.GARBAGE_IS_ARCHIVED] == 1
