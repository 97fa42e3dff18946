"""A member of the coordination log without a data plane: what twenty of them need fits on a laptop.

It is the real membership machine on the real registry, with a loop of its own: no sockets but ZooKeeper's. As a
process: ``python light_member.py HOSTS CLUSTER PORT SESSION_MS``; it runs until it is killed.
"""

from __future__ import annotations

import queue
import random
import secrets
import sys
import threading
import time

from skuld_py.cluster.log.lives import Lives
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.model.coordination import Announce, CoordinationEffect, CoordinationEvent
from skuld_py.model.document import Member
from skuld_py.model.events import Event, Send, Session, SessionChanged, Ticked
from skuld_py.runtime.zookeeper.clusters import read_parameters
from skuld_py.runtime.zookeeper.registry import Registry

WAIT_S = 60.0


class LightMember:
    """One member, in a thread of its own from ``start`` to ``stop``."""

    def __init__(self, hosts: str, cluster: str, port: int, session_ms: int, starts: int = 1,
                 settings: LogSettings | None = None) -> None:
        name, jitter = f"127.0.0.1:{port}", random.Random()
        lives = Lives(name, f"{name}~{starts << 16:08x}{0:08x}")
        me = Member(name, "127.0.0.1", port, secrets.token_hex(8), f"data-{port}")
        self.events: list[Event | CoordinationEvent] = []
        self.effects: list[CoordinationEffect | Send] = []
        self.membership = Membership(
            me, lambda: lives.next(secrets.randbits(32)), lambda most: jitter.randint(0, most),
            settings or LogSettings(), Replica(replicas=read_parameters(hosts, cluster).replicas))
        self._inbox: queue.SimpleQueue[Event | CoordinationEvent | None] = queue.SimpleQueue()
        self.registry = Registry(hosts, cluster, me, session_ms, self._inbox.put, starts=starts)
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._change = threading.Condition()
        self._session = Session.LOST

    def start(self) -> None:
        """Connect, then live."""
        self.registry.start()
        self._thread.start()

    def stop(self) -> None:
        """End at once, as by a signal that cannot be caught, except that the session ends too."""
        self._inbox.put(None)
        self._thread.join(WAIT_S)
        self.registry.stop()

    def await_session(self, wanted: Session = Session.CONNECTED, *, after: str = "") -> str:
        """Wait until the node would be told so, in another life than ``after``; gives the life."""
        with self._change:
            is_there = self._change.wait_for(
                lambda: self._session is wanted and self.membership.me != after, WAIT_S)
            assert is_there, f"never {wanted}: {self.events[-20:]}"
            return self.membership.me

    def run(self) -> None:
        """Take events until told to stop."""
        while True:
            deadline_ms = self.membership.deadline()
            pause_s = None if deadline_ms is None else max(0.0, deadline_ms / 1000 - time.monotonic())
            try:
                event = self._inbox.get(timeout=pause_s)
            except queue.Empty:
                event = Ticked()
            if event is None:
                return
            with self._change:
                self._take(event)
                self._change.notify_all()

    def _take(self, event: Event | CoordinationEvent) -> None:
        self.events.append(event)
        for effect in self.membership.step(round(time.monotonic() * 1000), event):  # type: ignore[arg-type]
            self.effects.append(effect)
            if isinstance(effect, Announce):
                if isinstance(effect.event, SessionChanged):
                    self._session = effect.event.session
            elif not isinstance(effect, Send):
                self.registry.perform(effect)
        if self.membership.stopped_by is not None:
            raise self.membership.stopped_by


if __name__ == "__main__":
    hosts, cluster, port, session_ms, starts = sys.argv[1:]
    member = LightMember(hosts, cluster, int(port), int(session_ms), int(starts))
    member.registry.start()
    member.run()
