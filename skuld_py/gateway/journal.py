"""What the gateway says of each request: a line of its log, a header of its answer, and its counts.

A request keeps the ``X-Request-ID`` that a proxy or its caller gave it, if that is 1 to ``ID_CHARS_MAX`` printable
characters of ASCII without a space; else it gets one of ours, so that what is logged can never forge a line. Every
answer has it as a header, refusals among them. The line names the route and not the path, which has ids in it, and
the token's name, never the token.

What the cluster refuses to the gateway's own key is its operator's to mend, whatever its callers ask: an error for
each reason, once in ``KEY_PAUSE_S`` while it lasts, and a count.

What a page of the dashboard has done is a line of its own: who, from where, what, and what came of it.

Counts are plain numbers of the one thread of the gateway; the scrape reads them as they stand.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import Message, Send

from skuld_py.client.json_text import json_text
from skuld_py.client.steady import steady_s
from skuld_py.errors import KEY_CODES, SkuldError

HEADER = "x-request-id"
ID_CHARS_MAX = 128
METHODS = frozenset({"GET", "HEAD", "POST"})
OTHER = "other"
"""Any other method in counts and lines: strangers must not be able to make series without end."""
NOBODY = "-"
"""Who a request is from when no token was looked at."""
KEY_PAUSE_S = 60.0
"""How long the same is not said again of the gateway's key."""
ASKED_CHARS = 4_000
"""Of what was asked for, in a line about it: a hundred ids."""
_ID = re.compile(rf"[!-~]{{1,{ID_CHARS_MAX}}}", re.ASCII)
_log = logging.getLogger(__name__)


def request_id(request: Request) -> str:
    """The number of a request: its own if that is fit to be logged, else a new one."""
    given = request.headers.get(HEADER, "")
    return given if _ID.fullmatch(given) else secrets.token_hex(8)


class Journal:
    """What has been answered."""

    def __init__(self) -> None:
        self.open = 0
        self.answered: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.keys_refused: Counter[str] = Counter()
        self._said_of_keys: dict[str, float] = {}

    def note_failure(self, error: SkuldError, number: str, now: float) -> None:
        """Log and count it, if it is about the key of this gateway. ``now``: by a steady clock."""
        if error.code not in KEY_CODES:
            return
        self.keys_refused[error.code] += 1
        if now - self._said_of_keys.get(error.code, float("-inf")) < KEY_PAUSE_S:
            return
        self._said_of_keys[error.code] = now
        _log.error("the cluster refuses the key of this gateway: %s, request %s", error, number,
                   extra={"facts": {"event": "key_refused", "code": error.code, "request_id": number}})

    def note(self, method: str, route: str, status: int, took_s: float, bearer: str, number: str) -> None:
        """Log a request that is over, and count it. A status of 0: its sender had gone."""
        self.answered[method, route, status] += 1
        self.seconds[method, route] += took_s  # type: ignore[assignment]  # seconds are no whole numbers
        _log.info("%s %s %d %.1f ms by %s, request %s", method, route, status, 1000 * took_s, bearer, number,
                  extra={"facts": {"event": "request", "method": method, "route": route, "status": status,
                                   "ms": round(1000 * took_s, 1), "bearer": bearer, "request_id": number}})

    def note_action(self, number: str, came: str, *, verb: str, asked: Mapping[str, Any], bearer: str,
                    address: str) -> None:
        """Log what somebody had a page do, and what came of it, for those who ask later who it was."""
        facts = {"event": "action", "verb": verb, "asked": asked, "bearer": bearer, "address": address,
                 "outcome": came, "request_id": number}
        _log.info("audit: %s by %s from %s, asked %s: %s, request %s", verb, bearer, address,
                  json_text(asked, is_ascii=True)[:ASKED_CHARS], came, number, extra={"facts": facts})

    def collect(self) -> Iterable[Metric]:
        """The gateway's metrics."""
        yield GaugeMetricFamily("skuld_gateway_requests_open", "Requests under way.", float(self.open))
        requests = CounterMetricFamily("skuld_gateway_requests", "Requests answered; 0: the sender had gone.",
                                       labels=["method", "route", "status"])
        for (method, route, status), count in list(self.answered.items()):
            requests.add_metric([method, route, str(status)], float(count))
        yield requests
        seconds = CounterMetricFamily("skuld_gateway_request_seconds", "Time that requests took.",
                                      labels=["method", "route"])
        for (method, route), took in list(self.seconds.items()):
            seconds.add_metric([method, route], float(took))
        yield seconds
        refused = CounterMetricFamily("skuld_gateway_key_refused", "Requests that the cluster refused to the"
                                      " gateway's own key.", labels=["code"])
        for code in sorted(KEY_CODES):
            refused.add_metric([code], float(self.keys_refused[code]))
        yield refused


class Reporting:
    """Sends an answer with the number of its request, and notes the request when it is over."""

    def __init__(self, send: Send, journal: Journal, request: Request, route: str) -> None:
        self._send = send
        self._journal = journal
        self._request = request
        self._route = route
        self._status = 0
        journal.open += 1

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            MutableHeaders(scope=message)[HEADER] = self._request.state.id
        await self._send(message)

    def close(self) -> None:
        """The request is over."""
        self._journal.open -= 1
        state = self._request.state
        method = self._request.method if self._request.method in METHODS else OTHER
        self._journal.note(method, self._route, self._status, steady_s() - state.arrived,
                           getattr(state, "bearer", NOBODY), state.id)
