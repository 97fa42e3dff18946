"""The verbs of the table as routes: which paths there are, and which function serves each.

Most verbs are a function of the client, and done as the table says. Done by hand are streams and waits, which end
when the caller has gone, and verbs that make tasks, since an answer in doubt must have the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skuld_py.errors import SkuldError
from skuld_py.gateway import enqueueing, flows, holding, reading
from skuld_py.gateway.call import Call
from skuld_py.gateway.problems import Problem, problem_of
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Given, Verb

_BY_HAND: Mapping[str, Callable[..., Any]] = {
    "enqueue": enqueueing.enqueue, "enqueue_many": enqueueing.enqueue_many, "claim": holding.claim,
    "get": reading.get, "get_many": reading.get_many, "results": reading.results, "log": reading.log,
    "list_tasks": reading.list_tasks, "status": reading.status, "health": reading.health,
    "ready": reading.ready, "workers": reading.workers,
    "await_workflow": flows.await_workflow, "follow_log": flows.follow_log}


def by_path() -> Mapping[str, Mapping[str, Verb]]:
    """The verbs of each path, by method; literal paths before those with an id, as they are matched."""
    found: dict[str, dict[str, Verb]] = {}
    for verb in sorted(VERBS, key=lambda verb: verb.has_id):
        found.setdefault(verb.path, {})[verb.method] = verb
    return found


def do(verb: Verb, call: Call, given: Given) -> Any:
    """What a verb answers, to be awaited; its pages, where it is a stream."""
    if verb.act is None:
        return _BY_HAND[verb.name](call, **given)
    return verb.act(call.client, **given, **({"progress": _untold} if verb.is_long else {}))


def _untold(_: int) -> None:
    """Ignore how far a verb is: it has one answer, at the end."""


def problem_for(error: SkuldError, verb: Verb) -> Problem:
    """What a verb's error is to its caller."""
    return problem_of(error, is_repeatable=verb.is_repeatable)
