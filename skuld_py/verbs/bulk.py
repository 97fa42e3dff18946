"""The verbs about all tasks of which something is so, which take as long as there are many: retry, cancel, purge,
move, and take from a holder.

Each can be asked what it would do. Tasks that are named by their ids have verbs of their own (``tasks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typing_extensions import TypedDict

from skuld_py.verbs.options import (
    ANY_QUEUE,
    ARGUMENT,
    ERROR,
    FUNCTION,
    HEADER,
    QUEUE,
    SINCE,
    UNTIL,
    Option,
    Plain,
    Request,
)
from skuld_py.verbs.schemas import Says
from skuld_py.verbs.verb import Given, Said, Scope, verb
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient

TO = Option("to", Plain.NAME, word="QUEUE", help="The queue to which they are moved.", told=None)
HOLDER = Option(
    "holder", Plain.HOLDER, word="NAME",
    help="Whose claims are taken, as 'skuld get' shows it.",
    told="Whose claims are taken.")
DRY_RUN = Option(
    "dry_run", Plain.FLAG, False, flag="--dry-run",
    help="Say how many there are, and do nothing.",
    told="Whether to say how many there are, and do nothing.")


class Chosen(TypedDict):
    """How many tasks were found and done, or would be."""

    count: int
    is_dry: Annotated[bool, Says("Whether nothing was done.")]


def _said(done: Chosen, given: Given, what: str) -> Said:
    words = f"{many(done['count'], 'task')} {'would be ' if done['is_dry'] else ''}{what}"
    return words, {"queue": given["queue"], what: 0 if done["is_dry"] else done["count"], "found": done["count"]}


@verb("POST /v1/bulk/retry", Scope.ADMIN,
      Request("RetryAll", "Dead tasks that are to begin anew.",
              (ANY_QUEUE, FUNCTION, ARGUMENT, HEADER, ERROR, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Let all dead tasks of which this is so begin anew; says how many.", command="bulk retry",
      is_long=True, says=lambda done, given: _said(done, given, "revived"))
async def retry_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                    **which: Any) -> Chosen:
    """Let all dead tasks of QUEUE, or of all queues, be claimed again, with all their attempts before them.

    Say which with the options, and look first: 'skuld list --state dead' takes them, too, and shows which these
    are, --dry-run how many. A page at a time: after an error some are retried; run it again.

    \b
    Examples:
      skuld bulk retry reports --dry-run
      skuld bulk retry reports --error '*timeout*' --since 2h
      skuld bulk retry --function shop:add --argument 'day=2026-11-*' --header 'tenant=acme'
    """
    return Chosen(count=await client.retry_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


@verb("POST /v1/bulk/cancel", Scope.ADMIN,
      Request("CancelAll", "Tasks that nobody wants done any more.",
              (ANY_QUEUE, FUNCTION, ARGUMENT, HEADER, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Cancel all tasks of which this is so that wait, are scheduled or blocked; says how many.",
      command="bulk cancel", is_long=True, says=lambda done, given: _said(done, given, "cancelled"))
async def cancel_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                     **which: Any) -> Chosen:
    """Cancel the tasks of QUEUE, or of all queues, that wait, are scheduled or blocked. It cannot be taken back.

    Say which with the options, and look first what it would do. Claimed ones go on. A page at a time: after an
    error some are cancelled; run it again.

    \b
    Examples:
      skuld bulk cancel shop --function shop:add --header 'tenant=acme' --dry-run
      skuld bulk cancel mails --until 2026-12-01T08:00+01:00
    """
    return Chosen(count=await client.cancel_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


@verb("POST /v1/bulk/purge", Scope.ADMIN,
      Request("PurgeAll", "Tasks none of which is ever to run.",
              (ANY_QUEUE, FUNCTION, ARGUMENT, HEADER, ERROR, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Cancel all tasks of which this is so that wait, are scheduled, blocked or dead; says how many.",
      command="bulk purge", is_long=True, says=lambda done, given: _said(done, given, "purged"))
async def purge_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                    **which: Any) -> Chosen:
    """Cancel the tasks of QUEUE, or of all queues, that wait, are scheduled or blocked, and the dead ones too.

    None of them ever runs, or can be retried; it cannot be taken back. Say which with the options, and look first
    what it would do. Claimed ones go on, and dead ones that are about to be collected stay as they are. A page at
    a time: after an error some are cancelled; run it again.

    \b
    Examples:
      skuld bulk purge reports --dry-run
      skuld bulk purge reports --error '*no such table*'
    """
    return Chosen(count=await client.purge_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


class MovedTasks(TypedDict):
    """How many tasks were moved, or would be, and how many were left."""

    count: int
    held: Annotated[int, Says("Left, since a worker holds them.")]
    tied: Annotated[int, Says("Left, since they wait for others, or others for them.")]
    old: Annotated[int, Says("Left, since they are too old for a copy to be taken.")]
    keyed: Annotated[int, Says("Left, since they have an ordering key.")]
    elsewhere: Annotated[int, Says("Left, since a move to another queue has begun; move them there first.")]
    ended: Annotated[int, Says("Left, since they were moved before and that copy was cancelled or died.")]
    is_dry: Annotated[bool, Says("Whether nothing was done.")]


_WHYS_LEFT: tuple[Literal["held", "tied", "old", "keyed", "elsewhere", "ended"], ...] = (
    "held", "tied", "old", "keyed", "elsewhere", "ended")


def _say_moved(done: MovedTasks, given: Given) -> Said:
    whys = [(done["held"], "claimed"), (done["tied"], "waiting for others or awaited by them"),
            (done["old"], "too old"), (done["keyed"], "with an ordering key"),
            (done["elsewhere"], "being moved to another queue"),
            (done["ended"], "whose copies were cancelled or died there")]
    left = ", ".join(f"{count} {why}" for count, why in whys if count)
    words = (f"{many(done['count'], 'task')} {'would be ' if done['is_dry'] else ''}moved"
             f"{f'; left where they are: {left}' if left else ''}")
    return words, {"queue": given["queue"], "to": given["to"], "moved": 0 if done["is_dry"] else done["count"],
                   "found": done["count"], **{why: done[why] for why in _WHYS_LEFT}}


@verb("POST /v1/bulk/move", Scope.ADMIN,
      Request("MoveAll", "Tasks that are to wait in another queue.",
              (QUEUE, TO, FUNCTION, ARGUMENT, HEADER, SINCE, UNTIL, DRY_RUN)),
      MovedTasks, "Move all tasks of which this is so that wait or are scheduled to another queue; says how many,"
      " and how many are left. Each becomes another task, with another id, and the first one is cancelled.",
      command="bulk move", is_long=True, says=_say_moved)
async def move_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                   **which: Any) -> MovedTasks:
    """Move the tasks of QUEUE that wait or are scheduled to another queue.

    A moved task is a copy with another id, that is done instead of the first one, which is cancelled. None is lost
    and none done twice, whatever breaks and whoever else moves them; run it again. Left are those that are
    claimed, that wait for others or that others wait for, that have an ordering key, that are too old, that are
    being moved to another queue (move them there first), and those whose copies were cancelled or died there.
    Pause QUEUE first, so that none is claimed meanwhile.

    \b
    Examples:
      skuld bulk move reports --to reports-slow --function shop:yearly --dry-run
      skuld bulk move reports --to reports-slow --function shop:yearly
    """
    moved = await client.move_all(dry_run=dry_run, progress=progress, **which)
    return MovedTasks(count=moved.count, held=moved.held, tied=moved.tied, old=moved.old, keyed=moved.keyed,
                      elsewhere=moved.elsewhere, ended=moved.ended, is_dry=dry_run)


@verb("POST /v1/bulk/release", Scope.ADMIN,
      Request("ReleaseAll", "Claims that are to be taken from their holder.",
              (ANY_QUEUE, HOLDER, FUNCTION, ARGUMENT, HEADER, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Take all claims of a holder from it: their tasks wait again at once; says how many.",
      command="bulk release", is_long=True, says=lambda done, given: _said(done, given, "released"))
async def release_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                      **which: Any) -> Chosen:
    """Take the claims of a holder in QUEUE, or in all queues, from it; their tasks wait again at once.

    For a holder that is gone, or hangs: else they would wait for the ends of its leases. One that lives learns it
    when it renews, and until then works on, so a task may run twice at once.

    \b
    Examples:
      skuld bulk release --holder host-7:4711 --dry-run
      skuld bulk release reports --holder host-7:4711
    """
    return Chosen(count=await client.release_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


VERBS = (retry_all, cancel_all, purge_all, move_all, release_all)
