"""``send``: by which client, with which options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import skuld_py
from skuld_py import Client, Refused
from skuld_py.calls.payloads import Call, decode_call
from skuld_py.testing import AsyncMemoryClient, MemoryClient
from skuld_py.worker import sending
from skuld_py.worker.sending import Options


@skuld_py.task(name="sending.report", queue="reports", priority=2)
def report(spark: Any, context: Any, day: str, *, rows: int = 10) -> str:
    return day


@skuld_py.task(name="sending.homeless")
def homeless(spark: Any, context: Any) -> None: ...


@pytest.fixture
def client() -> Iterator[MemoryClient]:
    with MemoryClient() as made, skuld_py.using(made):
        yield made


def test_a_call_is_enqueued_with_the_options_of_the_function(client: MemoryClient) -> None:
    task = client.get(report.send("2026-11-20", rows=3))

    assert (task.queue, task.priority) == ("reports", 2)
    assert decode_call(task.payload) == Call("sending.report", ["2026-11-20"], {"rows": 3})


def test_options_of_the_call_go_before_those_of_the_function(client: MemoryClient) -> None:
    made = client.new_ids()[0]
    task = client.get(report.send_with(queue="urgent", priority=9, id=made, w=1)("2026-11-20"))

    assert (task.id, task.queue, task.priority) == (made, "urgent", 9)
    assert client.get(report.send("2026-11-20")).priority == 2


def test_the_innermost_client_in_use_sends_and_a_client_given_goes_before_it(client: MemoryClient) -> None:
    with MemoryClient() as inner, skuld_py.using(inner):
        report.send("a")
        report.send_with(client=client)("b")
        assert inner.count() == 1
    report.send("c")

    assert client.count() == 2


def test_a_program_that_names_no_client_gets_one_for_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Fake(MemoryClient):
        def __init__(self, nodes: str) -> None:
            super().__init__()
            made.append((nodes, self))

    monkeypatch.setattr("skuld_py.client.client.Client", Fake)
    monkeypatch.setattr(sending, "_own", [])
    monkeypatch.setenv("SKULD_NODES", "here:1,there:2")
    report.send("a")
    report.send("b")

    (nodes, own), = made
    assert nodes == "here:1,there:2" and own.count() == 2


def test_arguments_that_do_not_fit_are_refused_and_nothing_is_sent(client: MemoryClient) -> None:
    bad: list[Any] = [report.send, lambda: report.send("a", days=1), lambda: report.send(object())]  # type: ignore
    for send in bad:
        with pytest.raises(Refused) as refusal:
            send()
        assert refusal.value.code == "bad_arguments"
    assert client.count() == 0


def test_without_a_queue_there_is_nothing_to_send_to(client: MemoryClient) -> None:
    with pytest.raises(Refused, match="queue"):
        homeless.send()
    assert client.get(homeless.send_with(queue="somewhere")()).queue == "somewhere"


@pytest.mark.parametrize("options", [{"prio": 1}, {"queue": "a b"}, {"id": b"x" * 20}])
def test_options_that_cannot_be_are_refused_where_the_function_is_defined(options: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        skuld_py.task(name="sending.never", **options)
    assert refusal.value.code in ("bad_option", "bad_name")


def test_a_client_for_asyncio_is_given_to_the_call() -> None:
    with pytest.raises(Refused, match="await"), skuld_py.using(AsyncMemoryClient()):  # type: ignore[type-var]
        pass


def test_a_function_takes_every_option_that_enqueue_takes() -> None:
    parameters = [*inspect.signature(Client.enqueue).parameters]

    assert {*Options.__annotations__} == {*parameters} - {"self", "payload"}
