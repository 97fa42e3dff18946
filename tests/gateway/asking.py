"""Asks a gateway as any program would: plain HTTP, no library of ours."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs


@attrs.frozen
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@attrs.frozen
class Asker:
    """Sends requests to one gateway, with one token or none."""

    url: str
    token: str = ""

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None and parts.port is not None
        return parts.hostname, parts.port

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        given = self._shown() | {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()},
                          response.read())
        finally:
            connection.close()

    def _shown(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, verb: str, document: object) -> Answer:
        body = json.dumps(document).encode()
        return self.ask("POST", f"/v1/tasks/{verb}", body, content_type="application/json")

    def raw(self, text: bytes, timeout_s: float = 20) -> bytes:
        """Bytes as they are; gives all that comes until the connection ends."""
        with socket.create_connection(self.address, timeout=timeout_s) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while part := connection.recv(65_536):
                found += part
            return found

    @contextmanager
    def streaming(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """A stream that is still open."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request("GET", path, headers=self._shown())
            yield connection.getresponse()
        finally:
            connection.close()

    # -- what many tests need ------------------------------------------------------------------

    def enqueue(self, queue: str, payload: str = "x") -> str:
        answer = self.post("enqueue", {"queue": queue, "payload": payload})
        assert answer.status == 200, answer
        made: str = answer.json["id"]
        return made

    def claim(self, queue: str, **more: Any) -> dict[str, Any]:
        answer = self.post("claim", {"queue": queue, "wait_s": 10, **more})
        assert answer.status == 200, answer
        [held] = answer.json["claims"]
        named: dict[str, Any] = held
        return named


def until_true(is_so: Callable[[], bool], wait_s: float = 30) -> None:
    """Ask again until it is so."""
    end = time.monotonic() + wait_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
