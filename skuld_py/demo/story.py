"""The end of the demo's story: the tables of tasks, packages, conflicts and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from skuld_py.demo.census import Conflict, Summary, Totals
from skuld_py.demo.screen import Screen, harmless
from skuld_py.model.ids import TaskId, partition_of
from skuld_py.model.task import Task

CONFLICTS_SHOWN = 15
PAIRS_SHOWN = 10


def tell_tasks(screen: Screen, tasks: Sequence[Task], leaders: Mapping[int, str]) -> None:
    """One line per task: who leads its partition, the token that completed it, how often it was claimed."""
    rows = []
    for task in tasks:
        claim = next(claim for claim in task.claims if claim.token == task.completed_token)
        seconds = ((claim.completed_ms or claim.start_ms) - claim.start_ms) / 1000
        leader = leaders[partition_of(task.id, len(leaders))]
        rows.append((TaskId(task.id), leader, str(claim.token), len(task.claims), seconds))
    screen.table(f"{len(rows)} tasks", ("task", "led by node", "token", "claims", "seconds"), rows)


def tell_packages(screen: Screen, summary: Summary) -> None:
    """The biggest packages."""
    rows = [(package.name or "(none)", package.classes, package.bytes) for package in summary.packages]
    screen.table(f"{len(rows)} biggest packages", ("package", "classes", "bytes"), rows)


def tell_conflicts(screen: Screen, summary: Summary, place: Callable[[], Path]) -> None:
    """Which archives contradict each other, and in what; all of it in a file when it is too much."""
    conflicts = summary.conflicts
    pairs = Counter((conflict.archive, conflict.other) for conflict in conflicts)
    classes = len({conflict.entry for conflict in conflicts})
    screen.table(f"jar hell: {classes} classes that differ, in {len(pairs)} pairs of archives",
                 ("classes", "archive", "archive"),
                 [(count, _name(a), _name(b)) for (a, b), count in pairs.most_common(PAIRS_SHOWN)])
    screen.table(f"the first {min(CONFLICTS_SHOWN, len(conflicts))} of {len(conflicts)}",
                 ("class", "archive", "archive"),
                 [(conflict.entry.removesuffix(".class").replace("/", "."), _name(conflict.archive),
                   _name(conflict.other)) for conflict in conflicts[:CONFLICTS_SHOWN]])
    if len(conflicts) > CONFLICTS_SHOWN:
        path = place()
        path.write_text("".join(map(_line, conflicts)))
        screen.say(f"all {len(conflicts)} are in {path}")


def tell_totals(screen: Screen, found: Totals, expected: Totals) -> bool:
    """Both counts side by side; whether they are equal."""
    pairs = zip(attrs.asdict(found).items(), attrs.asdict(expected).values(), strict=True)
    rows = [(name, one, other, "equal" if one == other else "DIFFERENT") for (name, one), other in pairs]
    screen.table("totals", ("", "by Spark", "independently", ""), rows)
    return found == expected


def _name(path: str) -> str:
    return Path(path).name


def _line(conflict: Conflict) -> str:
    return "\t".join((harmless(conflict.entry), harmless(conflict.archive), f"{conflict.crc:08x}",
                      harmless(conflict.other), f"{conflict.other_crc:08x}")) + "\n"
