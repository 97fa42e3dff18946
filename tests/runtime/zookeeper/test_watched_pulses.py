"""Looking at pulses through a server that lags: only a look behind a sync says that there is none."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import NoNodeError

from skuld_py.model.coordination import CoordinationEvent, PulseGone, WatchPulses
from skuld_py.runtime.zookeeper.coordination_log import CoordinationLog


class Server:
    """A ZooKeeper server behind the others, and the connection to it: an answer is what it knows when asked."""

    patience_s = 1.0
    is_connected = True

    def __init__(self, *pulses: str) -> None:
        self.client: Any = self
        self.lock = threading.Lock()
        self.pulses, self.known = {*pulses}, set[str]()
        self.watched: list[str] = []

    def on_watch(self, event: Any) -> None:
        raise AssertionError("nothing fires here")

    def sync_async(self, path: str) -> None:
        self.known = {*self.pulses}

    def get_async(self, path: str, watch: Any) -> Any:
        member = path.rpartition("/")[2]
        if member not in self.known:
            return NoNodeError()
        self.watched.append(member)
        return b"", SimpleNamespace(version=0)

    def wait(self, answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_pulse_that_our_server_does_not_know_yet_is_not_gone() -> None:
    server, told = Server("a~1", "b~1"), list[CoordinationEvent]()
    log = CoordinationLog(server, "/skuld/c", told.append)  # type: ignore[arg-type]
    log.take(WatchPulses(("a~1", "b~1", "c~1")))
    log.work()

    assert told == [PulseGone("c~1")]
    assert sorted(server.watched) == ["a~1", "b~1"]  # and no watch stays on what is gone
