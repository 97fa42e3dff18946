"""Whoever plays the log from outside: what all members must agree on, and waiting until they do."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from skuld_py.cluster.log.play import Outcome, Played, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import Parameters
from skuld_py.errors import Refused
from skuld_py.runtime.zookeeper.log_following import follow


class Onlooker:
    """Plays a log from its first entry, for as long as ZooKeeper answers."""

    def __init__(self, hosts: str, parameters: Parameters) -> None:
        self.replica = Replica(replicas=parameters.replicas)
        self.failures: list[Played] = []
        self._hosts, self._cluster = hosts, parameters.cluster
        self._change = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(Refused):  # ZooKeeper is gone: the test is over
            for position, raw in follow(self._hosts, self._cluster, 0):
                self._take(play(self.replica, position, raw))

    def _take(self, played: Played) -> None:
        with self._change:
            self.replica = played.replica
            if played.outcome in (Outcome.FAILED, Outcome.REFUSED):
                self.failures.append(played)
            self._change.notify_all()

    def wait(self, is_so: Callable[[Replica], bool], timeout_s: float = 60.0) -> float:
        """Until it is so; gives the seconds that took."""
        started = time.monotonic()
        with self._change:
            assert self._change.wait_for(lambda: is_so(self.replica), timeout_s), self.replica.text()
        return time.monotonic() - started


def is_whole(replica: Replica, nodes: list[str]) -> bool:
    """Whether exactly these nodes are members, in one closed ring, with no join under way."""
    names = sorted(member.name for member in replica.members.values())
    walk = list(replica.ring.walk())
    is_ring = sorted(walk) == sorted(replica.members) if len(nodes) > 1 else not walk
    return names == sorted(nodes) and is_ring and not replica.joins.observers
