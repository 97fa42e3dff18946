"""The table of verbs is whole: functions take what their rows say, and its numbers are those of the cluster."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skuld_py import config
from skuld_py.cli.acting import made_of
from skuld_py.client import preludes
from skuld_py.client.claims import LEASE_S
from skuld_py.client.client import Client
from skuld_py.client.options import Retry
from skuld_py.gateway.routes import do
from skuld_py.model import body, limiting, prelude, schedule, state
from skuld_py.model.messages import DELAY_MS_MAX
from skuld_py.verbs import documents, enqueueing, holding, options, queues
from skuld_py.verbs.options import Many, Number, Option, Request, Seconds, Whole
from skuld_py.verbs.table import GROUPS, VERBS
from skuld_py.verbs.verb import Scope, Verb, done_at_once, verb


def option_of(request: Request, name: str) -> Option:
    return next(option for option in request.options if option.name == name)


@pytest.mark.parametrize("row", [row for row in VERBS if row.act is not None], ids=lambda row: row.name)
def test_a_function_takes_what_its_row_says(row: Verb) -> None:
    assert row.act is not None
    client, *parameters = inspect.signature(row.act).parameters.values()
    named = {each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}
    asked = {option.name for option in row.asks.options} | ({"progress"} if row.is_long else set())

    assert client.name == "client" and all(each.default is inspect.Parameter.empty for each in parameters)
    assert named == asked or (named < asked and len(named) < len(parameters))


def test_every_verb_and_every_command_has_a_name_of_its_own() -> None:
    commands = [row.command for row in VERBS if row.command]

    assert len({row.name for row in VERBS}) == len(VERBS) == len({(row.method, row.path) for row in VERBS})
    assert len(set(commands)) == len(commands)
    assert {command.split()[0] for command in commands if " " in command} == set(GROUPS)
    assert all(row.says is not None and "skuld " in (row.act.__doc__ or "")
               for row in VERBS if row.command and row.act is not None)


def test_the_numbers_of_the_table_are_those_of_the_cluster() -> None:
    retry = Retry()
    assert tuple(each.name.lower() for each in state.State) == options.STATES
    assert options.LEASE.kind == Seconds(0.001, config.LEASE_MS_MAX / 1000) and options.LEASE.default == LEASE_S
    assert options.COPIES.kind == Whole(1, config.REPLICAS_MAX)
    assert options.PRIORITY.kind == Whole(body.PRIORITY_MIN, body.PRIORITY_MAX)
    assert Seconds(0, DELAY_MS_MAX / 1000) == options.DELAY
    assert options.YEARS_10_S * 1000 == preludes.AHEAD_MS_MAX
    assert options.UNIQUE_WINDOW.kind == Seconds(0.001, body.WINDOW_MS_MAX / 1000)
    assert options.UNIQUE_WINDOW.default == preludes.UNIQUE_WINDOW_S
    assert options.DEP_WAIT.default == preludes.DEP_WAIT_S
    assert options.DEPS.kind == Many(options.Plain.ID, None, prelude.DEPS_MAX)
    assert options.IDS.kind == Many(options.Plain.ID, 1, config.DEFAULT_LIMITS.batch_tasks)
    assert {option.name: option.default for option in options.POLICY} == {
        option.name: getattr(retry, option.name) for option in options.POLICY}
    for option, (field, scale) in zip(options.POLICY, (
            ("max_attempts", 1), ("backoff_ms", 1000), ("factor_percent", 100), ("backoff_max_ms", 1000),
            ("jitter_percent", 100)), strict=True):
        kind = option.kind
        assert isinstance(kind, Whole | Number | Seconds)
        assert (kind.least, kind.most) == tuple(bound / scale for bound in body.RETRY_RANGES[field])


def test_the_numbers_of_single_verbs_are_those_of_the_cluster() -> None:
    limits, put = queues.set_limits.asks, queues.put_schedule.asks
    assert option_of(limits, "concurrency").kind == Whole(1, limiting.CONCURRENCY_MAX)
    assert option_of(limits, "rate").kind == option_of(limits, "burst").kind == Whole(1, limiting.RATE_MAX)
    assert option_of(limits, "key_concurrency").kind == Whole(1, limiting.KEY_CONCURRENCY_MAX)
    assert option_of(limits, "holder_concurrency").kind == Whole(1, limiting.CONCURRENCY_MAX)
    assert option_of(limits, "longest_lease_s").kind == Seconds(0.001, config.LEASE_MS_MAX / 1000)
    assert option_of(limits, "per_s").kind == Seconds(0.001, limiting.WINDOW_MS_MAX / 1000)
    assert option_of(put, "every_s").kind == Seconds(schedule.EVERY_MS_MIN / 1000, schedule.EVERY_MS_MAX / 1000)
    assert option_of(put, "catch_up").kind == Whole(0, schedule.CATCH_UP_MAX)
    assert option_of(holding.claim.asks, "n").kind == option_of(enqueueing.mint.asks, "count").kind == Whole(
        1, config.DEFAULT_LIMITS.batch_tasks)


def test_each_of_many_tasks_has_for_itself_what_the_client_takes_as_lists() -> None:
    assert {option.name for option in enqueueing.OWN} == {
        "id", "payload", "called", "not_before", "delay_s", "expires", "key", "unique", "deps"}
    assert {option.name for option in enqueueing.TASK_OPTIONS} - {"called"} | {"queue"} == {
        *inspect.signature(Client.enqueue).parameters} - {"self", "client"}


def test_what_awaits_something_else_than_its_client_is_not_done_at_once() -> None:
    async def act(client: object) -> None:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="act awaits something else"):
        done_at_once(act, cast(Any, None), {})


def test_who_types_a_long_verb_sees_how_far_it_is_and_who_asks_over_http_is_answered_in_the_end(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def count_up(client: object, queue: str, progress: Callable[[int], None]) -> documents.Done:
        progress(500)
        return documents.Done(count=501)

    row = verb("POST /v1/queues/count_up", Scope.ADMIN, queues.QUEUE_NAME, documents.Done, "Count.", command="up",
               says=lambda done, given: (f"{given['queue']}: {done['count']}", done), is_long=True)(count_up)
    monkeypatch.setattr("skuld_py.cli.showing.sys.stderr.isatty", lambda: True)

    made_of(row).main(["q"], standalone_mode=False)
    assert capsys.readouterr() == ("q: 501\n", "500 tasks\r")
    assert asyncio.run(do(row, cast(Any, SimpleNamespace(client=None)), {"queue": "q"})) == {"count": 501}


def test_quotas_are_said_with_what_is_open_as_far_as_that_is_known() -> None:
    rows = [documents.Quota(prefix="a.", open=4, tasks=2), documents.Quota(prefix="b.", open=9, tasks=None)]
    words, document = queues._say_quotas({"quotas": rows}, {})
    assert words == "a.: 2 open, 4 at most\nb.: ? open, 9 at most" and document == {"quotas": rows}
