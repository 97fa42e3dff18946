"""What a table and the files say of the results: rows of plain values, one for each run.

Counts are given per process that joined or left (``per_change``) where the change causes them, and per member
where every member pays for it. Of a run that was not finished only how far it came is told: its counts would look
small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skuld_py.simulation.coordination.scale.costs import ALL, PLAIN, Options
from skuld_py.simulation.coordination.scale.scenarios import Result

WRITES_PER_JOIN_MAX = 3.0
SPEED_UP_MIN = 20.0
TARGET_MEMBERS, PLAIN_MEMBERS = 10_000, 1_000

COLUMNS = {
    "scenario": "", "members": "", "setting": "", "is_finished": "", "time_s": "s", "entries": "",
    "writes_per_change": "", "reads_per_member": "", "watches_per_member": "", "notifications_per_member": "",
    "fan_out": "", "zookeeper_kb_per_member": "kB", "member_kb_per_member": "kB", "messages_per_member": "",
    "decisions": "", "decision_s": "s", "longest_wait_s": "s", "inside": "", "changed": "", "samples": ""}


def row(result: Result) -> dict[str, Any]:
    """One run, by the names of ``COLUMNS``."""
    counts, members = result.counts, result.members
    return {
        "scenario": result.scenario, "members": members, "setting": result.options.label,
        "is_finished": result.is_finished, "time_s": round(result.time_ms / 1_000, 3), "entries": counts.entries,
        "writes_per_change": round(result.per_change(counts.writes), 2),
        "reads_per_member": round(counts.reads / members, 2),
        "watches_per_member": round(counts.watches / members, 2),
        "notifications_per_member": round(counts.notifications / members, 2), "fan_out": counts.fan_out,
        "zookeeper_kb_per_member": round(counts.zookeeper_bytes / members / 1e3, 1),
        "member_kb_per_member": round(counts.member_bytes / members / 1e3, 1),
        "messages_per_member": round(counts.messages / members, 1), "decisions": counts.decisions,
        "decision_s": round(counts.decision_ms / 1e3, 1), "longest_wait_s": round(result.longest_wait_ms / 1e3, 2),
        "inside": result.inside, "changed": result.changed, "samples": result.samples}


def remark(result: Result, is_short: bool = False) -> str:
    """How far a run came that was not finished; empty for others."""
    if result.is_finished:
        return ""
    of = f"{result.inside:,} are in" if result.scenario != "failure" else f"{result.inside:,} live"
    if is_short:
        return f"not finished; {of}"
    return f"not finished within {result.counts.entries:,} entries: {of} after {result.time_ms / 1_000:,.0f} s"


def found(results: Iterable[Result], scenario: str, members: int, options: Options) -> Result | None:
    """The run of a setting, if there was one and it was finished."""
    return next((each for each in results if (each.scenario, each.members, each.options)
                 == (scenario, members, options) and each.is_finished), None)


def targets(results: Sequence[Result]) -> list[tuple[str, bool]]:
    """What was aimed at, as sentences, and whether it was met; only what these runs can tell."""
    made: list[tuple[str, bool]] = []
    best = found(results, "start", TARGET_MEMBERS, ALL)
    plain = found(results, "start", PLAIN_MEMBERS, PLAIN)
    same = found(results, "start", PLAIN_MEMBERS, ALL)
    if best is not None:
        writes = best.per_change(best.counts.writes)
        made.append((f"{TARGET_MEMBERS:,} members with all options: {writes:.2f} ZooKeeper writes per join;"
                     f" wanted: at most {WRITES_PER_JOIN_MAX:.0f}", writes <= WRITES_PER_JOIN_MAX))
    for quick in filter(None, (best, same)):
        if plain is not None:
            ratio = plain.time_ms / quick.time_ms
            made.append((f"{quick.members:,} with all options are in after {quick.time_ms / 1e3:.2f} s,"
                         f" {PLAIN_MEMBERS:,} plain after {plain.time_ms / 1e3:.2f} s: {ratio:.1f} times faster;"
                         f" wanted: at least {SPEED_UP_MIN:.0f}", ratio >= SPEED_UP_MIN))
    return made
