"""What the small world finds: mutants by name, each with the pair of scenario and focus in which it is soon seen.

Most of them are hidden from seeds, by a second line or because what they need is seldom. ``scripts/mutants
--small`` tries them there alone, and prints how many schedules it took.
"""

from __future__ import annotations

from collections.abc import Mapping

TWELVE: Mapping[str, str] = {
    "amend-below-the-promise": "pause3:claim",
    "grant-below-the-promise": "pause3:claim",
    "no-pull": "crash3:elect",
    "renewed-without-majority": "pause3:claim",
    "swap-in-doubt-is-won": "pause3:elect",
    "swap-confirmed-unread": "pause3:elect",
    "stale-page-counts": "expire3:elect",
    "stale-confirmation-counts": "expire3:elect",
    "stale-vote-counts": "pause3:elect",
    "pull-answered-for-an-older-vote": "expire3:elect",
    "claims-from-anybody-at-large": "expire3:elect",
    "claims-to-anybody-at-large": "expire3:elect",
}
"""Of elections and claims; of these the median is to be found in less than two hundred schedules."""
MENDED: Mapping[str, str] = {
    "renewed-in-part": "horizon:claim",
    "old-copy-not-found-out": "oldcopy3:claim",
    "lease-not-respected": "veto:claim",
}
"""What was once found, or needs a scenario of its own: a lease beyond the horizon, an old copy of a data
directory, a leader that lacks a claim."""
PAIRS: Mapping[str, str] = {**TWELVE, **MENDED}
