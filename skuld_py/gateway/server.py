"""The gateway as a process: where it listens, what it may bind, and how it ends.

Without tokens only loopback may be bound: all that reach the port can do everything. With tokens any address may
be, and then with a certificate, since a token sent over a network without TLS can be read on the way. Where
something in front ends TLS, the operator says so: nobody else can know.

SIGHUP has the file of tokens, and the certificate with its key, read again, aside, while requests go on by those
that were read before. They stay in force if a file is not as it should be: a gateway that lets nobody in helps
nobody mend it. One that came before requests were taken counts, too. Connections that stand keep their
certificate.

Once requests are taken, the nodes are asked how they are: a key that they do not know, or that is missing, is told
in the log at once, and not to the first caller.

A certificate's key is taken as tokens are: only from a file that nobody else may read.

Uvicorn waits for a request's head as long as it is drip-fed; ``_Protocol`` gives it a deadline. Its parser, h11,
refuses most of what could be read in two ways (two lengths, a space before a colon); the answer is made here, in
the shape of all failures.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from skuld_py.client.async_client import AsyncClient
from skuld_py.errors import Refused, SkuldError
from skuld_py.exposition import exposed
from skuld_py.gateway.access import Tokens
from skuld_py.gateway.application import Gateway
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.listener import Crowd, Listener, allowed_connections
from skuld_py.gateway.problems import Problem, refusal
from skuld_py.keys.files import check_private

BACKLOG = 256
_log = logging.getLogger(__name__)


@attrs.frozen
class Settings:
    """What a gateway is started with. ``hosts``: the names it is reached by, besides its own. ``is_behind_proxy``:
    something in front ends TLS."""

    nodes: Sequence[str]
    host: str = "127.0.0.1"
    port: int = 13080
    tokens: Path | None = None
    hosts: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None
    is_behind_proxy: bool = False
    timeout_s: float = 5.0
    limits: Limits = Limits()
    metrics: str | None = None
    """Where to show metrics, beside the gateway's own address."""


def serve(settings: Settings, on_ready: Callable[[str], None],
          was_hung_up: Callable[[], bool] = lambda: False) -> None:
    """Serve until a signal. ``on_ready`` is given the address once requests are taken. ``was_hung_up``: whether
    SIGHUP came before this hears it itself."""
    if not settings.nodes:
        raise Refused("no_nodes", "nodes: name at least one HOST:PORT", field="nodes")
    tokens = None if settings.tokens is None else Tokens.read(settings.tokens)
    _check_host(settings)
    _check_certificate(settings)
    client = AsyncClient(settings.nodes, timeout_s=settings.timeout_s, holder="gateway")
    gateway = Gateway(client, tokens, settings.limits, _hosts_of(settings),
                      is_secure=settings.certificate is not None or settings.is_behind_proxy)
    shown = nullcontext() if settings.metrics is None else exposed(settings.metrics, gateway.journal)
    with shown, _listener(settings) as listener:
        scheme = "http" if settings.certificate is None else "https"
        url = f"{scheme}://{_bracketed(settings.host)}:{listener.getsockname()[1]}"
        _Server(_configuration(settings, gateway), gateway, client, lambda: on_ready(url),
                settings, was_hung_up).run([listener])


def _check_host(settings: Settings) -> None:
    if _is_loopback(settings.host):
        return
    if settings.tokens is None:
        raise Refused("insecure_host", f"host: {settings.host} is reachable from other machines, and without"
                      " tokens anybody may do everything; give --tokens FILE (see 'skuld token'), or listen at"
                      " 127.0.0.1", field="host")
    if settings.certificate is None and not settings.is_behind_proxy:
        raise Refused("insecure_host", f"host: {settings.host} is reachable from other machines, and without TLS"
                      " tokens can be read on the way; give --certificate FILE and --key FILE, or --behind-proxy"
                      " if something in front of this gateway ends TLS, or listen at 127.0.0.1", field="host")


