"""The log of a command, on standard error: lines for people, or a JSON document a line with ``--json``.

A program that reads a verb's answer from standard output must be able to read all of the rest, too, so what
``--json`` changes there it changes here.
"""

from __future__ import annotations

import json
import logging

_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Documents(logging.Formatter):
    """One record as one document."""

    def format(self, record: logging.LogRecord) -> str:
        document = {"at_ms": int(record.created * 1000), "level": record.levelname.lower(), "logger": record.name,
                    "message": record.getMessage()}
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document)


def begin(is_verbose: bool) -> None:
    """Log what needs attention, or what is going on as well."""
    logging.basicConfig(level=logging.INFO if is_verbose else logging.WARNING, format=_LINE)
    # Every lost connection is a warning there; what it means for a verb, the verb says itself.
    logging.getLogger("kazoo").setLevel(logging.INFO if is_verbose else logging.ERROR)


def as_documents() -> None:
    """From now on, documents."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Documents())
