"""The limits of a queue: how many of its tasks may be held at once, and how many claimed in a time.

One register of settings holds all limits of a queue, so that a change of them is one change: to set limits is to
say all of them. The value is canonical JSON, equal limits are equal bytes.

* ``concurrency``: claims of the queue that are held at once, on all partitions together.
* ``rate`` in ``window_ms``, ``burst``: in any time T at most ``rate * T / window_ms + burst`` tasks are claimed.
* ``key_concurrency``: claims of one ordering key that are held at once; without it 1.
* ``holder_concurrency``: claims that one holder has at once, as its leaders see it (``node.claims.caps``).
* ``lease_ms``: the longest lease that may be claimed with.

The last two are *caps*: nodes that know rules before 4 only take limits with caps for none.

A rate is two integers and no fraction, so that every node counts alike.
"""

from __future__ import annotations

import json

import attrs

from skuld_py.config import LEASE_MS_MAX

CONCURRENCY_MAX = 1_000_000
RATE_MAX = 1_000_000
WINDOW_MS_MAX = 24 * 3600 * 1000
KEY_CONCURRENCY_MAX = 1_000
CAPS_RULES = 4
QUOTA_MAX = 1_000_000_000
"""Open tasks that a quota may allow."""


@attrs.frozen
class QueueLimits:
    """The limits of a queue. 0 is no limit, and for ``key_concurrency`` the default, 1."""

    concurrency: int = 0
    rate: int = 0
    window_ms: int = 0
    burst: int = 0
    key_concurrency: int = 0
    holder_concurrency: int = 0
    lease_ms: int = 0

    @property
    def has_caps(self) -> bool:
        """Whether it says anything of single holders."""
        return bool(self.holder_concurrency or self.lease_ms)

    @property
    def is_lent(self) -> bool:
        """Whether a claim of the queue needs a loan from its home: ordering keys do not."""
        return bool(self.concurrency or self.rate)

    @property
    def given(self) -> dict[str, int]:
        """The limits that there are, by name."""
        return {name: number for name, number in attrs.asdict(self).items() if number}

    def encode(self) -> bytes:
        """The value of the register."""
        return json.dumps(self.given, separators=(",", ":"), sort_keys=True).encode()

    def problem(self) -> str:
        """Which field makes no sense, and what would; empty when all do."""
        for name, highest in _HIGHEST.items():
            number = getattr(self, name)
            if type(number) is not int or not 0 <= number <= highest:
                return f"{name}: {str(number)[:40]} is not in 1..{highest}"
        if not (self.concurrency or self.rate or self.key_concurrency or self.has_caps):
            return "concurrency: give it, rate, key_concurrency, holder_concurrency, or longest_lease"
        if len({bool(self.rate), bool(self.window_ms), bool(self.burst)}) > 1:
            return "rate: it goes with a window and a burst, and these with a rate"
        return ""


_HIGHEST = {"concurrency": CONCURRENCY_MAX, "rate": RATE_MAX, "window_ms": WINDOW_MS_MAX, "burst": RATE_MAX,
            "key_concurrency": KEY_CONCURRENCY_MAX, "holder_concurrency": CONCURRENCY_MAX,
            "lease_ms": LEASE_MS_MAX}
NO_LIMITS = QueueLimits()


def decode_limits(value: bytes) -> QueueLimits:
    """The limits in a register's value; raises ``ValueError`` when it holds none."""
    fields = json.loads(value)
    if not isinstance(fields, dict) or not fields.keys() <= _HIGHEST.keys():
        raise ValueError("no limits")
    limits = QueueLimits(**fields)
    problem = limits.problem()
    if problem:
        raise ValueError(problem)
    return limits


def encode_quota(most: int) -> bytes:
    """The value of the register of a quota."""
    return str(most).encode()


def decode_quota(value: bytes) -> int:
    """How many tasks may be open; raises ``ValueError`` when the value holds no quota."""
    most = int(value) if value.isdigit() and len(value) <= len(str(QUOTA_MAX)) else 0
    if not 1 <= most <= QUOTA_MAX or encode_quota(most) != value:
        raise ValueError(f"no quota of 1..{QUOTA_MAX}")
    return most


def is_quota(value: bytes) -> bool:
    """Whether a register may have this value."""
    try:
        return bool(decode_quota(value))
    except ValueError:
        return False


def are_limits(value: bytes) -> bool:
    """Whether a register may have this value."""
    try:
        return decode_limits(value).encode() == value
    except (ValueError, RecursionError):
        return False
