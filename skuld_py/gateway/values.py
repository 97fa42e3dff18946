"""The kinds of values in requests and answers, each with its JSON schema: what is checked is what is documented.

Ids are text of 32 characters, as the command line prints them.

Tokens are decimal text. They have 63 bits, of which JavaScript and many other readers of JSON keep 53; a token
that changed on the way would be another claim. A request may give a number instead, up to 2^53 - 1. Larger is
newer, for storages that compare them. The proof that a claim was granted is beside its token, in 16 hex digits:
only the holder is told, and every request for the claim must have it.

Bytes are given as UTF-8 text under a name (``payload``, ``data``) or as base64 under ``NAME_base64``: one of the
two in a request. An answer always has the base64, and the text beside it when the bytes are text: the same
rule, and the same names, as the JSON of the command line.
"""

from __future__ import annotations

import base64
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from skuld_py.calls.payloads import NAME_CHARS_MAX
from skuld_py.model import ids, proofs
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.ids import TaskId
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.model.prelude import NAME_BYTES_MAX
from skuld_py.verbs.options import SAFE_MAX, STATES

_ID = re.compile(r"[0-9a-v]{32}", re.ASCII)
_TOKEN = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_PROOF = re.compile(r"(?:[0-9a-f]{16})?", re.ASCII)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)


class Asked(BaseModel):
    """What a request may say: these fields, of these very types, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class Schemas(GenerateJsonSchema):
    """JSON schemas as they are published: what may be left out may not be null instead."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """No ``default: null``: the field is then just absent."""
        if "default" in schema and schema["default"] is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def _id(value: Any) -> TaskId:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise PydanticCustomError("bad_id", "is not a task id: 32 characters of 0-9 and a-v, as enqueue gave it")
    return ids.from_text(value)


def _token(value: Any) -> int:
    if type(value) is int and FIRST_TOKEN <= value <= SAFE_MAX:
        return value
    if isinstance(value, str) and _TOKEN.fullmatch(value) and FIRST_TOKEN <= (token := int(value)) <= U63_MAX:
        return token
    raise PydanticCustomError("bad_token", "is not a fencing token: decimal text as claim gave it, or a number"
                              " below 2^53")


def _proof(value: Any) -> bytes:
    if not isinstance(value, str) or not _PROOF.fullmatch(value):
        raise PydanticCustomError("bad_proof", "is not a claim's proof: 16 hex digits, as claim gave it")
    return proofs.from_text(value)


def _base64(value: Any) -> bytes:
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        raise PydanticCustomError("bad_base64", "is not base64 with padding, of the alphabet with + and /")
    return base64.b64decode(value)


def _words(value: str) -> str:
    if len(value.encode()) > NAME_BYTES_MAX:
        raise PydanticCustomError("bad_field", f"is no text of 1 to {NAME_BYTES_MAX} bytes of UTF-8")
    return value


def _printed(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("bad_name", "has characters that cannot be printed")
    return value


class _Absent:
    """Takes the null out of what is checked and published; the default stays None."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable", schema
        inner: core_schema.CoreSchema = schema["schema"]
        return inner


Absent = _Absent()
"""Marks what may be left out, but not be null: ``Annotated[str | None, Absent] = None``."""

NAME_SCHEMA = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=NAME_SCHEMA, max_length=200, examples=["reports"])]
FunctionName = Annotated[str, AfterValidator(_printed), Field(
    min_length=1, max_length=NAME_CHARS_MAX, examples=["shop:add"])]
Holder = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$", max_length=200, examples=["mill-7:4411"])]
Id = Annotated[TaskId, PlainValidator(_id), WithJsonSchema({
    "type": "string", "pattern": "^[0-9a-v]{32}$", "minLength": 32, "maxLength": 32,
    "examples": ["000006cvl5s5o0000000e1k0g5u3k7qh"]})]
Token = Annotated[int, PlainValidator(_token), WithJsonSchema({"anyOf": [
    {"type": "string", "pattern": "^[1-9][0-9]*$", "maxLength": 19, "examples": ["4294967297"]},
    {"type": "integer", "minimum": 1, "maximum": SAFE_MAX}]})]
Proof = Annotated[bytes, PlainValidator(_proof), Field(
    description="As it came with the claim; left out only where claims come without."), WithJsonSchema(
    {"type": "string", "pattern": "^(?:[0-9a-f]{16})?$", "examples": ["9f86d081884c7d65"]})]
Words = Annotated[str, AfterValidator(_words), Field(min_length=1, max_length=NAME_BYTES_MAX)]
Base64 = Annotated[bytes, PlainValidator(_base64), WithJsonSchema({
    "type": "string", "contentEncoding": "base64",
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"})]
Time = Annotated[int, Field(ge=1, le=SAFE_MAX, description="Milliseconds since 1970, at most ten years ahead.")]
_STATE = "(?:" + "|".join(STATES) + ")"
States = Annotated[str, Field(
    pattern=f"^(?:{_STATE}(?:,{_STATE})*)?$", max_length=200, examples=["dead,cancelled"],
    description="Only tasks in one of these states, separated by commas; in any if left out.")]
