"""What strangers cause is told in few lines, and none of it is lost."""

from __future__ import annotations

import contextlib
import logging
import socket
import time

import pytest
import zmq

from skuld_py.keys.pair import fresh
from skuld_py.runtime import connections, handshakes
from skuld_py.runtime.digest import Digest
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.transport import Transport


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_like_events_are_one_line_at_once_and_one_for_each_pause(caplog: pytest.LogCaptureFixture) -> None:
    digest = Digest(logging.getLogger("test"), 10)
    for number in range(1_000):
        digest.note("cut", f"cut {number}", number / 100)
        digest.look(number / 100)
    assert lines(caplog) == ["cut 0"]
    assert digest.pause_ms(9.99) == 10

    digest.look(10)
    assert lines(caplog)[1:] == ["999 times within 10 s, the last time: cut 999"]
    digest.note("cut", "cut again", 15)
    digest.note("other", "another kind", 15)
    assert digest.pause_ms(15) == 5_000
    digest.close()
    assert lines(caplog)[2:] == ["another kind", "cut again"]
    assert digest.pause_ms(15) == -1


def test_after_a_quiet_while_it_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    digest = Digest(logging.getLogger("test"), 10)
    for now_s in (0, 11, 22):
        digest.note("cut", f"at {now_s}", now_s)
    assert lines(caplog) == ["at 0", "at 11", "at 22"]


def test_a_node_counts_the_connections_that_it_cuts(caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.ExitStack() as held:
        node = held.enter_context(contextlib.closing(Transport("anna", "test", "127.0.0.1", 0)))
        node.connections.most = 2
        for _ in range(12):
            held.enter_context(socket.create_connection(("127.0.0.1", node.port), 30))
        end_s = time.monotonic() + 60
        while node.connections.cut.too_many < 10:
            assert time.monotonic() < end_s
            time.sleep(0.005)
        assert len(lines(caplog)) == 1 and connections.TOLD_S == 10

    assert len(lines(caplog)) == 2
    assert lines(caplog)[1].startswith(f"{node.connections.cut.too_many - 1} times within 10 s, the last time: a")


def test_keys_of_a_stranger_s_own_making_are_told_together(caplog: pytest.LogCaptureFixture) -> None:
    cluster = fresh()
    made = Transport("anna", "test", "127.0.0.1", 0, keyring=Keyring(cluster, fresh()))
    with contextlib.closing(made) as node, zmq.Context() as context:
        dealers = [context.socket(zmq.DEALER) for _ in range(5)]
        for dealer in dealers:
            pair = fresh()
            dealer.linger = 0
            dealer.curve_publickey, dealer.curve_secretkey = pair.public.encode(), pair.secret.encode()
            dealer.curve_serverkey = cluster.public.encode()
            dealer.connect(f"tcp://127.0.0.1:{node.port}")
        assert node._handshakes is not None
        end_s = time.monotonic() + 60
        while node._handshakes.denied < 5:
            assert time.monotonic() < end_s
            time.sleep(0.005)
        for dealer in dealers:
            dealer.close()

    assert len(lines(caplog)) == 2 and handshakes.TOLD_S == 60
    assert lines(caplog)[1].startswith("4 times within 60 s, the last time: key ")
