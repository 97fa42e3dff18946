"""The verbs of operators about partitions: hold them where they are, and say who shall lead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skuld_py.verbs import documents as d
from skuld_py.verbs.options import YEARS_10_S, Line, Option, Plain, Request, Seconds, Whole
from skuld_py.verbs.verb import Given, Said, Scope, verb
from skuld_py.verbs.words import many, moment

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.operating import Overseen

PARTITION = Option(
    "partition", Whole(0, 4_095), None, shown="all", typed=Whole(0),
    help="Only this partition.", told="Only this partition; all if left out.")
REASON = Option(
    "reason", Line(0, 250), "", word="TEXT", shown="none",
    help="Why; kept with what is done.", told="Why; it is kept with what is done.")
NODE = Option("node", Line(1, 200, "10.0.0.7:13000"), is_word=True, told="Its name.")
EPOCH = Option(
    "epoch", Whole(0), 0, shown="any", typed=Whole(0),
    help="Only while this is the partition's epoch.", told="Only while this is the epoch; 0 for any.")
WITHIN = Option(
    "within_s", Seconds(0.1, 3_600.0), 30.0,
    help="How long it may take; then it is forgotten.", told="How long it may take; then it is forgotten.")
SHOWN = 8
"""Partitions that are named one by one."""


def told(done: Overseen) -> d.Overseen:
    """What was done, as JSON has it."""
    return d.Overseen(changed=done.changed, refused=[
        d.RefusedPartition(partition=partition, reason=reason) for partition, reason in done.refused.items()],
        frozen=[d.FrozenPartition(partition=partition, by=each.by, until_ms=each.until_ms)
                for partition, each in done.frozen.items()])


def say_done(what: str, why_not: str = "nothing had to be") -> Any:
    """Words for what was done, and where it could not be; ``why_not``: where nothing was, and nothing refused."""
    def say(done: Mapping[str, Any], given: Given) -> Said:
        so_already = "" if done["changed"] or done["refused"] else f"; {why_not}"
        lines = [f"{what}: {many(done['changed'], 'partition')} changed{so_already}"]
        lines += [f"partition {row['partition']} stays as it is: {row['reason']}"
                  for row in done["refused"][:SHOWN]]
        if len(done["refused"]) > SHOWN:
            lines.append(f"and {len(done['refused']) - SHOWN} more")
        lines += _led_on(done["frozen"])
        return "\n".join(lines), done
    return say


def _led_on(frozen: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a node in quarantine leads on, a line for each that froze it and each end."""
    from skuld_py.verbs.votes import partitions_said

    found: dict[tuple[str, int], list[int]] = {}
    for row in frozen:
        found.setdefault((row["by"], row["until_ms"]), []).append(row["partition"])
    for (by, until_ms), partitions in found.items():
        lift = f"'skuld unfreeze --partition {partitions[0]}'" if len(partitions) == 1 else "'skuld unfreeze'"
        end = f", or wait until {moment(until_ms)[:16]}" if until_ms else ""
        yield (f"it leads {partitions_said(partitions)} on, frozen by {by}: {lift} to have another node lead"
               f"{end}")


@verb("POST /v1/partitions/freeze", Scope.ADMIN,
      Request("Freeze", "What to hold where it is, and for how long.", (
          PARTITION, REASON,
          Option("for_s", Seconds(0, YEARS_10_S), 0.0, flag="--for", shown="until it is lifted",
                 typed=Seconds(1, YEARS_10_S), help="How long.", told="How many seconds; 0 until it is lifted."))),
      d.Overseen, "Hold leader and voters of partitions where they are. Claims and tasks go on.", command="freeze",
      says=say_done("frozen"))
async def freeze(client: AsyncClient, partition: int | None, reason: str, for_s: float) -> d.Overseen:
    """Hold leader, voters and learners of partitions where they are, for a change of yours.

    Claims and all that is done with tasks go on. Nobody but its present leader may lead a partition meanwhile: if
    that node dies, the partition grants nothing until it is back, or until 'skuld unfreeze'. 'skuld status' names
    what is frozen.

    \b
    Examples:
      skuld freeze --reason "new switch in rack 2" --for 1h
      skuld freeze --partition 3
    """
    return told(await client.freeze(partition, reason=reason, for_s=for_s))


@verb("POST /v1/partitions/unfreeze", Scope.ADMIN,
      Request("Unfreeze", "What to let go.", (PARTITION, REASON)), d.Overseen,
      "Let go of partitions that are frozen.", command="unfreeze", says=say_done("unfrozen"))
async def unfreeze(client: AsyncClient, partition: int | None, reason: str) -> d.Overseen:
    """Let go of partitions that 'skuld freeze' holds.

    \b
    Examples:
      skuld unfreeze
      skuld unfreeze --partition 3
    """
    return told(await client.unfreeze(partition, reason=reason))


