"""``scripts/faults archive``: archivers, JVMs, nodes, disks and clocks fail; see ``--help``."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import click

from faults.archive.play import Seen, play
from faults.archive.stage import staged

PASSED, BROKEN, CANNOT = 0, 1, 77
PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "mount": "mount"}

_HELP = """The archive of three real nodes, while everything about it fails at moments of chance.

\b
  kill -9 of one of two archivers on one root, of both, of a node, of the JVM where Spark writes
  the disk of the archive is full, may only be read, is gone; all of that is said in a line
  clocks of archivers jump all the while by hours and days, and that of a node is stepped by 5 s

After each, what ended is what the archive has and what the nodes have: none is lost, and whoever reads the files
that the manifest names sees none twice. In the end a run by itself, once, leaves nothing that had ended, and no
drafts; and no archiver has ended in a traceback. A line each. Needs root, to mount, and skips loudly without.

\b
Exit status: 0 nothing was violated; 1 something was; 2 wrong arguments; 77 NOTHING was tested.
"""


@click.command(help=_HELP)
@click.option("--kills", type=click.IntRange(min=3), default=20, show_default=True,
              help="So many processes are killed; a third of the times the JVM's turn.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides order, victims and moments.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Where the files of a campaign that failed are put; a fresh directory when not given.")
def archive(kills: int, seed: int, keep: Path | None) -> None:
    """Check the machine, play, and sum up."""
    if missing := _lacks():
        click.echo(f"SKIPPED: NOTHING was tested. This machine lacks: {'; '.join(missing)}", err=True)
        sys.exit(CANNOT)
    place = keep or Path(tempfile.mkdtemp(prefix="skuld-archive-faults-"))
    place.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored by what a script starts behind itself
        signal.signal(number, signal.default_int_handler)
    told, is_over = list[Seen](), False

    def tell(seen: Seen) -> None:
        told.append(seen)
        click.echo(f"{len(told):>3}  {seen.line}")
    try:
        with staged(place, seed) as stage:
            play(stage, kills, tell)
            is_over = True
    except KeyboardInterrupt:
        click.echo("interrupted; what was running is taken down")
    except Exception:
        click.echo(f"the play did not get to its end\n{traceback.format_exc()}")
    for what, count in Counter(seen.what for seen in told).items():
        click.echo(f"{count:>3} times  {what}")
    bad = [seen.what for seen in told if seen.violations]
    if bad or not is_over:
        click.echo(f"{len(bad)} of {len(told)} were violated: {'; '.join(bad)}\nthe files are in {place}")
        sys.exit(BROKEN)
    click.echo(f"nothing was lost, nothing is there twice, nothing was left; seed {seed}")
    if keep is None:
        shutil.rmtree(place)


def _lacks() -> list[str]:
    missing = [f"{program}: apt-get install {package}" for program, package in PROGRAMS.items()
               if shutil.which(program) is None]
    return missing if os.geteuid() == 0 else ["root, to mount; run it with sudo", *missing]
