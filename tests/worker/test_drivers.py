"""Tasks that run a file as a process of its own: what becomes of the process, whatever dies; never two at once."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

import skuld_py
from skuld_py.calls.payloads import decode_call
from skuld_py.client.client import Client
from skuld_py.client.options import Retry
from skuld_py.client.steady import steady_s
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.model.task import ClaimView
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.journal import decode_entry, encode_entry
from skuld_py.worker.kinds import script
from skuld_py.worker.kinds.allowed import Allowed, allowing
from skuld_py.worker.kinds.drivers import Intent, Past, Plan, plan
from skuld_py.worker.kinds.machine import here, is_of, process_of
from skuld_py.worker.registry import function_of
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

TASK = TaskId(bytes.fromhex(os.environ.setdefault("TESTS_OF_DRIVERS", os.urandom(20).hex())))
"""Of these tests and their child processes alone: a driver's processes are known by their task."""
Eventually = Callable[[Callable[[], bool]], None]

# Holds a lock that no other run can have, says through a pipe that it runs, and goes on when another is closed.
JOB = '''
import fcntl, os, subprocess, sys
place, *more = sys.argv[1:]
one = open(f"{place}/one", "w")
try:
    fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    open(f"{place}/two", "w").close()
    sys.exit(9)
with open(f"{place}/started", "a") as started:
    started.write(f"{os.getpid()}\\n")
if "child" in more or "stranger" in more:
    own = {} if "stranger" in more else None
    subprocess.Popen(["/bin/sleep", "600"], start_new_session=True, pass_fds=[one.fileno()], env=own)
with open(f"{place}/running", "w"):
    pass
with open(f"{place}/gate") as gate:
    gate.read()
print("done with", *more)
'''
SHORT = '''
import os, signal, sys
what = sys.argv[1]
print("hello")
print("trouble", file=sys.stderr)
if what == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if what == "talk":
    print("x" * 3_000_000 + "end")
sys.exit(int(what) if what.isdigit() else 0)
'''


