"""What the tests of the registry share: a member attended to, its events, and hands in ZooKeeper."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kazoo.client import KazooClient

from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.model.coordination import CoordinationEvent
from skuld_py.model.document import Member
from skuld_py.model.events import Event
from skuld_py.model.registration import Registration
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper.registry import Registry

SESSION_MS = 2_000
WAIT_S = 60.0

Told = Event | CoordinationEvent
T = TypeVar("T")


class Events:
    """What a registry emitted, in order; waiting for more of it without polling."""

    def __init__(self) -> None:
        self.all: list[Told] = []
        self._arrival = threading.Condition()

    def emit(self, event: Told) -> None:
        with self._arrival:
            self.all.append(event)
            self._arrival.notify_all()

    def wait(self, wanted: Told | Callable[[Told], bool], after: int = 0) -> int:
        """The position behind the first such event at or behind ``after``."""
        matches = wanted if callable(wanted) else wanted.__eq__
        deadline = time.monotonic() + WAIT_S
        with self._arrival:
            position = after
            while True:
                while position < len(self.all):
                    position += 1
                    if matches(self.all[position - 1]) is True:
                        return position
                assert self._arrival.wait(deadline - time.monotonic()), f"no {wanted} in {self.all[after:]}"

    def wait_for(self, kind: type[T], after: int = 0) -> T:
        """The first event of a kind at or behind ``after``."""
        event = self.all[self.wait(lambda event: isinstance(event, kind), after) - 1]
        assert isinstance(event, kind)
        return event


@contextlib.contextmanager
def joined(hosts: str, cluster: str, member: Member, session_ms: int = SESSION_MS, *,
           starts: int = 1, judged: Registration | None = None,
           put_roster: Callable[[Roster], Roster | None] | None = None) -> Iterator[tuple[Registry, Events]]:
    events = Events()
    registry = Registry(hosts, cluster, member, session_ms, events.emit, starts=starts, judged=judged,
                        put_roster=put_roster)
    registry.start()
    try:
        yield registry, events
    finally:
        registry.stop()


@contextlib.contextmanager
def client_of(server: ZooKeeperServer, **options: Any) -> Iterator[KazooClient]:
    client = KazooClient(hosts=server.hosts, timeout=10.0, **options)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextlib.contextmanager
def paused(server: ZooKeeperServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


def expire(server: ZooKeeperServer, registry: Registry) -> None:
    """End the session at the server at once, as only its owner could: by its id and password."""
    with client_of(server, client_id=registry._connection.client.client_id):
        pass
