"""A task that moves what is new in a source to a sink, by Structured Streaming, and then ends.

How far it has come is kept below ``checkpoints``, under the task: a later claim goes on there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.calls import payloads
from skuld_py.calls.kinds import STREAM, fields
from skuld_py.calls.kinds.sql import sql_conf

SCHEMA_CHARS_MAX = 65_536
MODES = ("append", "update", "complete")
_SOURCE, _SINK = ("format", "path", "schema", "options"), ("format", "path", "mode", "options")
_WITH_SCHEMA = ("csv", "json", "orc", "parquet", "xml")
_INFERENCE = "spark.sql.streaming.schemaInference"
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_CHECKPOINT = "checkpointlocation"


@attrs.frozen
class Place:
    """Where rows come from or go to. ``schema`` is a source's, ``mode`` a sink's."""

    format: str
    path: str | None
    options: Mapping[str, fields.Option]
    schema: str | None = None
    mode: str = MODES[0]


@attrs.frozen
class StreamTask:
    """From a source, through a function of the application's, if one is named, to a sink."""

    source: Place
    sink: Place
    checkpoints: str
    transform: str | None
    conf: Mapping[str, str]


def stream(source: Mapping[str, Any], sink: Mapping[str, Any], checkpoints: str, *, transform: str | None = None,
           conf: Mapping[str, fields.Option] | None = None) -> bytes:
    """The payload of a task that streams all that is new in a source into a sink, and ends. ``source`` has
    ``format``, and ``path``, ``schema`` (DDL: ``id long, v string``) and ``options`` where the format has them;
    ``sink`` has ``format``, ``path``, ``options`` and ``mode`` (append, update, complete). ``checkpoints``: the
    directory below which the task keeps how far it is. ``transform``: ``module:function`` of the worker's
    application, which makes a DataFrame of a DataFrame. Raises ``Refused``, which names the field."""
    kwargs: dict[str, Any] = {"transform": transform, "conf": dict(conf or {})}
    return payloads.pack(STREAM, [_plain(source), _plain(sink), checkpoints],
                         {name: value for name, value in kwargs.items() if value}, payloads.AS_IT_IS)


def checked(source: Any, sink: Any, checkpoints: Any, *, transform: Any = None, conf: Any = None) -> StreamTask:
    """The task of a call's arguments; ``Refused`` names the field that is wrong."""
    settings = sql_conf(conf)
    return StreamTask(_source(source, settings), _sink(sink), fields.path("checkpoints", checkpoints),
                      None if transform is None else _function(transform), settings)


def _plain(place: Mapping[str, Any]) -> Any:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in place.items()}


def _source(value: Any, conf: Mapping[str, str]) -> Place:
    given = fields.record("source", value, ("format",), _SOURCE)
    schema = given.get("schema")
    made = Place(fields.format_name("source.format", given["format"]), _path("source", given),
                 fields.options("source.options", given.get("options")),
                 None if schema is None else fields.text("source.schema", schema, SCHEMA_CHARS_MAX))
    if made.format in _WITH_SCHEMA and schema is None and conf.get(_INFERENCE) != "true":
        raise fields.wrong("source.schema", f"a stream of {made.format} files needs one: columns with their types,"
                           " as 'id long, v string'")
    return made


def _sink(value: Any) -> Place:
    given = fields.record("sink", value, ("format",), _SINK)
    mode = given.get("mode", MODES[0])
    if mode not in MODES:
        raise fields.wrong("sink.mode", f"{mode!r:.40} is none of {', '.join(MODES)}")
    options = fields.options("sink.options", given.get("options"))
    if any(name.lower() == _CHECKPOINT for name in options):
        raise fields.wrong("sink.options", "the checkpoint's place is the task's own, below checkpoints; leave"
                           " checkpointLocation out")
    return Place(fields.format_name("sink.format", given["format"]), _path("sink", given), options, mode=mode)


def _path(side: str, given: Mapping[str, Any]) -> str | None:
    path = given.get("path")
    return None if path is None else fields.path(f"{side}.path", path)


def _function(value: Any) -> str:
    name = fields.text("transform", value, payloads.NAME_CHARS_MAX)
    if _FUNCTION.fullmatch(name) is None:
        raise fields.wrong("transform", f"{name[:60]!r} names no function; write for example acme.streams:clean")
    return name
