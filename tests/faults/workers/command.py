"""``scripts/faults workers``: workers with a real Spark that lose their claims, and die; see ``--help``."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from faults.workers.kills import Kills, census_runs
from faults.workers.losses import GIVEN_UP_S, KINDS, Loss, lose
from faults.workers.patience import load
from faults.workers.stage import town_stage
from faults.workers.table import rows
from machines.ground import lacks

CENSUS = "census"
NAMES = (*(kind.name for kind in KINDS), CENSUS)
PASSED, BROKEN, CANNOT = 0, 1, 77

_HELP = f"""Workers with a real Spark lose their claims in every way, and are killed, in a town of machines.

Of a claim that is lost, in each of {len(KINDS)} ways, everything that its job does must be over within 2 s: in
Spark's Python processes as well as in its JVM. What it writes afterwards is not to be seen. And the census of the
demonstration, while worker, JVM and a node are killed at random points, must give what it gives undisturbed.

\b
{chr(10).join(f"  {kind.name:<9} {kind.summary}" for kind in KINDS)}
  {CENSUS:<9} kill -9 of the worker, of its JVM and of a node, each once, at random points of the census

\b
A line a run: how long after the deadline (giving back, waking) Spark's Python and its JVM acted last, less than
nothing if before; when the task was claimed again; for how long the worker's processes waited for a processor
meanwhile, which is what a busy machine adds; the load of the machine.

One town, one worker and, where a run does not end it, one JVM do for all runs; 20 runs of everything take about an
hour and a half. Needs root, ip, nsenter and nft, and skips loudly without.

\b
Exit status: 0 nothing was violated; 1 something was; 2 wrong arguments; 77 NOTHING was tested.
"""


@click.command(help=_HELP)
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="So many of each kind.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Only this kind; may be repeated.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides moments, and the order of victims.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Where the files of a campaign that failed are put; a fresh directory when not given.")
def workers(runs: int, only: Sequence[str], seed: int, keep: Path | None) -> None:
    """Check the machine, run, and sum up."""
    if missing := lacks():
        click.echo("SKIPPED: NOTHING was tested. This machine lacks:", err=True)
        for line in missing:
            click.echo(f"  {line}", err=True)
        sys.exit(CANNOT)
    place = keep or Path(tempfile.mkdtemp(prefix="skuld-workers-"))
    place.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored by what a script starts behind itself
        signal.signal(number, signal.default_int_handler)
    campaign = Campaign(runs, only or NAMES, seed)
    try:
        campaign.play(place)
    except KeyboardInterrupt:
        click.echo("interrupted; what was running is taken down")
        campaign.broken += 1
    for row in rows(campaign.losses, campaign.kills):
        click.echo(row)
    if campaign.failed:
        click.echo(f"{campaign.failed} runs failed; the files are in {place}")
        sys.exit(BROKEN)
    if keep is None:
        shutil.rmtree(place)


class Campaign:
    """So many runs of each of these kinds. ``broken``: how many did not get to their end."""

    def __init__(self, runs: int, names: Sequence[str], seed: int) -> None:
        self._runs = runs
        self._names = names
        self._seed = seed
        self.losses: list[Loss] = []
        self.kills: list[Kills] = []
        self.broken = 0

    @property
    def failed(self) -> int:
        """Runs that were violated, or did not get to their end."""
        return self.broken + sum(bool(run.violations) for run in (*self.losses, *self.kills))

    def play(self, place: Path) -> None:
        """All runs, in a town of their own."""
        click.echo(f"load {load()}, seed {self._seed}; the town is being built")
        with town_stage(place) as (stage, town):
            for kind in KINDS:
                for number in range(1, self._runs + 1) if kind.name in self._names else ():
                    try:
                        loss = lose(stage, kind, number, random.Random(f"{self._seed} {kind.name} {number}"))
                    except Exception:
                        self._note_broken(f"{kind.name} {number}")
                        continue
                    self.losses.append(loss)
                    click.echo(loss.line)
                    if loss.gone_s > GIVEN_UP_S / 2:
                        stage.worker.kill()  # what still acts must not act beside the next run
            if CENSUS in self._names:
                try:
                    census_runs(stage, town, self._runs, self._seed, self._note_kills)
                except Exception:
                    self._note_broken(CENSUS)

    def _note_kills(self, run: Kills | str) -> None:
        if isinstance(run, Kills):
            self.kills.append(run)
        click.echo(run.line if isinstance(run, Kills) else run)

    def _note_broken(self, what: str) -> None:
        self.broken += 1
        click.echo(f"{what}: the run did not get to its end\n{traceback.format_exc()}")
