"""Whatever a client can do, the command line can: each method of the client has a verb that takes all it takes.

A method that is new fails here until it has a verb: a function and a row beside its likes in ``skuld_py.verbs``.
"""

from __future__ import annotations

import inspect

import attrs
import click
import pytest

from skuld_py.cli.main import main
from skuld_py.client.client import Client
from skuld_py.client.options import Retry

VERB_OF = {"enqueue_many": "enqueue", "claim_one": "claim", "renew_many": "renew", "complete_many": "complete",
           "fail_many": "fail", "set_limits": "limit", "remove_limits": "unlimit",
           "set_quota": "quota", "remove_quota": "unquota", "quota_use": "quotas",
           "retry_all": "bulk retry", "cancel_all": "bulk cancel",
           "purge_all": "bulk purge", "move_all": "bulk move", "release_all": "bulk release", "update": "append",
           "get_many": "get", "depths": "status", "greeting": "status", "overview": "status", "ends": "results",
           "result": "results", "snooze_many": "snooze",
           "force_epoch": "cluster force-epoch", "drain": "cluster remove",
           "submit_workflow": "workflow submit", "workflow": "workflow status", "workflows": "workflow list",
           "await_workflow": "workflow await", "kill_workflow": "workflow kill", "follow_log": "cluster log",
           "partition_history": "cluster history",
           "put_schedule": "schedule put", "schedules": "schedule list", "remove_schedule": "schedule remove"}
"""The verbs of methods that are called otherwise; the many form and the single one share a verb."""
WITHOUT = {"close", "new_ids", "list_page", "chain", "group", "chord", "join", "results_of", "collectable",
           "archived", "offered", "enter_archive", "archive_root", "after_fork", "report", "take_seats",
           "exhaust_input", "seal_output"}
"""What makes no sense by itself on a command line. Groups are made there by ``enqueue --dep``; ``archive`` reads
pages, writes them and says so; a worker reports by itself, takes its seats, and says how far workflows are."""
ELSEWHERE = {"w": "w", "n": "n", "lease_s": "lease", "retry_in_s": "retry-in", "wait_s": "wait", "per_s": "per",
             "priority": "priority", "id": "id", "headers": "header", "states": "state", "follow_s": "follow",
             "deps": "dep", "dep_wait_s": "dep-wait", "unique_window_s": "unique-window",
             "every_s": "every", "timeout_s": "timeout", "for_s": "for", "within_s": "within",
             "longest_lease_s": "longest-lease", "undo": "back"}
"""Arguments of methods that are options of verbs."""
GIVEN = {"self", "queue", "payload", "payloads", "claim", "claims", "data", "seq", "ids", "page", "delay_s",
         "results", "errors", "name", "after", "like", "partition", "definition", "reason", "fence", "position",
         "node", "prefix", "life"}
"""Arguments of methods that are arguments of verbs, or the verb's own affair."""


def methods() -> list[str]:
    return [name for name, _ in inspect.getmembers(Client, callable) if not name.startswith("_")]


def verb_of(method: str) -> click.Command | None:
    found: click.Command | None = main
    for word in VERB_OF.get(method, method).split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    return found


@pytest.mark.parametrize("method", [method for method in methods() if method not in WITHOUT])
def test_every_method_has_a_verb_with_its_options(method: str) -> None:
    verb = verb_of(method)
    assert verb is not None, f"give Client.{method} a verb, or say here which one it is"

    options = {max(option.opts, key=len).lstrip("-") for option in verb.params if isinstance(option, click.Option)}
    parameters = inspect.signature(getattr(Client, method)).parameters
    called_back = {name for name, each in parameters.items() if "Callable" in str(each.annotation)}
    wanted = {*parameters} - GIVEN - called_back
    if method in ("get", "log", "result", "workflow", "await_workflow", "kill_workflow"):
        wanted -= {"id"}  # an argument there
    if "retry" in wanted:
        travel = {field.name for field in attrs.fields(Retry)} - {"on", "never"}  # classes do not travel
        wanted = wanted - {"retry"} | {name.removesuffix("_s") for name in travel}
    assert {ELSEWHERE.get(name, name.replace("_", "-")) for name in wanted} <= options, method


def test_there_are_methods_and_no_name_is_stale() -> None:
    assert len(methods()) >= 15
    assert set(methods()) >= WITHOUT | set(VERB_OF)
