"""Clients that nobody closes: the process that drops them goes on. In a process of its own, for a context of
ZeroMQ's that waits for its sockets cannot be interrupted."""

from __future__ import annotations

import subprocess
import sys

BLOCKING = """
def drop():
    client = Client("127.0.0.1:1", timeout_s=0.05)
    with suppress(SkuldError):
        client.count()
    return weakref.ref(client)
"""
AWAITED = """
async def ask(client):
    with suppress(SkuldError):
        await client.count()

def drop():
    client = AsyncClient("127.0.0.1:1", timeout_s=0.05)
    client.circle = client
    asyncio.run(ask(client))
    return weakref.ref(client)
"""
PROGRAM = """
import asyncio, gc, os, weakref
from contextlib import suppress
from skuld_py import AsyncClient, Client, SkuldError
{drop}
gc.disable()
drop()
gc.collect()
before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
was = drop()
gc.collect()
after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
print("collected", was() is None, after - before)
"""


def printed(drop: str) -> str:
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(drop=drop)], capture_output=True, text=True,
                         timeout=30, check=False)
    return ran.stdout + ran.stderr


def test_a_client_that_is_dropped_is_collected_with_all_that_it_had_open() -> None:
    assert printed(BLOCKING) == "collected True 0\n"


def test_so_is_one_for_asyncio_when_its_loop_is_over() -> None:
    assert printed(AWAITED) == "collected True 0\n"
