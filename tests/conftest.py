"""What holds for every test, wherever the run was started from.

A shell starts what it puts into the background with SIGINT ignored, and so does many a build server; Python leaves
it at that, and so do all processes that it starts. Tests that interrupt would wait for ever.
"""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let Ctrl-C be heard, here and in all processes that the tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
