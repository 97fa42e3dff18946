"""Each checker sees what breaks its rule, passes what keeps it, and calls an empty run vacuous."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skuld_py.model import messages as m
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.document import Document, seats_of
from skuld_py.model.ids import IdMint
from skuld_py.model.task import HISTORY_HEAD, Header, encode_body, encode_claim, token_of
from skuld_py.partition import tables
from skuld_py.simulation import audits, checkers
from skuld_py.simulation.checkers import Checker, Evidence
from skuld_py.simulation.history import History, Hold
from skuld_py.simulation.registry import Write
from skuld_py.simulation.store import MemoryStore

Build = Callable[[], Evidence]
HEADER = Header("q").encode()
BODY = encode_body(HEADER, b"payload")
TASK, OTHER = IdMint(1).mint(1_000, 2, 0)
KEY = tables.prefix_of(0) + TASK
TOKEN = token_of(1, 1)
NODES = ("n1", "n2", "n3")


class Story:
    """Evidence in the making: three nodes, one partition."""

    def __init__(self) -> None:
        self.history = History()
        self.stores = {name: MemoryStore() for name in NODES}
        self.writes: list[Write] = []
        self._requests = 0

    def tell(self, make: Callable[[int], m.Message], answer: m.Message | None, at_ms: int = 10,
             until_ms: int | None = None) -> Story:
        """An operation and its answer; every one has its own client and number."""
        self._requests += 1
        number = self._requests
        operation = self.history.invoke(at_ms, f"c{number}", "n1", number, make(number))
        self.history.finish(at_ms + 1 if until_ms is None else until_ms, operation, answer)
        return self

    def enqueue(self, answer: m.Message | None, payload: bytes = b"payload") -> Story:
        batch = m.TaskBatch(HEADER, TASK, pack([payload]))
        return self.tell(lambda request: m.Enqueue(request, 0, (batch,)), answer)

    def claim(self, token: int = TOKEN, at_ms: int = 10, until_ms: int | None = None, task: bytes = TASK,
              body: bytes = BODY, queue: str = "q", count: int = 1) -> Story:
        batch = m.ClaimBatch(task, token, 99, pack([body] * (len(task) // 20)))
        return self.tell(lambda request: m.Claim(request, queue, count, 50, 0, "w"),
                         m.Claimed(0, 0, (batch,)), at_ms, until_ms)

    def renew(self, token: int, end_ms: int, at_ms: int) -> Story:
        return self.tell(lambda request: m.Renew(request, 50, TASK, pack_u64([token])),
                         m.Renewed(0, pack_u64([end_ms])), at_ms)

    def complete(self, at_ms: int = 10, w: int = 0) -> Story:
        return self.tell(lambda request: m.Complete(request, w, 0, TASK, pack_u64([TOKEN])), ACKED, at_ms)

    def append(self) -> Story:
        return self.tell(lambda request: m.Append(request, 0, TASK, TOKEN, 3, pack([b"entry"])), ACKED)

    def hold(self, token: int, start_ms: int, stop_ms: int) -> Story:
        self.history.holds.append(Hold(TASK, token, f"w{token}", start_ms - 1, start_ms, stop_ms))
        return self

    def write(self, epoch: int, at_ms: int, leader: str = "n1", cohort: tuple[str, ...] = NODES) -> Story:
        document = Document(epoch, leader, "boot", seats_of(cohort), f"w{epoch}{leader}")
        self.writes.append(Write(at_ms, 0, len(self.writes), document))
        return self

    def store(self, table: str, key: bytes, value: bytes, names: tuple[str, ...] = NODES) -> Story:
        for name in names:
            self.stores[name].put_many(table, [(key, value)])
            self.stores[name].commit()
        return self

    def evidence(self, *, healed: bool = True) -> Evidence:
        return Evidence(self.history, self.writes, self.stores, {0: NODES} if healed else {}, 3, 1)


def claim_record(token: int = TOKEN, *, completed: bool = False) -> bytes:
    head = HISTORY_HEAD.pack(50 if completed else 0, token if completed else 0, 99)
    return head + encode_claim(token, 10, 99, b"w")


def stored(names: tuple[str, ...] = NODES) -> Story:
    return Story().store("body", KEY, BODY, names)


def completed(names: tuple[str, ...] = NODES) -> Story:
    return stored().store("history", KEY, claim_record(completed=True), names)


def log_key(seq: int) -> bytes:
    return tables.log_key(tables.prefix_of(0), TASK, TOKEN, seq)


ACKED = m.Acked(0, 2)
REFUSED = m.Failed(0, "conflict", "no", True)
READY = tables.prefix_of(0) + tables.place_of(Header("q")) + TASK
LEASE = tables.lease_key(tables.prefix_of(0), 200, TASK)
COUNTS = tables.prefix_of(0) + b"q"
ONE_WAITS = (1).to_bytes(8, "big") + bytes(16)

BROKEN: dict[Checker, dict[str, Callable[[], Story]]] = {
    checkers.acked_enqueues_survive: {
        "one owner lacks it": lambda: stored(("n1", "n2")).enqueue(ACKED),
        "nobody has it": lambda: Story().enqueue(ACKED),
        "one has another": lambda: stored(("n1", "n2")).store("body", KEY, b"x", ("n3",)).enqueue(ACKED),
    },
    checkers.nothing_from_nowhere: {
        "never sent": stored,
        "another body": lambda: stored().enqueue(ACKED, b"other"),
        "refused": lambda: stored().enqueue(REFUSED),
        "claimed": lambda: Story().claim(),
    },
    checkers.acked_completions_stay: {
        "on two only": lambda: completed(("n1", "n2")).complete(),
        "claimed only": lambda: stored().store("history", KEY, claim_record()).complete(),
    },
    checkers.acked_entries_stay: {
        "lost on one": lambda: Story().store("log", log_key(3), b"entry", ("n1", "n3")).append(),
        "other content": lambda: Story().store("log", log_key(3), b"other").append(),
        "other place": lambda: Story().store("log", log_key(2), b"entry").append(),
    },
    checkers.one_holder_per_token: {
        "two clients": lambda: Story().claim().claim(),
        "two tasks": lambda: Story().claim().claim(task=OTHER),
    },
    checkers.tokens_rise: {
        "reused": lambda: Story().claim(5, 10).claim(5, 20),
        "falls": lambda: Story().claim(token_of(2, 1), 10).claim(token_of(1, 9), 20),
    },
    checkers.leases_do_not_overlap: {
        "by one millisecond": lambda: Story().hold(1, 10, 21).hold(2, 20, 30),
        "inside": lambda: Story().hold(1, 10, 90).hold(2, 20, 30),
        "with one before the last": lambda: Story().hold(1, 10, 90).hold(2, 15, 16).hold(3, 50, 60),
    },
    checkers.deposed_leaders_grant_nothing: {
        "an old epoch": lambda: Story().write(1, 1).write(2, 5).claim(token_of(1, 1)),
        "an epoch of nobody": lambda: Story().write(1, 1).claim(token_of(2, 1)),
    },
    checkers.completed_is_not_granted: {
        "by a majority": lambda: Story().complete(10).claim(at_ms=20),
        "by all": lambda: Story().complete(10, 3).claim(at_ms=20),
    },
    checkers.claims_are_of_the_queue: {
        "another queue": lambda: Story().claim(queue="r"),
        "no body": lambda: Story().claim(body=b""),
        "too many": lambda: Story().claim(task=TASK + OTHER),
    },
    checkers.renewals_are_the_holders: {
        "by an old holder": lambda: Story().claim(5, 10).claim(6, 20).renew(5, 100, 30),
        "backwards": lambda: Story().claim(5, 10).renew(5, 100, 20).renew(5, 90, 30),
    },
    checkers.epochs_rise: {
        "two leaders": lambda: Story().write(1, 1).write(1, 2, "n2"),
        "falls": lambda: Story().write(2, 1).write(1, 2),
        "a small cohort": lambda: Story().write(1, 1, "n1", ("n1", "n2")),
    },
    audits.replicas_are_equal: {
        "a body lacks": lambda: stored(("n1", "n3")),
        "a history differs": lambda: completed(("n1", "n2")).store("history", KEY, claim_record(), ("n3",)),
        "a log entry lacks": lambda: stored().store("log", log_key(0), b"entry", ("n1",)),
    },
    audits.everything_is_completed: {
        "waiting": stored,
        "on one replica": lambda: completed(("n1", "n2")),
    },
    audits.indexes_match: {
        "nowhere": stored,
        "in both": lambda: stored().store("ready", READY, b"").store("lease", LEASE, b"\x01"),
        "completed and ready": lambda: completed().store("ready", READY, b""),
        "a ready entry of nothing": lambda: Story().store("ready", READY, b""),
        "a lease of nothing": lambda: Story().store("lease", LEASE, b"\x00"),
    },
    audits.counts_match: {
        "never counted": lambda: stored().store("ready", READY, b""),
        "counted twice": lambda: stored().store("ready", READY, b"").store("counts", COUNTS, b"\0" * 7 + b"\2"
                                                                           + bytes(16)),
        "counted where nothing is": lambda: Story().store("counts", COUNTS, ONE_WAITS),
    },
}

KEPT: dict[Checker, Callable[[], Story]] = {
    checkers.acked_enqueues_survive: lambda: stored().enqueue(ACKED).enqueue(None, b"lost"),
    checkers.nothing_from_nowhere: lambda: stored().enqueue(None).enqueue(REFUSED, b"other").claim(),
    checkers.acked_completions_stay: lambda: completed().complete(),
    checkers.acked_entries_stay: lambda: Story().store("log", log_key(3), b"entry").append(),
    checkers.one_holder_per_token: lambda: Story().claim(5).claim(6).claim(7, task=OTHER),
    checkers.tokens_rise: lambda: Story().claim(5, 10).claim(6, 20).claim(4, 9, 21),
    checkers.leases_do_not_overlap: lambda: Story().hold(1, 10, 20).hold(2, 20, 30).hold(3, 25, 25),
    checkers.deposed_leaders_grant_nothing: lambda: Story().write(1, 1).claim(token_of(1, 1)).write(2, 11)
    .claim(token_of(1, 2), 10, 20).claim(token_of(2, 1), 30),
    checkers.completed_is_not_granted: lambda: Story().claim(at_ms=5).complete(10).claim(at_ms=8, until_ms=20)
    .claim(at_ms=20, task=OTHER),
    checkers.claims_are_of_the_queue: lambda: Story().claim(task=TASK + OTHER, count=2),
    checkers.renewals_are_the_holders: lambda: Story().claim(5, 10).renew(5, 90, 20).renew(5, 100, 30)
    .claim(6, 40).renew(5, 0, 50),
    checkers.epochs_rise: lambda: Story().write(1, 1).write(3, 2, "n2"),
    audits.replicas_are_equal: completed,
    audits.everything_is_completed: completed,
    audits.indexes_match: lambda: completed().store("body", tables.prefix_of(0) + OTHER, BODY)
    .store("ready", READY[:-20] + OTHER, b""),
    audits.counts_match: lambda: stored().store("ready", READY, b"").store("counts", COUNTS, ONE_WAITS),
}

CASES = [pytest.param(checker, build, id=f"{checker.__name__}: {name}")
         for checker, cases in BROKEN.items() for name, build in cases.items()]


@pytest.mark.parametrize(("checker", "build"), CASES)
def test_a_planted_violation_is_found_and_shown(checker: Checker, build: Callable[[], Story]) -> None:
    finding = checker(build().evidence())

    assert finding.verdict is False
    assert finding.evidence


@pytest.mark.parametrize(("checker", "build"), KEPT.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_clean_history_passes(checker: Checker, build: Callable[[], Story]) -> None:
    finding = checker(build().evidence())

    assert finding.evidence == ()
    assert finding.verdict is True


@pytest.mark.parametrize("checker", BROKEN, ids=lambda checker: str(checker.__name__))
def test_an_empty_run_is_vacuous_and_no_pass(checker: Checker) -> None:
    assert checker(Story().evidence()).verdict is None


@pytest.mark.parametrize("checker", [checkers.acked_enqueues_survive, checkers.acked_completions_stay,
                                     checkers.acked_entries_stay], ids=lambda checker: str(checker.__name__))
def test_what_is_asked_after_healing_is_vacuous_before(checker: Checker) -> None:
    story = completed().enqueue(ACKED).complete().append()

    assert checker(story.evidence(healed=False)).verdict is None


def test_every_checker_has_violations_of_at_least_two_kinds_and_a_clean_history() -> None:
    assert BROKEN.keys() == KEPT.keys()
    assert all(len(cases) >= 2 for cases in BROKEN.values())


def test_a_weak_completion_binds_nobody() -> None:
    story = Story().complete(10, 1).claim(at_ms=20)

    assert checkers.completed_is_not_granted(story.evidence()).verdict is None
