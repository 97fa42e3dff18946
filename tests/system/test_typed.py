"""What tasks return, and calls of them, through every door: both clients, HTTP, the command line."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import skuld_py
from calls.values import VALUES, exact
from gateway.asking import Asker
from skuld_py import AsyncClient, Client
from skuld_py.calls.results import shown
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused
from skuld_py.worker.context import TaskContext
from skuld_py.worker.worker import Worker
from system.light_worker import PlainEngine

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
QUEUE = "typed"


@skuld_py.task(name="typed.give", queue=QUEUE)
def give(spark: object, context: TaskContext, name: str) -> Any:
    return VALUES[name]


@skuld_py.task(name="typed.pass_on", queue=QUEUE)
def pass_on(spark: object, context: TaskContext) -> Any:
    before, = context.results()
    return before


@skuld_py.task(name="typed.gather", queue=QUEUE)
def gather(spark: object, context: TaskContext) -> Any:
    return context.results()


@skuld_py.task(name="typed.add", queue=QUEUE)
def add(spark: object, context: TaskContext, a: int, b: int = 0) -> int:
    return a + b


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """What the worker says."""
    return []


@pytest.fixture(scope="module")
def client(shared: LocalCluster, lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """With a worker that runs the tasks."""
    worker = Worker(shared.addresses, QUEUE, PlainEngine(), slots=4, report=lines.append,
                    renewer_log=tmp_path_factory.mktemp("worker") / "renewer.log")
    thread = threading.Thread(target=worker.run)
    thread.start()
    with contextlib.closing(Client(shared.addresses, timeout_s=30)) as made:
        yield made
        worker.stop()
        thread.join(30)


@pytest.fixture(scope="module")
def door(shared: LocalCluster) -> Asker:
    return Asker(shared.start_gateway()[0])


def skuld(shared: LocalCluster, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--nodes", ",".join(shared.addresses)], prog_name="skuld")
    assert done.exit_code == 0, done.output
    return done.stdout


def test_chords_and_chains_give_back_every_type_through_every_door(
        shared: LocalCluster, client: Client, door: Asker, tmp_path: Path) -> None:
    values = [*VALUES.values()]
    parts, then = client.chord([give.step(name) for name in VALUES], gather.step())
    chained = [client.chain([give.step(name), pass_on.step(), pass_on.step()])[-1] for name in VALUES]
    ids = [*parts, *chained]

    client.results([*ids, then], wait_s=60)

    assert exact(client.results(ids)) == exact(values * 2)
    assert exact([client.result(each) for each in ids]) == exact(values * 2)
    assert exact([end.result for end in client.ends(ids)]) == exact(values * 2)
    assert exact([client.get(each).result for each in ids]) == exact(values * 2)
    assert exact(client.results_of(then)) == exact(client.result(then)) == exact(values)
    assert exact(asyncio.run(awaited(shared, ids, then))) == exact([values * 2, values, values])
    named = [str(each) for each in ids]
    for document, value in zip(door.ask("POST", "/v1/tasks/results", json.dumps({"ids": named}).encode(),
                                        content_type="application/json").json["ends"], values * 2, strict=True):
        assert_shows(document, value)
    for line, value in zip(skuld(shared, "results", *named, "--json").splitlines(), values * 2, strict=True):
        assert_shows(json.loads(line), value)
    for name, task_id in zip(VALUES, named, strict=False):
        assert_shows(door.ask("GET", f"/v1/tasks/{task_id}").json, VALUES[name])
        assert_shows(json.loads(skuld(shared, "get", task_id, "--json")), VALUES[name])


async def awaited(shared: LocalCluster, ids: Any, then: Any) -> list[Any]:
    async with AsyncClient(shared.addresses, timeout_s=30) as client:
        return [await client.results(ids), await client.results_of(then), await client.result(then)]


def assert_shows(document: dict[str, Any], value: Any) -> None:
    kind, data, plain = shown(value)
    found = document["result_base64"]
    assert (document["result_type"], document["value"]) == (kind, plain)
    assert found is None if value is None else base64.b64decode(found) == data


def test_calls_are_possible_and_seen_through_every_door(
        shared: LocalCluster, client: Client, door: Asker, lines: list[str]) -> None:
    asked = {"queue": QUEUE, "call": "typed.add", "args": [2], "kwargs": {"b": 3}}
    made = [str(client.enqueue(QUEUE, skuld_py.call("typed.add", 2, b=3))),
            door.ask("POST", "/v1/tasks/enqueue", json.dumps(asked).encode(),
                     content_type="application/json").json["id"],
            skuld(shared, "enqueue", QUEUE, "--call", "typed.add", "2", "b=3").strip()]
    many = {"queue": QUEUE, "tasks": [{"call": "typed.add", "args": [2], "kwargs": {"b": 3}}, {"payload": "none"}]}
    made += door.ask("POST", "/v1/tasks/enqueue_many", json.dumps(many).encode(),
                     content_type="application/json").json["ids"][:1]

    assert client.results(made, wait_s=60) == [5] * 4
    assert len({task.payload for task in client.get_many(made)}) == 1
    for task_id in made:
        assert door.ask("GET", f"/v1/tasks/{task_id}").json["call"] == "typed.add(2, b=3)"
        assert "call      typed.add(2, b=3)" in skuld(shared, "get", task_id)
        assert any(f"{task_id} typed.add(2, b=3) started, attempt 1/25, token" in line for line in lines)
    assert [str(task.id) for task in client.list(QUEUE, function="typed.add")] == sorted(made)
    assert asyncio.run(listed(shared)) == sorted(made)
    found = door.ask("GET", f"/v1/tasks/list?queue={QUEUE}&function=typed.add&limit=3").lines
    assert [(each["id"], each["function"]) for each in found] == [(each, "typed.add") for each in sorted(made)[:3]]
    shown_lines = skuld(shared, "list", QUEUE, "--function", "typed.add").splitlines()[1:]
    assert [line.split()[0] for line in shown_lines] == sorted(made)
    assert all(line.endswith("typed.add(2, b=3)") for line in shown_lines)


async def listed(shared: LocalCluster) -> list[str]:
    async with AsyncClient(shared.addresses, timeout_s=30) as client:
        return [str(task.id) async for task in client.list(QUEUE, function="typed.add")]


def test_a_result_that_will_not_come_says_why(client: Client) -> None:
    with pytest.raises(Refused, match=r"is dead: Refused: no task function is called 'typed.unheard'") as dead:
        client.result(client.enqueue(QUEUE, skuld_py.call("typed.unheard")), wait_s=60)
    with pytest.raises(Refused, match="wait longer") as waiting:
        client.result(client.enqueue("nobody-works-here", b""))
    assert [each.value.code for each in (dead, waiting)] == ["dead", "not_ended"]
