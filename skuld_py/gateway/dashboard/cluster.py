"""The pages about the cluster and its queues: what needs attention, what is where, and who works."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from skuld_py.gateway.dashboard.api import operations
from skuld_py.gateway.dashboard.forms import one, whole
from skuld_py.gateway.dashboard.looking import BY_NAME, Look, Part
from skuld_py.gateway.dashboard.pages import Page
from skuld_py.gateway.dashboard.quota_counts import QuotaCounts
from skuld_py.gateway.dashboard.rates import Rates
from skuld_py.verbs.options import STATES

QUEUES_SHOWN, PARTITIONS_SHOWN, ENTRIES_SHOWN, ROWS_SHOWN = 200, 128, 100, 200
REVISIONS_EACH = 5
"""Of each partition, where no partition was asked for."""
AT_A_GLANCE = 8
"""Queues on the overview: those with most to do."""


def pages(rates: Rates, document: Mapping[str, Any]) -> tuple[Page, ...]:
    """All of them. ``document``: the OpenAPI document."""
    async def api(look: Look) -> dict[str, Any]:
        return {"groups": operations(document), "about": document["info"]["description"]}

    return (
        Page("", "Overview", "overview.html", partial(overview, rates), "Overview"),
        Page("/queues", "Queues", "queues.html", partial(queues, rates), "Queues"),
        Page("/schedules", "Schedules", "schedules.html", schedules, "Schedules"),
        Page("/limits", "Limits", "limits.html", partial(limits, QuotaCounts()), "Limits"),
        Page("/workers", "Workers", "workers.html", workers, "Workers"),
        Page("/partitions", "Partitions", "partitions.html", partitions, "Partitions"),
        Page("/history", "History", "history.html", history, "History"),
        Page("/members", "Members", "members.html", members, "Members"),
        Page("/api", "HTTP API", "api.html", api, "API"))


async def overview(rates: Rates, look: Look) -> dict[str, Any]:
    """What an operator should know, and the cluster at a glance."""
    status, depths, there, flows = await look.parts("status", "queues", "workers", "workflows")
    rows = _by_work(depths)
    pace = rates.of(rows)
    known = [each for each in pace.values() if each.enqueued is not None]
    return {
        "status": status, "depths": depths, "workers": there, "flows": flows, "rows": rows[:AT_A_GLANCE],
        "hidden": len(rows) - AT_A_GLANCE, "pace": pace, "states": STATES, "leaderless": _leaderless(status),
        "totals": {state: sum(row[state] for row in rows) for state in STATES},
        "enqueued": sum(each.enqueued or 0 for each in known) if known else None,
        "completed": sum(each.completed or 0 for each in known) if known else None}


def _leaderless(status: Part) -> int:
    return sum(not row["leader"] for row in status.value["partitions"]) if status.value else 0


def _by_work(depths: Part) -> list[dict[str, Any]]:
    """Queues, those with most to do first."""
    rows = list(depths.value["queues"]) if depths.value else []
    return sorted(rows, key=lambda row: (-row["waiting"] - row["claimed"], row["queue"]))


async def queues(rates: Rates, look: Look) -> dict[str, Any]:
    """All queues, some at a time, with what can be done to them."""
    depths, paused, limited = await look.parts("queues", "paused", "limits")
    rows = _by_work(depths)
    pace = rates.of(rows)
    wanted = one(look.query, "queue")
    rows = [row for row in rows if wanted.lower() in row["queue"].lower()]
    return {"depths": depths, "pace": pace, "states": STATES, "wanted": wanted,
            "paused": {*paused.value["queues"]} if paused.value else set(),
            "limited": {row["queue"] for row in limited.value["queues"]} if limited.value else set(),
            **_some(look, rows, QUEUES_SHOWN)}


def _some(look: Look, rows: Sequence[Any], most: int) -> dict[str, Any]:
    """The rows of this page, and where the pages before and behind it begin."""
    start = min(whole(look.query, "start"), max(0, len(rows) - 1))
    return {"rows": rows[start : start + most], "total": len(rows), "start": start,
            "earlier": max(0, start - most) if start else None,
            "later": start + most if start + most < len(rows) else None}


async def schedules(look: Look) -> dict[str, Any]:
    """The periodic tasks, and when each is due."""
    found = await look.part("schedules")
    verb = BY_NAME["schedules"]
    said: Mapping[str, Any] = verb.says(found.value, {})[1] if found.value and verb.says else {"schedules": []}
    rows: Sequence[Any] = said["schedules"]
    return {"found": found, **_some(look, rows, ROWS_SHOWN)}


async def limits(counts: QuotaCounts, look: Look) -> dict[str, Any]:
    """What queues are limited to, and how many tasks may be open of those that begin alike."""
    found, quotas = await asyncio.gather(look.part("limits"), look.part("quotas", by=counts.of))
    return {"found": found, "quotas": quotas,
            **_some(look, found.value["queues"] if found.value else [], ROWS_SHOWN)}


async def workers(look: Look) -> dict[str, Any]:
    """The workers that are there."""
    found = await look.part("workers")
    return {"found": found, **_some(look, found.value["workers"] if found.value else [], ROWS_SHOWN)}


async def partitions(look: Look) -> dict[str, Any]:
    """Who leads what, who votes, what is held, and what is on its way."""
    status = await look.part("status")
    described = status.value or {"partitions": [], "moves": [], "held": []}
    node = one(look.query, "node")
    rows = [row for row in described["partitions"]
            if not node or node == row["leader"] or node in row["owners"] or node in row["cohort"]]
    return {"status": status, "node": node, "held": _by_partition(described.get("held", ())),
            "moves": _by_partition(described["moves"]), "leaderless": _leaderless(status),
            **_some(look, rows, PARTITIONS_SHOWN)}


def _by_partition(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["partition"], []).append(row)
    return found


async def history(look: Look) -> dict[str, Any]:
    """Who changed leaders, voters and wishes, when and why; of one partition, or of all."""
    partition, words = whole(look.query, "partition", -1), one(look.query, "words")
    asked: dict[str, Any] = {"most": REVISIONS_EACH} if partition < 0 else {"partition": partition}
    found = await look.part("partition_history", **asked) if look.may("partition_history") else Part()
    rows = found.value["revisions"] if found.value else []
    if words:
        rows = [row for row in rows if words.lower() in f"{row['cause']} {row['writer']} {row['leader']}".lower()]
    return {"found": found, "partition": None if partition < 0 else partition, "words": words,
            "each": REVISIONS_EACH, "may_read": look.may("partition_history"), **_some(look, rows, ROWS_SHOWN)}


async def members(look: Look) -> dict[str, Any]:
    """The nodes, and what the coordination log says of them."""
    status = await look.part("status")
    start = whole(look.query, "from")
    asked: dict[str, Any] = {"from": start, "wait_s": 0.0}
    log = await look.rows("follow_log", ENTRIES_SHOWN, **asked) if look.may("follow_log") else []
    held = status.value.get("held", ()) if status.value else ()
    barred = {row["words"].partition(",")[0] for row in held if row["what"] == "quarantine"}
    return {"status": status, "log": log, "from": start, "may_read": look.may("follow_log"), "barred": barred,
            "later": log[-1]["position"] + 1 if len(log) == ENTRIES_SHOWN else None}
