"""A clock that is wrong on purpose: for fault tests of real processes, and for nothing else.

Two environment variables together make a node read its time through here: ``SKULD_WRONG_TIME_FILE`` names
a file such as ``{"offset_ms": -300, "rate_ppm": 500}``, and ``SKULD_WRONG_TIME_ALLOWED`` must say
``this is a fault test``. One without the other is refused, so neither a forgotten variable nor a mistyped
one moves a clock that leases rest on; and a node that runs so says it in its log.

What is wrong is the machine's time, not the node's ``Clock``: ``offset_ms`` is added to the wall clock,
``rate_ppm`` speeds up the steady one from the first look after the file says so. So what is tested includes how
the node copes with wrong sources, say by not hearing a step. The file is looked at each time; a file that cannot
be read ends the node, for a fault test that tests nothing must not pass.

Rejected: libfaketime (it fakes for kazoo and libzmq too, and makes sleeps fail or last for ever); setting
the machine's clock (all nodes on it share it).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from skuld_py.errors import Refused
from skuld_py.runtime.clock import MachineTime, TimeSource

FILE, ALLOWED = "SKULD_WRONG_TIME_FILE", "SKULD_WRONG_TIME_ALLOWED"
YES = "this is a fault test"

_log = logging.getLogger(__name__)


class WrongTime:
    """Time as ``file`` distorts that of ``truth``; the file may change at any moment."""

    def __init__(self, file: Path, truth: TimeSource) -> None:
        self._file = file
        self._truth = truth
        self._read_at: tuple[int, int] | None = None
        self._offset_ns = 0
        self._rate_ppm = 0
        self._anchor_ns = self._steady_ns = truth.steady_ns()
        self._look()

    def wall_ns(self) -> int:
        """The wall clock, and the offset."""
        self._look()
        return self._truth.wall_ns() + self._offset_ns

    def steady_ns(self) -> int:
        """A clock that runs at the wrong rate, and goes on from where it was when the rate changes."""
        self._look()
        passed_ns = self._truth.steady_ns() - self._anchor_ns
        return self._steady_ns + passed_ns + passed_ns * self._rate_ppm // 1_000_000

    def _look(self) -> None:
        stat = self._file.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino)
        if stamp == self._read_at:
            return
        wrong = json.loads(self._file.read_text())
        now_ns = self._truth.steady_ns()
        passed_ns = now_ns - self._anchor_ns
        self._steady_ns += passed_ns + passed_ns * self._rate_ppm // 1_000_000
        self._anchor_ns, self._read_at = now_ns, stamp
        self._offset_ns, self._rate_ppm = int(wrong["offset_ms"]) * 1_000_000, int(wrong["rate_ppm"])
        _log.warning("FAULT TEST: this node's time is wrong on purpose, as %s says: %s", self._file, wrong)


def time_source(environment: Mapping[str, str]) -> TimeSource:
    """The machine's time, or the wrong one when both variables ask for it; ``Refused`` when one does."""
    file, allowed = environment.get(FILE), environment.get(ALLOWED)
    if file is None and allowed is None:
        return MachineTime()
    if not file or allowed != YES:
        raise Refused("wrong_time", f"{FILE} and {ALLOWED} make a node's clock wrong on purpose, for fault"
                      f" tests, and only together, the latter as {YES!r}; unset both", file=file or "")
    return WrongTime(Path(file), MachineTime())
