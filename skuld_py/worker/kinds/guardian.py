"""A small process beside the driver of a script: it starts it, ends it in time, and tells its worker what it says.

It is a process of its own so that it outlives the worker, and with it the driver: the next claim of the task finds
both. The driver's parent, and the reader of its output: what a driver says is kept in memory, its newest part, and
neither fills a disk nor waits for a worker that is gone.

The driver is there before it may run: a process in a session of its own that waits for one byte and then becomes
the program, under the same id. So who is about to run can be written down before it runs. It dies with its
guardian.

Workers speak to it by a socket that only this user can reach, in lines of JSON:

    {"token", "deadline"}     the first: be the master; then, with or without "token": the lease was renewed
    {"order": "go" | "end" | "bye"}

and hear ``{"is_master"}`` first; then ``{"out", "err", "left_out"}``, what the driver said since the last time,
less and less often; at its end ``{"status", "out", "err"}``, with the last of what it said; or ``{"dismissed"}``,
once a newer claim is the master.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skuld_py.client.steady import sleep, steady_s
from skuld_py.worker.journal import pause_s
from skuld_py.worker.kinds.guard import Attached, Do, Ended, Event, Extended, Guard, Left, Ordered
from skuld_py.worker.kinds.machine import kill_all, kill_below, process_of

LINE_BYTES_MAX = 65_536
OUTBOX_BYTES_MAX = 1 << 20
LAST_BYTES = {"out": 65_536, "err": 8_192}
"""How much of the end of what the driver said is kept."""
TOLD_BYTES = 1_000
LOOK_S = 0.5
GONE_S = 2.0
_SUBREAPER = 36
_WAIT_THEN_EXECUTE = """
import ctypes, os, signal, sys
parent, program = int(sys.argv[1]), sys.argv[2:]
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
if os.getppid() != parent or os.read(0, 1) != b"g":
    os._exit(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for name in ("SIGPIPE", "SIGXFSZ", "SIGTERM", "SIGINT", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execvp(program[0], program)
"""


class Stream:
    """One of the driver's two outputs: the end of it, and what is new."""

    def __init__(self, name: str, pipe: int) -> None:
        self.name = name
        self.pipe = pipe
        self.last = bytearray()
        self.fresh = bytearray()
        self.left_out = 0
        os.set_blocking(pipe, False)

    def read(self) -> bool:
        """Take what there is; whether more may come."""
        try:
            data = os.read(self.pipe, 65_536)
        except BlockingIOError:
            return True
        self.last += data
        del self.last[: -LAST_BYTES[self.name]]
        self.fresh += data
        self.left_out += max(0, len(self.fresh) - TOLD_BYTES)
        del self.fresh[:-TOLD_BYTES]
        return bool(data)

    def take(self) -> tuple[str, int]:
        """What is new, at most ``TOLD_BYTES`` of it, and how many bytes before that are left out."""
        told = self.fresh.decode("utf-8", "replace"), self.left_out
        self.fresh.clear()
        self.left_out = 0
        return told


class Connection:
    """A worker that has connected."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.token: int | None = None
        self._inbox = b""
        self._outbox = b""
        link.setblocking(False)

    def read(self) -> list[Any] | None:
        """What it says; None when it is gone, or talks nonsense."""
        try:
            data = self.link.recv(65_536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        self._inbox += data
        *lines, self._inbox = self._inbox.split(b"\n")
        if not data or len(self._inbox) > LINE_BYTES_MAX:
            return None
        try:
            words = [json.loads(line) for line in lines]
        except ValueError:
            return None
        return words if all(isinstance(each, dict) for each in words) else None

    def tell(self, **words: Any) -> None:
        """Say it, now or later; one that hears nothing misses it."""
        if len(self._outbox) < OUTBOX_BYTES_MAX:
            self._outbox += json.dumps(words).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what waits to be sent."""
        with contextlib.suppress(OSError):
            while self._outbox:
                self._outbox = self._outbox[self.link.send(self._outbox) :]


class Guardian:
    """Of one driver; ``spec`` is what a worker gave."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._claim = spec["claim"]
        self._directory = Path(spec["directory"])
        self._guard = Guard(spec["adopt_s"], steady_s())
        self._selector = selectors.DefaultSelector()
        self._master: Connection | None = None
        self._driver = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WAIT_THEN_EXECUTE, str(os.getpid()), *spec["command"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env={**os.environ, **spec["environment"]})
        assert self._driver.stdout is not None and self._driver.stderr is not None
        self._streams = [Stream("out", self._driver.stdout.fileno()), Stream("err", self._driver.stderr.fileno())]
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._directory / "guardian"))
        self._listener.listen()
        self._listener.setblocking(False)
        self._is_leaving = False
        self._started_s = self._tell_at = steady_s()
        self._does: dict[Do, Callable[[], None]] = {
            Do.START: self._start, Do.TERMINATE: self._terminate, Do.KILL: self._kill, Do.TELL: self._tell_end,
            Do.LEAVE: self._leave}

    def words(self) -> dict[str, Any]:
        """Who it is, and where it listens."""
        driver, own = process_of(self._driver.pid), process_of(os.getpid())
        assert driver is not None and own is not None
        return {"socket": str(self._directory / "guardian"),
                "guardian": {"id": own.id, "start": own.start}, "driver": {"id": driver.id, "start": driver.start}}

    def run(self) -> None:
        """Until there is nothing left to do."""
        ears, mouth = os.pipe()
        os.set_blocking(ears, False)
        os.set_blocking(mouth, False)
        signal.set_wakeup_fd(mouth)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(ears, selectors.EVENT_READ, lambda: os.read(ears, 512))
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        for stream in self._streams:
            self._selector.register(stream.pipe, selectors.EVENT_READ, lambda stream=stream: self._read(stream))
        is_over = False
        while not self._is_leaving:
            wait_s = min(max(0.01, self._guard.wake_at - steady_s()), LOOK_S)
            for key, _ in self._selector.select(wait_s):
                key.data()
            self._reap()
            if not is_over and self._driver.poll() is not None:
                is_over = True
                self._sweep()
                self._step(Ended())
            self._step(None)
            self._tell_news()
        self.close()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._driver.poll() is None:
            self._kill()
            self._driver.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _step(self, event: Event) -> None:
        for each in self._guard.step(steady_s(), event):
            self._does[each]()

    # -- the driver ----------------------------------------------------------------------------

    def _start(self) -> None:
        assert self._driver.stdin is not None
        with contextlib.suppress(OSError):
            self._driver.stdin.write(b"g")
            self._driver.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._driver.pid, number)

    def _terminate(self) -> None:
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._kill_others()

    def _kill_others(self) -> bool:
        """What left the driver's group, by its environment or by its descent; whether there was something."""
        own = os.getpid()
        return any([kill_all(self._claim, own), kill_below(own)])

    def _reap(self) -> None:
        """Let go of what the driver has left to its guardian and has ended. The driver is waited for elsewhere."""
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid == self._driver.pid:
                    return
                os.waitpid(ended.si_pid, 0)

    def _sweep(self) -> None:
        """End what the driver has left running, and take its last words."""
        until = steady_s() + GONE_S
        self._signal(signal.SIGKILL)
        while self._kill_others() and steady_s() < until:
            sleep(0.01)
        for stream in self._streams:
            while stream.pipe in self._selector.get_map() and steady_s() < until:
                before = len(stream.last), stream.left_out
                self._read(stream)
                if before == (len(stream.last), stream.left_out):
                    break

    def _read(self, stream: Stream) -> None:
        if not stream.read():
            self._selector.unregister(stream.pipe)

    # -- its masters ---------------------------------------------------------------------------

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        connection = Connection(link)
        self._selector.register(link, selectors.EVENT_READ, lambda: self._hear(connection))

    def _hear(self, connection: Connection) -> None:
        words = connection.read()
        for each in words or ():
            try:
                self._obey(connection, each)
            except (KeyError, TypeError, ValueError):
                words = None
        if words is None:
            self._drop(connection)

    def _obey(self, connection: Connection, words: dict[str, Any]) -> None:
        if connection.token is None:
            self._attach(connection, int(words["token"]), float(words["deadline"]))
        elif "order" in words:
            self._step(Ordered(connection.token, words["order"]))
        else:
            self._step(Extended(connection.token, float(words["deadline"])))

    def _attach(self, connection: Connection, token: int, deadline: float) -> None:
        done = self._guard.step(steady_s(), Attached(token, deadline))
        connection.tell(is_master=Do.WELCOME in done)
        if Do.WELCOME in done:
            if self._master is not None:
                self._master.tell(dismissed=True)
            connection.token, self._master = token, connection
        for each in done:
            if each in self._does:
                self._does[each]()

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.link)
        connection.link.close()
        if connection is self._master:
            self._master = None
        if connection.token is not None:
            self._step(Left(connection.token))

    def _tell_news(self) -> None:
        now = steady_s()
        if self._master is None:
            return
        self._master.flush()
        if now >= self._tell_at and any(stream.fresh for stream in self._streams):
            self._tell_at = now + pause_s(now - self._started_s)
            (out, out_cut), (err, err_cut) = (stream.take() for stream in self._streams)
            self._master.tell(out=out, err=err, left_out=out_cut + err_cut)

    def _tell_end(self) -> None:
        if self._master is not None:
            self._tell_at = 0.0
            self._tell_news()
            out, err = (bytes(stream.last).decode("utf-8", "replace") for stream in self._streams)
            self._master.tell(status=self._driver.returncode, out=out, err=err)

    def _leave(self) -> None:
        self._is_leaving = True


def main() -> None:
    """Guard the driver that is told of on standard input."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # what the driver leaves behind stays below its guardian
    guardian = Guardian(json.loads(sys.stdin.buffer.readline()))
    try:
        sys.stdout.write(json.dumps(guardian.words()) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        guardian.close()
    else:
        guardian.run()


if __name__ == "__main__":
    main()
