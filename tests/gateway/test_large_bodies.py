"""Who sends a large body makes nobody else wait for it to be read."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.types import Message

from skuld_py.client.async_client import AsyncClient
from skuld_py.gateway import strict_json
from skuld_py.gateway.application import Gateway
from skuld_py.gateway.limits import Limits
from skuld_py.verbs.table import VERBS

ENQUEUE = next(verb for verb in VERBS if verb.name == "enqueue")


@pytest.mark.parametrize(("size", "is_aside"), [(100, False), (60_000, False), (70_000, True)])
def test_a_large_body_is_read_aside(monkeypatch: pytest.MonkeyPatch, size: int, is_aside: bool) -> None:
    read_by: list[threading.Thread] = []
    parse = strict_json.parse

    def watched(raw: bytes, values_max: int) -> object:
        read_by.append(threading.current_thread())
        return parse(raw, values_max)
    monkeypatch.setattr(strict_json, "parse", watched)
    body = json.dumps({"queue": "reports", "payload": "x" * size}).encode()

    asked: Any = asyncio.run(_read(body))

    assert asked.payload == "x" * size
    assert [thread is not threading.main_thread() for thread in read_by] == [is_aside]


async def _read(body: bytes) -> object:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}
    gateway = Gateway(cast("AsyncClient", None), None, Limits(), None)
    scope = {"type": "http", "method": "POST", "query_string": b"", "headers": [
        (b"content-type", b"application/json")]}
    return await gateway.read(Request(scope, receive), ENQUEUE)
