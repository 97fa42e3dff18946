"""What a node does by itself, without being asked: each feature's part of it is a duty.

A duty is due at a time, or at once when there is news for it: when a dict that it reads (of ``Bulletin``, say) is
not empty. A duty takes out what it has looked at. At the end of each turn the node looks at the duties that are
due, in an order that ``node`` argues for, and at no others; which are due it sees without a call of a feature's
code.

Invariants: ``due_ms`` is never later than what the duty knows to be due. A duty that was looked at is due again
only for a reason: a node whose duty stays due never rests.

Rejected: to call every duty in every turn, and let it find out, which was a quarter of the cost of a single
request.
"""

from __future__ import annotations

from collections.abc import Sized

NEVER_MS = 1 << 62


class Duty:
    """A part of what a node does by itself."""

    due_ms = 0
    """When it wants to be looked at; ``NEVER_MS`` not before there is news."""
    rests_until_ms = 0
    """It is not looked at before, whatever news there is."""
    news: tuple[Sized, ...] = ()
    """What it is woken for, unless they are all empty."""

    def look(self, now_ms: int) -> None:
        """See to what is due."""
        raise NotImplementedError

    def hasten(self, due_ms: int) -> None:
        """Something is due then, or was before."""
        if due_ms < self.due_ms:
            self.due_ms = due_ms
