"""The verbs of operators about nodes: take them out, or trust them no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from skuld_py.verbs import documents as d
from skuld_py.verbs.operators import NODE, PARTITION, REASON, WITHIN, say_done, told
from skuld_py.verbs.options import Option, Plain, Request
from skuld_py.verbs.schemas import Says
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
      "Take a node that is down out of the voters for good.", command="reap",
      says=say_done("reaping asked for", "no partition that was asked has its vote, or it is being reaped"))
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


class Drained(TypedDict):
    """The node is taken out, or placed again. It hands on by itself what it has: see the status."""

    node: str
    is_leaving: bool
    has_changed: Annotated[bool, Says("Whether it was not so before.")]


@verb("POST /v1/nodes/drain", Scope.ADMIN,
      Request("Drain", "Which node is to hand on all that it has, or is placed again.", (
          NODE, Option("undo", Plain.FLAG, False, help="Place it again.", told="Place it again."))),
      Drained, "Take a node out, so that it hands on all that it has; the status says when it may be stopped.")
async def drain(client: AsyncClient, node: str, undo: bool) -> Drained:
    """Take NODE (HOST:PORT), alive or dead, out of the cluster: nothing is placed on it any more.

    While it runs it hands on what it has. The status says how far that is, and when it may be stopped. Of one that
    is dead the others fill up from each other. As many nodes as there are copies of each task must be left.

    Of the command line it is 'skuld drain', which waits, and 'skuld cluster remove'.
    """
    has_changed = await client.drain(node, undo=undo)
    return Drained(node=node, is_leaving=not undo, has_changed=has_changed)


VERBS = (quarantine, reap, drain)
