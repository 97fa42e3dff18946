"""The log of a command, on standard error: lines for people, or a JSON document a line.

A program that reads a verb's answer from standard output must be able to read all of the rest, too, so what
``--json`` changes there it changes here. Verbs that run until a signal have ``--log-level`` and ``--log-format``
besides, which go before it. What they say of themselves is INFO and is shown; of other libraries only what
needs attention is, unless ``--verbose`` or the level ``debug`` asks for all.

A record may have ``facts``: what its words say, as values for programs. Rejected: structlog, python-json-logger,
which bring ways of logging of their own for one formatter of ten lines.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import click

from skuld_py.client.steady import wall_s

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OURS = "skuld_py"

F = TypeVar("F", bound=Callable[..., Any])


class _Lines(logging.Formatter):
    """One record as one line, its time with the zone: logs of several machines are read together."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Date, time, thousandths and zone."""
        return super().formatTime(record, datefmt) + time.strftime("%z", time.localtime(record.created))


class _Documents(logging.Formatter):
    """One record as one document."""

    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        document = {**facts, "at_ms": int(record.created * 1000), "level": record.levelname.lower(),
                    "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to standard error. A worker's task may have closed it, and nobody fails for what cannot be said; or
    it may have stopped the time of the module ``time``, by which records are made."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, with the time that it is."""
        record.created = wall_s()
        record.msecs = record.created % 1 * 1000
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """What went wrong is said where it went wrong, if that is open."""
        if not self.stream.closed:
            super().handleError(record)


def begin(is_verbose: bool) -> None:
    """Log what needs attention, or what is going on as well."""
    handler = _Handler(sys.stderr)
    handler.setFormatter(_Lines(_LINE))
    logging.basicConfig(level=logging.INFO if is_verbose else logging.WARNING, handlers=[handler])
    # Every lost connection is a warning there; what it means for a verb, the verb says itself.
    logging.getLogger("kazoo").setLevel(logging.INFO if is_verbose else logging.ERROR)


def as_documents() -> None:
    """From now on, documents."""
    _format_as(_Documents())


def log_options(function: F) -> F:
    """``--log-level`` and ``--log-format``, for verbs that run until a signal."""
    level = click.option("--log-level", type=click.Choice(LEVELS), default="info", expose_value=True,
                         callback=_note_level, help="How much to log, on standard error.")
    form = click.option("--log-format", type=click.Choice(FORMATS), default=None, callback=_note_format,
                        show_default="text, or json with --json", help="Log lines for people, or for programs.")
    return level(form(function))


def _note_level(_: click.Context, __: click.Parameter, level: str) -> str:
    number = logging.getLevelName(level.upper())
    logging.getLogger(_OURS).setLevel(number)
    if level == "debug":
        logging.getLogger("kazoo").setLevel(logging.INFO)
    return level


def _note_format(_: click.Context, __: click.Parameter, form: str | None) -> str | None:
    if form is not None:
        _format_as(_Documents() if form == "json" else _Lines(_LINE))
    return form


def _format_as(formatter: logging.Formatter) -> None:
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)
