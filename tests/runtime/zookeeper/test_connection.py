"""The worker of a connection, without a ZooKeeper: how it ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KeeperState

from skuld_py.errors import Refused
from skuld_py.model.events import Session
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.patience import LONGEST_S, Patience


def test_what_nothing_expects_ends_the_worker_and_is_told() -> None:
    def work(jobs: list[Any]) -> float:
        raise ZeroDivisionError("planted")

    told: list[Exception] = []
    breaks: list[Session] = []
    connection = Connection("127.0.0.1:1", 1.0, breaks.append, work, told.append)
    stopped: list[str] = []
    connection.client.stop = lambda: stopped.append("stop")
    connection.put("job")
    connection.begin()
    connection._worker.join(60)

    assert [str(problem) for problem in told] == ["planted"]
    assert stopped == ["stop"]


def test_that_zookeeper_is_away_and_back_is_said_once_each(caplog: pytest.LogCaptureFixture) -> None:
    breaks: list[Session] = []
    connection = Connection("127.0.0.1:1", 1.0, breaks.append, lambda jobs: 1.0, lambda problem: None)
    with caplog.at_level(logging.INFO):
        for state in ("CONNECTED", "SUSPENDED", "LOST", "CONNECTED", "CONNECTED"):
            connection._on_state(state)

    said = [(record.levelname, " ".join(record.getMessage().split()[:6])) for record in caplog.records
            if record.name == "skuld_py.runtime.zookeeper.connection"]
    assert said == [("WARNING", "ZooKeeper at 127.0.0.1:1 is out of"),
                    ("INFO", "ZooKeeper at 127.0.0.1:1 is back")]
    assert breaks == [Session.SUSPENDED, Session.LOST]


def test_patience_grows_to_a_bound_and_begins_anew_after_success() -> None:
    patience = Patience()
    pauses = [patience.fail(100.0) for _ in range(9)]
    assert pauses[:3] == [2.0, 4.0, 8.0] and pauses[-2:] == [LONGEST_S, LONGEST_S]
    assert patience.until_s == 100.0 + LONGEST_S
    patience.succeed()

    assert patience.until_s == 0.0 and patience.fail(0.0) == 2.0


def test_a_client_that_ends_at_once_again_is_not_replaced_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeClient] = []

    def open_client(hosts: str, session_s: float) -> FakeClient:
        if len(made) == 2:
            made.append(FakeClient())
            raise Refused("bad_certificate", "zookeeper-ca: gone")
        made.append(FakeClient())
        return made[-1]
    now = [100.0]
    monkeypatch.setattr("skuld_py.runtime.zookeeper.clusters.open_client", open_client)
    monkeypatch.setattr("skuld_py.runtime.zookeeper.connection.time.monotonic", lambda: now[0])
    connection = Connection("127.0.0.1:1", 1.0, lambda session: None, lambda jobs: 1.0, lambda problem: None)
    connection._on_state("LOST")
    connection.revive()
    assert connection.client is made[1]

    connection._on_state("LOST")
    with pytest.raises(ConnectionLoss):
        connection.revive()
    now[0] += 10.0
    with pytest.raises(Refused, match="gone"):
        connection.revive()
    assert connection.client is made[1], "refused, it is for the next look to do"
    now[0] += 10.0
    connection.revive()
    assert connection.client is made[3]


class FakeClient:
    """kazoo's, which has just ended."""

    client_state = KeeperState.AUTH_FAILED

    def add_listener(self, listener: object) -> None:
        pass

    remove_listener = add_listener

    def start_async(self) -> None:
        pass

    stop = close = start_async