class Place:
    """A directory with scripts, and what the job in it did."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "scripts" / "jobs").mkdir(parents=True)
        (directory / "scripts" / "jobs" / "job.py").write_text(JOB)
        (directory / "scripts" / "jobs" / "short.py").write_text(SHORT)
        (directory / "secret.py").write_text("print('out')")
        (directory / "scripts" / "link.py").symlink_to(directory / "secret.py")
        for name in ("running", "gate"):
            os.mkfifo(directory / name)
        self.allowed = Allowed(scripts=(directory / "scripts").resolve(), adopt_s=5.0, lease_s=3.0)

    def job(self, *arguments: str) -> bytes:
        return skuld_py.script("jobs/job.py", str(self.directory), *arguments, plain=True)

    def await_running(self) -> None:
        (self.directory / "running").read_text()

    def open_gate(self) -> None:
        (self.directory / "gate").write_text("")

    @property
    def drivers(self) -> list[int]:
        return [int(line) for line in (self.directory / "started").read_text().split()]

    @property
    def had_two(self) -> bool:
        return (self.directory / "two").exists()


Started = Callable[..., RunningWorker]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    if (tmp_path / "started").exists():
        for process_id in place.drivers:
            gone(process_id)


# -- without a cluster ---------------------------------------------------------------------------


class Told(TaskContext):
    """A context whose log is written at once, into a list; ``earlier`` are the claims before."""

    def __init__(self, token: int = 1, *earlier: ClaimView) -> None:
        super().__init__(TASK, token, "q", steady_s() + 600, _nothing, _nothing)
        self.said: list[Any] = []
        self.before = list(earlier)
        self.is_written = True
        self.has_gone_on = threading.Event()

    def log(self, words: Any) -> None:
        super().log(words)
        self.said.append(words)
        if "goes on with" in words:
            self.has_gone_on.set()

    def log_surely(self, words: Any) -> threading.Event:
        event = super().log_surely(words)
        self.said.append(words)
        if self.is_written:
            event.set()
        return event

    @property
    def earlier(self) -> list[ClaimView]:
        return self.before


def left_by(intent: Any) -> ClaimView:
    """A claim that lapsed, as the next one sees it."""
    return ClaimView(1, "h", 0, 0, False, None, (encode_entry("log", 0, **intent),))


def _nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is read")


def ran(payload: bytes, place: Place, context: TaskContext | None = None) -> Any:
    call = decode_call(payload)
    with allowing(place.allowed):
        return function_of(call)(context or Told(), *call.args, **call.kwargs)


def short(*arguments: str) -> bytes:
    return skuld_py.script("jobs/short.py", *arguments, plain=True)


def test_a_driver_that_ends_well_gives_the_end_of_what_it_said(place: Place) -> None:
    context = Told()
    assert ran(short("0"), place, context) == "hello\n"
    for name, text in (("out", "hello\n"), ("err", "trouble\n")):
        assert "".join(entry.get(name, "") for entry in context.said if isinstance(entry, dict)) == text
    talk = Told()
    result = ran(short("talk"), place, talk)
    assert len(result) == script.RESULT_CHARS and result.endswith("xend\n")
    assert sum(len(str(entry)) for entry in talk.said) < 10_000


def test_a_driver_is_started_where_its_worker_was_and_makes_clients_whatever_tasks_have_set(
        place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scripts" / "jobs" / "short.py").write_text(
        "import os\nfrom skuld_py import Client\nwith Client('127.0.0.1:1'): print(os.getcwd())\n")
    started_in, lost = tmp_path / "home", tmp_path / "lost"
    started_in.mkdir()
    lost.mkdir()
    place.allowed = attrs.evolve(place.allowed, started_in=started_in)
    monkeypatch.setenv("SKULD_XYZZY", "set by a task")
    monkeypatch.chdir(lost)
    lost.rmdir()

    assert ran(short(), place) == f"{started_in}\n"

    started_in.rmdir()
    monkeypatch.setattr(script, "place", lambda: pytest.fail("a directory is left there at each claim"))
    for where, words in ((started_in, f"started, {started_in}, was deleted"), (None, "started was deleted")):
        place.allowed = attrs.evolve(place.allowed, started_in=where)
        context = Told()
        with pytest.raises(Snooze):
            ran(short(), place, context)
        assert len(context.said) == 1 and f"{words}, so a script cannot start there" in context.said[0]


@pytest.mark.parametrize(("what", "words"), [("3", r"with status 3; .*trouble"), ("kill", r"by signal 9 \(out")])
def test_a_driver_that_fails_fails_its_task(place: Place, what: str, words: str) -> None:
    with pytest.raises(script.ScriptFailed, match=words):
        ran(short(what), place)


@pytest.mark.parametrize("path", ["link.py", "missing.py", "jobs/job.py/../../../secret.py"])
def test_a_file_is_below_the_directory_of_the_worker_and_no_link_leads_out(place: Place, path: str) -> None:
    with pytest.raises(Dead, match=r"no .* below the worker's directory"):
        script.below(place.allowed.scripts, path)


def test_a_worker_without_a_directory_runs_no_script(place: Place) -> None:
    place.allowed = Allowed()
    with pytest.raises(Dead, match=r"skuld:script: this worker runs no scripts; .*--scripts DIRECTORY"):
        ran(short("0"), place)


def test_nothing_runs_before_it_is_written_down(place: Place) -> None:
    context = Told()
    context.is_written = False
    threading.Timer(0.6, context.lose, ["it was cancelled"]).start()
    with pytest.raises(ClaimLost):
        ran(place.job(), place, context)
    assert not (place.directory / "started").exists()
    intent, = (entry for entry in context.said if "driver" in entry)
    gone(intent["driver"]["driver"]["id"])
    gone(intent["driver"]["guardian"]["id"])


def gone(process_id: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        if process.status() != psutil.STATUS_ZOMBIE:
            process.wait(60)


def test_a_claim_that_is_stopped_ends_the_driver_and_all_it_started(place: Place) -> None:
    context = Told()

    def stop() -> None:
        place.await_running()
        context.lose("it was cancelled")

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(ClaimLost):
        ran(place.job("child"), place, context)
    assert {"driver_ended": context.name} in context.said
    guardian = next(entry["driver"]["guardian"]["id"] for entry in context.said if "driver" in entry)
    assert [each.pid for each in psutil.process_iter() if is_of(context.name, each.pid)] in ([], [guardian])
    gone(guardian)


def test_what_left_its_driver_and_threw_its_environment_away_ends_with_it(place: Place) -> None:
    context = Told()

    def stop() -> None:
        place.await_running()
        context.lose("it was cancelled")

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(ClaimLost):
        ran(place.job("stranger"), place, context)
    with (place.directory / "one").open() as one:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which the stranger would still hold


def test_a_claim_that_wakes_up_late_leaves_its_driver_to_the_next_one(place: Place) -> None:
    first, ended = Told(1), list[type[BaseException]]()

    def run_first() -> None:
        try:
            ran(place.job(), place, first)
        except BaseException as error:
            ended.append(type(error))

    sleeper = threading.Thread(target=run_first, daemon=True)
    sleeper.start()
    place.await_running()
    second = Told(2, left_by(next(words for words in first.said if "driver" in words)))

    def wake_first() -> None:
        second.has_gone_on.wait(60)
        first.lose("its lease ended while it slept")
        sleeper.join()
        place.open_gate()

    threading.Thread(target=wake_first, daemon=True).start()
    assert ran(place.job(), place, second) == "done with\n"
    assert ended in ([ClaimLost], [script.ScriptFailed])  # it may hear first that another claim has the driver
    assert len(place.drivers) == 1 and not place.had_two
    assert not any("driver_ended" in words for words in first.said)


def test_a_claim_that_slept_before_it_asked_for_the_driver_leaves_it_to_the_one_that_has_it(place: Place) -> None:
    first = Told(1)

    def run_first() -> None:
        with contextlib.suppress(script.ScriptFailed):
            ran(place.job(), place, first)

    threading.Thread(target=run_first, daemon=True).start()
    place.await_running()
    intent = next(words for words in first.said if "driver" in words)
    third = Told(3, left_by(intent))

    def wake_second() -> None:
        third.has_gone_on.wait(60)
        second = Told(2, left_by(intent))
        second.lose("its lease ended while it slept")
        with contextlib.suppress(ClaimLost):
            ran(place.job(), place, second)
        place.open_gate()

    threading.Thread(target=wake_second, daemon=True).start()
    assert ran(place.job(), place, third) == "done with\n"
    assert len(place.drivers) == 1


def test_a_user_who_cannot_see_the_driver_waits_for_it_as_on_another_machine(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = here()
    monkeypatch.setattr(os, "getuid", lambda: 65_534)
    others = here()
    assert mine is not None and others is not None and mine != others

    process = process_of(os.getpid())
    assert process is not None
    intent = Intent(f"{TASK}:1", mine, process, process, "/nowhere", 3.0, 5.0)
    past = Past([intent.entry()], is_cut=False, has_lapsed=True)
    found = plan(str(TASK), [past], others, lambda process: process.is_alive, 3.0, 5.0)
    assert found == Plan(None, (), 5.0, mine.host)


class Orphan:
    """A process that runs the job as a claim, and is killed."""

    CODE = '''
import json, sys
sys.path[:0] = {path!r}
from pathlib import Path
from worker.test_drivers import Told, ran, Place
from skuld_py.worker.kinds.allowed import Allowed
place, there = Place.__new__(Place), Path(sys.argv[1])
place.directory, place.allowed = there, Allowed(scripts=(there / "scripts").resolve(), adopt_s=60)
context = Told()
said = context.log_surely
def log_surely(words):
    (there / "intent").write_text(json.dumps(words))
    return said(words)
context.log_surely = log_surely
ran(place.job("child"), place, context)
'''

    def __init__(self, place: Place) -> None:
        code = self.CODE.format(path=[str(Path(__file__).parents[1])])
        process = subprocess.Popen([sys.executable, "-c", code, str(place.directory)])
        place.await_running()
        process.kill()
        process.wait()
        intent = json.loads((place.directory / "intent").read_text())
        self.claim = left_by(intent)
        self.guardian = intent["driver"]["guardian"]["id"]


@pytest.mark.slow
def test_the_next_claim_goes_on_with_a_driver_whose_worker_was_killed(place: Place) -> None:
    orphan = Orphan(place)
    context = Told(2, orphan.claim)
    threading.Thread(target=place.open_gate, daemon=True).start()
    assert ran(place.job("child"), place, context) == "done with child\n"
    assert len(place.drivers) == 1 and not place.had_two
    gone(orphan.guardian)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_guardian_that_is_gone_has_left_is_killed_before_another_runs(
    place: Place, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan = Orphan(place)
    monkeypatch.setattr("skuld_py.worker.kinds.driver.ANSWER_S", 1.0)
    os.kill(orphan.guardian, number)

    def go_on() -> None:
        place.await_running()
        place.open_gate()

    threading.Thread(target=go_on, daemon=True).start()
    assert ran(place.job("child"), place, Told(2, orphan.claim)) == "done with child\n"
    assert len(place.drivers) == 2 and not place.had_two
    gone(orphan.guardian)


# -- on a cluster --------------------------------------------------------------------------------


@pytest.fixture
def next_worker(cluster: LocalCluster, queue: str, place: Place, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Starts a worker in this process, which runs scripts."""
    with contextlib.ExitStack() as ends:
        def start() -> None:
            ends.enter_context(allowing(place.allowed))
            worker = Worker(cluster.addresses, queue, FakeEngine(), lease_s=3.0, grace_s=0.0,
                            renewer_log=tmp_path / "renewer.log", report=lambda _: None)
            running = RunningWorker(worker, FakeEngine(), [])
            ends.callback(running.end)
            ends.callback(worker.stop)
        yield start