def _check_certificate(settings: Settings) -> None:
    """Uvicorn would find out too, but as a traceback. A key with a passphrase is refused, and not asked for it."""
    if settings.certificate is None:
        return
    try:
        if settings.key is None and b"PRIVATE KEY-----" not in settings.certificate.read_bytes():
            raise Refused("bad_certificate", f"key: {settings.certificate} has no private key; give --key FILE,"
                          " the key of that certificate", field="key")
        check_private(settings.key or settings.certificate)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key, lambda: b"")
    except (OSError, ValueError) as error:
        raise Refused("bad_certificate", f"certificate: {settings.certificate} cannot be used with"
                      f" {settings.key or 'a key in the same file'}: {error}", field="certificate") from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hosts_of(settings: Settings) -> frozenset[str] | None:
    """The ``Host`` names to answer to. Tokens protect from borrowed names already, unless some are listed."""
    if settings.tokens is not None and not settings.hosts:
        return None
    own = {settings.host, _bracketed(settings.host), "localhost", "127.0.0.1", "[::1]"}
    return frozenset(name.lower() for name in (*own, *settings.hosts))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listener(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        bound = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise Refused("port_in_use", f"port: cannot listen at {settings.host}:{settings.port}:"
                      f" {error.strerror or error}; stop who listens there, or choose another --port",
                      field="port") from error
    return Listener(bound, Crowd(allowed_connections(settings.limits), is_shared=settings.is_behind_proxy))


def _configuration(settings: Settings, gateway: Gateway) -> uvicorn.Config:
    limits = settings.limits
    return _Configuration(
        gateway.application(), http=_Protocol, ws="none", loop="asyncio", lifespan="off", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
        h11_max_incomplete_event_size=limits.header_bytes, timeout_keep_alive=limits.header_s,
        timeout_graceful_shutdown=limits.stop_s,
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.key is None else str(settings.key))


class _Configuration(uvicorn.Config):
    """Has TLS begin in as much time as a request may take to come; asyncio gives it a minute."""

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        return partial(_Loop, self.timeout_keep_alive)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait for so many seconds for TLS to begin."""

    def __init__(self, handshake_s: float) -> None:
        super().__init__()
        self._handshake_s = handshake_s

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = self._handshake_s
        return await super().create_server(*arguments, **options)


class _Server(uvicorn.Server):
    """Says when it is ready, lets the gateway know that it stops, and closes its connections in the end."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, client: AsyncClient,
                 on_ready: Callable[[], None], settings: Settings, was_hung_up: Callable[[], bool]) -> None:
        super().__init__(config)
        self._settings = settings
        self._was_hung_up = was_hung_up
        self._hangup = asyncio.Event()
        self._asides: list[asyncio.Future[None]] = []
        self._gateway = gateway
        self._client = client
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hangup.set)
        if self._was_hung_up():
            self._hangup.set()
        self._asides.append(asyncio.ensure_future(self._reread()))
        await super().startup(sockets)
        if self.started:
            self._on_ready()
            self._asides.append(asyncio.ensure_future(self._look_at_nodes()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gateway.stopping.set()
        for aside in self._asides:
            aside.cancel()
        await super().shutdown(sockets)
        await self._client.close()

    async def _look_at_nodes(self) -> None:
        """Say it if no node answers, or none knows the key."""
        try:
            await self._client.status()
        except SkuldError as error:
            _log.error("no node answers to this gateway yet: %s", error.message)

    async def _reread(self) -> None:
        """Read the files again at each signal; signals that come meanwhile are one more."""
        while await self._hangup.wait():
            self._hangup.clear()
            if self._settings.tokens is None and self._settings.certificate is None:
                _log.warning("SIGHUP: there is nothing to read again; neither --tokens FILE nor --certificate FILE"
                             " was given")
            if self._settings.tokens is not None:
                await self._reread_tokens(self._settings.tokens)
            if self._settings.certificate is not None:
                await self._reread_certificate(self._settings.certificate)

    async def _reread_tokens(self, path: Path) -> None:
        try:
            self._gateway.tokens = await asyncio.to_thread(Tokens.read, path)
        except Refused as refusal:
            _log.error("SIGHUP: %s; the tokens that were read before stay in force: mend the file, and send"
                       " SIGHUP again", refusal.message)
        else:
            _log.info("SIGHUP: the tokens of %s are in force", path)

    async def _reread_certificate(self, path: Path) -> None:
        """Into the context by which connections are taken. It is tried in another one first: a chain whose key
        does not fit would leave this one with half of each."""
        try:
            await asyncio.to_thread(_check_certificate, self._settings)
            assert self.config.ssl is not None
            self.config.ssl.load_cert_chain(path, self._settings.key, lambda: b"")
        except (Refused, OSError, ValueError) as error:
            _log.error("SIGHUP: %s; the certificate that was read before stays in use: mend the file, and send"
                       " SIGHUP again", error.message if isinstance(error, Refused) else error)
        else:
            _log.info("SIGHUP: the certificate of %s is in use", path)


class _Protocol(H11Protocol):
    """A connection that must come to a request: one that is kept open without is cut off.

    So is one over which a refused body is still being sent.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._is_busy():
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.config.timeout_keep_alive, self._give_up)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_busy():
            self.transport.close()

    def _is_busy(self) -> bool:
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """Answer for h11, which has refused what came."""
        error = sys.exc_info()[1]
        is_large = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        code, field, words = (("header_too_large", "header", "the request's head is too large") if is_large else
                              ("bad_request", "request", "this is not HTTP/1.1 as RFC 9112 has it"))
        for event in _closing(refusal(code, f"{field}: {words}", field=field)):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _closing(problem: Problem) -> list[Any]:
    body = json.dumps(problem.document("")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close")]
    return [h11.Response(status_code=problem.status, headers=headers), h11.Data(data=body), h11.EndOfMessage()]
