"""The OpenAPI document, made from the table of verbs and the models that check requests: it cannot drift.

It is made once, at the start, and open to all: it says nothing that the source does not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from skuld_py import __version__
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.requests import model_of
from skuld_py.gateway.values import Schemas
from skuld_py.model.roles import CLIENTS, roles_for
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Scope, Verb

_TEMPLATE = "#/components/schemas/{model}"

_DESCRIPTION = """\
A replicated task queue whose claims are leases. Each operation needs a bearer token with one of its roles
({roles}) or its scope ({scopes}), unless the gateway was started without tokens, on loopback.

**Whether it happened.** Every failure has the same shape. `outcome` is `refused` when it did not happen, and
`uncertain` when it may have. `retry` says whether the same request may be sent again. What carries the caller's
own ids, numbers or tokens is safe to repeat; a claim is not.

**Tokens** are decimal text: a number of JSON keeps 53 bits in many languages, and they have more. **Ids** are
text of 32 characters. **Bytes** are text (`payload`, `data`) or base64 (`payload_base64`, `data_base64`): one of
them in a request; in an answer always the base64, and the text beside it when it is UTF-8.

**Leases.** `valid_s` counts from the moment at which the caller *sent* the request, by its own steady clock.
Whoever stops by then has stopped before anybody else is given the task.

**Streams** (`application/x-ndjson`) are one JSON document a line. A failure after the first page is a last line
`{{"error": ...}}` with the shape of all failures.

Limits of this gateway: bodies of {body} bytes and {values} values, {batch} tasks or claims in one request,
{requests} open requests and {waiting} that wait, no more for one caller than are free; {wait} s of waiting.
"""

_FAILURES = {
    400: "No JSON, or no request.", 401: "No known token.", 403: "The token has not the scope, or not the queue.",
    404: "No such task.", 405: "Not by this method.", 406: "Not as this type.", 408: "The body came too slowly.",
    409: "Lost, or at odds with what is there.", 413: "Too large.", 415: "Not JSON.",
    422: "A field is wrong; it is named.", 429: "Too many wrong tokens, or too much at once of one caller.",
    431: "The request's head is too large.",
    500: "An error of the gateway's.",
    502: "A node of another kind or version, or one that refuses the gateway's key.",
    503: "Not now: busy, or without a leader. Nothing happened.",
    504: "It may have happened: no answer in time.",
}
_PROBLEM = {
    "type": "object",
    "description": "Why a request failed, and whether it happened.",
    "required": ["code", "message", "field", "retry", "outcome", "request_id"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs."},
        "message": {"type": "string", "description": "For people."},
        "field": {"type": ["string", "null"], "description": "What it is about: a field, a header, the body."},
        "retry": {"type": "boolean", "description": "Whether this very request may be sent again."},
        "outcome": {"enum": ["refused", "uncertain"], "description": "Did not happen; or may have."},
        "request_id": {"type": "string", "description": "Stands in the gateway's log, too."},
        "ids": {"type": "array", "items": {"type": "string"}, "description": "When an enqueue is uncertain:"
                " send it again with these."},
    },
}


def document(limits: Limits) -> dict[str, Any]:
    """The document of a gateway with these limits."""
    schemas = _schemas()
    paths: dict[str, Any] = {}
    for verb in VERBS:
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(verb, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Skuld", "version": __version__, "description": _DESCRIPTION.format(
            roles=", ".join(CLIENTS), scopes=", ".join(Scope), body=limits.body_bytes,
            batch=limits.batch_tasks, requests=limits.requests,
            values=limits.body_values, waiting=limits.waiting, wait=limits.wait_s)},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": _PROBLEM},
            "responses": {"Problem": {"description": "It failed.", "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


@cache
def _schemas() -> dict[str, Any]:
    """The schemas of all requests and answers, by name; to be read alone."""
    asked = list({model_of(verb.asks): None for verb in VERBS})
    _, requests = models_json_schema([(model, "validation") for model in asked], ref_template=_TEMPLATE,
                                     schema_generator=Schemas)
    adapters = {verb.answers.__name__: TypeAdapter(verb.answers) for verb in VERBS}
    found: dict[str, Any] = dict(requests.get("$defs", {}))
    for name, adapter in adapters.items():
        made = adapter.json_schema(mode="serialization", ref_template=_TEMPLATE, schema_generator=Schemas)
        found |= made.pop("$defs", {})
        found[name] = made
    return found


_EVENT = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}}
"""What a server-sent event is to those that read its stream."""


def _operation(verb: Verb, schemas: dict[str, Any]) -> dict[str, Any]:
    kind = ("text/event-stream" if verb.is_events else "application/x-ndjson" if verb.is_stream
            else "application/json")
    answer = {"$ref": _TEMPLATE.format(model=verb.answers.__name__)}
    schema = _EVENT if verb.is_events else {"type": "string"} if verb.is_stream else answer
    good: dict[str, Any] = {"description": (verb.answers.__doc__ or "").strip(),
                            "content": {kind: {"schema": schema}}}
    if verb.is_stream:
        good["description"] += f" One a line: a {verb.answers.__name__}."
    made: dict[str, Any] = {
        "operationId": verb.name, "summary": verb.summary,
        "responses": {"200": good, **{str(status): _failure(words) for status, words in _FAILURES.items()}}}
    if verb.scope is not None:
        made["security"] = [{"token": []}]
        roles = " or ".join(f"`{role}`" for role in roles_for(verb.name))
        made["description"] = f"Role: {roles}; or scope: `{verb.scope.value}`."
    else:
        made["security"] = []
    schema = schemas[verb.asks.name]
    if verb.method == "POST":
        made["requestBody"] = {"required": True, "content": {
            "application/json": {"schema": {"$ref": _TEMPLATE.format(model=verb.asks.name)}}}}
    else:
        made["parameters"] = [*_path_parameters(verb), *_query_parameters(schema)]
    return made


def _failure(words: str) -> dict[str, Any]:
    return {"description": words, "content": {
        "application/json": {"schema": {"$ref": _TEMPLATE.format(model="Problem")}}}}


def _path_parameters(verb: Verb) -> list[dict[str, Any]]:
    schema = {"type": "string", "pattern": "^[0-9a-v]{32}$", "minLength": 32, "maxLength": 32}
    return [{"name": "id", "in": "path", "required": True, "schema": schema}] if verb.has_id else []


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    made = []
    for name, field in schema.get("properties", {}).items():
        plain = {key: value for key, value in field.items() if key not in ("title", "description")}
        made.append({"name": name, "in": "query", "required": name in required, "schema": plain,
                     "description": field.get("description", "")})
    return made
