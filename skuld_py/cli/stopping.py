"""How a program that runs until Ctrl-C ends: SIGINT and SIGTERM alike, once, and then undisturbed.

The first signal is raised as an exception where the program stands, so it also ends a start that is still
waiting for something. A second one is not heard: Ctrl-C held down must not break the cleaning up that the
first one began. Rejected: a flag that is looked at now and then, which a blocking start never looks at.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Stop(BaseException):
    """The first signal."""


class Stopping:
    """Whether a signal has come, and whether it is raised where the program stands.

    Drawing on a terminal must not be cut short: the terminal would be left in an unknown state. So a program may
    take a shield, and listen only where it waits.
    """

    def __init__(self) -> None:
        self._heard = 0
        self._is_shielded = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        self._heard += 1
        if self._heard == 1 and not self._is_shielded:
            raise _Stop

    def shield(self) -> None:
        """From now on raise nothing, except within ``listening``."""
        self._is_shielded = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Raise a signal that comes within the block, or has come before it."""
        try:
            self._is_shielded = False
            if self._heard:
                raise _Stop
            yield
        finally:
            self._is_shielded = True


@contextmanager
def until_stopped() -> Iterator[Stopping]:
    """Run the block until it ends or a signal comes; either is a normal end."""
    stopping = Stopping()
    before = {number: signal.signal(number, stopping.hear) for number in _SIGNALS}
    try:
        yield stopping
    except _Stop:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def hangups_noted() -> Iterator[Callable[[], bool]]:
    """Outlive SIGHUP until something else hears it; the block is given whether one has come so far. For a program
    that is told by it to read something again, and might be told while it starts."""
    noted: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, frame: noted.append(number))
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGHUP, before)


def watch(look: Callable[[], bool], every_s: float = 0.2) -> None:
    """Look again and again, for as long as there is something to look at."""
    while look():
        time.sleep(every_s)
