"""What a web server loads before it forks: clients made and used at the top of a module."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Any

import skuld_py
from skuld_py import AsyncClient, Client

CLIENT = Client(os.environ["SKULD_NODES"], timeout_s=20)
ASYNC_CLIENT = AsyncClient(os.environ["SKULD_NODES"], timeout_s=20)
CLIENT.enqueue("q", b"while loading")
skuld_py.using(CLIENT).__enter__()
loops: dict[int, asyncio.AbstractEventLoop] = {}


@skuld_py.task(name="prefork.note", queue="q")
def note(spark: Any, context: Any, text: str) -> None: ...


def awaited() -> object:
    """By the asynchronous client, in this process's loop."""
    loop = loops.setdefault(os.getpid(), asyncio.new_event_loop())
    return loop.run_until_complete(ASYNC_CLIENT.enqueue("q", b"x", key="k"))


VERBS: dict[str, Callable[[], object]] = {
    "/enqueue": lambda: CLIENT.enqueue("q", b"x", key="k"),
    "/send": lambda: note.send("x"),
    "/await": awaited,
}


def application(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
    """Enqueue by what the path names; tell the process and the task."""
    made = VERBS[environ["PATH_INFO"]]()
    start("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {made}".encode()]
