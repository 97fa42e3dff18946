"""``scripts/faults datasource``: Spark's data source on Spark's own cluster, at full size; see ``--help``."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import click

from faults.datasource.ended import BATCHES
from faults.datasource.play import PARTS, play, staged
from system.standalone import can_cover

PASSED, BROKEN, CANNOT = 0, 1, 77
ROWS, ENDED = 1_000_000, 100_000

_HELP = """What Spark's data source promises, on a master and two workers of Spark's, with speculation on.

\b
  a write that is aborted in the middle leaves none, and none could ever be claimed
  a write in which an executor is killed and a part stands still makes each row one task
  the same rows are read back and counted in SQL
  a stream gives each task that ended once, over restarts of its query

Each promise is printed as met or BROKEN, and with it what was seen; and how many rows a second were written,
beside enqueue_many of one client. Needs root, to mount, and skips loudly without.

\b
Exit status: 0 all promises were kept; 1 one was broken; 2 wrong arguments; 77 NOTHING was tested.
"""


@click.command(help=_HELP)
@click.option("--rows", type=click.IntRange(min=PARTS * 100), default=ROWS, show_default=True,
              help="Rows of the write that is to succeed; of the one that is not, a fifth.")
@click.option("--ended", type=click.IntRange(min=BATCHES * 100), default=ENDED, show_default=True,
              help="Tasks that ended.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Where the files of a play with broken promises are put; a fresh directory when not given.")
def datasource(rows: int, ended: int, keep: Path | None) -> None:
    """Check the machine, play, and sum up."""
    if not can_cover():
        click.echo("SKIPPED: NOTHING was tested. Only root can mount", err=True)
        sys.exit(CANNOT)
    place = keep or Path(tempfile.mkdtemp(prefix="skuld-datasource-"))
    place.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored by what a script starts behind itself
        signal.signal(number, signal.default_int_handler)
    broken = ["the play did not get to its end"]
    try:
        with staged(place) as stage:
            play(stage, rows, ended)
            broken = stage.promises.broken
    except KeyboardInterrupt:
        click.echo("interrupted; what was running is taken down")
    except Exception:
        click.echo(traceback.format_exc())
    if broken:
        click.echo(f"{len(broken)} promises were broken: {'; '.join(broken)}\nthe files are in {place}")
        sys.exit(BROKEN)
    click.echo("all promises were kept")
    if keep is None:
        shutil.rmtree(place)
