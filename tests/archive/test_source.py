"""How an archiver asks a cluster; and of one that is stopped nothing is left on its way."""

from __future__ import annotations

import gc
from threading import Event, Thread

import pytest

from archive.world import Stop
from client.doors import scripted
from skuld_py.archive.archiver import AT_ONCE, Question
from skuld_py.archive.source import source_of
from skuld_py.client.archiving import Page
from skuld_py.model import messages as m

QUESTIONS = [Question(partition, 0, 0, 0) for partition in range(3 * AT_ONCE)]
PATIENCE_S = 30


def test_whoever_stops_waits_for_no_answer_and_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """Some questions are on their way then, and others wait for their turn."""
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
