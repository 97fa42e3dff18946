"""``send``: by which client, with which options."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest

import skuld_py
from skuld_py import AsyncClient, Client, Refused, Retry
from skuld_py.calls.payloads import Call, decode_call
from skuld_py.testing import AsyncMemoryClient, MemoryClient
from skuld_py.worker import sending
from skuld_py.worker.assignment import assigned
from skuld_py.worker.sending import Options
from skuld_py.worker.time_limit import TIMEOUT_HEADER


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
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr("skuld_py.client.client.Client", Fake)
    monkeypatch.setattr(sending, "_own", [])
    report.send("a")
    report.send("b")

    own, = made
    assert own.count() == 2


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_that_is_given_no_nodes_takes_those_of_its_environment(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setenv("SKULD_NODES", "here:1, there:2")
    assert kind()._addresses == ["here:1", "there:2"]
    assert kind("elsewhere:3")._addresses == ["elsewhere:3"]
    monkeypatch.delenv("SKULD_NODES")
    assert kind()._addresses == ["127.0.0.1:13000"]


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


def test_in_an_event_loop_a_call_is_awaited_and_send_is_refused_with_that_remedy(client: MemoryClient) -> None:
    async def produce() -> list[int]:
        with pytest.raises(Refused, match="asend") as refusal:
            report.send("a")
        assert refusal.value.code == "in_event_loop"
        async with AsyncMemoryClient(cluster=client.cluster) as mine, AsyncMemoryClient() as other:
            with skuld_py.using(mine):
                made = await report.asend("a", rows=3)
            await report.asend_with(other, priority=9)("b")
            assert await mine.count() == await other.count() == 1
        report.send_with(client)("named by the call: it may")
        return [client.get(made).priority, client.count()]

    assert asyncio.run(produce()) == [2, 2]


def test_each_event_loop_has_a_client_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[AsyncMemoryClient] = []

    class Fake(AsyncMemoryClient):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    async def produce() -> None:
        await asyncio.gather(report.asend("a"), report.asend("b"))
        await report.asend("c")

    monkeypatch.setattr("skuld_py.client.async_client.AsyncClient", Fake)
    for _ in range(2):
        asyncio.run(produce())

    assert len(made) == 2 and all(client._is_closed for client in made) and not sending._of_loops


def test_a_limit_of_one_call_travels_with_it(client: MemoryClient) -> None:
    report.send_with(timeout_s=2.5, headers={"a": "b"})("a")

    claim = client.claim_one("reports")
    assert claim is not None and assigned(claim).work.timeout_s == 2.5  # type: ignore[union-attr]
    assert claim.headers["a"] == "b"
    for wrong in (0, -1, float("nan"), "5", True):
        with pytest.raises(Refused, match="timeout_s"):
            report.send_with(timeout_s=wrong)  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", "soon", "0", "nan", "-1", "inf"])
def test_a_limit_that_is_none_is_refused_where_the_task_would_run(client: MemoryClient, text: str) -> None:
    report.send_with(headers={TIMEOUT_HEADER: text})("a")

    claim = client.claim_one("reports")
    assert claim is not None and isinstance(assigned(claim).work, Refused)


def test_a_delay_is_a_time_from_now(client: MemoryClient) -> None:
    task = client.get(report.send_with(delay_s=60)("a"))

    assert task.not_before_ms == client.cluster.wall_ms() + 60_000
    assert client.get(report.send_with(delay_s=0)("a")).not_before_ms is None
    for wrong in ({"delay_s": -1}, {"delay_s": 1, "not_before": time.time() + 9}, {"delay_s": 1, "id": "0" * 32},
                  {"delay_s": "1"}, {"not_before": 60}, {"expires": 60.0}):
        with pytest.raises(Refused) as refusal:
            report.send_with(**wrong)("a")  # type: ignore[call-overload]
        assert refusal.value.code == "bad_time"


def test_a_time_of_the_last_century_is_answered_with_what_was_meant(client: MemoryClient) -> None:
    with pytest.raises(Refused, match=r"delay_s: '1' is no number"):
        report.send_with(delay_s="1")("a")
    with pytest.raises(Refused, match=r"not_before: 60 is 1970-01-01 00:01 UTC.*delay_s"):
        client.enqueue("q", b"x", not_before=60)
    with pytest.raises(Refused, match=r"expires: 60 is 1970.*time\.time"):
        client.enqueue_many("q", [b"x"], expires=[60])


def test_a_function_takes_every_option_that_enqueue_takes() -> None:
    parameters = [*inspect.signature(Client.enqueue).parameters]

    assert {*Options.__annotations__} == {*parameters} - {"self", "payload"}


def test_classes_of_errors_do_not_travel_and_that_is_said(client: MemoryClient) -> None:
    for retry in (Retry(on=OSError), Retry(never=(ValueError,))):
        for enqueue in (lambda: client.enqueue("q", b"x", retry=retry),  # noqa: B023 - called here
                        lambda: report.send_with(retry=retry)("a")):  # noqa: B023
            with pytest.raises(Refused, match="function") as refusal:
                enqueue()
            assert refusal.value.code == "bad_retry"
    for wrong in (OSError(), "OSError", (int,)):
        with pytest.raises(Refused, match="classes of errors"):
            skuld_py.task(name="sending.wrong", retry=Retry(on=wrong))(homeless)  # type: ignore[arg-type]