@pytest.fixture(params=["60s"])
def killed(request: pytest.FixtureRequest, cluster: LocalCluster, client: Client, queue: str, place: Place,
           tmp_path: Path) -> TaskId:
    """A task whose worker was killed while its driver ran; that may outlive it for so long."""
    (tmp_path / "scripts_app.py").write_text("import skuld_py\n@skuld_py.task\ndef one(): ...\n")
    worker = cluster.start_worker(queue, "scripts_app", "--scripts", str(place.directory / "scripts"),
                                  "--lease", "3s", "--adopt", request.param, working_directory=tmp_path)
    task = client.enqueue(queue, place.job(), retry=Retry(5, backoff_s=0))
    place.await_running()
    worker.kill()
    worker.wait()
    return task


def said(client: Client, task: TaskId) -> str:
    return " ".join(str(decode_entry(entry)) for claim in client.get(task).claims for entry in claim.log)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_driver_whose_worker_was_killed_is_the_next_workers(
    killed: TaskId, next_worker: Callable[[], None], client: Client, place: Place, eventually: Eventually
) -> None:
    next_worker()
    eventually(lambda: "goes on with the driver" in said(client, killed))
    place.open_gate()
    assert client.result(killed, wait_s=30) == "done with\n"
    assert len(place.drivers) == 1 and not place.had_two


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("killed", ["5s"], indirect=True)
def test_a_worker_elsewhere_waits_until_the_driver_must_have_ended(
    killed: TaskId, next_worker: Callable[[], None], client: Client, place: Place, eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch
) -> None:
    there = here()
    assert there is not None
    monkeypatch.setattr(script, "here", lambda: attrs.evolve(there, boot="another"))
    first, = place.drivers
    next_worker()
    place.await_running()
    gone(first)
    place.open_gate()
    assert client.result(killed, wait_s=30) == "done with\n"
    assert len(place.drivers) == 2 and not place.had_two
    assert "waits until a driver of an earlier claim" in said(client, killed)
