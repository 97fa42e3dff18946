"""The verbs about all tasks of which something is so, which take as long as there are many: retry, cancel.

Each can be asked what it would do. Tasks that are named by their ids have verbs of their own (``tasks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from skuld_py.verbs.options import ANY_QUEUE, FUNCTION, SINCE, UNTIL, Line, Option, Plain, Request
from skuld_py.verbs.schemas import Says
from skuld_py.verbs.verb import Given, Said, Scope, verb
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient

ERROR = Option(
    "error", Line(1, 500, "*timeout*"), None, shown="all", word="PATTERN",
    help="Only tasks whose last error is like this; * is any text, large letters are like small ones.",
    told="Only tasks whose last error is like this pattern: * is any text, large letters are like small ones. Each"
         " task that is asked for otherwise is read for it.")
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
              (ANY_QUEUE, FUNCTION, ERROR, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Let all dead tasks of which this is so begin anew; says how many.", command="bulk retry",
      is_long=True, says=lambda done, given: _said(done, given, "revived"))
async def retry_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                    **which: Any) -> Chosen:
    """Let all dead tasks of QUEUE, or of all queues, be claimed again, with all their attempts before them.

    Say which with the options, and look first what it would do. A page at a time: after an error some are
    retried; run it again.

    \b
    Examples:
      skuld bulk retry reports --dry-run
      skuld bulk retry reports --error '*timeout*' --since 2h
      skuld bulk retry --function shop:add
    """
    return Chosen(count=await client.retry_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


@verb("POST /v1/bulk/cancel", Scope.ADMIN,
      Request("CancelAll", "Tasks that nobody wants done any more.",
              (ANY_QUEUE, FUNCTION, SINCE, UNTIL, DRY_RUN)),
      Chosen, "Cancel all tasks of which this is so that wait, are scheduled or blocked; says how many.",
      command="bulk cancel", is_long=True, says=lambda done, given: _said(done, given, "cancelled"))
async def cancel_all(client: AsyncClient, dry_run: bool, progress: Callable[[int], None],
                     **which: Any) -> Chosen:
    """Cancel the tasks of QUEUE, or of all queues, that wait, are scheduled or blocked. It cannot be taken back.

    Say which with the options, and look first what it would do. Claimed ones go on. A page at a time: after an
    error some are cancelled; run it again.

    \b
    Examples:
      skuld bulk cancel shop --function shop:add --dry-run
      skuld bulk cancel mails --until 2026-12-01T08:00+01:00
    """
    return Chosen(count=await client.cancel_all(dry_run=dry_run, progress=progress, **which), is_dry=dry_run)


VERBS = (retry_all, cancel_all)
