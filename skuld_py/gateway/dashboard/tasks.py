"""The pages about tasks: a search, and one task's story.

A search shows some tasks in the order of their making, and where to go on. It takes ``SCAN_S``, and then ends with
the page under way, whatever it has found: so a search among millions stays a short request, and says how far it
came. Nodes say so even of pages on which nothing was found.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError
from skuld_py.gateway.dashboard import graphs
from skuld_py.gateway.dashboard.forms import Given, one, seconds_of, whole
from skuld_py.gateway.dashboard.looking import BY_NAME, Look
from skuld_py.gateway.dashboard.pages import Page
from skuld_py.gateway.dashboard.rendering import PAGE_HEADERS, link
from skuld_py.gateway.problems import Problem, refusal
from skuld_py.gateway.reading import list_pages
from skuld_py.model.ids import TaskId, time_of
from skuld_py.verbs import documents
from skuld_py.verbs.options import FILTERS, STATES
from skuld_py.verbs.progress import entry_document, progress_document

SHOWN, LINES_SHOWN, NEWEST_SHOWN, CLAIMS_SHOWN = 50, 200, 50, 50
SCANNED, SCANNED_EACH, SCAN_S = 20_000, 500, 0.4
"""What one search looks at: so many tasks, so many at a time; or for so long, and then to the end of a page."""
GRAPH_TASKS, GRAPH_ROUNDS = 60, 6
"""Tasks in a drawing of dependencies, and how often those of the newest are asked for."""
NAMED = 50
"""Tasks that a page named before it is asked to do something to them."""


async def search(look: Look) -> dict[str, Any]:
    """Some tasks, and where to go on."""
    query = look.query
    states = [state for state in query.get("state", ()) if state in STATES]
    asked: dict[str, Any] = {"state": ",".join(states)}
    for name in ("queue", "after", "key", *FILTERS):
        if text := one(query, name):
            asked[name] = text
    for name in ("since", "until"):
        if text := one(query, name):
            asked[f"{name}_s"] = _moment(name, text)
    filters, key = {name: one(query, name) for name in FILTERS}, one(query, "key")
    is_filtered = any(filters.values())
    shown: dict[str, Any] = {"states": STATES, "chosen": states, "filters": filters, "key": key, "rows": [],
                             "problem": None, "last": None, "scanned": 0, "is_filtered": is_filtered,
                             "reached_ms": None}
    try:
        shown |= await _found(look, asked, SCANNED_EACH if is_filtered or key else SHOWN + 1)
    except Problem as problem:
        shown["problem"] = problem
    return shown


async def _found(look: Look, asked: Mapping[str, Any], each: int) -> dict[str, Any]:
    """The next tasks: ``last`` is where to go on, None at the end. ``reached_ms``: tasks made up to then were
    looked at when the time was over."""
    pages = await look.ask("list_tasks", **asked, limit=min(SCANNED, each), by=list_pages)
    found: list[Any] = []
    last: TaskId | None = None
    scanned, end_s = 0, steady_s() + SCAN_S
    try:
        async with aclosing(pages):
            async for page in pages:
                scanned += page.read
                for task in page.tasks:
                    if len(found) == SHOWN:
                        return {"rows": found, "last": last, "scanned": scanned}
                    found.append(documents.task(task, has_logs=False))
                    last = task.id
                last = page.upto
                if last is not None and (scanned >= SCANNED or steady_s() > end_s):
                    reached_ms = min(time_of(last), look.now_ms)
                    return {"rows": found, "last": last, "scanned": scanned, "reached_ms": reached_ms}
    except SkuldError as error:
        raise look.gateway.problem_of(error, look.request, BY_NAME["list_tasks"]) from error
    return {"rows": found, "last": None, "scanned": scanned}


def _moment(name: str, text: str) -> float:
    """A time as a browser's field gives it, in UTC."""
    try:
        return seconds_of(text)
    except ValueError:
        raise refusal("bad_request", f"{name}: is no time such as 2026-11-20T08:00", field=name) from None


