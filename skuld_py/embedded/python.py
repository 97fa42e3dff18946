"""Child processes that run this Python and find this package, wherever it was started from.

A checkout that was never installed is importable only from the directory in which the parent was started. A child
that is started elsewhere, or by Spark, would not find the package; so its place goes into PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def module_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command line of ``python -m MODULE ARGUMENTS`` with this interpreter."""
    return [sys.executable, "-m", module, *arguments]


def search_path(*first: str) -> str:
    """PYTHONPATH for a child: these directories, this package's, and what was there before."""
    package = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(entry for entry in (*first, package, *before) if entry))


def environment(*first: str) -> dict[str, str]:
    """This process's environment with that PYTHONPATH; output of the child is not held back."""
    return {**os.environ, "PYTHONPATH": search_path(*first), "PYTHONUNBUFFERED": "1"}
