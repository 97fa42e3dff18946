"""``scripts/faults``: real nodes, real disks, real cuts; see ``--help``.

Here and not in the package: it needs root, it is about this project's releases and not for its users, and it
judges with the simulator's checkers, which tests may import and the package's shells may not.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import attrs
import click

from faults import catalogue, ground, inside
from faults.world import Scenario

PASSED, BROKEN, CANNOT = 0, 1, 77
TIME_S = 420.0
"""A run that takes longer is ended, and has failed."""
GRACE_S = 30.0

_HELP = """Run real nodes under real faults and judge what their clients were told.

Each run starts ZooKeeper and three or five node processes in a network namespace of its own, lets producers,
workers and readers work, and does to them what its scenario says. Then everything is healed, the queues are
drained, the replicas must become equal, and the simulator's checkers judge the recorded history together with
the stores and ZooKeeper's transaction log. A run passes when nothing is violated AND it was put to the test:
acknowledged operations overlapped every fault, and leaders changed where they had to.

\b
  scripts/faults --quick            the nine that every change should pass, about 9 minutes
  scripts/faults                    all of them, about 20 minutes
  scripts/faults --only power-cut   one, or several: --only may be repeated
  scripts/faults --list             their names and stories

\b
The columns: acks       operations acknowledged, and of these, how many were under way during a fault
             elections  leaderships won after the start, and during faults
             p99        99th percentile of an enqueue, with retries, in ms
             settled    ms from healing until everything was drained and equal

Needs root, and: ip, nft, mkfs.xfs or mkfs.ext4, mount, and strace for failing-fsync
(Debian: apt-get install iproute2 nftables xfsprogs strace).

\b
Exit status: 0 all passed; 1 something was violated or untested; 2 wrong arguments;
             77 this machine cannot run them, so NOTHING was tested.
"""


@attrs.frozen
class _Result:
    scenario: Scenario
    verdict: dict[str, Any]
    seconds: float
    evidence: Path | None

    @property
    def word(self) -> str:
        return "VIOLATED" if self.verdict["violated"] else ("VACUOUS" if self.verdict["vacuous"] else "ok")


@click.command(help=_HELP)
@click.option("--quick", is_flag=True, help="Only the nine short ones.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this scenario; may be repeated.")
@click.option("--list", "is_list", is_flag=True, help="Say which scenarios there are.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides victims and what clients choose.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Where the evidence of failed runs is put; a fresh directory when not given.")
@click.option("--quiet", is_flag=True, help="No progress, only results.")
def main(quick: bool, only: Sequence[str], is_list: bool, seed: int, keep: Path | None, quiet: bool) -> None:
    """Choose, check the machine, run, and sum up."""
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
    ground.remove_stale()
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored by what a script starts behind itself
        signal.signal(number, signal.default_int_handler)
    keep = keep or Path(tempfile.mkdtemp(prefix="skuld-faults-"))
    keep.mkdir(parents=True, exist_ok=True)
    results = []
    try:
        for scenario in chosen:
            results.append(_run(scenario, seed, keep, quiet))
            _show(results[-1])
    except KeyboardInterrupt:
        click.echo("interrupted; what was running is taken down", err=True)
    sys.exit(_sum_up(results, len(chosen), keep))


def _insist_on_ground(chosen: Sequence[Scenario]) -> None:
    programs = ["ip", "nft", "mount", "mkfs.ext4", *(word for scenario in chosen for word in scenario.programs)]
    missing = ground.lacks(dict.fromkeys(programs))
    if missing:
        click.echo("SKIPPED: no fault was injected and NOTHING was tested. This machine lacks:", err=True)
        for line in missing:
            click.echo(f"  {line}", err=True)
        sys.exit(CANNOT)


def _run(scenario: Scenario, seed: int, keep: Path, quiet: bool) -> _Result:
    directory = Path(tempfile.mkdtemp(prefix=f"{scenario.name}-", dir=keep))
    started = time.monotonic()
    with ground.namespace(scenario.name) as prefix:
        words = [*prefix, sys.executable, "-m", "faults.inside", scenario.name, str(directory), str(seed)]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        follower = threading.Thread(target=_follow, args=(run.stdout, directory / "run.log", scenario.name, quiet))
        follower.start()
        try:
            run.wait(TIME_S)
        except subprocess.TimeoutExpired:
            click.echo(f"{scenario.name} takes longer than {TIME_S:.0f} s and is ended", err=True)
        finally:
            _end(run)
            follower.join()
            if run.returncode == inside.INTERRUPTED:
                shutil.rmtree(directory)
    verdict = _verdict(directory, run.returncode)
    is_kept = bool(verdict["violated"] or verdict["vacuous"])
    if not is_kept:
        shutil.rmtree(directory)
    return _Result(scenario, verdict, time.monotonic() - started, directory if is_kept else None)


def _end(run: subprocess.Popen[str]) -> None:
    """Let it take down what it started; the kernel does that when it cannot."""
    if run.poll() is None:
        run.send_signal(signal.SIGTERM)
        try:
            run.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            run.kill()
    run.wait()


def _follow(output: IO[str] | None, log: Path, name: str, quiet: bool) -> None:
    assert output is not None
    with log.open("w") as copy:
        for line in output:
            copy.write(line)
            copy.flush()
            if not quiet:
                click.echo(f"  {name}: {line.rstrip()}", err=True)


def _verdict(directory: Path, status: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
        return found
    except (OSError, ValueError):
        words = f"it ended with status {status} and gave no verdict; see {directory}/run.log"
        return {"violated": {"the run itself works": [words]}, "vacuous": [], "overlaps": []}


def _show(result: _Result) -> None:
    click.echo(_line(result))
    for overlap in result.verdict["overlaps"]:
        click.echo(f"    {overlap['fault']}: {overlap['seconds']:.1f} s, {overlap['acks']} acks,"
                   f" {overlap['elections']} elections")
    for rule, lines in result.verdict["violated"].items():
        click.echo(f"    VIOLATED: {rule}")
        for line in lines:
            click.echo(f"      {line[:400]}")
    for line in result.verdict["vacuous"]:
        click.echo(f"    VACUOUS: {line}")
    if result.evidence is not None:
        click.echo(f"    evidence: {result.evidence}")


_HEAD = (f"{'scenario':<17} {'result':<9} {'seconds':>7} {'acks':>7} {'in faults':>9} {'claims':>7}"
         f" {'elections':>9} {'in faults':>9} {'p99 ms':>7} {'settled':>8} {'violations':>10}")


def _line(result: _Result) -> str:
    found = result.verdict

    def number(name: str) -> str:
        return str(found.get(name, "-"))
    return (f"{result.scenario.name:<17} {result.word:<9} {result.seconds:>7.0f} {number('acks'):>7}"
            f" {number('acks_in_faults'):>9} {number('claims'):>7} {number('elections'):>9}"
            f" {number('elections_in_faults'):>9} {number('p99_ms'):>7} {number('settled_ms'):>8}"
            f" {len(found['violated']):>10}")


def _sum_up(results: Sequence[_Result], wanted: int, keep: Path) -> int:
    click.echo(f"\n{_HEAD}")
    for result in results:
        click.echo(_line(result))
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


if __name__ == "__main__":
    main()
