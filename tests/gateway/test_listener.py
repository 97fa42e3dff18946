"""Who may connect to a gateway: so many in all, so many of an address, and none that keeps silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from skuld_py.gateway.limits import Limits
from skuld_py.gateway.listener import Crowd, Listener
from skuld_py.gateway.server import Settings, _configuration

THROWAWAY = Path(__file__).with_name("throwaway.pem")
"""A certificate for loopback that signs itself, with its key: it protects nothing."""


def test_one_address_has_no_more_than_are_free() -> None:
    crowd = Crowd(12)
    assert [crowd.enter("192.0.2.1") for _ in range(8)] == ["192.0.2.1"] * 6 + [None] * 2
    assert [crowd.enter("192.0.2.2") for _ in range(4)] == ["192.0.2.2"] * 3 + [None]
    assert crowd.enter("192.0.2.3") == "192.0.2.3"
    crowd.leave("192.0.2.1")
    assert crowd.enter("192.0.2.1") is None and crowd.enter("192.0.2.3") is not None


def test_there_are_no_more_than_are_allowed_whoever_comes() -> None:
    shared, crowd = Crowd(5, is_shared=True), Crowd(5)
    assert sum(shared.enter("192.0.2.1") is not None for _ in range(9)) == 5
    assert sum(crowd.enter(f"192.0.2.{number}") is not None for number in range(9)) == 5


def test_one_machine_has_many_addresses_of_ipv6() -> None:
    crowd = Crowd(4)
    assert [crowd.enter(f"2001:db8::{number}") is not None for number in range(4)] == [True, True, False, False]
    assert crowd.enter("2001:db8:0:1::1") is not None
    assert Crowd(4).enter("::ffff:192.0.2.1") == "192.0.2.1"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener(socket.create_server(("127.0.0.1", 0)), Crowd(2)) as opened:
        opened.settimeout(20)
        yield opened


def test_who_is_beyond_is_closed_and_who_leaves_makes_room(listener: Listener) -> None:
    with contextlib.ExitStack() as held:
        address = listener.getsockname()
        first, second = [held.enter_context(socket.create_connection(address, 20)) for _ in range(2)]
        accepted = held.enter_context(listener.accept()[0])
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert second.recv(1) == b""

        accepted.close()
        accepted.close()
        third = held.enter_context(socket.create_connection(address, 20))
        listener.settimeout(20)
        with listener.accept()[0] as again:
            again.sendall(b"x")
            assert third.recv(1) == b"x"
        assert first.recv(1) == b""


class Without:
    """A gateway that answers nothing."""

    def application(self) -> Starlette:
        return Starlette()


def test_tls_that_does_not_begin_is_given_up(listener: Listener) -> None:
    settings = Settings(["127.0.0.1:1"], certificate=THROWAWAY, limits=Limits(header_s=1))
    configuration = _configuration(settings, Without())  # type: ignore[arg-type]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(THROWAWAY)

    async def talk() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, sock=listener, ssl=context)
        async with server:
            address = listener.getsockname()
            reader, writer = await asyncio.open_connection(*address)
            assert await asyncio.wait_for(reader.read(1), 10) == b""
            writer.close()
            _, sealed = await asyncio.open_connection(*address, ssl=ssl._create_unverified_context())
            sealed.close()
    with asyncio.Runner(loop_factory=configuration.get_loop_factory()) as runner:
        runner.run(talk())


MAY_HAVE = """
import logging, resource, sys
from skuld_py.errors import Refused
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.listener import allowed_connections

logging.basicConfig(stream=sys.stdout, format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
try:
    print(allowed_connections(Limits()))
except Refused as refusal:
    print(refusal)
"""


@pytest.mark.parametrize(("files", "said"), [
    (4_000, ["2000"]), (255, ["files: this process may have 255 files open, and a gateway needs 256 at least"]),
    (1_024, ["there are files for 896 connections, and not for 2000; for more raise the limit, as by 'ulimit -n"
             " 2128'", "896"])])
def test_a_gateway_has_no_more_connections_than_files(files: int, said: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", MAY_HAVE, str(files)], capture_output=True, text=True, timeout=60,
                         check=True)
    assert len(ran.stdout.splitlines()) == len(said)
    assert all(line.startswith(begun) for line, begun in zip(ran.stdout.splitlines(), said, strict=True))
