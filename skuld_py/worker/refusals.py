"""A worker that claims nothing, and why: it goes on, for most of it passes by itself, and says so loudly.

What the cluster refuses for the worker's key does not pass: somebody must act, so it is an error. All else is a
warning. The claimer asks again ever less often, so a line for each refusal is a few a minute.
"""

from __future__ import annotations

import logging

from skuld_py.errors import KEY_CODES, SkuldError
from skuld_py.worker.counts import Counts

_log = logging.getLogger(__name__)


def note_refusal(counts: Counts, error: SkuldError) -> None:
    """Log and count that a request for tasks failed."""
    counts.refused[error.code] = counts.refused.get(error.code, 0) + 1
    level = logging.ERROR if error.code in KEY_CODES else logging.WARNING
    _log.log(level, "nothing can be claimed: %s", error,
             extra={"facts": {"event": "not_claimed", "code": error.code}})
