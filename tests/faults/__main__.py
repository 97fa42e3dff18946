"""``scripts/faults``: real nodes, real disks, real cuts; see ``--help``.

Here and not in the package: it needs root, it is about this project's releases and not for its users, and it
judges with the simulator's checkers, which tests may import and the package's shells may not.
"""

from __future__ import annotations

import functools
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from faults import catalogue
from faults.archive.command import archive
from faults.datasource.command import datasource
from faults.run import HEAD, Result, programs, run
from faults.workers.command import workers
from faults.world import Scenario
from machines import ground

PASSED, BROKEN, CANNOT = 0, 1, 77

_HELP = """Run real nodes under real faults and judge what their clients were told.

Each run builds a town of machines, which are network namespaces on one switch: three of a ZooKeeper ensemble,
three or five of nodes, one of clients, one of who operates it. The cluster has keys. Producers, workers and
readers work, and the machines suffer what the scenario says. Then everything is healed, the queues are drained,
the replicas must become equal, and the simulator's checkers judge the recorded history together with the stores
and ZooKeeper's transaction logs. A run passes when nothing is violated AND it was put to the test: acknowledged
operations overlapped every fault, and leaders changed where they had to.

\b
  scripts/faults --quick            the nine that every change should pass, about 11 minutes
  scripts/faults                    all of them, about 20 minutes
  scripts/faults --only power-cut   one, or several: --only may be repeated
  scripts/faults --list             their names and stories
  scripts/faults workers            workers with a real Spark, 20 times in each way; --help says more
  scripts/faults datasource         Spark's data source, a million rows on Spark's own cluster; --help says more
  scripts/faults archive            archivers, JVM, nodes, disks and clocks fail below an archive; --help says more
  scripts/machines 600              the scenario "rounds", for so many seconds, and what else is tested in a town

\b
The columns: acks       operations acknowledged, and of these, how many were under way during a fault
             elections  leaderships won after the start, and during faults
             p99        99th percentile of an enqueue, with retries, in ms
             settled    ms from healing until everything was drained and equal

Needs root: who is not is refused, with status 77, for there is no world without machines to fall back to.
Needs ip, nft, nsenter; for power cuts and full disks mkfs.xfs or mkfs.ext4, and mount; strace for failing-fsync
(Debian: apt-get install iproute2 nftables util-linux xfsprogs strace).

\b
Exit status: 0 all passed; 1 something was violated or untested; 2 wrong arguments;
             77 this machine cannot run them, so NOTHING was tested.
"""


@click.group(help=_HELP, invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Only the nine short ones.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this scenario; may be repeated.")
@click.option("--list", "is_list", is_flag=True, help="Say which scenarios there are.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides victims and what clients choose.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Where the evidence of failed runs is put; a fresh directory when not given.")
@click.option("--quiet", is_flag=True, help="No progress, only results.")
@click.pass_context
def main(ctx: click.Context, quick: bool, only: Sequence[str], is_list: bool, seed: int, keep: Path | None,
         quiet: bool) -> None:
    """Choose, check the machine, run, and sum up."""
    if ctx.invoked_subcommand is not None:
        return
    if is_list:
        for scenario in catalogue.ALL:
            click.echo(f"{scenario.name:<17} {'quick' if scenario.is_quick else '     '}  {scenario.summary}")
        return
    unknown = [name for name in only if name not in catalogue.BY_NAME]
    if unknown:
        raise click.UsageError(f"no scenario is called {', '.join(unknown)}; --list names them all")
    chosen = [catalogue.BY_NAME[name] for name in only] or [
        scenario for scenario in catalogue.ALL if scenario.is_quick or not quick]
    _insist_on_ground(chosen)
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored by what a script starts behind itself
        signal.signal(number, signal.default_int_handler)
    keep = keep or Path(tempfile.mkdtemp(prefix="skuld-faults-"))
    keep.mkdir(parents=True, exist_ok=True)
    results = []
    try:
        for scenario in chosen:
            results.append(run(scenario, keep, functools.partial(_say, scenario.name, quiet), seed))
            for line in results[-1].story:
                click.echo(line)
    except KeyboardInterrupt:
        click.echo("interrupted; what was running is taken down", err=True)
    sys.exit(_sum_up(results, len(chosen), keep))


def _insist_on_ground(chosen: Sequence[Scenario]) -> None:
    missing = ground.lacks(dict.fromkeys(program for scenario in chosen for program in programs(scenario)))
    if missing:
        click.echo("SKIPPED: no fault was injected and NOTHING was tested. This machine lacks:", err=True)
        for line in missing:
            click.echo(f"  {line}", err=True)
        sys.exit(CANNOT)


def _say(name: str, quiet: bool, line: str) -> None:
    if not quiet:
        click.echo(f"  {name}: {line}", err=True)


def _sum_up(results: Sequence[Result], wanted: int, keep: Path) -> int:
    click.echo(f"\n{HEAD}")
    for result in results:
        click.echo(result.line)
    failed = [result for result in results if result.word != "ok"]
    missing = wanted - len(results)
    words = f"{len(results) - len(failed)} of {wanted} passed"
    if failed:
        words += f", {len(failed)} failed: the evidence is in {keep}"
    if missing:
        words += f", {missing} were not run"
    click.echo(words)
    if not failed and not any(keep.iterdir()):
        keep.rmdir()
    return BROKEN if failed or missing else PASSED


for _command in (workers, datasource, archive):
    main.add_command(_command)


if __name__ == "__main__":
    main()
