"""How long an attempt may take: by its function, or by who enqueued the task, whose word goes first.

It travels as a header, for a task's header is what its claim is told besides the payload, by any release.
"""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.worker.traits import check_timeout

TIMEOUT_HEADER = "skuld-timeout-s"


def with_limit(headers: Mapping[str, str] | None, timeout_s: float | None) -> Mapping[str, str] | None:
    """The headers, and the limit if there is one."""
    check_timeout("timeout_s", timeout_s)
    return headers if timeout_s is None else {**(headers or {}), TIMEOUT_HEADER: repr(float(timeout_s))}


def limit_of(headers: Mapping[str, str], default_s: float | None) -> float | None:
    """Seconds; None for no limit. ``Refused`` when the header is no such number: it comes from anybody."""
    text = headers.get(TIMEOUT_HEADER)
    if text is None:
        return default_s
    try:
        limit_s = float(text)
    except ValueError:
        limit_s = 0.0
    check_timeout(f"header {TIMEOUT_HEADER}", limit_s)
    return limit_s
