"""What one gateway takes on, in one place, with units in the names.

Each bound has an answer of its own: a body too large is 413, a body too slow 408, too much at once 503. A bound
without an answer would be a hanging connection, which a caller cannot tell from a lost one.
"""

from __future__ import annotations

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused


@attrs.frozen
class Limits:
    """Of one gateway process. Its memory is bounded by ``requests`` times ``body_bytes``, and the answers.

    Of ``requests`` and of ``waiting`` one caller may have as many as are free, see ``places``.
    """

    body_bytes: int = 8 << 20
    """A payload of 1 MiB fits in any spelling: JSON may need six characters for one byte."""
    batch_tasks: int = DEFAULT_LIMITS.batch_tasks
    requests: int = 256
    """Open at once, besides those that wait; one more is told 503 and when to come again."""
    body_values: int = 50_000
    """Values in a body's JSON: what is read must not keep other requests waiting, see ``strict_json``."""
    aside_bytes: int = 64 << 10
    """A larger body is read in a thread of its own."""
    waiting: int = 192
    """Claims and results that wait, and followers of a log: they have places of their own, for they stay long."""
    wait_s: float = 30.0
    """The longest that a claim, or a reader that follows a log, may wait in one request."""
    failures_per_s: float = 5.0
    """Wrong tokens of one address that are answered 401; more are told 429."""
    connections: int = 2_000
    """Open at once, or fewer where there are few files. One address may have as many as are free."""
    header_s: int = 5
    """A connection that has not sent a whole request head by then is closed; nor may TLS take longer to begin."""
    header_bytes: int = 16 << 10
    """A request line and its headers; beyond it 431."""
    body_s: float = 30.0
    """A body that has not arrived by then is refused with 408."""
    send_s: float = 30.0
    """A reader that takes nothing for this long is cut off."""
    stop_s: int = 10
    """How long requests may go on after the gateway was told to stop."""

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if value <= 0:
                raise Refused("bad_limit", f"{name}: {value} is not above 0", field=name)
