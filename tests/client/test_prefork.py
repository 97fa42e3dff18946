"""Clients of a web server that loads its program and forks then: gunicorn, as it is run in production."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from client.doors import node_in_memory
from skuld_py import Client
from skuld_py.embedded import process

TESTS = Path(__file__).parents[1]
WORKERS = 3


@contextmanager
def gunicorn(nodes: str) -> Iterator[str]:
    """A server of three workers that were forked from what had been loaded; gives its address."""
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", str(WORKERS), "--timeout", "60",
               "--no-control-socket", "--bind", "127.0.0.1:0", "client.prefork_app:application"]
    environment = {**os.environ, "SKULD_NODES": nodes, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert server.stderr is not None
    said: list[str] = []
    try:
        for line in server.stderr:
            said.append(line)
            if found := re.search(r"Listening at: (http://\S+)", line):
                yield found.group(1)
                return
        raise AssertionError("".join(said))
    finally:
        process.stop(server, grace_s=5)
        server.stderr.close()


def test_workers_forked_from_a_loaded_program_lose_no_task_and_never_mint_the_same_id() -> None:
    with node_in_memory() as nodes, gunicorn(nodes) as address, ThreadPoolExecutor(12) as threads:
        def ask(verb: str) -> list[str]:
            with urllib.request.urlopen(f"{address}/{verb}", timeout=60) as answer:
                text: bytes = answer.read()
            return text.decode().split()
        answers = [*threads.map(ask, ["enqueue", "send", "await"] * 60)]

        by_process: dict[str, set[str]] = defaultdict(set)
        for number, made in answers:
            by_process[number].add(made)
        with Client(nodes) as client:
            stored = {str(task.id) for task in client.list("q")}
    assert len(by_process) == WORKERS
    assert sum(map(len, by_process.values())) == len(answers) == len(set.union(*by_process.values()))
    assert len(stored) == len(answers) + 1 and set.union(*by_process.values()) < stored
