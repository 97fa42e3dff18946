"""What happens in a small world unless it deviates, and on which of it the deviations are.

The fault of a scenario befalls the leader, once or again and again, each time when claims of its successor are
held; in ``join`` while a fourth node fills and the cohort moves. Clients that always wait for more find a lost
claim: a leader that lacks it grants its task to one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.simulation.log_options import LogOptions
from skuld_py.simulation.options import CLAIM_KEY, Options, Workload
from skuld_py.simulation.small.world import Focus
from skuld_py.simulation.world.network import Weather
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

NODES, SPARE = ("n1", "n2", "n3"), "n4"
BEGIN_MS = 700
"""By then a leader is elected and claims are held. From now on the run may deviate."""
PATIENCE_MS = 700
"""Of clients: longer than a leader stands still, so that they hear what it says when it wakes up deposed."""
SEAT_MS = 300
"""How long a node that joins is up before it may have a seat: by then it has filled."""
NEAR_MS = 400
"""A horizon below the leases."""
LOG = LogSettings(wait_ms=500, back_off_ms=20, repeat_ms=500, takeover_ms=300, forget_ms=None)


@attrs.frozen
class Scenario:
    """``fault``: one of ``world.TURNS``, or "old copy", or "veto", or none; it strikes ``times`` times."""

    fault: str = ""
    times: int = 1
    joins: bool = False
    begin_ms: int = BEGIN_MS
    horizon_ms: int = DEFAULT_TIMING.horizon_ms
    page_rows: int = DEFAULT_LIMITS.page_rows

    @property
    def options(self) -> Options:
        """What the world is like."""
        timing = attrs.evolve(
            DEFAULT_TIMING, resend_ms=60, request_ms=800, grant_ms=300, gossip_ms=150, silence_ms=450,
            vote_ms=250, page_ms=250, sync_ms=1_500, heir_delay_ms=60, retry_ms=60, exchange_ms=1_500,
            exchange_page_ms=300, confirm_ms=5, seat_ms=SEAT_MS, horizon_ms=self.horizon_ms, clock_ms=100)
        return Options(
            Parameters("small", "small-1", 1, len(NODES), 100, claim_key=CLAIM_KEY),
            (*NODES, SPARE) if self.joins else NODES, (SPARE,) if self.joins else (), timing,
            attrs.evolve(DEFAULT_LIMITS, page_rows=self.page_rows), Weather(latency_mean_ms=0.0, tail=0.0),
            RegistryOptions(session_ms=400, leg_ms=0, watch_ms=0, has_document_watches=False),
            Workload(1, ("q",), 0, 0, 0, PATIENCE_MS, (0, 0), (), 1, is_logging=False), ("wipe",), 0, 0.0,
            is_on_wire=False, has_core_phase=False, is_total_loss=False, fast="", fast_ms=0,
            log=LogOptions(LOG))


SCENARIOS: Mapping[str, Scenario] = {
    "crash": Scenario("crash"),
    "crash3": Scenario("crash", 3),
    "isolate3": Scenario("isolate", 3),
    "pause3": Scenario("pause", 3, page_rows=2),
    "expire3": Scenario("expire", 3),
    "wipe3": Scenario("wipe", 3),
    "join": Scenario(joins=True),
    "joinisolate3": Scenario("isolate", 3, joins=True),
    "joinpause3": Scenario("pause", 3, joins=True),
    "joinexpire3": Scenario("expire", 3, joins=True),
    "horizon": Scenario("expire", horizon_ms=NEAR_MS),
    "oldcopy3": Scenario("old copy", 3),
    "veto": Scenario("veto", begin_ms=200),
}

_ELECTIONS = frozenset({m.RequestVote, m.Vote, m.PullClaims, m.ClaimPage, m.PushClaims, m.ClaimsKept})
_CLAIMS = frozenset({m.Grant, m.Granted, m.Amend, m.Amended, m.Complete})
_MOVES = frozenset({m.Sync, m.Synced, m.Abdicate, m.Invite, m.Probed, m.Compared, m.Fetched, m.Repair})
FOCUSES: Mapping[str, Focus] = {
    "elect": Focus(_ELECTIONS, _ELECTIONS),
    "claim": Focus(_CLAIMS, _CLAIMS | {m.Delegate, m.Renew}, has_registry=False),
    "move": Focus(_MOVES, _MOVES | {m.Fetch}),
}

PAIRS = (
    "crash:elect", "crash3:elect", "isolate3:elect", "isolate3:claim", "pause3:elect", "pause3:claim",
    "expire3:elect", "wipe3:elect", "wipe3:claim", "join:move", "joinpause3:elect", "joinisolate3:move",
    "joinexpire3:claim", "horizon:elect", "horizon:claim", "oldcopy3:elect", "oldcopy3:claim", "veto:claim")
"""All of which every single deviation is tried."""
