"""How a request fails: one JSON shape for all, whatever refused it, and the status that goes with it.

``outcome`` answers the only question that matters to the caller: ``refused``, it did not happen; ``uncertain``,
it may have happened. ``retry`` says whether this very request, sent again, may succeed and can do no harm. Both
are there besides the status because proxies on the way make statuses of their own.

A refusal names the field it is about. No stack, path, address or key is ever in it: what is no ``SkuldError`` is
logged here and told as ``internal``, with a number to find it by. The key that the gateway shows to nodes is its
operator's to mend: callers are told so, and its log why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skuld_py.client.pursuit import FINAL_CODES
from skuld_py.errors import KEY_CODES, Fenced, Refused, SkuldError, Uncertain

_STATUS = {
    "bad_json": 400, "bad_request": 400, "bad_host": 400,
    "unauthorized": 401, "forbidden_scope": 403, "forbidden_queue": 403, "forbidden_form": 403,
    "no_such_route": 404, "no_such_task": 404, "no_such_claim": 404, "unknown_claim": 404,
    "no_such_schedule": 404, "no_such_workflow": 404, "unknown_node": 404,
    "method_not_allowed": 405, "not_acceptable": 406, "body_timeout": 408,
    "conflict": 409, "fenced": 409, "not_dead": 409, "cancelled": 409, "too_old": 409, "expired": 409,
    "other_workflow": 409, "not_sealing": 409, "too_few_nodes": 409,
    "body_too_large": 413, "payload_too_large": 413, "entry_too_large": 413, "too_large": 413,
    "unsupported_media_type": 415,
    "too_many_failures": 429, "too_many_at_once": 429, "quota_full": 429,
    "header_too_large": 431,
    # The cluster, or the way to it, is not as it should be: it is not the caller's fault.
    "bad_answer": 502, "wrong_cluster": 502, "forbidden": 502, **dict.fromkeys(KEY_CODES, 502),
    "busy": 503, "no_leader": 503, "not_leader": 503, "not_ready": 503, "unavailable": 503, "unreachable": 503,
    "unled": 503, "stopping": 503, "closed": 503, "unsent": 503,
}
REFUSED_STATUS = 422
"""Whatever else the client or a node refuses: the JSON was good, what it says was not."""
UNCERTAIN_STATUS = 504
PASSING = frozenset({429, 503})
"""Statuses of what passes by itself: the answer says when to come again."""
RETRY_AFTER_S = 1
KEY_REFUSED = "the cluster does not do this for the key of this gateway; its operator finds the reason in its log"
_FIELD = re.compile(r"(?:[A-Z]\w{0,63}\.)?([a-z][a-z0-9_.]{0,63}): ")
"""What a message is about; of a field of the wire's own messages, its name."""


class Problem(Exception):
    """A failed request on its way out."""

    def __init__(self, status: int, code: str, message: str, *, field: str | None = None, retry: bool = False,
                 outcome: str = "refused", headers: Mapping[str, str] | None = None,
                 ids: list[str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.retry = retry
        self.outcome = outcome
        self.headers = dict(headers or {})
        self.ids = ids
        if status in PASSING:
            self.headers["Retry-After"] = str(RETRY_AFTER_S)

    def document(self, request_id: str) -> dict[str, Any]:
        """The shape of all failures; ``ids`` only where they are of use."""
        made = {"code": self.code, "message": self.message, "field": self.field, "retry": self.retry,
                "outcome": self.outcome, "request_id": request_id}
        return made if self.ids is None else {**made, "ids": self.ids}


def refusal(code: str, message: str, *, field: str | None = None,
            headers: Mapping[str, str] | None = None) -> Problem:
    """A refusal of the gateway's own."""
    status = _STATUS[code]
    return Problem(status, code, message, field=field, retry=status in PASSING, headers=headers)


def problem_of(error: SkuldError, *, is_repeatable: bool, ids: list[str] | None = None) -> Problem:
    """What the client raised, as an answer. ``is_repeatable``: done twice is the same as done once."""
    field = error.facts.get("field")
    named = _FIELD.match(error.message)
    name = field if isinstance(field, str) else named[1] if named else None
    if isinstance(error, Uncertain):
        is_final = error.code in FINAL_CODES
        return Problem(409 if is_final else UNCERTAIN_STATUS, error.code, error.message, field=name,
                       retry=is_repeatable and not is_final, outcome="uncertain", ids=ids)
    if not isinstance(error, Refused):
        return Problem(500, error.code, "a stored record is damaged; the node's log names it", outcome="uncertain")
    status = _STATUS.get(error.code, REFUSED_STATUS)
    if error.code in KEY_CODES:
        return Problem(status, error.code, KEY_REFUSED)
    # A lost claim is lost, and what exists stays: only what passes is worth asking again.
    retry = status in PASSING and not isinstance(error, Fenced)
    return Problem(status, error.code, error.message, field=name, retry=retry)


def internal() -> Problem:
    """A mistake of ours: what happened is not known here."""
    return Problem(500, "internal", "an error in the gateway; its log has it under this request_id",
                   outcome="uncertain")
