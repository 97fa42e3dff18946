"""The application: each request through the same gates, in this order, and nothing is done before the last.

 1. one length, and one token: what is told in two ways is one request to us and another one to a proxy on the way
    (400); and, without tokens, the host: a page of a browser must not reach a gateway on loopback by a name of
    its own making (DNS rebinding);
 2. the path (404), then the method (405): no verb runs to find out that it was not meant;
 3. the token (401, 429) and its scope (403), before a byte of the body is read;
 4. room: one request too many is told when to come again (503), and one caller cannot have all of it (429). Up to
    here nothing is waited for, so strangers take no place; and ``health`` needs none, so that a gateway with much
    to do is not taken for a dead one;
 5. what is sent and wanted (415, 406), the body's size and pace (413, 408);
 6. JSON (400), and what it says (422): all of it, field by field;
 7. the verb. What waits gives its place back and takes one of those for long stays.

Streams are lines of JSON, one document each (NDJSON), a page in memory at a time; a slow reader slows the reading
down. Their first page is read before the status is sent, so that most failures have one. A failure later on is the
last line: ``{"error": ...}``, in the shape of all failures.

There is no CORS, and bodies must say they are JSON, so a page in a browser cannot send one unasked.

FastAPI was rejected: it reads and parses a body before it checks the token, and every answer of its own has
another shape than ours. Starlette, which it stands on, does the routing and the streaming.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import ExitStack, aclosing
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from skuld_py.client.async_client import AsyncClient
from skuld_py.client.json_text import json_text
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.gateway import access, openapi, strict_json
from skuld_py.gateway.call import Call
from skuld_py.gateway.dashboard.dashboard import Dashboard
from skuld_py.gateway.endpoint import HEADERS, Endpoint, answer_of
from skuld_py.gateway.journal import Journal
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.places import Places
from skuld_py.gateway.problems import Problem, internal, refusal
from skuld_py.gateway.requests import given, model_of
from skuld_py.gateway.routes import by_path, do, problem_for
from skuld_py.gateway.values import Asked
from skuld_py.model.ids import TaskId, from_text
from skuld_py.model.names import queues_of
from skuld_py.model.roles import roles_for
from skuld_py.verbs.verb import Verb

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENTS = "text/event-stream"
QUERY_FIELDS_MAX = 16
_log = logging.getLogger(__name__)


class Gateway:
    """The application's state. ``tokens``: None lets all callers in; others may take their place at any time, and
    each request, and each page of a stream, goes by those that are there. ``hosts``: None takes any ``Host``.
    ``is_secure``: browsers reach it over TLS only, so its cookies go no other way."""

    def __init__(self, client: AsyncClient, tokens: access.Tokens | None, limits: Limits,
                 hosts: frozenset[str] | None, *, is_secure: bool = False) -> None:
        self._client = client
        self.is_secure = is_secure
        self.tokens = tokens
        self.limits = limits
        self._hosts = hosts
        self._failures = access.Failures(limits.failures_per_s, steady_s)
        self.journal = Journal()
        self._places = Places(limits.requests, "requests are open", "wait and try again")
        self._stays = Places(limits.waiting, "requests wait already", "ask without waiting, or later")
        self.stopping = asyncio.Event()

    def application(self) -> Starlette:
        """What an ASGI server runs."""
        routes = [Route(path, _Verbs(self, verbs, path)) for path, verbs in by_path().items()]
        document = openapi.document(self.limits)
        routes.insert(0, Route("/openapi.json", _Document(self, document)))
        routes += Dashboard(self, document).routes()
        made = Starlette(routes=routes)
        made.router.redirect_slashes = False
        made.router.default = _Verbs(self, {})
        return made

    # -- the gates -----------------------------------------------------------------------------

    def check_head(self, request: Request) -> None:
        """Refuse what two readers may take for different requests, and names that are not ours."""
        if self.stopping.is_set():
            raise refusal("stopping", "this gateway is stopping; ask another one")
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            raise refusal("bad_request", "content-length: there is a transfer-encoding as well",
                          field="content-length", headers={"Connection": "close"})
        if len(request.headers.getlist("authorization")) > 1:
            raise refusal("bad_request", "authorization: there is more than one; send one token",
                          field="authorization")
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self._hosts is not None and name.lower() not in self._hosts:
            raise refusal("bad_host", "host: this gateway is not known by this name; see --allow-host",
                          field="host")

    def identify(self, request: Request, verb: Verb) -> access.Bearer:
        """The sender of a request; refused when it is unknown, or may not do this."""
        if self.tokens is None or verb.scope is None:
            request.state.bearer = access.ANYBODY.name
            return access.ANYBODY
        bearer = self.tokens.find(request.headers.get("authorization"))
        if bearer is None:
            self.note_unknown(request)
            raise refusal("unauthorized", "authorization: a known token is wanted: Authorization: Bearer TOKEN",
                          field="authorization", headers={"WWW-Authenticate": "Bearer"})
        request.state.bearer = bearer.name
        if not bearer.is_valid(time.time_ns() // 1_000_000):
            raise refusal("unauthorized", "authorization: the time of this token is over; ask for another one",
                          field="authorization", headers={"WWW-Authenticate": "Bearer"})
        _check_scope(bearer, verb, request.state.id)
        return bearer

    def note_unknown(self, request: Request) -> None:
        """Count a wrong token; refused when its address has shown too many."""
        if self._failures.are_too_many(request.client.host if request.client is not None else ""):
            raise refusal("too_many_failures", "too many requests with wrong tokens; wait and try again")

    async def read(self, request: Request, verb: Verb) -> Asked:
        """Read the body or query, and check it."""
        fields = _query_of(request)
        if verb.method == "GET":
            return _checked(lambda: model_of(verb.asks).model_validate_strings(fields))
        if fields:
            raise refusal("bad_request", f"query: {verb.name} takes its arguments in the body", field="query")
        _check_content_type(request)
        try:
            async with asyncio.timeout(self.limits.body_s):
                raw = await self._body(request)
        except TimeoutError:
            raise refusal("body_timeout", f"body: it did not arrive within {self.limits.body_s:g} s",
                          field="body", headers={"Connection": "close"}) from None
        def understood() -> Asked:
            value = strict_json.parse(raw, self.limits.body_values)
            return _checked(lambda: model_of(verb.asks).model_validate(value))
        return understood() if len(raw) <= self.limits.aside_bytes else await asyncio.to_thread(understood)

    async def _body(self, request: Request) -> bytes:
        most = self.limits.body_bytes
        too_large = refusal("body_too_large", f"body: more than the {most} bytes that this gateway takes; send"
                            " several requests, or store the data elsewhere and send its path", field="body")
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared[:20]) > most:
            raise too_large
        found = bytearray()
        async for part in request.stream():
            found += part
            if len(found) > most:
                raise too_large
        return bytes(found)

    def enter(self, request: Request, bearer: access.Bearer, places: ExitStack) -> None:
        """Take a place among short requests, or be refused."""
        places.enter_context(self._places.taken(_caller(request, bearer)))

    async def run(self, request: Request, verb: Verb, places: ExitStack) -> Response:
        """A request through the gates that are left, and its verb. ``places`` keeps its place until the answer."""
        bearer = self.identify(request, verb)
        if verb.scope is not None:
            self.enter(request, bearer, places)
        _check_accept(request, EVENTS if verb.is_events else NDJSON if verb.is_stream else JSON)
        task_id = _path_id(request) if verb.has_id else None
        call = Call(self._client, self.limits, bearer, request.state.arrived, task_id,
                    lambda: self._gone(request), self.stopping.wait)
        asked = await self.read(request, verb)
        if verb.is_events:
            asked = _resumed(request, asked)
        _check_reach(bearer, verb, asked)
        if _stays(asked):
            places.close()
            places.enter_context(self._stays.taken(_caller(request, bearer)))
        if verb.is_stream:
            return await _streamed(request, do(verb, call, given(verb.asks, asked)),
                                   lambda: _check_reach(self.identify(request, verb), verb, asked),
                                   lambda error: self.problem_of(error, request, verb),
                                   _events if verb.is_events else _encoded)
        return answer_of(await do(verb, call, given(verb.asks, asked)))

    async def perform(self, request: Request, bearer: access.Bearer, verb: Verb, fields: Mapping[str, Any],
                      task_id: TaskId | None = None, by: Callable[..., Any] | None = None) -> Any:
        """A verb for a page of the dashboard, whose sender is known: what it answers, or its pages; by the same
        rights and checks as over HTTP. ``fields``: what a body would hold. ``by``: what does it in another way."""
        if verb.scope is not None:
            _check_scope(bearer, verb, request.state.id)
        asked = _checked(lambda: model_of(verb.asks).model_validate(fields))
        _check_reach(bearer, verb, asked)
        call = Call(self._client, self.limits, bearer, request.state.arrived, task_id,
                    self.stopping.wait, self.stopping.wait)  # type: ignore[arg-type]  # what it gives, nobody reads
        wanted = given(verb.asks, asked)
        answer = do(verb, call, wanted) if by is None else by(call, **wanted)
        return answer if verb.is_stream else await answer

    def problem_of(self, error: SkuldError, request: Request, verb: Verb) -> Problem:
        """What an error of a verb is to its caller; noted, if it is for the operator."""
        self.journal.note_failure(error, request.state.id, steady_s())
        return problem_for(error, verb)

    async def _gone(self, request: Request) -> None:
        leaving = asyncio.ensure_future(_left(request))
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait((leaving, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            stopping.cancel()


async def _left(request: Request) -> None:
    """Returns when the sender has hung up. Its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        continue


