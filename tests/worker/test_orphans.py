"""An engine that a killed worker leaves behind ends with the worker's first lease, if it does not by itself."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

# A worker with an engine that does not obey, and a renewer that holds a claim of it; it ends without a word.
WORKER = """
import json, os, subprocess, sys, time
engine = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
engine.stdout.readline()
renewer = subprocess.Popen([sys.executable, "-m", "skuld_py.worker.renewer"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

def say(**words):
    renewer.stdin.write(json.dumps(words).encode() + b"\\n")
    renewer.stdin.flush()

def is_heard():
    say(beat=1.0)
    renewer.stdout.readline()

say(nodes=["127.0.0.1:1"], lease_s=600.0, stall_s=60.0)
is_heard()
deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + float(sys.argv[3])
say(engine=engine.pid)
say(hold=[["00" * 20, 1, "00"]], deadline=deadline)
is_heard()
print(engine.pid, renewer.pid, deadline, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
renewer.stdin.close()
renewer.wait()
print("the renewer has ended", engine.poll(), flush=True)
engine.kill()
"""
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


def play(end: str, lease_s: float) -> tuple[list[str], str]:
    """What a worker says that ends so."""
    played = subprocess.run([sys.executable, "-c", WORKER, DEAF, end, str(lease_s)], capture_output=True,
                            text=True, timeout=60, check=False)
    first, _, rest = played.stdout.partition("\n")
    return first.split(), rest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems say nothing of processes")
def test_the_engine_of_a_killed_worker_is_killed_when_its_first_lease_is_over() -> None:
    """It shares the pipe of the worker's errors, so that the worker is heard until it has ended, too."""
    (engine, renewer, deadline), _ = play("killed", 4.0)
    ended = time.clock_gettime(time.CLOCK_BOOTTIME)

    assert ended >= float(deadline), "until then it may end by itself"
    left = [psutil.Process(int(process)) for process in (engine, renewer) if psutil.pid_exists(int(process))]
    assert psutil.wait_procs(left, timeout=60)[1] == []


@pytest.mark.slow
def test_a_renewer_whose_worker_lives_leaves_the_engine_alone() -> None:
    assert play("closed", 60.0)[1] == "the renewer has ended None\n"
