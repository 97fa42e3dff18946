"""The entries that workers write into the logs of claims (``worker.journal`` has their format), as readers take
them."""

from __future__ import annotations

import json
from typing import Any

ENGINE_DIED = "engine_died"


def decode_entry(data: bytes) -> dict[str, Any]:
    """An entry as a dict; bytes of another make are ``{"kind": "unknown"}`` and never an error."""
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        entry = None
    return entry if isinstance(entry, dict) and "kind" in entry else {"kind": "unknown"}
