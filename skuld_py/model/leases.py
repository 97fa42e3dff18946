"""The arithmetic of leases: why a holder has stopped, by any clock, before its task is granted again.

The actors and their clocks, each with a rate within ``RATE`` of the true one:

* The **holder** sends its request at ``sent`` by its own steady clock, which cannot be set. It stops at
  ``holder_deadline``: the lease counted from then, plus what the coordinator says it parked the claim, less what
  the three clocks' rates and roundings can make of both.
* The **granting leader** records ``end_ms``: its clock when it granted, or renewed, plus the lease. That is
  after the holder sent, and after the claim was parked. It renews nothing whose end it has passed, and an end
  never moves back.
* **A later leader** grants again when its own clock shows ``end_ms`` plus the skew bound
  (``partition.data.replica``: the lapse and the veto alike). At that moment the granting leader's clock shows at
  least ``end_ms``, since two clocks never differ by more than the bound; so in true time the lease is over:

      holder:  sent + (parked + lease) (1 - 2 RATE) / (1 - RATE)  <=  granted + lease / (1 + RATE)  :leader

  since (1 - 2r)(1 + r) < 1 - r, and the grant is at least ``parked`` / (1 + RATE) after the sending. Delays of
  messages only add to the right side.

A leader that recovers claims from others measures both from its wall time and from its election. A node's
clock is the wall's as of its start, carried on by a steady clock (``runtime.clock``), so within one start the
two are one number: what is left of a lease when it is read passes at the steady rate. Between two starts:

* Set back, a clock lets its leases lapse later. Tasks it had let lapse too early are checked again before they
  are granted (``Replica.still_waiting``).
* Set forward by more than the bound against its peers, the node is found out before it may grant
  (``node.leadership.clocks``). A cluster of one node, or whose clocks are all set forward at once while it is
  down, has no other clock to ask: leases that were running lapse early by as much, less the bound. The clocks of
  one machine before and after a restart are under the promise of the bound too.
"""

from __future__ import annotations

RATE = 1e-3
"""Twice what the kernel may slew a clock by (500 ppm), to leave room for a bad crystal."""
ROUNDING_S = 0.003
"""Whole milliseconds: of the lease asked for, of the time parked, of the leader's clock."""


def holder_deadline(sent: float, lease_s: float, parked_ms: int = 0) -> float:
    """When the holder must have stopped, on the clock of ``sent``; all in seconds but ``parked_ms``."""
    return sent + max(0.0, (parked_ms / 1000 + lease_s - ROUNDING_S) * (1 - 2 * RATE))
