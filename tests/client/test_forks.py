"""Clients made before a fork: each process has ids, a name and connections of its own. Real processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any

import pytest

import skuld_py
from client.doors import node_in_memory, scripted
from skuld_py import AsyncClient, Client, Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.worker import sending

LONG_S = 30
FORK = multiprocessing.get_context("fork")


@skuld_py.task(name="forks.note", queue="q")
def note(spark: Any, context: Any, text: str) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    with node_in_memory() as made:
        yield made


def in_children(count: int, work: Callable[[], Any]) -> list[Any]:
    """What the work gives in forked processes that run at the same time; an error is what it says."""
    def child(pipe: Pipe) -> None:
        try:
            pipe.send(work())
        except SkuldError as error:
            pipe.send(error.code)
    pipes, children = [], []
    for _ in range(count):
        mine, theirs = FORK.Pipe()
        process = FORK.Process(target=child, args=(theirs,))
        process.start()
        pipes.append(mine)
        children.append(process)
    try:
        for pipe in pipes:
            assert pipe.poll(LONG_S), "a child hangs"
        return [pipe.recv() for pipe in pipes]
    finally:
        for process in children:
            process.kill()
            process.join()


def nonces(made: list[bytes]) -> set[bytes]:
    return {task_id[12:16] for task_id in made}


def test_children_of_one_asynchronous_client_never_mint_the_same_id(address: str) -> None:
    client = AsyncClient(address)

    async def enqueue() -> list[bytes]:
        async with client:
            return await asyncio.gather(*(client.enqueue("q", b"x", key="k") for _ in range(50)))
    made = in_children(4, lambda: asyncio.run(enqueue()))

    every = [task_id for some in made for task_id in some]
    assert len({*every}) == 200 and len(nonces(every)) == 4
    with Client(address) as other:
        assert other.count("q") == 200


def test_an_asynchronous_client_in_use_goes_on_on_both_sides_of_a_fork(address: str) -> None:
    async def both() -> list[Any]:
        async with AsyncClient(address) as client:
            before = await client.enqueue("q", b"x")
            made = await asyncio.to_thread(in_children, 2, lambda: asyncio.run(_enqueued(client)))
            return [before, await client.enqueue("q", b"x"), *made]
    assert len(nonces(asyncio.run(both()))) == 3


def test_a_loop_that_a_child_has_forgotten_still_wakes_in_its_parent(address: str) -> None:
    """To close a loop is to take its descriptors from the parent's, which is the same in the kernel."""
    client, loops = AsyncClient(address), [asyncio.new_event_loop()]

    def forget() -> bytes:
        warnings.simplefilter("ignore")  # as errors they would keep a loop from being closed
        loops.clear()
        made = asyncio.run(_enqueued(client))
        gc.collect()
        return made

    async def end() -> bool:
        woken = asyncio.create_task(asyncio.to_thread(time.sleep, 0.1))
        began = time.monotonic()
        await asyncio.wait([woken], timeout=LONG_S)
        await client.close()
        return time.monotonic() - began < LONG_S - 1
    try:
        before = loops[0].run_until_complete(client.enqueue("q", b"x"))
        made, = in_children(1, forget)
        assert nonces([made]) != nonces([before])
        assert loops[0].run_until_complete(end()), "what another thread has for a loop wakes it"
    finally:
        loops[0].close()


async def _enqueued(client: AsyncClient) -> bytes:
    made = await client.enqueue("q", b"x")
    await client.close()
    return made


def test_a_client_in_use_goes_on_on_both_sides_of_a_fork(address: str) -> None:
    with Client(address, timeout_s=10) as client:
        before = client.enqueue("q", b"x", key="k")
        made = in_children(3, lambda: [client.enqueue("q", b"x", key="k") for _ in range(20)])
        after = client.enqueue("q", b"x", key="k")

        every = [before, after, *(task_id for some in made for task_id in some)]
        assert len({*every}) == client.count("q") == 62
        assert len(nonces(every)) == 4


def test_a_client_that_is_used_after_a_fork_ends_in_time() -> None:
    with scripted(lambda *_: None) as deaf, Client(deaf.address, timeout_s=0.5) as client:
        with pytest.raises(SkuldError):
            client.count("q")
        assert in_children(1, lambda: client.count("q")) == ["deadline"]
        assert len(deaf.asked) >= 2


def test_claims_of_children_have_a_name_of_their_own_unless_one_was_given(address: str) -> None:
    with Client(address) as client, Client(address, holder="us") as named:
        held = in_children(2, lambda: (os.getpid(), client.holder, named.holder))

        assert all(holder == client.holder.rpartition(":")[0] + f":{pid}" for pid, holder, _ in held)
        assert {given for *_, given in held} == {"us"}


