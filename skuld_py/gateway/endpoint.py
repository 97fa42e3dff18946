"""A path of the gateway, whatever it serves: each request is numbered, noted, and answered in any case.

Verbs, the OpenAPI document and the dashboard's pages are endpoints. What goes wrong leaves as an answer in the
shape that the endpoint's callers read, and a mistake of ours as one that says no more than its number.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from skuld_py.client.json_text import json_text
from skuld_py.client.steady import steady_s
from skuld_py.gateway.journal import Reporting, request_id
from skuld_py.gateway.problems import Problem, internal

if TYPE_CHECKING:
    from skuld_py.gateway.application import Gateway

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_log = logging.getLogger(__name__)


class Endpoint:
    """All methods of one path; ``route``: what counts and lines call it."""

    def __init__(self, gateway: Gateway, route: str) -> None:
        self._gateway = gateway
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        request.state.arrived = steady_s()
        request.state.id = request_id(request)
        reporting = Reporting(send, self._gateway.journal, request, self._route)
        with closing(reporting), ExitStack() as places:
            try:
                response = await self._respond(request, places)
                await response(scope, receive, Patient(reporting, self._gateway.limits.send_s))
            except (ClientDisconnect, TimeoutError):
                _log.info("request %s: its sender has gone", request.state.id)

    async def _respond(self, request: Request, places: ExitStack) -> Response:
        try:
            self._gateway.check_head(request)
            return await self._answer(request, places)
        except Problem as problem:
            return self._failure(request, problem)
        except ClientDisconnect:
            raise
        except Exception:
            _log.exception("request %s failed", request.state.id)
            return self._failure(request, internal())

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        raise NotImplementedError

    def _failure(self, request: Request, problem: Problem) -> Response:
        """A refusal, as the callers of this path read it."""
        return problem_answer(request, problem)


class Patient:
    """Sends, but not to a reader that takes nothing."""

    def __init__(self, send: Send, send_s: float) -> None:
        self._send = send
        self._send_s = send_s

    async def __call__(self, message: Message) -> None:
        async with asyncio.timeout(self._send_s):
            await self._send(message)


# -- answers -------------------------------------------------------------------------------------


class _Answer(JSONResponse):
    """A document, harmless on a terminal."""

    def render(self, content: Any) -> bytes:
        """The document as bytes."""
        return json_text(content, is_compact=True).encode()


def answer_of(document: Any) -> Response:
    """A document, with the headers of all answers."""
    return _Answer(document, headers=HEADERS)


def problem_answer(request: Request, problem: Problem) -> Response:
    """A refusal as JSON."""
    return _Answer(problem.document(request.state.id), problem.status, {**HEADERS, **problem.headers})
