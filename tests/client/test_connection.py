"""A call ends in what is known: never "it did not happen" while it may have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import zmq

from skuld_py import Refused, SkuldError, Uncertain
from skuld_py.client.connection import Connection
from skuld_py.model import messages as m
from skuld_py.wire.codec import Envelope, decode, encode

Script = Callable[[int, m.Message], m.Message | None]
NODE = "127.0.0.1:13000"


@contextmanager
def node(script: Script) -> Iterator[str]:
    """A door that answers the n-th request, greetings left out, by a script; None is silence."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, context.socket(zmq.PAIR) as end, \
            context.socket(zmq.PAIR) as stop:
        end.bind("inproc://stop")
        stop.connect("inproc://stop")
        port = router.bind_to_random_port("tcp://127.0.0.1")
        router.linger = 0
        served = threading.Thread(target=_serve, args=(router, end, script))
        served.start()
        yield f"127.0.0.1:{port}"
        stop.send(b"")
        served.join()


def _serve(router: zmq.Socket[bytes], end: zmq.Socket[bytes], script: Script) -> None:
    poller, count = zmq.Poller(), 0
    for socket in (router, end):
        poller.register(socket, zmq.POLLIN)
    while end not in dict(poller.poll()):
        client, *frames = router.recv_multipart()
        question = decode(frames).messages[0]
        if isinstance(question, m.Greet):
            answer: m.Message | None = m.Greeted(question.request, NODE, "c", 1, 1, 1, 0, 1, ())
        else:
            count += 1
            answer = script(count, question)
        if answer is not None:
            router.send_multipart([client, *encode(Envelope(NODE, "c", (answer,)))])


def outcome(script: Script, *, is_idempotent: bool, timeout_s: float) -> m.Message | SkuldError:
    with node(script) as address:
        connection = Connection([address])
        try:
            return connection.call(m.Count(99, ""), timeout_s, is_idempotent=is_idempotent)
        except SkuldError as error:
            return error
        finally:
            connection.close()


def failed(code: str, is_definite: bool) -> m.Failed:
    return m.Failed(99, code, "words", is_definite)


COUNTED = m.Counted(99, b"", b"", ())


@pytest.mark.parametrize(("script", "is_idempotent", "timeout_s", "kind"), [
    (lambda n, _: COUNTED, True, 5, m.Counted),
    (lambda n, _: failed("bad_w", True), True, 5, Refused),
    (lambda n, _: failed("uncertain", False), False, 5, Uncertain),
    (lambda n, _: failed("uncertain", False) if n == 1 else COUNTED, True, 5, m.Counted),
    (lambda n, _: failed("busy", True) if n < 3 else COUNTED, False, 5, m.Counted),
    (lambda n, _: failed("busy", True), True, 0.5, Refused),
    (lambda n, _: None, True, 0.5, Uncertain),
    (lambda n, _: None, False, 0.5, Uncertain),
    (lambda n, _: None if n == 1 else COUNTED, True, 5, m.Counted),
    (lambda n, _: None if n == 1 else failed("busy", True), True, 2.2, Uncertain),
    (lambda n, _: failed("uncertain", False) if n == 1 else failed("busy", True), True, 0.5, Uncertain),
    (lambda n, _: failed("uncertain", False) if n == 1 else failed("conflict", True), True, 5, Uncertain),
], ids=["answered", "refused", "in doubt", "in doubt, then answered", "busy, then answered", "busy to the end",
        "silent", "silent once", "silent, then answered", "silent, then busy", "in doubt, then busy",
        "in doubt, then refused"])
def test_a_call_ends_in_what_is_known(script: Script, is_idempotent: bool, timeout_s: float, kind: type) -> None:
    assert type(outcome(script, is_idempotent=is_idempotent, timeout_s=timeout_s)) is kind


def test_what_is_not_idempotent_is_sent_once_when_nobody_answers() -> None:
    seen = []
    outcome(lambda n, _: seen.append(n), is_idempotent=False, timeout_s=2.5)  # type: ignore[func-returns-value]

    assert seen == [1]


def test_a_silent_node_is_passed_over_for_a_while() -> None:
    seen: list[int] = []

    def silent(n: int, _: m.Message) -> None:
        seen.append(n)
    with node(silent) as deaf, node(lambda n, _: COUNTED) as well:
        connection = Connection([well, deaf])
        for _ in range(6):
            answer = connection.call(m.Count(99, ""), 5, is_idempotent=True)
            assert isinstance(answer, m.Counted)
        connection.close()

    assert seen == [1]
