"""Why a claim got nothing, in words: that no task waits is said only where nothing else is the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skuld_py.client.claims import Claims

WHY_NOTHING = {
    "": "nothing to claim in {} now; --wait 30s waits for something",
    "paused": "{} is paused, so nothing of it can be claimed; 'skuld resume {}' lets it go on",
    "limited": "the limits of {} allow no more claims just now, though tasks may wait; --wait 30s waits, and"
               " 'skuld limits' shows them",
    "capped": "{} lets one holder claim only so many tasks at once, and this one holds as many, though tasks may"
              " wait; 'skuld limits {}' shows the cap",
    "leaderless": "nothing of {} can be claimed now, but some partitions have no leader, and tasks may wait there;"
                  " see 'skuld status'"}
"""What people are told who claimed nothing."""


def nothing_said(queue: str, withheld: str) -> str:
    """Why nothing of a queue was claimed, for people."""
    return WHY_NOTHING.get(withheld, WHY_NOTHING[""]).format(queue, queue)


def withheld_of(claims: Claims) -> dict[str, str]:
    """Why nothing was claimed though tasks may wait, if so, as documents have it."""
    return {"withheld": claims.withheld} if claims.withheld and not claims else {}
