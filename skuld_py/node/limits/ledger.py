"""What the home of a queue knows of its claims, and hence what it may lend. A pure account: no message, no clock.

**Concurrency.** For every partition the account counts the claims that its leader reported last, and every loan
that may have become claims which no report shows yet. No loan raises the sum above the limit, and whichever nodes
are silent the sum is no less than what is held, since claims begin by loans only. A loan is struck off, partition
by partition, by a report of its borrower for which it was settled, or of a later leader of that partition, which
knows all claims. So silence costs room under the limit, and never the limit. Until every partition was reported
once, nothing is lent.

**Rate.** A bucket of at most ``burst`` tokens fills evenly. What is lent and not known to be spent takes its room,
so a borrower that uses tokens late lets no more pass in any window than one that uses them at once: in a time T at
most ``rate * T + burst``. The bucket begins empty.

Rejected: a fixed share for each partition (a limit below their number would starve some); permits as tasks of a
queue of their own (exact too, but every renewal twice); tokens that a borrower keeps for later (a window could
then see those of two windows).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from skuld_py.model.limiting import QueueLimits

Report = Iterable[tuple[int, int, int]]
"""(partition, epoch, claims held)."""
LoanName = tuple[str, int]
"""The borrower, and the number of its request."""


@attrs.define
class Loan:
    """``left``: partition -> epoch in which it may have become claims that no report shows."""

    count: int
    left: dict[int, int]


class Bucket:
    """Tokens of a rate. They are counted in parts, ``window_ms`` of them to a token, so that nothing is
    rounded."""

    def __init__(self, limits: QueueLimits, now_ms: int) -> None:
        self._rate, self._window_ms, self._burst = limits.rate, limits.window_ms, limits.burst
        self._parts = 0
        self._filled_ms = now_ms
        self._lent: dict[LoanName, tuple[int, int]] = {}
        """Loan -> tokens, and when they cannot be spent any more."""

    def fill(self, now_ms: int) -> None:
        """Let the time since the last call count; forget loans that are over."""
        room = (self._burst - sum(count for count, _ in self._lent.values())) * self._window_ms
        passed_ms = max(0, now_ms - self._filled_ms)
        self._parts = min(self._parts + self._rate * passed_ms, room)
        self._filled_ms = now_ms
        self._lent = {name: row for name, row in self._lent.items() if row[1] >= now_ms}

    @property
    def tokens(self) -> int:
        """The whole tokens in the bucket."""
        return self._parts // self._window_ms

    def knows(self, name: LoanName) -> bool:
        """Whether this loan is out."""
        return name in self._lent

    def lend(self, name: LoanName, count: int, over_ms: int) -> None:
        """Take out tokens, which the borrower may spend until ``over_ms``."""
        if count:
            self._parts -= count * self._window_ms
            self._lent[name] = count, over_ms

    def settle(self, name: LoanName, used: int) -> None:
        """The borrower spent ``used`` tokens of a loan; the others come back."""
        count, _ = self._lent.pop(name, (0, 0))
        self._parts += max(0, count - used) * self._window_ms

    def wait_ms(self) -> int:
        """Until the next whole token, if none is lent."""
        return max(0, -(-(self._window_ms - self._parts) // self._rate))


class Ledger:
    """The account of one queue in one leadership of its home. Nothing is lent before ``opens_ms``."""

    def __init__(self, limits: QueueLimits, version: int, partitions: int, opens_ms: int) -> None:
        self.opens_ms = opens_ms
        self._partitions = partitions
        self._used: dict[int, tuple[int, int]] = {}
        """Partition -> the epoch of its last report, and the claims held."""
        self._loans: dict[LoanName, Loan] = {}
        self.change(limits, version, opens_ms)

    def change(self, limits: QueueLimits, version: int, now_ms: int) -> None:
        """Other limits hold. Reports by older ones do not count: a leader that knew no limit granted freely."""
        self.limits = limits
        self.version = version
        self._used = {}
        self._bucket = Bucket(limits, now_ms) if limits.rate else None

    # -- news ----------------------------------------------------------------------------------

    def note(self, peer: str, report: Report, open_loan: int) -> None:
        """Take a leader's report of its partitions; of its loans only ``open_loan`` was not settled then."""
        for partition, epoch, used in report:
            if epoch >= self._used.get(partition, (0, 0))[0]:
                self._used[partition] = epoch, used
            for (borrower, number), loan in self._loans.items():
                known = loan.left.get(partition, epoch + 1)
                if epoch > known or (epoch == known and borrower == peer and number != open_loan):
                    del loan.left[partition]
        self._loans = {name: loan for name, loan in self._loans.items() if loan.left}

    def settle(self, now_ms: int, name: LoanName, used: int) -> None:
        """A borrower told what it has spent."""
        if self._bucket is not None:
            self._bucket.fill(now_ms)
            self._bucket.settle(name, used)

    # -- what may be lent ----------------------------------------------------------------------

    @property
    def free(self) -> int:
        """How many more claims the concurrency allows, by what is known."""
        if len(self._used) < self._partitions:
            return 0
        held = sum(used for _, used in self._used.values()) + sum(loan.count for loan in self._loans.values())
        return max(0, self.limits.concurrency - held)

    def lend(self, now_ms: int, name: LoanName, want: int, leads: Mapping[int, int], over_ms: int) -> int:
        """Lend up to ``want``, for claims on partitions led in these epochs; gives how many. A question that came
        twice gets nothing the second time."""
        is_known = name in self._loans or (self._bucket is not None and self._bucket.knows(name))
        if is_known or now_ms < self.opens_ms:
            return 0
        count = want
        if self.limits.concurrency:
            count = min(count, self.free)
        if self._bucket is not None:
            self._bucket.fill(now_ms)
            count = min(count, self._bucket.tokens)
            self._bucket.lend(name, count, over_ms)
        if count and self.limits.concurrency:
            self._loans[name] = Loan(count, dict(leads))
        return count

    def wait_ms(self, now_ms: int, usual_ms: int) -> int:
        """When to ask again, if less was lent than wanted."""
        if now_ms < self.opens_ms:
            return self.opens_ms - now_ms
        if self._bucket is not None and not self._bucket.tokens:
            return self._bucket.wait_ms()
        return usual_ms
