"""A cluster as an archiver asks it: when that ends, nothing is left under way, and others are given its pages."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from concurrent.futures import CancelledError
from threading import Event, Thread
from typing import Any

import attrs
import pytest

from archive.ended import plain
from archive.world import Stop
from client.doors import scripted
from skuld_py.archive.archiver import AT_ONCE, Question
from skuld_py.archive.source import READ_AT_ONCE, ClusterSource, source_of
from skuld_py.cli.stopping import until_stopped
from skuld_py.client.archiving import Page
from skuld_py.client.reading import GET_TASKS
from skuld_py.errors import Refused
from skuld_py.model import messages as m

QUESTIONS = [Question(partition, 0, 0, 0) for partition in range(3 * AT_ONCE)]
PATIENCE_S = 60


def test_whoever_stops_waits_for_no_answer_and_leaves_nothing_behind(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some questions are on their way then, and others wait; and it is stopped again as it leaves."""
    def leave(source: ClusterSource) -> None:
        raise Stop
    monkeypatch.setattr(ClusterSource, "leave", leave)
    are_asked, ended = Event(), list[BaseException]()

    def silence(number: int, message: m.Message) -> None:
        if number == AT_ONCE:
            are_asked.set()

    def wait() -> None:
        try:
            source.offered(QUESTIONS)
        except BaseException as error:
            ended.append(error)
    with scripted(silence) as door:
        with pytest.raises(Stop), source_of(door.address, timeout_s=10 * PATIENCE_S) as source:
            waiting = Thread(target=wait, daemon=True)
            waiting.start()
            assert are_asked.wait(PATIENCE_S)
            raise Stop
        waiting.join(PATIENCE_S)
        assert len(ended) == 1 and len(door.asked) == AT_ONCE
    gc.collect()
    assert "destroyed" not in caplog.text and not caplog.records


class Client:
    """It notes what it is asked."""

    def __init__(self, nodes: object, timeout_s: float) -> None:
        self.is_closed = False

    async def offered(self, partition: int, *, archiver: int = 0, leaves: bool = False, **more: int) -> Page:
        assert not self.is_closed
        ASKED.append((partition, archiver, leaves))
        return Page(partition, (), False, due_ms=100, ended=7 + partition)

    async def close(self) -> None:
        self.is_closed = True


ASKED: list[tuple[int, int, bool]] = []


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bool]]:
    """Partitions that were asked for a page, by which archiver, and whether it leaves."""
    ASKED.clear()
    monkeypatch.setattr("skuld_py.archive.source.AsyncClient", Client)
    return ASKED


def test_a_number_alone_is_asked_for_in_nobodys_name(noted: list[tuple[int, int, bool]]) -> None:
    """So no partition is this archiver's by it, or was."""
    with source_of("n", PATIENCE_S) as source:
        pages = source.counted([0, 1])

    assert [page.ended for page in pages if isinstance(page, Page)] == [7, 8]
    assert noted == [(0, 0, True), (1, 0, True)]


def test_an_archiver_that_ends_says_so_to_all_that_it_asked_for_pages(noted: list[tuple[int, int, bool]]) -> None:
    with source_of("n", PATIENCE_S) as source:
        source.offered(QUESTIONS[:2])

    (_, number, _), *_ = noted
    assert number and noted == [(0, number, False), (1, number, False), (0, number, True), (1, number, True)]


@attrs.define
class Nodes:
    """What is asked of them; they interrupt whoever asks, and answer once it leaves."""

    asked: list[tuple[int, bool]] = attrs.field(factory=list)
    left: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def offered(self, partition: int, *, leaves: bool = False, **_: Any) -> Page:
        self.asked.append((partition, leaves))
        if leaves:
            self.left.set()
        else:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await self.left.wait()
        return Page(partition, (), False)

    async def close(self) -> None:
        """Nothing is left of it."""


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    made = Nodes()
    monkeypatch.setattr("skuld_py.archive.source.AsyncClient", lambda *_, **__: made)
    return made


def test_who_is_interrupted_leaves_and_asks_nothing_more(nodes: Nodes, caplog: pytest.LogCaptureFixture,
                                                         recwarn: pytest.WarningsRecorder) -> None:
    partitions = range(2 * AT_ONCE)

    with until_stopped(), source_of(None, 1.0) as source:
        source.offered([Question(number, 0, 0, 0) for number in partitions])

    asked = [partition for partition, leaves in nodes.asked if not leaves]
    first = [leaves for _, leaves in nodes.asked].index(True)
    assert asked == [*range(AT_ONCE)] and not any(not leaves for _, leaves in nodes.asked[first:])
    assert sorted(partition for partition, leaves in nodes.asked if leaves) == [*partitions]
    gc.collect()
    assert [record.message for record in caplog.records] == [] and not recwarn.list


class Shelf:
    """Nodes with some tasks; they note what is read at a time, and answer ``refused`` from some question on."""

    def __init__(self, refuses_from: int = 1_000) -> None:
        self.read: list[list[bytes]] = []
        self._refuses_from = refuses_from

    async def get_many(self, ids: list[bytes]) -> list[bytes]:
        self.read.append(ids)
        if len(self.read) > self._refuses_from:
            raise Refused("unavailable", "nobody answers")
        return [each for each in ids if each != ids[0]]

    async def offered(self, *_: Any, **__: Any) -> Page:
        return Page(0, (), False)

    async def close(self) -> None:
        """Nothing is left of it."""


NAMES = [b"%d" % number for number in range(READ_AT_ONCE * GET_TASKS + 1)]


def test_tasks_are_read_in_parts_as_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    monkeypatch.setattr("skuld_py.archive.source.AsyncClient", lambda *_, **__: shelf)
    with source_of(None, 1.0) as source:
        found = source.tasks(NAMES)
        first = next(found)
        assert (first, [len(ids) for ids in shelf.read]) == (NAMES[1], [GET_TASKS] * READ_AT_ONCE)
        assert len([*found]) == len(NAMES) - READ_AT_ONCE - 2 and len(shelf.read) == READ_AT_ONCE + 1


def test_what_nobody_tells_of_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    told, untold = Shelf(), Shelf(refuses_from=0)
    for shelf, is_gone in ((told, True), (untold, False)):
        monkeypatch.setattr("skuld_py.archive.source.AsyncClient", lambda *_, made=shelf, **__: made)
        with source_of(None, 1.0) as source:
            assert source.are_gone([*map(bytes.decode, NAMES[:1])]) is is_gone
    monkeypatch.setattr("skuld_py.archive.source.AsyncClient", lambda *_, **__: told)
    with source_of(None, 1.0) as source:
        assert not source.are_gone([*map(bytes.decode, NAMES)])
    assert len(told.read) == 1 + READ_AT_ONCE, "the first that is there is enough"


def test_who_writes_and_asks_is_not_waited_for_once_it_is_interrupted() -> None:
    """What asks is on another thread, which is waited for; what it asks then is not asked any more."""
    is_asked, ended = Event(), list[BaseException]()

    def wait() -> None:
        for _ in range(2):
            try:
                [*source.tasks([plain(1).id])]
            except CancelledError as error:
                ended.append(error)
    with scripted(lambda number, message: is_asked.set()) as door:
        with source_of(door.address, timeout_s=10 * PATIENCE_S) as source:
            writer = Thread(target=wait, daemon=True)
            writer.start()
            assert is_asked.wait(PATIENCE_S)
            source.interrupt()
            writer.join(PATIENCE_S)
            assert len(ended) == 2
        assert len(door.asked) == 1
