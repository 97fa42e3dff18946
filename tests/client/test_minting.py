"""Ids of clients whose clock was wrong for a while: what no node takes binds nobody once the clock is right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import skuld_py
from client.doors import node_in_memory
from skuld_py import AsyncClient, Client, Refused
from skuld_py.client.asking import Blocking
from skuld_py.client.minting import AHEAD_MS, Minter
from skuld_py.client.steady import wall_ms
from skuld_py.model.ids import time_of
from skuld_py.testing import AsyncMemoryClient, MemoryClient

HOUR_MS = 3_600_000
NOW_MS = 1_900_000_000_000


class Wall:
    """A clock that may be set at any moment."""

    def __init__(self, truth: Callable[[], int]) -> None:
        self._truth = truth
        self.ahead_ms = 0

    def __call__(self) -> int:
        return self._truth() + self.ahead_ms


@skuld_py.task(name="minting.note", queue="q")
def note(spark: Any, context: Any) -> None: ...


def wall_of(client: Any) -> Wall:
    client._wall_ms = wall = Wall(client._wall_ms)
    return wall


def ways(client: Any) -> dict[str, Callable[[], Any]]:
    """All that gives ids."""
    made = {"enqueue": lambda: client.enqueue("q", b"x"), "key": lambda: client.enqueue("q", b"x", key="k"),
            "many": lambda: client.enqueue_many("q", [b"x", b"y"])[-1],
            "group": lambda: client.group([("q", b"x"), ("q", b"y")])[-1],
            "chain": lambda: client.chain([("q", b"x"), ("q", b"y")])[-1],
            "ids": lambda: client.enqueue("q", b"x", id=client.new_ids()[0])}
    if isinstance(client, Blocking):
        made["send"] = note.send_with(client=client)
    return made


class Ran:
    """A client for asyncio as one that blocks."""

    def __init__(self, client: Any, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **options: self._runner.run(getattr(self._client, name)(*given, **options))


def check_ids_after_a_wrong_hour(client: Any, wall: Wall) -> None:
    for name, way in ways(client).items():
        before = way()
        wall.ahead_ms = HOUR_MS
        with pytest.raises(Refused, match="future_id"):
            way()
        wall.ahead_ms = 0
        after = way()
        assert time_of(before) <= time_of(after) < time_of(before) + HOUR_MS // 2, name


def test_who_was_an_hour_ahead_enqueues_as_soon_as_the_clock_is_right() -> None:
    with MemoryClient() as memory:
        check_ids_after_a_wrong_hour(memory, wall_of(memory))
    with asyncio.Runner() as runner:
        made = AsyncMemoryClient()
        check_ids_after_a_wrong_hour(Ran(made, runner), wall_of(made))
    with node_in_memory() as address, Client(address) as client, asyncio.Runner() as runner:
        check_ids_after_a_wrong_hour(client, wall_of(client))
        awaited = AsyncClient(address)
        check_ids_after_a_wrong_hour(Ran(awaited, runner), wall_of(awaited))
        runner.run(awaited.close())


def test_a_floor_that_no_node_takes_is_passed_over() -> None:
    """As a node whose clock is ahead tells it, or one of an earlier release that was ahead once."""
    with MemoryClient() as client:
        floor = client.cluster._node._node._floor
        object.__setattr__(floor, "told", lambda now_ms: now_ms + HOUR_MS)
        for way in (lambda: client.enqueue("q", b"x"), lambda: client.enqueue_many("q", [b"x"])[0]):
            assert time_of(way()) <= client.cluster.wall_ms() + AHEAD_MS


def minted(minter: Minter, now_ms: int, floor_ms: int = 0) -> bytes:
    return minter.mint(floor_ms, now_ms, 1)[0]


def test_ids_rise_above_what_was_acknowledged_whatever_the_clock_does() -> None:
    minter = Minter()
    acknowledged = minted(minter, NOW_MS + 3_000)
    minter.note_acknowledged([acknowledged])
    lost = minted(minter, NOW_MS + HOUR_MS)
    after = minted(minter, NOW_MS)

    assert acknowledged < after < lost
    assert after[12:16] != lost[12:16], "another nonce: the time may come again"


def test_a_clock_that_is_set_back_a_little_leaves_the_mint_alone() -> None:
    minter = Minter()
    made = [minted(minter, NOW_MS + at_ms) for at_ms in (0, AHEAD_MS, 0, 50)]

    assert made == sorted(made) and len({one[12:16] for one in made}) == 1


def test_what_was_acknowledged_by_a_wrong_clock_binds_nobody_once_it_is_refused() -> None:
    minter = Minter()
    minter.note_acknowledged([minted(minter, NOW_MS + HOUR_MS)])
    refused = minted(minter, NOW_MS)
    assert refused > minted(Minter(), NOW_MS + HOUR_MS)
    minter.note_refused([refused])

    assert time_of(minted(minter, NOW_MS)) == NOW_MS


def test_what_was_acknowledged_before_a_leap_binds_when_the_leap_does_not() -> None:
    """A node that was as far ahead as the client acknowledged what the others refuse."""
    minter = Minter()
    before = minted(minter, NOW_MS + 3_000)
    minter.note_acknowledged([before])
    for _ in range(20):
        minter.note_acknowledged([minted(minter, NOW_MS + HOUR_MS)])
    minter.note_refused([minted(minter, NOW_MS + HOUR_MS)])
    after = minted(minter, NOW_MS)

    assert before < after and time_of(after) < NOW_MS + HOUR_MS


def test_a_wall_clock_that_is_behind_follows_the_floor() -> None:
    minter = Minter()
    made = [minted(minter, NOW_MS - HOUR_MS + at_ms, NOW_MS) for at_ms in (0, 1, 2)]

    assert made == sorted(made) and len({one[12:16] for one in made}) == 1
    assert time_of(made[0]) > NOW_MS and wall_ms() > 0
