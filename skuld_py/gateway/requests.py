"""Requests as models, made from what the table of verbs says may be asked: their JSON schemas are the published
ones.

A request is checked whole before anything is asked of the cluster, so what is refused for its form has done
nothing. The cluster refuses what only it can know: whether an id exists, how many copies there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from skuld_py.calls.payloads import call
from skuld_py.client.claims import HeldClaim
from skuld_py.errors import Refused
from skuld_py.gateway import values
from skuld_py.gateway.values import Absent, Asked
from skuld_py.verbs.options import (
    REQUIRED,
    Choice,
    Kind,
    Line,
    Many,
    Number,
    One,
    Option,
    Plain,
    Request,
    Seconds,
    Whole,
)

_of: Any = Annotated
_one_of: Any = Literal
_list: Any = list
_FORMS: dict[Kind, Any] = {
    Plain.NAME: values.Name, Plain.HOLDER: values.Holder, Plain.TEXT: str, Plain.WORDS: values.Words,
    Plain.FLAG: bool, Plain.ID: values.Id, Plain.TOKEN: values.Token, Plain.TIME: values.Time,
    Plain.PAST: _of[float, Field(gt=0, allow_inf_nan=False)], Plain.STATES: values.States,
    Plain.PAIRS: dict[str, str], Plain.OBJECT: dict[str, Any]}


@cache
def model_of(request: Request) -> type[Asked]:
    """The model that checks a request, and whose schema is published."""
    fields: dict[str, Any] = {}
    for option in request.options:
        fields |= _fields_of(option)
    made: type[Asked] = create_model(
        request.name, __base__=Asked, __doc__=request.words, __validators__={"_keeps": _keeping(request)},
        __cls_kwargs__={"json_schema_extra": _extra_of(request)}, **fields)
    return made


def given(request: Request, asked: Any) -> dict[str, Any]:
    """What was asked, by the names of options, as the functions of verbs take it."""
    return _reader_of(request)(asked)


@cache
def _reader_of(request: Request) -> Callable[[Any], dict[str, Any]]:
    readers = [(option.name, _reader(option)) for option in request.options]
    return lambda asked: {name: read(asked) for name, read in readers}


def _fields_of(option: Option) -> dict[str, Any]:
    if option.kind is Plain.CLAIM:
        return {"id": (values.Id, ...), "token": (values.Token, ...), "proof": (values.Proof, b"")}
    if option.kind is Plain.CALL:
        return {"call": (_of[values.FunctionName | None, Absent, Field(description=f"{option.told}.")], None),
                "args": (_of[list[Any], Field(description="Its arguments in order, any JSON.")], []),
                "kwargs": (_of[dict[str, Any], Field(description="Its arguments by name.")], {})}
    if option.kind is Plain.JSON:
        return {option.name: (_of[Any, Field(description=option.told)], None)}
    if option.kind is Plain.BYTES:
        noun, is_wanted = option.told, option.default is REQUIRED
        text = f"{noun} as text" if noun else "As text"
        more = f"{text}; or {option.name}_base64{'' if is_wanted else ', or none'}."
        exact = f"{noun} as bytes." if is_wanted else "As bytes."
        return {option.name: (_of[str | None, Absent, Field(description=more)], None),
                f"{option.name}_base64": (_of[values.Base64 | None, Absent, Field(description=exact)], None)}
    form, words = _form(option.kind), option.help if option.told is None else option.told
    told = [Field(description=words)] if words else []
    if option.default is None:
        return {option.field or option.name: (_of[form | None, Absent, *told], None)}
    default = ... if option.default is REQUIRED else "" if option.kind is Plain.STATES else option.default
    return {option.field or option.name: (_of[form, *told] if told else form, default)}


def _form(kind: Kind) -> Any:
    match kind:
        case Line(least, most, example):
            return _of[str, Field(min_length=least or None, max_length=most,
                                  examples=[example] if example else None)]
        case Whole(least, most):
            return _of[int, Field(ge=least, le=most)]
        case Number(least, most) | Seconds(least, most):
            return _of[float, Field(ge=least, le=most, allow_inf_nan=False)]
        case Choice(words):
            return _one_of[words]
        case One(of):
            return model_of(of)
        case Many(of, least, most):
            row = model_of(of) if isinstance(of, Request) else _FORMS[of]
            return _of[_list[row], Field(min_length=least, max_length=most)]
        case _:
            return _FORMS[kind]


def _extra_of(request: Request) -> dict[str, Any]:
    """What a schema says of fields that exclude each other."""
    made: dict[str, Any] = {}
    if request.either:
        made["oneOf"] = [{"required": [name]} for name in request.either]
    for option in request.options:
        if option.kind is Plain.BYTES:
            pair = [option.name, f"{option.name}_base64"]
            if option.default is REQUIRED:
                made["oneOf"] = [{"required": [name]} for name in pair]
            else:
                made["not"] = {"required": pair}
    return made


def _keeping(request: Request) -> Any:
    def keeps(asked: Any) -> Any:
        try:
            for option in request.options:
                if option.kind is Plain.BYTES:
                    _check_bytes(option, asked)
                if option.kind is Plain.CALL and asked.call is None and (asked.args or asked.kwargs):
                    raise Refused("bad_call", "call: is missing, which args and kwargs are for")
            for check in request.checks:
                check(asked)
        except Refused as refusal:
            raise PydanticCustomError(refusal.code, refusal.message) from None
        return asked
    return model_validator(mode="after")(keeps)


def _check_bytes(option: Option, asked: Any) -> None:
    name, exact = option.name, f"{option.name}_base64"
    is_text, is_exact = getattr(asked, name) is not None, getattr(asked, exact) is not None
    if option.default is REQUIRED and is_text == is_exact:
        raise Refused(f"bad_{name}", f"{name}: give either {name} or {exact}")
    if is_text and is_exact:
        raise Refused(f"bad_{name}", f"{name}: give {name} or {exact}, not both")


def _reader(option: Option) -> Callable[[Any], Any]:
    """A function that gives the value of an option from a request."""
    read: Callable[[Any], Any] = attrgetter(option.field or option.name)
    match option.kind:
        case Plain.CLAIM:
            return lambda asked: HeldClaim(asked.id, asked.token, asked.proof)
        case Plain.BYTES:
            exact = attrgetter(f"{option.name}_base64")
            return lambda asked: exact(asked) or b"" if (text := read(asked)) is None else text.encode()
        case Plain.CALL:
            return lambda asked: None if asked.call is None else call(asked.call, *asked.args, **asked.kwargs)
        case Plain.TIME:
            return lambda asked: None if (time_ms := read(asked)) is None else time_ms / 1000
        case Plain.STATES:
            return lambda asked: read(asked).split(",") if read(asked) else []
        case One(of):
            read_one = _reader_of(of)
            return lambda asked: None if (one := read(asked)) is None else read_one(one)
        case Many(Request() as of):
            read_each = _reader_of(of)
            return lambda asked: [*map(read_each, read(asked))]
        case _:
            return read
