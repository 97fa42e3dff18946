"""The header by which a trace goes on from the caller who enqueues a task to the function that runs it.

It is ``traceparent`` of W3C Trace Context: version, trace, span, flags. What is no such text is not carried: a
header comes from any client, and a tracer downstream must not have to cope with it.
"""

from __future__ import annotations

import re

TRACEPARENT = "traceparent"
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def is_traceparent(text: str) -> bool:
    """Whether a text is a valid ``traceparent``."""
    return _FORM.fullmatch(text) is not None
