"""The oldest PySpark that is taken runs the demo; the newest one runs all other tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from skuld_py.worker.spark_jvm import NEWEST, OLDEST

TOP = Path(__file__).resolve().parents[2]


def test_the_environment_of_the_tests_has_the_newest_one() -> None:
    assert version("pyspark").startswith(f"{NEWEST[0]}.{NEWEST[1]}.")


@pytest.mark.slow
@pytest.mark.in_turn("installs")
@pytest.mark.spark
@pytest.mark.timeout(3_600)
def test_the_oldest_one_runs_the_demo() -> None:
    release = f"{OLDEST[0]}.{OLDEST[1]}.0"

    ran = subprocess.run([sys.executable, str(TOP / "bench" / "bench_installs.py"), "--spark", release],
                         capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    assert f"the demo with PySpark {release}" in ran.stdout