def test_a_fork_while_a_thread_is_in_a_call_and_another_holds_the_locks(address: str) -> None:
    with scripted(lambda *_: None) as deaf, Client(deaf.address, timeout_s=20) as client:
        def fail() -> None:
            with pytest.raises(SkuldError):
                client.enqueue("q", b"x")
        stuck = threading.Thread(target=fail)
        stuck.start()
        while not deaf.asked:
            pass
        client._addresses = [address]
        is_held, is_over = threading.Event(), threading.Event()

        def hold() -> None:
            with client._connection._lock, client._lanes_lock, client._minter._lock:
                is_held.set()
                is_over.wait(LONG_S)
        holder = threading.Thread(target=hold)
        holder.start()
        assert is_held.wait(LONG_S)
        try:
            made, = in_children(1, lambda: [client.enqueue("q", b"x"), note.send_with(client=client)("x")])
        finally:
            is_over.set()
        assert len({*made}) == 2
        holder.join()
        client.close()
        stuck.join()


def test_what_sends_by_a_client_in_use_or_by_the_process_s_own_sends_in_children_too(
        address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKULD_NODES", address)
    monkeypatch.setattr(sending, "_own", [])
    own = [note.send("a"), *in_children(2, lambda: note.send("b"))]
    with Client(address) as client, skuld_py.using(client):
        used = [note.send("a"), *in_children(2, lambda: note.send("b"))]
        assert client.count("q") == 6
    sending._own[0].close()  # type: ignore[attr-defined]

    assert len(nonces(own + used)) == 6


def test_a_client_that_was_closed_is_closed_in_children_too(address: str) -> None:
    client = Client(address)
    client.enqueue("q", b"x")
    client.close()

    assert in_children(1, lambda: client.count("q")) == ["closed"]
    with pytest.raises(Refused):
        client.count("q")


def test_an_asynchronous_client_that_was_closed_is_closed_in_children_too(address: str) -> None:
    async def close() -> AsyncClient:
        async with AsyncClient(address) as made:
            await made.enqueue("q", b"x")
        return made
    client = asyncio.run(close())

    assert in_children(1, lambda: asyncio.run(client.count("q"))) == ["closed"]


def test_a_call_that_a_fork_copies_ends_in_the_child_as_closed_whoever_held_its_locks(address: str) -> None:
    """A signal's handler forks in the midst of a call, while another thread has the lock of the sockets."""
    read, write = os.pipe()
    parent = os.getpid()
    made: list[int] = []
    with Client(address, timeout_s=LONG_S) as client:
        client.enqueue("q", b"x")
        lock = client._connection._lock

        def fork(*_: object) -> None:
            is_held, is_over = threading.Event(), threading.Event()

            def hold() -> None:
                with lock:
                    is_held.set()
                    is_over.wait(LONG_S)
            holder = threading.Thread(target=hold)
            holder.start()
            assert is_held.wait(LONG_S)
            made.append(os.fork())
            is_over.set()
        before = signal.signal(signal.SIGALRM, fork)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        code = ""
        try:
            client.claim("none", wait_s=1)
        except SkuldError as error:
            code = error.code
        finally:
            if os.getpid() != parent:
                os.write(write, code.encode() or b"none")
                os._exit(0)
            signal.signal(signal.SIGALRM, before)
        is_said = select.select([read], [], [], LONG_S)[0]
        os.kill(made[0], signal.SIGKILL)
        os.waitpid(made[0], 0)

        assert code == "" and is_said and os.read(read, 10) == b"closed"
        os.close(read)
        os.close(write)


def test_a_worker_pool_of_forked_processes_shares_a_client_of_its_parent(address: str) -> None:
    with Client(address) as client:
        client.enqueue("q", b"parent")
        _shared.append(client)
        try:
            with FORK.Pool(4, maxtasksperchild=5) as pool:
                made = pool.map_async(_enqueue, range(100), chunksize=1).get(LONG_S)
        finally:
            _shared.clear()
        assert len({*made}) == 100 and client.count("q") == 101


def test_a_task_that_runs_out_of_its_soft_time_limit_leaves_the_pool_s_client_well(address: str) -> None:
    with Client(address, timeout_s=LONG_S) as client:
        client.enqueue("q", b"parent")
        _shared.append(client)
        try:
            with FORK.Pool(2) as pool:
                made = pool.map_async(_enqueue_after_a_limit, range(10), chunksize=1).get(LONG_S)
        finally:
            _shared.clear()
        assert len({*made}) == 10 and client.count("q") == 11


class SoftLimit(Exception):
    """Raised in a task by the handler of a signal."""


def _enqueue_after_a_limit(number: int) -> bytes:
    def over(*_: object) -> None:
        raise SoftLimit
    signal.signal(signal.SIGALRM, over)
    with pytest.raises(SoftLimit):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        _shared[0].claim("none", wait_s=LONG_S)
    return _enqueue(number)


_shared: list[Client] = []


def _enqueue(number: int) -> bytes:
    return bytes(_shared[0].enqueue("q", str(number).encode(), key="k"))


def test_a_request_s_answer_goes_to_the_process_that_asked() -> None:
    with scripted(lambda *_: m.Acked(0, 2)) as door, Client(door.address) as client:
        client.enqueue("q", b"x")
        in_children(3, lambda: [client.enqueue("q", b"x") for _ in range(10)])

        assert len(door.asked) == 31
