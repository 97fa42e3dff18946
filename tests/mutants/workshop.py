"""Where mutants are tried: copies of the tree, and the programs that run in them.

Every program is a process group of its own with a deadline, so that a mutant that spins, or an impatient
person, ends all of it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

TOP = Path(__file__).resolve().parents[2]
COPIED = ("skuld_py", "tests", "pyproject.toml", "setup.cfg")
PASSED, USAGE, NO_TESTS = 0, 4, 5
_SEED = re.compile(r"^seed (\d+): FAILED", re.MULTILINE)
_AFTER = re.compile(r"^FAILED after (\d+) schedules\nscript (.+): FAILED$", re.MULTILINE)
_VIOLATED = re.compile(r"^VIOLATED: (\w+)", re.MULTILINE)


class Broken(Exception):
    """The campaign itself does not work; nothing it says counts."""


@attrs.frozen
class Catch:
    """What noticed: a test, or the rules that a seed saw broken. ``by`` is empty when nothing did."""

    by: tuple[str, ...] = ()
    seed: int | None = None
    is_stuck: bool = False
    script: str = ""
    schedules: int = 0
    """The schedule of the small world that noticed, and the how-manieth it was."""


class Workshop:
    """Runs programs in copies of the tree; ``close`` ends those that run."""

    def __init__(self, top: Path = TOP, timeout_s: float = 900) -> None:
        self._top = top
        self._timeout_s = timeout_s
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """A copy of the tree, gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            scratch = Path(folder)
            for name in COPIED:
                source = self._top / name
                if source.is_dir():
                    shutil.copytree(source, scratch / name, ignore=shutil.ignore_patterns("__pycache__"))
                elif source.exists():
                    shutil.copy(source, scratch / name)
            yield scratch

    def test(self, scratch: Path, names: tuple[str, ...], runner: str = "pytest") -> Catch:
        """Whether these tests notice. Raises ``Broken`` when there are none."""
        options = ["-q", "-x", "-p", "no:cacheprovider", "--no-header"] if runner == "pytest" else []
        code, out = self._run(scratch, ["-m", runner, *options, *names])
        if code is None:
            return Catch(is_stuck=True)
        if code in (USAGE, NO_TESTS):
            raise Broken(f"{runner} {' '.join(names)} found no test to run:\n{out[-2_000:]}")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)
        return Catch(tuple(name.split("::", 1)[-1] for name in failed[:1]) or ("does not run",) if code else ())

    def simulate(self, scratch: Path, first: int, seeds: int, options: tuple[str, ...]) -> Catch:
        """The first of these seeds that notices. Raises ``Broken`` when the simulator does not run."""
        words = ["--first", str(first), "--seeds", str(seeds), "--jobs", "1", *options]
        code, out = self._run(scratch, ["-m", "skuld_py.simulation", *words])
        if code is None:
            return Catch(is_stuck=True)
        seed = _SEED.search(out)
        if code == PASSED:
            return Catch()
        if seed is None:
            raise Broken(f"the simulator ended with {code}:\n{out[-2_000:]}")
        return Catch(tuple(dict.fromkeys(_VIOLATED.findall(out))), int(seed[1]))

    def explore(self, scratch: Path, words: tuple[str, ...]) -> Catch:
        """The first schedule of the small world that notices. Raises ``Broken`` when that does not run."""
        code, out = self._run(scratch, ["-m", "skuld_py.simulation", "--small", *words, "--jobs", "1"])
        found = _AFTER.search(out)
        if code == PASSED or code is None:
            return Catch(is_stuck=code is None)
        if found is None:
            raise Broken(f"the small world ended with {code}:\n{out[-2_000:]}")
        return Catch(tuple(dict.fromkeys(_VIOLATED.findall(out))), script=found[2], schedules=int(found[1]))

    def _run(self, scratch: Path, words: list[str]) -> tuple[int | None, str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(scratch), str(scratch / "tests")]),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        with self._lock:
            if self._is_closed:
                raise Broken("the campaign was stopped")
            process = subprocess.Popen([sys.executable, *words], cwd=scratch, env=environment, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            self._running[process.pid] = process
        try:
            out, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            return None, ""
        finally:
            with self._lock:
                del self._running[process.pid]
        return process.returncode, out

    def close(self) -> None:
        """End every program that still runs, and start none."""
        with self._lock:
            self._is_closed = True
            for process in self._running.values():
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