class _Verbs(Endpoint):
    """The verbs of one path, by method."""

    def __init__(self, gateway: Gateway, verbs: Mapping[str, Verb], route: str = "none") -> None:
        super().__init__(gateway, route)
        self._verbs = verbs

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        verb = self._verb(request)
        try:
            return await self._gateway.run(request, verb, places)
        except SkuldError as error:
            raise self._gateway.problem_of(error, request, verb) from error

    def _verb(self, request: Request) -> Verb:
        if not self._verbs:
            raise refusal("no_such_route", "there is nothing at this path; see /openapi.json", field="path")
        method = "GET" if request.method == "HEAD" else request.method
        verb = self._verbs.get(method)
        if verb is None or (request.method == "HEAD" and verb.is_stream):
            raise refusal("method_not_allowed", f"method: {', '.join(self._verbs)} is what this path takes",
                          field="method", headers={"Allow": ", ".join(self._verbs)})
        return verb


class _Document(Endpoint):
    """The OpenAPI document, open to all callers."""

    def __init__(self, gateway: Gateway, document: dict[str, Any]) -> None:
        super().__init__(gateway, "/openapi.json")
        self._document = document

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise refusal("method_not_allowed", "method: GET is what this path takes", field="method",
                          headers={"Allow": "GET"})
        self._gateway.enter(request, access.ANYBODY, places)
        return answer_of(self._document)


