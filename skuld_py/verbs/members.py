"""The verbs of operators about nodes in which they have no trust: quarantine, and reap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skuld_py.verbs import documents as d
from skuld_py.verbs.operators import NODE, PARTITION, REASON, WITHIN, say_done, told
from skuld_py.verbs.options import Option, Plain, Request
from skuld_py.verbs.verb import Scope, verb

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient


@verb("POST /v1/partitions/quarantine", Scope.ADMIN,
      Request("Quarantine", "Which node is not to be trusted, or is again.", (
          NODE, PARTITION, Option("off", Plain.FLAG, False, help="Trust it again.", told="Trust it again."),
          REASON)), d.Overseen,
      "Let a node lead nothing and get no new vote, or trust it again.", command="quarantine",
      says=say_done("done"))
async def quarantine(client: AsyncClient, node: str, partition: int | None, off: bool, reason: str) -> d.Overseen:
    """Let NODE (HOST:PORT) lead nothing and get no new vote, until --off: its disk, say, is not to be trusted.

    What it leads others take over, within a second or so. It keeps the votes and the data that it has, so nothing
    is less safe. A partition that nobody else could lead stays as it is. A frozen one it leads on, and such are
    named: 'skuld unfreeze', or wait for the end of what holds them. 'skuld status' names the node until --off.

    \b
    Examples:
      skuld quarantine 10.0.0.7:13000 --reason "disk errors in its log"
      skuld quarantine 10.0.0.7:13000 --off
    """
    return told(await client.quarantine(node, partition, off=off, reason=reason))


@verb("POST /v1/partitions/reap", Scope.ADMIN,
      Request("Reap", "Which node is gone.", (NODE, PARTITION, WITHIN, REASON)), d.Overseen,
      "Take a node that is down out of the voters for good.", command="reap", says=say_done("reaping asked for"))
async def reap(client: AsyncClient, node: str, partition: int | None, within_s: float, reason: str) -> d.Overseen:
    """Take NODE (HOST:PORT), which is down and does not come back, out of the voters of its partitions.

    First the leader is compared with all voters that are there, so that these hold what the node held. Then the
    voters are those without it, and a majority of these is enough. The node is in quarantine from then on: started
    again it gets no vote before 'skuld quarantine --off'. A partition that has no majority without it stays as it
    is: see 'skuld cluster force-epoch'. Where another node is to take its place, 'skuld cluster forget' is enough.

    \b
    Examples:
      skuld reap 10.0.0.7:13000 --reason "burnt"
      skuld reap 10.0.0.7:13000 --partition 3
    """
    return told(await client.reap(node, partition, within_s=within_s, reason=reason))


VERBS = (quarantine, reap)
