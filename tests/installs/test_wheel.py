"""The wheel, as users get it: installed where nothing else is, with each Python that it says it runs on.

What is done in the environments stands in ``bench/bench_installs.py``, which also measures them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PROBE = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
ROWS = [("3.11", "plain"), ("3.12", "plain"), ("3.13", "node,gateway")]
SIZE_MB_MAX = 35


def python_of(version: str) -> str | None:
    """A Python of this version that can make virtualenvs, wherever people keep several."""
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [sys.executable, shutil.which(f"python{version}"),
                  *map(str, sorted(kept.glob(f"{version}.*/bin/python"), reverse=True))]
    for candidate in filter(None, candidates):
        said = subprocess.run([candidate, "-c", PROBE], capture_output=True, text=True, check=False)
        if said.stdout.strip() == version:
            return candidate
    return None


@pytest.mark.slow
@pytest.mark.in_turn("installs")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("version", "extra"), ROWS, ids=[version for version, _ in ROWS])
def test_the_wheel_does_what_it_is_for_in_an_empty_environment(version: str, extra: str) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"NOT TRIED on Python {version}: this machine has none that can make virtualenvs")
    ran = subprocess.run([sys.executable, str(TOP / "bench" / "bench_installs.py"), "--only", extra, "--python",
                          python, "--imports", "0", "--json"], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["extra"] == extra and found["python"].startswith(version)
    assert found["mb"] <= SIZE_MB_MAX or extra != "plain"
    assert "pyspark" not in found["packages"]