# -- answers -------------------------------------------------------------------------------------


async def _streamed(request: Request, pages: AsyncGenerator[list[Any], None], check: Callable[[], None],
                    problem_of: Callable[[SkuldError], Problem], encoded: Callable[[list[Any]], bytes]
                    ) -> Response:
    """The first page now, the others as they are taken, as long as ``check`` does not refuse."""
    first: list[Any] = await anext(pages, [])
    return StreamingResponse(_lines(request, first, pages, check, problem_of, encoded),
                             media_type=EVENTS if encoded is _events else NDJSON, headers=HEADERS)


async def _lines(request: Request, first: list[Any], pages: AsyncGenerator[list[Any], None],
                 check: Callable[[], None], problem_of: Callable[[SkuldError], Problem],
                 encoded: Callable[[list[Any]], bytes]) -> AsyncIterator[bytes]:
    async with aclosing(pages):
        yield encoded(first)
        try:
            async for page in pages:
                check()
                yield encoded(page)
        except (Problem, SkuldError) as error:
            problem = error if isinstance(error, Problem) else problem_of(error)
            yield encoded([{"error": problem.document(request.state.id)}])
        except Exception:
            _log.exception("request %s failed", request.state.id)
            yield encoded([{"error": internal().document(request.state.id)}])


def _encoded(page: list[Any]) -> bytes:
    return b"".join(json_text(line, is_compact=True).encode() + b"\n" for line in page)


