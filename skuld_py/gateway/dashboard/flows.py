"""The pages about workflows: all that the log knows, and one with its graph and how far it is."""

from __future__ import annotations

import base64
from typing import Any

from skuld_py.errors import Malformed, Refused
from skuld_py.gateway.dashboard import graphs
from skuld_py.gateway.dashboard.forms import one, whole
from skuld_py.gateway.dashboard.looking import Look
from skuld_py.gateway.dashboard.pages import Page
from skuld_py.gateway.problems import Problem
from skuld_py.model.ids import from_text
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.faults import BadWorkflow
from skuld_py.workflow.definition.reading import parse

SHOWN = 100


async def workflows(look: Look) -> dict[str, Any]:
    """All of them, the newest first."""
    found = await look.part("workflows")
    status = await look.part("status")
    rows = found.value["workflows"][::-1] if found.value else []
    start = min(whole(look.query, "start"), max(0, len(rows) - 1))
    starved = {row["workflow"]: row["reason"] for row in status.value.get("starved", ())} if status.value else {}
    return {"found": found, "rows": rows[start : start + SHOWN], "total": len(rows), "start": start,
            "starved": starved, "earlier": max(0, start - SHOWN) if start else None,
            "later": start + SHOWN if start + SHOWN < len(rows) else None}


async def workflow(look: Look) -> dict[str, Any]:
    """One of them."""
    flow = await look.ask("workflow", workflow=one(look.query, "id"))
    queues = await look.part("queues")
    depths = {row["queue"]: row for row in queues.value["queues"]} if queues.value else {}
    definition = await _definition(look, flow["plan"])
    steps = [{**step, "depth": depths.get(definition.queue(step["name"])) if definition is not None else None}
             for step in flow["steps"]]
    drawing = None if definition is None else graphs.workflow(
        definition, depths, flow["sealed"], flow["state"] == "live")
    return {"flow": flow, "steps": steps, "drawing": drawing, "queues": queues}


async def _definition(look: Look, plan: str) -> Definition | None:
    """What a workflow was submitted with; None where nobody has it any more, or who looks may not see it."""
    try:
        task = await look.ask("get", from_text(plan))
        return parse(base64.b64decode(task["payload_base64"]), is_stored=True)
    except (Problem, Refused, Malformed, BadWorkflow):
        return None


PAGES = (
    Page("/workflows", "Workflows", "workflows.html", workflows, "Workflows"),
    Page("/workflow", "Workflow", "workflow.html", workflow))
