"""What a campaign of workers prints in the end: a line for each kind of run, and whether anything was violated."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from faults.workers.kills import Kills
from faults.workers.losses import GONE_S, KINDS, Loss

HEAD = (f"{'what':<10} {'runs':>4} {'least':>6} {'median':>6} {'most':>6} {'waited':>6}  {'late':>4}"
        f" {'violations':>10}  what is measured, in seconds")


def rows(losses: Sequence[Loss], kills: Sequence[Kills]) -> Iterator[str]:
    """The table, below its head."""
    yield HEAD
    for kind in KINDS:
        of_kind = [loss for loss in losses if loss.kind == kind.name]
        if of_kind:
            yield _row(kind.name, [loss.gone_s for loss in of_kind], _violated(of_kind),
                       f"from the {of_kind[0].since} until nothing of the job acted",
                       max(loss.waited_s for loss in of_kind), sum(loss.gone_s > GONE_S for loss in of_kind))
    if kills:
        yield _row("census", [each for run in kills for each in run.again_s], _violated(kills),
                   f"of a survey's work that was done again, of {max(run.interval_s for run in kills):.1f}")
        yield _row("  left", [run.left_s for run in kills], 0, "until nothing was left of what was killed")


def _violated(runs: Iterable[Loss | Kills]) -> int:
    return sum(bool(run.violations) for run in runs)


def _row(name: str, figures: Sequence[float], violations: int, words: str, waited_s: float | None = None,
         late: int | str = "") -> str:
    least, middle, most = ((min(figures), statistics.median(figures), max(figures)) if figures else (0.0,) * 3)
    waited = "" if waited_s is None else f"{waited_s:.2f}"
    return (f"{name:<10} {len(figures):>4} {least:>6.2f} {middle:>6.2f} {most:>6.2f} {waited:>6}  {late:>4}"
            f" {violations:>10}  {words}")
