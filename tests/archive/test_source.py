"""A cluster as an archiver asks it: when that ends, nothing is left under way, and others are given its pages."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from typing import Any

import attrs
import pytest

from skuld_py.archive.archiver import AT_ONCE, Question
from skuld_py.archive.source import source_of
from skuld_py.cli.stopping import until_stopped
from skuld_py.client.archiving import Page


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

    async def client(*_: object) -> Nodes:
        return made
    monkeypatch.setattr("skuld_py.archive.source._client", client)
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
