"""The verbs that limit a queue: how much of it is held at once, by all and by each, how much is claimed in a time;
and those about quotas: how many tasks may be open in all queues that begin alike.

Limits are set all together, so that what holds for a queue can be read in one place and set from one. What makes
no sense is refused before anything is asked.
"""

from __future__ import annotations

import math

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Work, ask, verb
from skuld_py.client.setting import Setting
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.model import names
from skuld_py.model.limiting import (
    QUOTA_MAX,
    RATE_MAX,
    WINDOW_MS_MAX,
    QueueLimits,
    decode_limits,
    decode_quota,
    encode_quota,
)
from skuld_py.model.setting import LIMITS, QUOTA, UNSET
from skuld_py.model.state import OPEN


@attrs.frozen
class QuotaUse:
    """A quota: ``open`` tasks may be open. ``tasks`` are; None where nobody could count them now."""

    open: int
    tasks: int | None


class Limiting(Setting):
    """The verbs about limits, of a client with a name."""

    @verb
    def set_limits(self, queue: str, *, concurrency: int | None = None, rate: int | None = None,
                   per_s: float = 1.0, burst: int | None = None,
                   key_concurrency: int | None = None, holder_concurrency: int | None = None,
                   longest_lease_s: float | None = None) -> Work[list[str]]:
        """Let at most ``concurrency`` tasks of a queue be claimed at once, at most ``rate`` in ``per_s`` seconds
        (and ``burst`` more in any time; a second's worth if left out), and ``key_concurrency`` of one key (1).

        Of one holder at most ``holder_concurrency``, as far as the leader that grants sees: one that asks several
        nodes in the same moment may get more. Who claims for longer than ``longest_lease_s`` is refused as
        ``lease_too_long``; renewals are not. These two need rules 4 of the cluster (``old_rules``).

        What is left out is not limited: these replace the limits that the queue had. Those that it has change
        nothing, so a program may set them at every start. Claims that are held stay.
        Gives the names of registered nodes that have not confirmed it: where it is not in force yet."""
        names.check_name("queue", queue)
        value = limits_of(concurrency, rate, per_s, burst, key_concurrency, holder_concurrency,
                          longest_lease_s).encode()
        return (yield from self._set(LIMITS, queue, value))

    @verb
    def remove_limits(self, queue: str) -> Work[list[str]]:
        """Limit a queue no more; gives the nodes that have not confirmed it."""
        return (yield from self._set(LIMITS, queue, UNSET))

    @verb
    def limits(self, queue: str | None = None) -> Work[dict[str, QueueLimits]]:
        """The limits of a queue, or of all that have some, by queue, in the order of their names."""
        if queue is not None:
            names.check_name("queue", queue)
        values = yield from self._values(LIMITS, queue or "")
        return {name: decode_limits(value) for name, value in values.items()}


    @verb
    def set_quota(self, prefix: str, open: int) -> Work[list[str]]:
        """Let about ``open`` tasks at most be open, that is, not have ended, of all queues whose names begin with
        ``prefix``. What clients enqueue beyond is refused as ``quota_full``; what is there stays, and what
        schedules and workflows enqueue is let in.

        Each node counts by the copies that it keeps, about once a second, and adds what it lets in: so it may be
        exceeded by what other nodes let in meanwhile. Needs rules 4 of the cluster (``old_rules``). Gives the
        names of registered nodes that have not confirmed it."""
        names.check_name("prefix", prefix)
        if prefix.startswith(names.QUEUES_OF_WORKFLOWS):
            raise Refused("bad_name", f"prefix: {prefix!r} is of queues of workflows, which have no quota",
                          field="prefix")
        if type(open) is not int or not 1 <= open <= QUOTA_MAX:
            raise _bad(f"open: {str(open)[:40]} is not in 1..{QUOTA_MAX}; pause what nothing may be claimed of",
                       "open")
        return (yield from self._set(QUOTA, prefix, encode_quota(open)))

    @verb
    def remove_quota(self, prefix: str) -> Work[list[str]]:
        """Let any number of tasks be open of the queues that begin so; gives the nodes that have not confirmed
        it."""
        names.check_name("prefix", prefix)
        return (yield from self._set(QUOTA, prefix, UNSET))

    @verb
    def quotas(self) -> Work[dict[str, int]]:
        """How many tasks may be open, by how the names of queues begin, in the order of these."""
        return {prefix: decode_quota(value) for prefix, value in (yield from self._values(QUOTA)).items()}

    @verb
    def quota_use(self) -> Work[dict[str, QuotaUse]]:
        """The quotas, and how many tasks are open beside each, as the leaders count them."""
        quotas = {prefix: decode_quota(value) for prefix, value in (yield from self._values(QUOTA)).items()}
        if not quotas:
            return {}
        try:
            rows = (yield from ask(m.Counted, m.Count(0, ""))).message.rows
        except SkuldError:  # whether tasks can be counted or not, the quotas are known
            return {prefix: QuotaUse(most, None) for prefix, most in quotas.items()}
        open_of = {row.queue: sum(row.counts[state] for state in OPEN) for row in rows
                   if not row.queue.startswith(names.QUEUES_OF_WORKFLOWS)}
        return {prefix: QuotaUse(most, sum(count for queue, count in open_of.items() if queue.startswith(prefix)))
                for prefix, most in quotas.items()}


def limits_of(concurrency: int | None, rate: int | None, per_s: float, burst: int | None,
              key_concurrency: int | None, holder_concurrency: int | None = None,
              longest_lease_s: float | None = None) -> QueueLimits:
    """The limits that a caller wants; raises ``Refused`` when they make no sense."""
    given = {"concurrency": concurrency, "rate": rate, "burst": burst, "key_concurrency": key_concurrency,
             "holder_concurrency": holder_concurrency}
    for name, number in given.items():
        if number is not None and (type(number) is not int or number < 1):
            raise _bad(f"{name}: {str(number)[:40]} is no whole number above 0; leave it out for no limit, and"
                       " pause a queue of which nothing may be claimed", name)
    if type(per_s) not in (int, float) or not 0.001 <= per_s <= WINDOW_MS_MAX / 1000:
        raise _bad(f"per_s: {str(per_s)[:40]} is not between 0.001 and {WINDOW_MS_MAX // 1000} seconds", "per_s")
    if burst is not None and rate is None:
        raise _bad("burst: it belongs to a rate; give the rate too", "burst")
    window_ms = round(per_s * 1000) if rate is not None else 0
    if rate is not None and burst is None:
        burst = min(RATE_MAX, max(1, math.ceil(rate / per_s)))
    lease_ms = 0 if longest_lease_s is None else checking.as_ms("longest_lease_s", longest_lease_s, least=1)
    limits = QueueLimits(concurrency or 0, rate or 0, window_ms, burst or 0, key_concurrency or 0,
                         holder_concurrency or 0, lease_ms)
    if limits.problem():
        raise _bad(limits.problem(), limits.problem().partition(":")[0])
    return limits


def _bad(text: str, field: str) -> Refused:
    return Refused("bad_limits", text, field=field)