async def story(look: Look) -> dict[str, Any]:
    """All about one task."""
    task = await look.ask("get", look.task_id)
    log = [line for claim in task["claims"] for line in claim["log"]]
    return {"task": task, "claims": task["claims"][-CLAIMS_SHOWN:][::-1],
            "left_out": max(0, len(task["claims"]) - CLAIMS_SHOWN),
            "log": [entry_document(line) for line in log[-NEWEST_SHOWN:]], "entries": len(log),
            "is_cut": any(claim["is_cut"] for claim in task["claims"]), "progress": progress_document(log),
            "graph": await _graph(look, task)}


async def _graph(look: Look, task: Mapping[str, Any]) -> str | None:
    """What a task waits for, or waited for, as a drawing; None when it is nothing."""
    known: dict[str, Mapping[str, Any]] = {task["id"]: task}
    wanted = list(dict.fromkeys(task["deps"] + task["blocked_by"]))
    if not wanted:
        return None
    for _ in range(GRAPH_ROUNDS):
        wanted = [each for each in wanted if each not in known][:GRAPH_TASKS - len(known)]
        if not wanted:
            break
        found = await look.rows("get_many", GRAPH_TASKS, ids=wanted)
        known |= {row["id"]: row for row in found}
        wanted = list(dict.fromkeys(dep for row in found for dep in row["deps"] + row["blocked_by"]))
    return graphs.dependencies(task["id"], known)


async def find(look: Look) -> Response:
    """The page of the task whose id was typed."""
    wanted = one(look.query, "id")
    if not wanted:
        raise refusal("no_such_task", "id: is missing", field="id")
    return RedirectResponse(link(f"/tasks/{quote(wanted, safe='')}"), 303, PAGE_HEADERS)


async def log(look: Look) -> dict[str, Any]:
    """The log of a task's claims, some entries at a time."""
    token = one(look.query, "token")
    asked = {"token": token} if token else {}
    start = whole(look.query, "start")
    lines = await look.rows("log", start + LINES_SHOWN + 1, look.task_id, follow=False, wait_s=0.0, **asked)
    shown = lines[start : start + LINES_SHOWN]
    return {"id": look.request.path_params["id"], "token": token, "start": start,
            "lines": [entry_document(line) for line in shown],
            "earlier": max(0, start - LINES_SHOWN) if start else None,
            "later": start + LINES_SHOWN if len(lines) > start + LINES_SHOWN else None}


async def whole_content(look: Look) -> Response:
    """Some bytes of a task as a file: never as something that a browser would show, or run."""
    name, token, seq = one(look.query, "name"), one(look.query, "token"), whole(look.query, "seq")
    task = await look.ask("get", look.task_id)
    found: Any = None
    if name in ("payload", "result", "error"):
        found = task.get(f"{name}_base64")
    elif name == "checkpoint" and task["checkpoint"]:
        found = task["checkpoint"]["checkpoint_base64"]
    elif name == "data":
        found = next((line["data_base64"] for claim in task["claims"] for line in claim["log"]
                      if line["token"] == token and line["seq"] == seq), None)
    if found is None:
        raise refusal("no_such_task", "name: the task has no such content", field="name")
    file = f"{look.request.path_params['id']}-{name}"
    return Response(base64.b64decode(found), headers={
        **PAGE_HEADERS, "content-type": "application/octet-stream", "content-security-policy": "sandbox",
        "content-disposition": f'attachment; filename="{file}"'})


async def about(look: Look, given: Given) -> dict[str, Any]:
    """What a page knows of the things that somebody is about to change: their queue, and tasks."""
    ids = [text for value in given.get("ids", ()) for text in value.split()][:NAMED]
    made: dict[str, Any] = {"depth": None, "tasks": [], "limits": None}
    if ids and look.may("get_many"):
        with suppress(Problem):  # the verb itself will say what is wrong with them
            made["tasks"] = await look.rows("get_many", NAMED, ids=ids)
    queue = one(given, "queue")
    if queue and look.may("queues"):
        found = await look.part("queues")
        rows: Sequence[Mapping[str, Any]] = found.value["queues"] if found.value else ()
        made["depth"] = next((row for row in rows if row["queue"] == queue), None)
    return made


PAGES = (
    Page("/tasks", "Tasks", "tasks.html", search, "Tasks"),
    Page("/find", "Find a task", "", find),
    Page("/tasks/{id}", "Task", "task.html", story),
    Page("/tasks/{id}/log", "Log", "log.html", log),
    Page("/tasks/{id}/content", "Content", "", whole_content))
