"""A seed is a run: the same in every process, whatever order its interpreter gives to sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from skuld_py.simulation.campaign import run

TOP = Path(__file__).resolve().parents[2]
SEEDS = (2, 3, 20, 30)
PROGRAM = """
import sys
from skuld_py.simulation.campaign import run
for seed in map(int, sys.argv[1:]):
    verdict = run(seed, seconds=8)
    print(seed, verdict.trace_hash, sorted(verdict.stats.items()))
"""


def story(hash_seed: str) -> str:
    """What another interpreter says of the seeds."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TOP)}
    return subprocess.run([sys.executable, "-c", PROGRAM, *map(str, SEEDS)], env=environment, check=True,
                          capture_output=True, text=True, timeout=120).stdout


def test_a_seed_gives_the_same_run_under_every_hash_seed() -> None:
    one, other = story("1"), story("4242")

    assert len(one.splitlines()) == len(SEEDS)
    assert one == other


def test_a_seed_gives_the_same_run_twice_and_another_seed_another() -> None:
    first, again, other = run(7, seconds=3), run(7, seconds=3), run(8, seconds=3)

    assert first.trace_hash == again.trace_hash
    assert first.stats == again.stats
    assert first.trace_hash != other.trace_hash
