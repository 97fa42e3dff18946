"""A run from outside: its machines, a process on the one of the clients, and what came of it.

The process is put there with ``ip netns exec``, which also gives it mounts of its own: those of its nodes' disks,
and their loop devices, vanish with its last program, however it ends.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import attrs

from faults import inside
from faults.world import Scenario
from machines.machine import site
from skuld_py.embedded import python

TESTS = str(Path(__file__).resolve().parents[1])
TIME_S = 420.0
"""A run that takes longer is ended, and has failed; it has three times as long as it was told to go on besides."""
GRACE_S = 30.0
DISKS = ("mount", "mkfs.ext4")
"""Programs that a run needs whose nodes have disks of their own."""
HEAD = (f"{'scenario':<17} {'result':<9} {'seconds':>7} {'acks':>7} {'in faults':>9} {'claims':>7}"
        f" {'elections':>9} {'in faults':>9} {'p99 ms':>7} {'settled':>8} {'violations':>10}")


@attrs.frozen
class Result:
    """What came of a run; ``evidence``: where its files are, if they were kept."""

    scenario: Scenario
    verdict: dict[str, Any]
    seconds: float
    evidence: Path | None

    @property
    def word(self) -> str:
        """Whether it passed."""
        return "VIOLATED" if self.verdict["violated"] else ("VACUOUS" if self.verdict["vacuous"] else "ok")

    @property
    def line(self) -> str:
        """All in one line, below ``HEAD``."""
        def number(name: str) -> str:
            return str(self.verdict.get(name, "-"))
        return (f"{self.scenario.name:<17} {self.word:<9} {self.seconds:>7.0f} {number('acks'):>7}"
                f" {number('acks_in_faults'):>9} {number('claims'):>7} {number('elections'):>9}"
                f" {number('elections_in_faults'):>9} {number('p99_ms'):>7} {number('settled_ms'):>8}"
                f" {len(self.verdict['violated']):>10}")

    @property
    def story(self) -> Iterator[str]:
        """All that there is to say."""
        yield self.line
        for overlap in self.verdict["overlaps"]:
            yield (f"    {overlap['fault']}: {overlap['seconds']:.1f} s, {overlap['acks']} acks,"
                   f" {overlap['elections']} elections")
        for rule, lines in self.verdict["violated"].items():
            yield f"    VIOLATED: {rule}"
            yield from (f"      {line[:400]}" for line in lines)
        yield from (f"    VACUOUS: {line}" for line in self.verdict["vacuous"])
        if self.evidence is not None:
            yield f"    evidence: {self.evidence}"


def programs(scenario: Scenario) -> tuple[str, ...]:
    """What it takes besides what every site does."""
    return (*scenario.programs, *(DISKS if scenario.shape.has_disks else ()))


def run(scenario: Scenario, keep: Path, say: Callable[[str], None], seed: int = 1, seconds: float = 0.0) -> Result:
    """Play a scenario, and tell what came of it; its files stay below ``keep`` when it has not passed."""
    directory = Path(tempfile.mkdtemp(prefix=f"{scenario.name}-", dir=keep))
    started, most_s = time.monotonic(), TIME_S + 3 * seconds
    with site(scenario.shape.machines) as machines:
        client = machines["client"]
        words = ["ip", "netns", "exec", client.namespace, sys.executable, "-m", "faults.inside", scenario.name,
                 str(directory), client.site, str(seed), str(seconds)]
        made = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=python.environment(TESTS))
        follower = threading.Thread(target=_follow, args=(made.stdout, directory / "run.log", say))
        follower.start()
        try:
            made.wait(most_s)
        except subprocess.TimeoutExpired:
            say(f"{scenario.name} takes longer than {most_s:.0f} s and is ended")
        finally:
            _end(made)
            follower.join()
            if made.returncode == inside.INTERRUPTED:
                shutil.rmtree(directory)
    verdict = _verdict(directory, made.returncode)
    is_kept = bool(verdict["violated"] or verdict["vacuous"])
    if not is_kept:
        shutil.rmtree(directory)
    return Result(scenario, verdict, time.monotonic() - started, directory if is_kept else None)


def _end(made: subprocess.Popen[str]) -> None:
    """Let it take down what it started; the kernel does that when it cannot."""
    if made.poll() is None:
        made.send_signal(signal.SIGTERM)
        try:
            made.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            made.kill()
    made.wait()


def _follow(output: IO[str] | None, log: Path, say: Callable[[str], None]) -> None:
    assert output is not None
    with output, log.open("w") as copy:
        for line in output:
            copy.write(line)
            copy.flush()
            say(line.rstrip())


def _verdict(directory: Path, status: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
        return found
    except (OSError, ValueError):
        words = f"it ended with status {status} and gave no verdict; see {directory}/run.log"
        return {"violated": {"the run itself works": [words]}, "vacuous": [], "overlaps": []}
