"""Child processes that end with their owner, and directories that one owner holds at a time.

Invariants:

* On Linux a tied child dies when this process dies, however it dies (``kill -9`` included): the kernel sends
  the signal, so nothing here has to survive to send it. Elsewhere the tie is an exit handler, a best effort.
* A child never reads the terminal, never shares our process group (so Ctrl-C reaches only us) and writes
  both of its output streams to one log file.

How the tie is made, and what was not chosen:

* The parent-death signal must be set between fork and exec. A ``preexec_fn`` would run Python in a forked
  copy of a threaded process, where any lock may be held for ever. ``setpriv`` does not exist everywhere. So
  the child first runs a tiny isolated interpreter (about 20 ms) that sets the signal, checks that its parent
  is still there and then executes the real program under the same process id.
* The kernel's "parent" is the *thread* that forked, not the process. A child started by a short-lived thread
  would be killed when that thread returns, so every tied child is forked by one thread that never ends.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from skuld_py.errors import Refused

_PR_SET_PDEATHSIG = 1

# argv: the forking process's id, the signal, the program and its arguments. Signals that the interpreter
# ignores for itself are given back first, because an ignored signal stays ignored across exec.
_TIE_THEN_EXECUTE = f"""
import os, signal, sys
parent, death_signal, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
try:
    import ctypes
    ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, death_signal, 0, 0, 0)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != parent:
    os._exit(1)
for name in ("SIGPIPE", "SIGXFSZ"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execv(program[0], program)
"""


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    tie_to_parent: bool = True,
    stdin: int | None = None,
    working_directory: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    umask: int = -1,
) -> subprocess.Popen[bytes]:
    """Start ``command`` with both outputs appended to ``log``; its process id is the program's own.

    ``death_signal`` is what a tied child receives when we die: SIGTERM for one that has something to clean
    up, SIGKILL (which also ends a stopped process) for one that has not. ``umask``: its own; -1 for ours.
    """
    program = shutil.which(command[0])
    if program is None:
        raise Refused("no_program", f"cannot run {command[0]}: no such executable file", program=command[0])
    arguments = [os.path.abspath(program), *command[1:]]
    can_tie = tie_to_parent and sys.platform == "linux" and bool(sys.executable)
    if can_tie:
        tie = [sys.executable, "-I", "-S", "-c", _TIE_THEN_EXECUTE, str(os.getpid()), str(int(death_signal))]
        arguments = tie + arguments

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=working_directory,
                start_new_session=True,
                umask=umask,
            )

    process = _in_lasting_thread(start) if can_tie else start()
    if tie_to_parent and not can_tie:
        atexit.register(stop, process, 0)
    return process


def stop(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """Ask the process to end, then make it; returns its exit status. A paused process is woken to hear us."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is None and grace_s > 0:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    if process.poll() is None:
        process.kill()
    return process.wait()


def standing(directory: Path | None, what: str = "Java") -> Path:
    """The directory to start a program in: this one, or else the current one; ``Refused`` when it was deleted, as
    that is why ``what`` cannot start."""
    try:
        place, whose = (Path.cwd(), "") if directory is None else (directory, f", {directory},")
        is_there = place.is_dir()
    except FileNotFoundError:
        whose, is_there = "", False
    if not is_there:
        raise Refused("no_directory", f"the directory in which this program was started{whose} was deleted, so"
                      f" {what} cannot start there: start this program again, in a directory that stays",
                      directory=str(directory or ""))
    return place


def tail(log: Path, lines: int = 15, start: int = 0) -> str:
    """The last lines of a log from a byte on, for an error message; empty when there is no log."""
    with contextlib.suppress(OSError), log.open("rb") as stream:
        stream.seek(max(start, stream.seek(0, os.SEEK_END) - 16_384))
        return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-lines:])
    return ""


_held: set[Path] = set()
_held_lock = threading.Lock()


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold ``directory`` (created at need, private to this user) against any other owner, in any process.

    A record lock and not ``flock``: a child forked by a task inherits the latter and would keep the directory
    locked after our death. Record locks do not exclude within one process, so a set does that.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = directory.resolve()
    refusal = Refused(
        "directory_in_use",
        f"{directory} is in use by another process; give this one its own directory or stop the other",
        directory=str(directory),
    )
    with _held_lock:
        if place in _held:
            raise refusal
        _held.add(place)
    try:
        with (place / "lock").open("ab") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise refusal from error
            yield
    finally:
        with _held_lock:
            _held.discard(place)


_Start = tuple[Callable[[], "subprocess.Popen[bytes]"], "Future[subprocess.Popen[bytes]]"]
_starts: queue.SimpleQueue[_Start] | None = None
_starts_lock = threading.Lock()


def _in_lasting_thread(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Run ``start`` in the one thread whose end is the end of this process."""
    global _starts  # noqa: PLW0603 - one per process, made on first use and again after a fork
    with _starts_lock:
        if _starts is None:
            _starts = queue.SimpleQueue()
            threading.Thread(target=_serve_starts, args=(_starts,), name="spawner", daemon=True).start()
    answer: Future[subprocess.Popen[bytes]] = Future()
    _starts.put((start, answer))
    return answer.result()


def _serve_starts(starts: queue.SimpleQueue[_Start]) -> None:
    while True:
        start, answer = starts.get()
        try:
            answer.set_result(start())
        except BaseException as error:
            answer.set_exception(error)


def _forget_after_fork() -> None:
    """A forked child has no spawner thread, and may have copied the locks while they were held."""
    global _starts, _starts_lock, _held_lock
    _starts, _starts_lock, _held_lock = None, threading.Lock(), threading.Lock()
    _held.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
