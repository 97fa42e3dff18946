"""What a page is: a path, a template, and a function that asks for what it shows.

A page is a value, so the sections at the top of every page are a list of them, and one more is a row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from starlette.responses import Response

from skuld_py.gateway.dashboard.looking import Look


@attrs.frozen
class Page:
    """``path`` below the dashboard's own; ``make`` gives what the template shows, or an answer that is no page.
    ``section``: its name among those at the top of every page; empty if it is reached from others."""

    path: str
    title: str
    template: str
    make: Callable[[Look], Awaitable[dict[str, Any] | Response]]
    section: str = ""
