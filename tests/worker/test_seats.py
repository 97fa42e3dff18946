"""Workers that take seats of workflows: where they claim, how much, and that a change is with them at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import skuld_py
from skuld_py.cli.main import main
from skuld_py.client.attending import WorkerSeats, WorkerStatus
from skuld_py.client.claims import Claim
from skuld_py.client.client import Client
from skuld_py.cluster.log.commands import SetSharing
from skuld_py.cluster.scale.seats import DemandRow, PlaceRow, SeatsInput, decide
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model.ids import from_text, time_of
from skuld_py.model.seats import FUNCTION, INPUT, OUTPUT, Seat
from skuld_py.runtime.zookeeper.clusters import read_parameters
from skuld_py.runtime.zookeeper.log_following import command
from skuld_py.worker import claimer as claimer_module
from skuld_py.worker.attendance import LEASE_S
from skuld_py.worker.claimer import Claimer
from skuld_py.worker.seats import SEALS_S, Place, SeatKeeper, SizeOf, queues_of
from skuld_py.worker.worker import Worker
from skuld_py.worker.workflows.children import Calls, packed
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.names import queue_of
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.segments import root_ids
from worker.running import FakeEngine, RunningWorker

Eventually = Callable[[Callable[[], bool]], None]
STATUS = WorkerStatus("w", "", "h", 2, {}, "1", "", 1, 0, 0, takes_seats=True)


def test_a_seat_is_a_queue_with_a_cap_and_a_fence() -> None:
    found = queues_of([Seat("w", "in", INPUT, 1, 7), Seat("w", "in2", INPUT, 2, 7), Seat("w", "f", FUNCTION, 3, 7),
                       Seat("w", "out", OUTPUT, 2, 7), Seat("x", "f", FUNCTION, 1, 9)],
                      lambda workflow, step: 10 if (workflow, step) == ("w", "f") else 1)

    assert found == {"wf.w.feed": Place(3, 7), "wf.w._feeds-in": Place(1, 7), "wf.w._feeds-in2": Place(2, 7),
                     "wf.w.in": Place(1, 7), "wf.w.in2": Place(2, 7),
                     "wf.w.f": Place(30, 7, 10), "wf.w.out": Place(2, 7), "wf.w.seal": Place(2, 7),
                     "wf.w._seals-out": Place(2, 7),
                     "wf.x.f": Place(1, 9)}


class Keeping:
    """A client that answers reports as it is told, and notes what it was asked."""

    def __init__(self, *answers: WorkerSeats | SkuldError, size_of: SizeOf = lambda workflow, step: 1,
                 lease_s: float = 3_600.0) -> None:
        self.answers = [*answers]
        self.size_of, self.lease_s = size_of, lease_s
        self.beside: list[float] = []
        self.asked: list[int] = []
        self.is_empty, self.said_goodbye, self.is_over = (threading.Event() for _ in range(3))

    def __enter__(self) -> Keeping:
        return self

    def __exit__(self, *problem: object) -> None:
        self.is_over.set()

    def take_seats(self, worker: WorkerStatus, lease_s: float, *, wait_s: float, seated: int) -> WorkerSeats:
        self.asked.append(seated)
        assert lease_s == 3 * wait_s == min(self.lease_s, LEASE_S)
        if not self.answers:
            self.is_empty.set()
            assert self.said_goodbye.wait(60)
            raise Uncertain("uncertain", "over")
        answer = self.answers.pop(0)
        if isinstance(answer, SkuldError):
            raise answer
        return answer

    def report(self, worker: WorkerStatus, lease_s: float) -> None:
        self.beside.append(lease_s)
        if not lease_s:
            self.said_goodbye.set()

    def run(self) -> list[Any]:
        told: list[Any] = []
        keeper = SeatKeeper(self, lambda: STATUS, told.append,  # type: ignore[arg-type]
                            self.size_of, self.lease_s)
        keeper.start()
        assert self.is_empty.wait(60)
        keeper.hasten()
        keeper.close()
        assert self.is_over.wait(60) and sorted(self.beside) == [0, min(self.lease_s, LEASE_S)]
        return told


def test_what_is_told_is_passed_on_once_and_named_in_the_next_report() -> None:
    first, second = WorkerSeats((Seat("w", "f", FUNCTION, 1, 7),), 5), WorkerSeats()
    client = Keeping(first, first, second)

    assert client.run() == [{"wf.w.f": Place(1, 7)}, {}]
    assert client.asked == [0, 5, 5, 0]


def test_seats_stay_while_no_node_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.seats.PAUSE_S", 0.01)
    client = Keeping(WorkerSeats((Seat("w", "f", FUNCTION, 1, 7),), 5), Uncertain("uncertain", "no answer"))

    assert client.run() == [{"wf.w.f": Place(1, 7)}]
    assert client.asked == [0, 5, 5]


def test_a_worker_that_is_killed_keeps_its_seats_no_longer_than_its_tasks() -> None:
    assert Keeping(WorkerSeats((), 5), lease_s=3.0).run() == [{}]


def test_how_many_a_slot_takes_is_asked_again_where_that_cannot_be_known_yet(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.seats.PAUSE_S", 0.01)
    sizes: list[int | SkuldError] = [Uncertain("uncertain", "no answer"), 20]

    def size_of(workflow: str, step: str) -> int:
        size = sizes.pop(0)
        if isinstance(size, SkuldError):
            raise size
        return size
    told = WorkerSeats((Seat("w", "f", FUNCTION, 2, 7),), 5)
    client = Keeping(told, told, size_of=size_of)

    assert client.run() == [{"wf.w.f": Place(40, 7, 20)}]
    assert client.asked == [0, 0, 5]


class Looking:
    """A keeper whose looks each take a third of how long it looks, and find what they are told to."""

    def __init__(self, *told: WorkerSeats, found: Callable[[str, int], SkuldError | None]) -> None:
        self.found, self.now_s = found, 0.0
        self.looked: list[tuple[float, str]] = []
        self.reports: list[int] = []
        """By look, how many reports there were before it."""
        self.client = Keeping(*told)
        keeper = SeatKeeper(self.client, lambda: STATUS, lambda queues: None,  # type: ignore[arg-type]
                            self.client.size_of, self.client.lease_s, self.look, lambda: self.now_s)
        keeper.start()
        assert self.client.is_empty.wait(60)
        keeper.close()

    def look(self, workflow: str) -> None:
        self.looked.append((self.now_s, workflow))
        self.reports.append(len(self.client.asked))
        self.now_s += SEALS_S / 3
        error = self.found(workflow, len(self.looked))
        if error is not None:
            raise error


def test_when_the_seats_of_a_workflow_with_a_leaf_here_change_it_looks_for_a_while_whether_that_is_to_be_sealed(
) -> None:
    w, v = (WorkerSeats((Seat("v", "f", FUNCTION, 1, 7), Seat("w", "out", OUTPUT, 1, fence)), fence)
            for fence in (7, 8))
    looking = Looking(*[w] * 6, *[v] * 6, found=lambda *_: None)
    assert looking.looked == [(number * SEALS_S / 3, "w") for number in range(6)]


@pytest.mark.parametrize(("error", "looks"), [(Uncertain("uncertain", "no answer"), 9),
                                              (Refused("bad_plan", "another one"), 3)])
def test_a_look_that_has_no_answer_is_made_again_however_long_that_takes(error: SkuldError, looks: int) -> None:
    told = WorkerSeats((Seat("w", "out", OUTPUT, 1, 7),), 7)
    looking = Looking(*[told] * 12, found=lambda workflow, count: error if count < 9 else None)
    assert len(looking.looked) == looks


@pytest.mark.parametrize("error", [None, Uncertain("uncertain", "no answer")])
def test_between_two_reports_it_looks_no_longer_than_seats_last_and_at_each_workflow_in_turn(
        error: SkuldError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.seats.LOOKS_PART", 6 if error is None else 0.1)
    told = WorkerSeats(tuple(Seat(name, "out", OUTPUT, 1, 7) for name in "uvwxy"), 7)
    looking = Looking(*[told] * 4, found=lambda workflow, count: error)
    assert [name for _, name in looking.looked] == [*"uvwx"] and looking.reports == [1, 2, 3, 4]


# -- claiming for seats ----------------------------------------------------------------------------


class Granting:
    """A client that grants what there is, and notes what it was asked: queue, count, fence."""

    def __init__(self, **stock: int) -> None:
        self.stock = Counter({f"wf.w.{step}": count for step, count in stock.items()})
        self.asked: list[tuple[str, int, int]] = []
        self.stale: set[int] = set()
        self.changed = threading.Condition()
        self.number = 0

    def claim(self, queue: str, *, n: int, lease_s: float, wait_s: float, fence: int) -> list[Claim]:
        with self.changed:
            self.asked.append((queue, n, fence))
            self.changed.notify_all()
            if fence in self.stale:
                raise Refused("stale_allocation", "stale")
            self.changed.wait_for(lambda: self.stock[queue], 0.02 if wait_s else 0)
            count = min(n, self.stock[queue])
            self.stock[queue] -= count
            claims = []
            for _ in range(count):
                self.number += 1
                claims.append(Claim(self.number.to_bytes(24, "big"), 2, queue, 0, b"", 0, 0.0))  # type: ignore[arg-type]
            return claims

    def close(self) -> None:
        pass

    def release(self, *claims: Claim) -> None:
        pass


class Claiming:
    """A claimer of four permits, without queues of its own, and what it was granted."""

    def __init__(self, client: Granting) -> None:
        self.client = client
        self.errors: list[SkuldError] = []
        self.is_over = threading.Event()
        self.got: list[Any] = []
        self.claimer = Claimer(self.client, {}, 30.0, 4, on_claims=self.got.extend,  # type: ignore[arg-type]
                               on_known=lambda *_: None, on_error=self.errors.append, on_end=self.is_over.set)
        self.claimer.start()
        self.claimer.resume()

    def has(self, **counts: int) -> bool:
        return Counter(each.claim.queue for each in [*self.got]) == {
            f"wf.w.{step}": count for step, count in counts.items()}


@pytest.fixture
def claiming() -> Iterator[Claiming]:
    made = Claiming(Granting(a=100, b=100))
    yield made
    made.claimer.close()
    assert made.is_over.wait(60)


def test_no_more_is_claimed_than_there_are_seats_and_what_ends_makes_room(
        claiming: Claiming, eventually: Eventually) -> None:
    claiming.claimer.seat({"wf.w.a": (1, 7), "wf.w.b": (2, 7)})
    eventually(lambda: claiming.has(a=1, b=2))

    claiming.claimer.ended([claiming.got[0].key])
    claiming.claimer.ended([claiming.got[0].key])  # twice is once
    claiming.claimer.give(1)
    queue = claiming.got[0].claim.queue
    eventually(lambda: len(claiming.got) == 4)
    assert claiming.got[3].claim.queue == queue


def test_a_seat_that_is_gone_is_claimed_for_no_more_and_one_that_comes_back_is(
        claiming: Claiming, eventually: Eventually) -> None:
    claiming.claimer.seat({"wf.w.a": (1, 7)})
    eventually(lambda: claiming.has(a=1))
    claiming.claimer.seat({})
    claiming.claimer.ended([claiming.got[0].key])
    claiming.claimer.give(1)
    claiming.claimer.seat({"wf.w.b": (1, 8)})
    eventually(lambda: claiming.has(a=1, b=1))

    claiming.claimer.seat({"wf.w.a": (1, 9)})
    eventually(lambda: claiming.has(a=2, b=1))
    assert {fence for queue, _, fence in claiming.client.asked if queue == "wf.w.a"} == {7, 9}


def test_a_stale_seat_is_no_error_and_claims_again_as_soon_as_it_is_told(
        claiming: Claiming, eventually: Eventually, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimer_module, "PAUSE_S", 600.0)
    claiming.client.stale.add(7)
    claiming.claimer.seat({"wf.w.a": (1, 7)})
    eventually(lambda: len(claiming.client.asked) > 0)

    claiming.claimer.seat({"wf.w.a": (1, 8)})
    eventually(lambda: claiming.has(a=1))
    assert claiming.errors == []


# -- on a real cluster -----------------------------------------------------------------------------

STEPS = ("in", "work", "out")
NAMES = ("w0", "w1", "w2")
_held: dict[object, tuple[str, str]] = {}
"""The steps of segments that run. No lock guards it: the order to stop is an exception that strikes anywhere, also
where a lock has just been taken, which nobody would give back then."""
_let_go: set[str] = set()


@skuld_py.task(name="seats.hold")
def hold(event: dict[str, Any]) -> None:
    """Around each segment: it is counted, and waits to be let go, or for the order to stop."""
    mark = object()
    _held[mark] = event["workflow"], event["step"]
    try:
        while event["id"] not in _let_go:
            time.sleep(0.02)
    finally:
        _held.pop(mark, None)


@skuld_py.task(name="seats.numbers")
def numbers() -> range:
    return range(300)


@skuld_py.task(name="seats.work")
def work(number: int) -> int:
    return number


def workflow(name: str, percentage: int) -> Definition:
    return read({"id": name, "percentage": percentage, "edges": [[*STEPS]], "catalog": {
        "in": {"kind": "input", "function": "seats.numbers"},
        "work": {"kind": "function", "function": "seats.work"},
        "out": {"kind": "output", "path": f"/tmp/{name}"}},
        "lifecycles": [{"step": "all", "before_task": "seats.hold"}]})


def submit(client: Client, flow: Definition) -> None:
    """And give every step enough to do, so that its slots are the only bound."""
    life = time_of(from_text(client.submit_workflow(flow).plan))
    for number, step in enumerate(STEPS[1:], 1):
        made = root_ids(flow.id, "in", number << 20, 200, time.time_ns() // 1_000_000)
        calls = Calls(flow.entries[step], life)
        client.enqueue_many(flow.queue(step), [calls.payload(packed(0), root, "in") for root in made], ids=made,
                            **calls.options)


def running() -> dict[str, list[int]]:
    """By workflow, how many segments of each step run."""
    counts = Counter([*_held.values()])
    return {name: [counts[name, step] for step in STEPS] for name in NAMES}


def dealt(sharing: str, slots: int, *workflows: Definition) -> dict[str, list[int]]:
    """What the pure function says of so many slots: by workflow, how many each step has."""
    rows = tuple(DemandRow(each.id, STEPS, (1, 1, 1), tuple(step.most for step in each.demand.steps), (0, 0, 0),
                           (0, 0, 0), percentage=each.percentage) for each in workflows)
    seats = decide(SeatsInput(sharing, ((),), (PlaceRow("a", slots),), rows)).of(0)
    counts = {(rows[flow].name, STEPS[step]): count for flow, step, count in seats}
    return {name: [counts.get((name, step), 0) for step in STEPS] for name in NAMES}


class Fleet:
    """Workers of four slots, each of which reports to one node."""

    def __init__(self, cluster: LocalCluster, place: Path) -> None:
        self._cluster, self._place = cluster, place
        self._running: list[RunningWorker] = []
        self._count = 0

    def start(self, node: int) -> None:
        self._count += 1
        worker = Worker([self._cluster.addresses[node]], "", FakeEngine(), slots=4, holder=f"w{self._count}",
                        grace_s=0.0, renewer_log=self._place / f"{self._count}.log", report=lambda line: None,
                        takes_seats=True)
        self._running.append(RunningWorker(worker, FakeEngine(), []))

    def stop(self) -> None:
        """The oldest one, which gives back what it holds."""
        leaving = self._running.pop(0)
        leaving.worker.stop()
        assert leaving.end() == 0

    def beyond(self) -> Iterator[str]:
        """What runs in a worker beyond the seats that it was told last, which was claimed for earlier ones."""
        for worker in (each.worker for each in self._running):
            left = Counter({queue_of(seat.workflow, seat.step): seat.count
                            for seat in worker._attendance._seats.seats})
            for run in [*worker._running.values()]:
                left[run.claim.queue] -= 1
                if left[run.claim.queue] < 0:
                    yield str(run.claim.id)

    def is_idle(self) -> bool:
        """Whether nothing runs; what is beyond is let go."""
        _let_go.update(self.beyond())
        return not any(each.worker._running for each in self._running)

    def settles(self, eventually: Eventually, wanted: dict[str, list[int]]) -> None:
        """What runs becomes that. What is beyond is let go, and nothing else: for half a minute the log may say
        other numbers of slots than there are, and if what runs for the seats of that time were let go, too, a
        step could have nothing left to do."""
        def is_so() -> bool:
            _let_go.update(self.beyond())
            return running() == wanted
        eventually(is_so)


@pytest.fixture
def fleet(cluster: LocalCluster, client: Client, tmp_path: Path, eventually: Eventually) -> Iterator[Fleet]:
    """In the end nothing runs before its workers stop: the order to stop may strike where a feeder that was killed
    reads lines of its source to say where, and pytest minds a file that nobody closes."""
    made = Fleet(cluster, tmp_path)
    yield made
    for name in NAMES:
        client.kill_workflow(name)
    try:
        eventually(made.is_idle)
    finally:
        while made._running:
            made.stop()
        share(cluster, "balanced")


def share(cluster: LocalCluster, sharing: str) -> None:
    hosts = cluster.zookeeper_hosts
    command(hosts, read_parameters(hosts, cluster.name), SetSharing(sharing), 20.0)


@pytest.mark.cluster
@pytest.mark.slow
def test_three_workflows_share_twelve_slots_of_real_workers(
        cluster: LocalCluster, client: Client, fleet: Fleet, eventually: Eventually) -> None:
    """Under each way of sharing, as the pure function says, while workers come and go; nobody else claims
    there."""
    flows = [workflow(*row) for row in zip(NAMES, (30, 30, 40), strict=True)]
    for node in (0, 0, 1):
        fleet.start(node)
    for each in flows:
        submit(client, each)
    fleet.settles(eventually, {"w0": [1, 2, 1], "w1": [1, 2, 1], "w2": [1, 2, 1]})
    with pytest.raises(Refused, match="only workers claim that were given a seat") as refused:
        client.claim("wf.w0.work")
    assert refused.value.code == "no_seat"

    for sharing in ("greedy", "percentage", "balanced"):
        share(cluster, sharing)
        wanted = dealt(sharing, 12, *flows)
        fleet.settles(eventually, wanted)
        if sharing == "greedy":
            assert wanted == {"w0": [1, 6, 5], "w1": [0, 0, 0], "w2": [0, 0, 0]}
            for asked in (["status"], ["workflow", "status", "w1"]):
                status = CliRunner().invoke(main, [*asked, "--nodes", ",".join(cluster.addresses)]).output
                assert "w1" in status and "needs 3 slots; of 12, other workflows have 12" in status
        fleet.start(0)
        fleet.stop()
        fleet.settles(eventually, wanted)

    client.kill_workflow("w0")
    fleet.settles(eventually, dealt("balanced", 12, *flows[1:]))