@verb("POST /v1/partitions/promote", Scope.ADMIN,
      Request("Promote", "Who shall lead.", (NODE, PARTITION, EPOCH, WITHIN, REASON)), d.Overseen,
      "Have a node lead a partition, or all in which it votes.", command="promote",
      says=say_done("promotion asked for"))
async def promote(client: AsyncClient, node: str, partition: int | None, epoch: int, within_s: float,
                  reason: str) -> d.Overseen:
    """Have NODE (HOST:PORT) lead a partition, or all in which it has a vote.

    The leader grants nothing more, waits for what is under way, and has NODE elected, mostly within a second. What
    did not succeed in the time given is forgotten. 'skuld status' says who leads; 'skuld rebalance' takes it back.

    \b
    Examples:
      skuld promote 10.0.0.7:13000 --partition 3
      skuld promote 10.0.0.7:13000 --reason "10.0.0.8 gets a new disk"
    """
    return told(await client.promote(node, partition, epoch=epoch, within_s=within_s, reason=reason))


@verb("POST /v1/partitions/reorder", Scope.ADMIN,
      Request("Reorder", "Who shall be the first to succeed.", (NODE, PARTITION, EPOCH, WITHIN, REASON)),
      d.Overseen, "Have a node be the first to succeed the leader.", command="reorder",
      says=say_done("reordering asked for"))
async def reorder(client: AsyncClient, node: str, partition: int | None, epoch: int, within_s: float,
                  reason: str) -> d.Overseen:
    """Have NODE (HOST:PORT) be the first to succeed the leader of a partition, should that die.

    \b
    Example:
      skuld reorder 10.0.0.7:13000 --partition 3
    """
    return told(await client.reorder(node, partition, epoch=epoch, within_s=within_s, reason=reason))


@verb("POST /v1/partitions/rebalance", Scope.ADMIN,
      Request("Rebalance", "Which partitions to bring back into balance.", (PARTITION, WITHIN, REASON)),
      d.Overseen, "Have the first of its owners lead each partition again.", command="rebalance",
      says=say_done("balance asked for"))
async def rebalance(client: AsyncClient, partition: int | None, within_s: float, reason: str) -> d.Overseen:
    """Have the first of its owners lead each partition again, as placement spreads them.

    It undoes 'skuld promote' and 'skuld reorder'. A partition that is led so already stays as it is.

    \b
    Example:
      skuld rebalance
    """
    return told(await client.rebalance(partition, within_s=within_s, reason=reason))


@verb("POST /v1/partitions/withdraw", Scope.ADMIN,
      Request("Withdraw", "Of which partitions to take a wish back.", (PARTITION, REASON)), d.Overseen,
      "Take back who was to lead or to succeed, where that was not obeyed yet.", command="withdraw",
      says=say_done("taken back"))
async def withdraw(client: AsyncClient, partition: int | None, reason: str) -> d.Overseen:
    """Take back what 'skuld promote', 'reorder', 'rebalance' or 'reap' has wished and was not obeyed yet.

    'skuld status' names what waits; by itself it is forgotten after its time. A node that was to be reaped stays
    in quarantine until 'skuld quarantine --off'.

    \b
    Examples:
      skuld withdraw
      skuld withdraw --partition 3 --reason "the wrong node"
    """
    return told(await client.withdraw(partition, reason=reason))


@verb("POST /v1/partitions/solo", Scope.ADMIN,
      Request("Solo", "Which partitions keep their voters, or do not any more.", (
          PARTITION, Option("off", Plain.FLAG, False, help="Let them grow again.", told="Let them grow again."),
          REASON)), d.Overseen,
      "Let partitions keep the voters that they have, whoever comes.", command="solo", says=say_done("done"))
async def solo(client: AsyncClient, partition: int | None, off: bool, reason: str) -> d.Overseen:
    """Let partitions keep the voters that they have, however many nodes come; --off lets them grow.

    For a cluster that begins with one node: --off once the others are there.

    \b
    Examples:
      skuld solo
      skuld solo --off
    """
    return told(await client.solo(partition, off=off, reason=reason))


@verb("POST /v1/partitions/force_epoch", Scope.ADMIN,
      Request("ForceEpoch", "Which partitions have lost a majority of their voters for good.", (
          PARTITION, Option("noted", Plain.FLAG, False, told="Only end the line of the status that tells of it."),
          REASON)), d.Overseen,
      "Go on without voters that are lost for good, where no majority is left. What only they had is gone.")
async def force_epoch(client: AsyncClient, partition: int | None, noted: bool, reason: str) -> d.Overseen:
    """Of the command line it is 'skuld cluster force-epoch'."""
    return told(await client.force_epoch(partition, noted=noted, reason=reason))


VERBS = (freeze, unfreeze, promote, reorder, rebalance, withdraw, solo, force_epoch)
