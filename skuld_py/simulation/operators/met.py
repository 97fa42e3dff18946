"""What operators must have done in any long campaign, so that none of it is untested in silence."""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.simulation.operators.operator import VERBS

REQUIRED = (
    *(f"asked {verb}" for verb in VERBS), *(f"done {verb}" for verb in VERBS),
    "by hand: slip", "by hand: wish", "by hand: wish at an election", "by hand: field",
    "by hand: wish behind a leader's back", "leader in the dark", "more copies wanted", "fewer copies wanted",
    "refused: nobody else could lead", "refused: reap of who lives", "refused: reap of a vote that is needed",
    "document deleted before all its voters knew of it",
    "refused: wish while frozen", "refused: wish while solo", "refused: wish of another epoch",
    "refused: target without a vote", "refused: target not alive", "refused: target leads",
    "refused: force without need", "answer lost", "frozen to the end",
    "majority lost for good", "epoch forced", "document deleted", "cluster restored",
    "restored before a barrier")
"""What happens least often happens in every tenth run."""


def unmet(stats: Mapping[str, int]) -> list[str]:
    """What never happened."""
    return [what for what in REQUIRED if not stats.get(f"operators {what}")]