def _events(page: list[Any]) -> bytes:
    """As events, so that a browser that lost its connection goes on behind the last one by itself."""
    return b"".join(
        (f"id: {line['position']}\n" if "position" in line else "event: problem\n").encode()
        + b"data: " + json_text(line, is_compact=True).encode() + b"\n\n" for line in page)


# -- requests ------------------------------------------------------------------------------------


def _resumed(request: Request, asked: Asked) -> Asked:
    """As it is asked again by a reader of events that has seen some."""
    last = request.headers.get("last-event-id", "")
    if not last:
        return asked
    if not (last.isascii() and last.isdecimal() and len(last) < 16):
        raise refusal("bad_request", "last-event-id: is no position", field="last-event-id")
    return asked.model_copy(update={"from": int(last) + 1})


def _queue_of(asked: Asked) -> str | None:
    """The queue that a request names; of a workflow, how the names of its queues begin: "" if it does not say of
    which."""
    definition = getattr(asked, "definition", None)
    workflow = getattr(asked, "workflow", None) if definition is None else definition.get("id", "")
    if workflow is None:
        return getattr(asked, "queue", None)
    return queues_of(workflow) if workflow and isinstance(workflow, str) else ""


def _check_scope(bearer: access.Bearer, verb: Verb, number: str) -> None:
    if verb.scope is not None and not bearer.may(verb):
        _log.warning("token %s may not %s, request %s", bearer.name, verb.name, number)
        raise refusal("forbidden_scope", f"this token has neither the role {' or '.join(roles_for(verb.name))}"
                      f" nor the scope {verb.scope.value!r}, and {verb.name} needs one of them",
                      field="authorization")


def _check_reach(bearer: access.Bearer, verb: Verb, asked: Asked) -> None:
    if not bearer.reaches(verb, _queue_of(asked)):
        raise refusal("forbidden_queue", f"queue: this token is for queues that begin with"
                      f" {' or '.join(bearer.queues)}, and {verb.name} as it was asked for reaches others",
                      field="queue")


def _caller(request: Request, bearer: access.Bearer) -> str:
    """Who has a request's place: a token, or an address where none is known."""
    if bearer is not access.ANYBODY:
        return f"token {bearer.name}"
    return f"address {request.client.host if request.client is not None else ''}"


def _stays(asked: Asked) -> bool:
    """Whether a request is to wait for something, or to follow it."""
    return bool(getattr(asked, "wait_s", 0)) and getattr(asked, "follow", True)


def _query_of(request: Request) -> dict[str, str]:
    try:
        text = request.scope["query_string"].decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict",
                          max_num_fields=QUERY_FIELDS_MAX) if text else []
    except ValueError:
        raise refusal("bad_request", "query: is no list of NAME=VALUE in percent-encoded UTF-8",
                      field="query") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise refusal("bad_request", "query: a name is given twice", field="query")
    return fields


def _path_id(request: Request) -> TaskId:
    try:
        return from_text(request.path_params["id"])
    except Refused as error:
        raise refusal("no_such_task", error.message, field="id") from None


def _check_content_type(request: Request) -> None:
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower()
    if kind.strip().lower() != JSON or charset not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise refusal("unsupported_media_type", f"content-type: {JSON} is wanted", field="content-type")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise refusal("unsupported_media_type", "content-encoding: bodies are not decompressed",
                      field="content-encoding")


def _check_accept(request: Request, ours: str) -> None:
    wanted = [kind.partition(";")[0].strip().lower() for kind in request.headers.get("accept", "*/*").split(",")]
    if not {ours, JSON, "application/*", "*/*", ""} & {*wanted}:
        raise refusal("not_acceptable", f"accept: the answer is {ours}", field="accept")


def _checked(check: Callable[[], Asked]) -> Asked:
    """The request as a model checks it; the first complaint becomes the answer."""
    try:
        return check()
    except ValidationError as errors:
        found = errors.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in found["loc"] if part != "[key]")[:200]
    message = found["msg"]
    if not field:
        field, _, message = message.rpartition(": ") if ": " in message else ("body", "", message)
    code = found["type"] if found["type"].startswith("bad_") else "bad_field"
    raise Problem(422, code, f"{field}: {message}", field=field)
