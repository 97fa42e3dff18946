"""When to renew leases, and when to give them up for lost: the renewer's decisions, without its clock.

Times are seconds on one steady clock, given by the caller. A deadline is counted from the moment the last
confirmed request was *sent*, so it passes before the lease can have ended anywhere else.

Invariants:

* A claim is reported lost exactly once: when the cluster said so, or at its deadline, whatever happened to
  the requests in between. Nothing is asked for it afterwards.
* Renewal begins after a third of the lease, so two more tries fit in before the deadline even when each one
  takes its whole time; a failed try is repeated soon, not a third later.
* Nothing is renewed for a worker that is stopped, or stuck for ``stall_s`` (``vitals``): a process that renews on
  behalf of one that is stuck would keep the task from all others for ever.
* One request at a time: while one is under way nothing else is due, except the end of a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from skuld_py.model.leases import holder_deadline
from skuld_py.worker.vitals import Vitals

RETRY_S_MAX = 1.0

Key = tuple[bytes, int, bytes]
"""A claim: its task's id, its token and its proof."""


@attrs.define
class _Lease:
    deadline: float
    renew_at: float


@attrs.frozen
class Step:
    """What to do now: renew these, report those lost, and look again at ``wake_at`` (None: when asked)."""

    renew: tuple[Key, ...] = ()
    lost: tuple[Key, ...] = ()
    wake_at: float | None = None


class LeaseKeeper:
    """All leases of one worker, all of length ``lease_s``."""

    def __init__(self, lease_s: float, stall_s: float, now: float) -> None:
        self._lease_s = lease_s
        self.vitals = Vitals(stall_s, now)
        self._leases: dict[Key, _Lease] = {}
        self._is_asking = False

    @property
    def keys(self) -> tuple[Key, ...]:
        """The claims."""
        return tuple(self._leases)

    @property
    def first_deadline(self) -> float | None:
        """When the first of them ends; None without any."""
        return min((lease.deadline for lease in self._leases.values()), default=None)

    def __len__(self) -> int:
        return len(self._leases)

    def hold(self, key: Key, deadline: float) -> None:
        """Keep this claim, which ends at ``deadline`` unless it is renewed."""
        self._leases[key] = _Lease(deadline, deadline - self._lease_s * 2 / 3)

    def drop(self, key: Key) -> None:
        """Forget a claim: it was completed or released."""
        self._leases.pop(key, None)

    def beat(self, now: float) -> None:
        """The worker is alive and well."""
        self.vitals.heard(now)

    def is_stalled(self, now: float) -> bool:
        """Whether the worker is stopped, or has shown no life for too long."""
        return not self.vitals.may_hold(now)

    def step(self, now: float) -> Step:
        """What is due. Every lease that is due or nearly due joins one request."""
        lost = tuple(key for key, lease in self._leases.items() if lease.deadline <= now)
        for key in lost:
            del self._leases[key]
        renew: tuple[Key, ...] = ()
        if not self._is_asking and not self.is_stalled(now):
            if any(lease.renew_at <= now for lease in self._leases.values()):
                soon = now + self._lease_s / 6
                renew = tuple(key for key, lease in self._leases.items() if lease.renew_at <= soon)
                self._is_asking = True
        return Step(renew, lost, self._wake_at(now))

    def answered(self, sent: float, held: Mapping[Key, bool | None],
                 now: float) -> tuple[dict[Key, float], tuple[Key, ...]]:
        """The verdict on a request sent at ``sent``: new deadlines, and the claims that are lost.

        Claims with an unknown verdict (None) are asked for again soon.
        """
        self._is_asking = False
        extended: dict[Key, float] = {}
        lost = []
        for key, is_held in held.items():
            lease = self._leases.get(key)
            if lease is None:
                continue
            if is_held is None:
                lease.renew_at = self._retry_at(now)
            elif is_held:
                lease.deadline = max(lease.deadline, holder_deadline(sent, self._lease_s))
                lease.renew_at = sent + self._lease_s / 3
                extended[key] = lease.deadline
            else:
                del self._leases[key]
                lost.append(key)
        return extended, tuple(lost)

    def unanswered(self, now: float, keys: Iterable[Key]) -> None:
        """A request failed, or its outcome is unknown: try again soon."""
        self._is_asking = False
        for key in keys:
            if key in self._leases:
                self._leases[key].renew_at = self._retry_at(now)

    def _retry_at(self, now: float) -> float:
        return now + min(RETRY_S_MAX, self._lease_s / 12)

    def _wake_at(self, now: float) -> float | None:
        times = [lease.deadline for lease in self._leases.values()]
        if not self._is_asking and not self.is_stalled(now):
            times += [lease.renew_at for lease in self._leases.values()]
        return min(times, default=None)
