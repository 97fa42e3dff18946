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


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run the block until it ends or a signal comes; either is a normal end."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) == 1:
            raise _Stop

    before = {number: signal.signal(number, hear) for number in _SIGNALS}
    try:
        yield
    except _Stop:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(look: Callable[[], bool], every_s: float = 0.2) -> None:
    """Look again and again, for as long as there is something to look at."""
    while look():
        time.sleep(every_s)
