"""Clients at work on a machine of their own, until a line comes in; then everything is drained and judged.

    python -m machines.client ADDRESS...

Each line it says is JSON with ``at``, the time by a clock that all machines share: first that work has begun, then
each change of who leads, and last what was judged. A violation ends it with a traceback.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from skuld_py import Client, SkuldError
from system.load import at_work

LOOK_S = 0.1


def say(what: str, **facts: Any) -> None:
    """A line."""
    print(json.dumps({"at": time.monotonic(), "what": what, **facts}), flush=True)


def watch(addresses: list[str], is_over: threading.Event) -> None:
    """Say whenever other nodes lead than before."""
    last: list[str] = []
    with Client(addresses, timeout_s=1) as client:
        while not is_over.wait(LOOK_S):
            try:
                leaders = [row.leader for row in client.status().partitions]
            except SkuldError:
                continue
            if leaders != last:
                say("leaders", leaders=leaders)
                last = leaders


def main(addresses: list[str]) -> None:
    """Work, and be judged."""
    is_over = threading.Event()
    watching = threading.Thread(target=watch, args=(addresses, is_over))
    with at_work(addresses) as (load, _):
        watching.start()
        say("at work")
        sys.stdin.readline()
        is_over.set()
        watching.join()
    say("judged", acked=len(load.acked), held=len(load.holds), errors=len(load.errors))


if __name__ == "__main__":
    main(sys.argv[1:])
