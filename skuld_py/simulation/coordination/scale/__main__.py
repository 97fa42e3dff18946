"""The coordination plane at scale, simulated: a table, two plots, and the rows as CSV and JSON.

  scripts/scale                     100, 1,000 and 10,000 members, every setting: some minutes
  scripts/scale --quick             100 and 1,000 members: below a minute
  scripts/scale --members 100 --settings plain,all --scenarios start,restart

Settings: plain, each option alone, and all. Where the three phases are taken by 10,000, a run would take hours; it
is given up after --entries entries, and says so. A run that does not end with one closed ring over all that live,
with everybody watched, is a failure. The same seed gives the same numbers. Exit code 1: a run failed, or a target
was missed (ZooKeeper writes per join, time to full membership).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from skuld_py.simulation.coordination.scale import report
from skuld_py.simulation.coordination.scale.costs import SETTINGS
from skuld_py.simulation.coordination.scale.scenarios import SCENARIOS, Result, Unsound, run

QUICK, FULL = (100, 1_000), (100, 1_000, 10_000)
BUDGETED = 5_000
"""From so many members on the budget of entries holds."""
RESTART_SHARE = 10
"""Of the budget a restart gets this part: each of its entries makes all members look for one to watch."""
HEADINGS = {
    "members": "members", "setting": "setting", "time_s": "time s", "entries": "entries",
    "writes_per_change": "writes per join or death", "reads_per_member": "reads per member",
    "watches_per_member": "watches per member", "fan_out": "watch fan-out",
    "zookeeper_kb_per_member": "from ZooKeeper kB per member",
    "member_kb_per_member": "between members kB per member",
    "decision_s": "deciding CPU s", "longest_wait_s": "longest wait at ZooKeeper s"}


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="scripts/scale", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = {options.label: options for options in SETTINGS}
    parser.add_argument("--quick", action="store_true", help="only 100 and 1,000 members")
    parser.add_argument("--members", type=_numbers, help="sizes of clusters, as 100,1000")
    parser.add_argument("--settings", type=_known(names), default=[*names], help=f"of: {', '.join(names)}")
    parser.add_argument("--scenarios", type=_known(SCENARIOS), default=[*SCENARIOS],
                        help=f"of: {', '.join(SCENARIOS)}")
    parser.add_argument("--entries", type=int, default=5_000,
                        help=f"the most entries of a run of {BUDGETED:,} members and more (default 5000);"
                             f" a restart gets a part of {RESTART_SHARE}")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other chances (default 1)")
    parser.add_argument("--out", type=Path, default=Path("scale"),
                        help="directory for the files (default ./scale)")
    asked = parser.parse_args(argv)
    asked.members = asked.members or (QUICK if asked.quick else FULL)
    asked.settings = [names[label] for label in asked.settings]
    return asked


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(each) for each in text.split(","))
    if min(numbers) < 4:
        raise argparse.ArgumentTypeError("a cluster has at least 4 members here")
    return numbers


def _known(names: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        several = text.split(",")
        for each in several:
            if each not in names:
                raise argparse.ArgumentTypeError(f"{each} is none of {', '.join(names)}")
        return several
    return parse


def play(asked: argparse.Namespace, console: Console) -> Iterator[Result | Unsound]:
    """The runs, one after the other."""
    for members in asked.members:
        for options in asked.settings:
            for scenario in asked.scenarios:
                budget = 0
                if members >= BUDGETED:
                    budget = asked.entries // (RESTART_SHARE if scenario == "restart" else 1)
                began = time.monotonic()
                try:
                    result = run(scenario, members, options, asked.seed, budget)
                except Unsound as problem:
                    console.print(f"[red]{problem}", highlight=False)
                    yield problem
                    continue
                took = time.monotonic() - began
                told = report.remark(result) or f"{result.time_ms / 1e3:,.2f} s, {result.counts.entries:,} entries"
                console.print(f"{scenario} of {members:,}, {options.label}: {told} [dim]({took:.1f} s here)",
                              highlight=False)
                yield result


def show(results: Sequence[Result], console: Console) -> None:
    """One table for each scenario."""
    for scenario in dict.fromkeys(each.scenario for each in results):
        table = Table(title=scenario, title_justify="left")
        for heading in HEADINGS.values():
            table.add_column(heading, justify="left" if heading == "setting" else "right")
        for result in (each for each in results if each.scenario == scenario):
            cells = report.row(result)
            if result.is_finished:
                table.add_row(*(f"{cells[name]:,}" if name != "setting" else cells[name] for name in HEADINGS))
            else:
                table.add_row(f"{result.members:,}", result.options.label, f"> {cells['time_s']:,.0f}",
                              f"> {result.counts.entries:,}", *report.remark(result, is_short=True).split("; "))
        console.print(table)


def write(results: Sequence[Result], directory: Path) -> list[Path]:
    """The rows and the plots as files."""
    from skuld_py.simulation.coordination.scale.plots import draw

    directory.mkdir(parents=True, exist_ok=True)
    rows = [report.row(each) for each in results]
    with open(directory / "scale.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=[*report.COLUMNS])
        writer.writeheader()
        writer.writerows(rows)
    (directory / "scale.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return [directory / "scale.csv", directory / "scale.json", *draw(results, directory)]


def main(argv: list[str] | None = None) -> int:
    """Run, show and write; the exit code says whether all is well."""
    asked = arguments(argv)
    console = Console(width=None if sys.stdout.isatty() else 180)
    played = list(play(asked, console))
    results = [each for each in played if isinstance(each, Result)]
    show(results, console)
    for path in write(results, asked.out):
        console.print(f"written: {path}", highlight=False)
    targets = report.targets(results)
    for sentence, is_met in targets:
        console.print(f"{'[green]met' if is_met else '[red]missed'}[/]: {sentence}", highlight=False)
    return 0 if len(results) == len(played) and all(is_met for _, is_met in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
