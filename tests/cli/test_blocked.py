"""For whom blocked tasks wait, on every face: ``get``, ``list``, ``status``, their documents, and HTTP's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from client.doors import node_in_memory
from skuld_py import Client
from skuld_py.cli import situation
from skuld_py.cli.main import main
from skuld_py.model.ids import to_text


@pytest.fixture
def address() -> Iterator[str]:
    """Of a node with work."""
    with node_in_memory() as address:
        yield address


def skuld(address: str, *arguments: str) -> str:
    answer = CliRunner().invoke(main, [*arguments, "--nodes", address])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_status_names_the_oldest_blocked_task_of_a_queue_and_for_whom_it_waits(address: str) -> None:
    with Client(address) as client:
        first = client.enqueue("load", b"1")
        second = client.enqueue("load", b"2", deps=[first])
        client.enqueue("load", b"3", deps=[second])
        ahead = client.enqueue("orders", b"1", key="k")
        behind = client.enqueue("orders", b"2", key="k")
        client.enqueue("free", b"1")

    shown = skuld(address, "status").splitlines()
    blocked = json.loads(skuld(address, "status", "--json"))["blocked"]

    said = [line for line in shown if "waits for" in line]
    assert said == [
        f"load: the oldest blocked task, {to_text(second)}, waits for {to_text(first)}"
        " ('skuld list load --state blocked' shows all)",
        f"orders: the oldest blocked task, {to_text(behind)}, waits for {to_text(ahead)}"
        " ('skuld list orders --state blocked' shows all)"]
    assert blocked == [{"queue": "load", "id": to_text(second), "waits_for": [to_text(first)]},
                       {"queue": "orders", "id": to_text(behind), "waits_for": [to_text(ahead)]}]


def test_of_many_queues_those_with_the_most_blocked_tasks_are_named(
        address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation, "BLOCKED_SHOWN", 1)
    with Client(address) as client:
        for queue, count in (("few", 1), ("many", 2)):
            first = client.enqueue(queue, b"1")
            client.enqueue_many(queue, [b"x"] * count, deps=[first])

    blocked = json.loads(skuld(address, "status", "--json"))["blocked"]
    assert [(row["queue"], row["id"] is not None) for row in blocked] == [("many", True), ("few", False)]
    assert "blocked tasks of 1 queue are not named here, such as of few:" in skuld(address, "status")


def test_a_blocked_task_that_is_not_found_soon_is_not_kept_quiet_about(
        address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation, "BLOCKED_PAGES", 0)
    with Client(address) as client:
        client.enqueue("load", b"2", deps=[client.enqueue("load", b"1")])

    assert "blocked tasks of 1 queue are not named here, such as of load:" in skuld(address, "status")


def test_get_and_list_and_their_documents_say_for_whom_a_task_waits(address: str) -> None:
    with Client(address) as client:
        first = client.enqueue("load", b"1", key="k")
        second = client.enqueue("load", b"2", key="k", deps=[first])
        third = client.enqueue("load", b"3", key="k")

    rows = [line.split() for line in skuld(address, "get", to_text(second)).splitlines()]
    assert ["waits", "for", to_text(first)] in rows
    rows = [line.split() for line in skuld(address, "get", to_text(third)).splitlines()]
    assert ["behind", to_text(first)] in rows
    assert json.loads(skuld(address, "get", to_text(second), "--json"))["blocked_by"] == [to_text(first)]
    listed = [json.loads(line) for line in skuld(address, "list", "load", "--json").splitlines()]
    assert [row["blocked_by"] for row in listed][:2] == [[], [to_text(first)]]
