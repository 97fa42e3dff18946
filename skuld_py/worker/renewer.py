"""A process beside the worker that renews its leases and says at once when one is lost.

It is a process of its own because a task may hold the worker's interpreter for longer than a lease: an
extension that does not let go of the GIL, or a machine so busy that the worker's threads starve.

The two talk in JSON lines over the child's standard input and output. Deadlines travel as they are: the
steady clock is one per machine.

Invariants:

* It ends with the worker: at the end of its input, or when its parent is another one (a child forked by a
  task may keep the pipe open). An engine that a killed worker leaves behind was told to end, and may take long for
  it: when the first of the worker's leases is over, it is killed.
* It renews only while the worker lives, by its beats or by what the kernel says of it: see ``lease`` and
  ``vitals``. A worker that is stopped loses its claims with their leases.
* It knows the worker's engine, by process and start. A worker that does not acknowledge a loss at once cannot end
  the claim's jobs: so the engine is killed, before another worker's jobs run beside them for long.
* A lease that ended by the worker's clock may have been renewed: while a task held the interpreter's lock, nobody
  heard of it. So before a claim is given up for lost, the process is asked for an echo, behind which nothing of
  what it said is unheard. One that does not answer knows no better. Tasks ask in their own threads, where the
  order to stop may arrive anywhere: so they take no lock that another thread takes, but wait for one of their own.
* What a task sets in the worker's environment reaches no renewer that replaces one: each has that of the first.
* Else the worker's half never blocks: what the pipe does not take now goes with what is said next, each second at
  the latest. A renewer that died or stopped answering is replaced, and the new one holds what the old one held;
  the worker watches the deadlines it knows in any case.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skuld_py.client.claims import HeldClaim
from skuld_py.client.client import Client
from skuld_py.client.steady import sleep, steady_s
from skuld_py.embedded import process, python
from skuld_py.errors import SkuldError
from skuld_py.variables import handed_on
from skuld_py.worker.helped import Helped
from skuld_py.worker.lease import Key, LeaseKeeper
from skuld_py.worker.vitals import TIMEOUT, Look, Losses, Overruns, parse_stat

STALL_S = 60.0
LOOK_S = 1.0
DEAF_S = 5.0
REPLACE_PAUSE_S = 0.5
ECHO_S, FRESH_S = 0.5, 0.1
"""How long an echo is waited for, and for how long one, or its absence, holds for all claims."""
ORPHANED_S, BURY_LOOK_S = 1.0, 0.05
"""How long a worker that has closed its pipe is given to be gone; and how often an ending engine is looked at."""
KEYS_IN_LINE = 30
"""A line is at most 4,096 bytes long, which is PIPE_BUF; a key takes up to 110."""

_log = logging.getLogger(__name__)


class Renewer(Helped):
    """The worker's half. ``on_lost``, ``on_extended`` and ``on_cancelled`` are called in a thread of this object's
    own; the last again and again, as long as the claim of a cancelled task is held."""

    def __init__(self, nodes: list[str], lease_s: float, log: Path, *, stall_s: float = STALL_S,
                 on_lost: Callable[[Key, str], None], on_extended: Callable[[Key, float], None],
                 on_cancelled: Callable[[Key], None]) -> None:
        self._greeting = {"nodes": nodes, "lease_s": lease_s, "stall_s": stall_s}
        self._path = log
        self._environment = handed_on(python.environment())
        self._on_lost = on_lost
        self._on_extended = on_extended
        self._on_cancelled = on_cancelled
        self._held: dict[Key, float] = {}
        self._limits: dict[Key, float] = {}
        self._engine: int | None = None
        self._unsaid: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._unanswered_since: float | None = None
        self._fresh_until = 0.0
        self._asking: queue.SimpleQueue[threading.Lock | None] = queue.SimpleQueue()
        self._asked: deque[tuple[float, threading.Lock]] = deque()
        self._is_closing = threading.Event()
        self._listener = self._helper("renewer", self._listen)
        self._asker = self._helper("echoes", self._ask)

    def start(self) -> None:
        """Start the process and listen to it."""
        with self._lock:
            self._launch()
        self._listener.start()
        self._asker.start()

    def close(self) -> None:
        """End the process. What it held lapses, unless it was completed or released."""
        self._is_closing.set()
        with self._lock:
            if self._child is not None:
                process.stop(self._child, grace_s=1.0)
        self._asking.put(None)
        for helper in (self._listener, self._asker):
            if helper.ident is not None:
                helper.join()

    def hold(self, keys: Sequence[Key], deadline: float) -> None:
        """Keep claims alive from now on, which end together."""
        with self._lock:
            self._held.update(dict.fromkeys(keys, deadline))
            self._say_all("hold", keys, deadline=deadline)

    def limit(self, key: Key, at: float) -> None:
        """A claim may run until then, by the steady clock."""
        with self._lock:
            self._limits[key] = at
            self._say({"limit": _named(key), "at": at})

    def watch(self, engine: int | None) -> None:
        """This process runs the claims' jobs from now on."""
        with self._lock:
            self._engine = engine
            self._say({"engine": engine})

    def drop(self, keys: Sequence[Key]) -> None:
        """Claims are over."""
        with self._lock:
            for key in keys:
                self._limits.pop(key, None)
            self._say_all("drop", [key for key in keys if self._held.pop(key, None) is not None])

    def beat(self) -> None:
        """The worker is well. A renewer that has not answered earlier beats is ended; another one follows."""
        now = steady_s()
        with self._lock:
            if self._unanswered_since is None:
                self._unanswered_since = now
            elif now - self._unanswered_since > DEAF_S and self._child is not None:
                self._child.kill()
            self._say({"beat": now})

    def newest(self, key: Key) -> float:
        """When a claim's lease ends, by all that was said so far; 0 for one that is not held. From any thread."""
        if steady_s() > self._fresh_until:
            heard = threading.Lock()
            heard.acquire()
            self._asking.put(heard)
            heard.acquire(timeout=ECHO_S)
            self._fresh_until = steady_s() + FRESH_S
        return self._held.get(key, 0.0)

    def _ask(self) -> None:
        """Ask for echoes on behalf of those that wait, and forget those that wait no more."""
        while (heard := self._asking.get()) is not None:
            with self._lock:
                asked = steady_s()
                while self._asked and self._asked[0][0] < asked - ECHO_S:
                    self._asked.popleft()
                self._asked.append((asked, heard))
                self._say({"echo": asked})

    @property
    def process_id(self) -> int:
        """The id of the process."""
        assert self._child is not None
        return self._child.pid

    def _launch(self) -> None:
        with self._path.open("ab") as errors:
            self._child = subprocess.Popen(
                python.module_command(__name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=self._environment, start_new_session=True)
        assert self._child.stdin is not None
        os.set_blocking(self._child.stdin.fileno(), False)
        self._unanswered_since = None
        self._unsaid.clear()
        self._say(self._greeting)
        self._say({"engine": self._engine})
        for key, deadline in self._held.items():
            self._say_all("hold", [key], deadline=deadline)
        for key, at in self._limits.items():
            self._say({"limit": _named(key), "at": at})

    def _say_all(self, what: str, keys: Sequence[Key], **more: float) -> None:
        for start in range(0, len(keys), KEYS_IN_LINE):
            self._say({what: [_named(key) for key in keys[start : start + KEYS_IN_LINE]], **more})

    def _say(self, words: dict[str, Any]) -> None:
        """Write one line, behind those not taken yet; each whole or not at all, for it fits into PIPE_BUF."""
        assert self._child is not None and self._child.stdin is not None
        self._unsaid.append(json.dumps(words).encode() + b"\n")
        try:
            while self._unsaid:
                os.write(self._child.stdin.fileno(), self._unsaid[0])
                self._unsaid.popleft()
        except BlockingIOError:
            return  # a child that reads nothing does not answer either, and is ended for that
        except (OSError, ValueError):
            self._unsaid.clear()  # it is gone: the listener replaces it, and tells the new one everything

    def _listen(self) -> None:
        while True:
            assert self._child is not None and self._child.stdout is not None
            with self._child.stdout as words:
                for line in words:
                    self._hear(json.loads(line))
            if self._is_closing.is_set():
                return
            assert self._child.stdin is not None
            with contextlib.suppress(OSError):
                self._child.stdin.close()
            _log.warning("the renewer ended with status %s; starting another one", self._child.wait())
            if self._is_closing.wait(REPLACE_PAUSE_S):
                return
            with self._lock:
                if not self._is_closing.is_set():
                    self._launch()

    def _hear(self, words: dict[str, Any]) -> None:
        self._unanswered_since = None
        if "echo" in words:
            with self._lock:
                while self._asked and self._asked[0][0] <= words["echo"]:
                    self._asked.popleft()[1].release()
        elif "extended" in words:
            key, deadline = _key(words["extended"]), words["deadline"]
            with self._lock:
                if key not in self._held:
                    return
                self._held[key] = deadline
            self._on_extended(key, deadline)
        elif "cancelled" in words:
            self._on_cancelled(_key(words["cancelled"]))
        elif "lost" in words:
            key = _key(words["lost"])
            with self._lock:
                self._say({"heard": words["lost"]})
                self._limits.pop(key, None)
                if self._held.pop(key, None) is None:
                    return
            self._on_lost(key, words["reason"])


def _named(key: Key) -> list[str | int]:
    return [key[0].hex(), key[1], key[2].hex()]


def _key(named: list[Any]) -> Key:
    return bytes.fromhex(named[0]), named[1], bytes.fromhex(named[2])


class _Process:
    """The renewer's half: one thread reads, one asks the cluster, and the main thread decides."""

    def __init__(self, nodes: list[str], lease_s: float, stall_s: float) -> None:
        self._lease_s = lease_s
        self._keeper = LeaseKeeper(lease_s, stall_s, steady_s())
        self._nodes = nodes
        self._losses: Losses[Key] = Losses()
        self._overruns: Overruns[Key] = Overruns()
        self._engine: tuple[int, int] | None = None
        self._client = Client(nodes, timeout_s=min(5.0, max(0.2, lease_s / 4)))
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[tuple[Key, ...]] = queue.SimpleQueue()
        self._parent = os.getppid()

    def run(self) -> None:
        for target in (self._read, self._ask):
            threading.Thread(target=target, daemon=True).start()
        while not self._is_orphaned():
            if (look := look_at(self._parent)) is not None:
                self._keeper.vitals.seen(steady_s(), look)
            step = self._keeper.step(steady_s())
            for key in step.lost:
                self._tell_lost(key, "its lease ended before it could be renewed")
            if step.renew:
                self._requests.put(step.renew)
            if over := self._overruns.take(steady_s()):
                self._end_worker(over)
            if self._losses.take_overdue(steady_s()):
                _note("the worker did not hear that a claim is lost")
                self._kill_engine()
            wakes = [at for at in (step.wake_at, self._losses.overdue_at()) if at is not None]
            wake_s = min([LOOK_S, *(at - steady_s() for at in wakes)])
            with contextlib.suppress(queue.Empty):
                self._inbox.get(timeout=max(0.0, wake_s))()
                while True:  # the claims of a batch come in many lines
                    self._inbox.get_nowait()()
        self._bury_engine()

    def _is_orphaned(self) -> bool:
        return os.getppid() != self._parent

    def _bury_engine(self) -> None:
        until = self._keeper.first_deadline
        while self._has_engine() and until is not None and steady_s() < until:
            sleep(BURY_LOOK_S)
        self._kill_engine()

    def _tell_lost(self, key: Key, reason: str) -> None:
        self._losses.told(key, steady_s())
        self._overruns.drop(key)
        _tell(lost=_named(key), reason=reason)

    def _end_worker(self, over: tuple[Key, ...]) -> None:
        """The last thing this process does. Without an answer the leases end by themselves."""
        neighbours = [HeldClaim(*key) for key in self._keeper.keys if key not in over]
        with contextlib.suppress(SkuldError), Client(self._nodes) as client:
            words = f"{TIMEOUT}; its worker could not stop it"
            client.fail_many([HeldClaim(*key) for key in over], [words] * len(over))
            client.release(*neighbours)
        _note(f"{len(over)} claims ran for too long and the worker did not end them; it is killed")
        self._kill_engine()
        if os.getppid() == self._parent:
            os.kill(self._parent, signal.SIGKILL)
        os._exit(0)

    def _kill_engine(self) -> None:
        is_there = self._has_engine()
        engine, self._engine = self._engine, None
        if engine is not None and is_there:
            with contextlib.suppress(ProcessLookupError):
                os.kill(engine[0], signal.SIGKILL)
            _note(f"the engine of the worker, process {engine[0]}, is killed")

    def _has_engine(self) -> bool:
        """Whether the engine's process is there, and not another one by its number, or only its body."""
        look = None if self._engine is None else look_at(self._engine[0])
        is_it = self._engine is not None and look is not None and look.start == self._engine[1]
        return is_it and look is not None and look.state != "Z"

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            words = json.loads(line)
            self._inbox.put(partial(self._hear, words))
        for _ in range(round(ORPHANED_S / BURY_LOOK_S)):  # a pipe breaks before its process has ended
            if self._is_orphaned():
                self._inbox.put(lambda: None)
                return
            sleep(BURY_LOOK_S)
        os._exit(0)

    def _hear(self, words: dict[str, Any]) -> None:
        if "hold" in words:
            for named in words["hold"]:
                self._keeper.hold(_key(named), words["deadline"])
        elif "drop" in words:
            for key in map(_key, words["drop"]):
                self._keeper.drop(key)
                self._losses.acknowledged(key)
                self._overruns.drop(key)
        elif "limit" in words:
            self._overruns.limit(_key(words["limit"]), words["at"])
        elif "heard" in words:
            self._losses.acknowledged(_key(words["heard"]))
        elif "engine" in words:
            engine = words["engine"]
            look = None if engine is None else look_at(engine)
            self._engine = None if look is None else (engine, look.start)
        elif "beat" in words:
            self._keeper.beat(words["beat"])
            _tell(heard=words["beat"])
        elif "echo" in words:
            _tell(echo=words["echo"])

    def _ask(self) -> None:
        while True:
            keys = self._requests.get()
            sent = steady_s()
            claims = [HeldClaim(*key) for key in keys]
            try:
                held = self._client.renew_many(claims, lease_s=self._lease_s)
            except SkuldError as error:
                _note(f"{len(keys)} claims not renewed: {error}")
                self._inbox.put(partial(self._keeper.unanswered, steady_s(), keys))
            else:
                self._inbox.put(partial(self._judge, sent, dict(zip(keys, held, strict=True))))
                for claim in claims:
                    if claim.is_cancelled:
                        self._inbox.put(partial(_tell, cancelled=_named((claim.id, claim.token, claim.proof))))

    def _judge(self, sent: float, verdict: dict[Key, bool | None]) -> None:
        extended, lost = self._keeper.answered(sent, verdict, steady_s())
        for key, deadline in extended.items():
            _tell(extended=_named(key), deadline=deadline)
        for key in lost:
            self._tell_lost(key, "the cluster says it is lost: its lease ended, it was released, or the task was"
                                 " completed")


def look_at(process_id: int) -> Look | None:
    """What the kernel says of a process; None when it is gone, and where nothing can be said."""
    try:
        return parse_stat(Path(f"/proc/{process_id}/stat").read_text(errors="replace"))
    except (OSError, ValueError, IndexError):
        return None


def _note(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def _tell(**words: Any) -> None:
    """Write one line to the worker; without a worker the renewer ends."""
    try:
        sys.stdout.buffer.write(json.dumps(words).encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(0)


def main() -> None:
    """Renew until the worker is gone."""
    greeting = json.loads(sys.stdin.buffer.readline() or b"null")
    if greeting is not None:
        _Process(**greeting).run()


if __name__ == "__main__":
    main()
