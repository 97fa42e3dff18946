"""A task that notes more than one read shows: who resumes it reads what was noted last, and that it is cut."""

from __future__ import annotations

import attrs
import pytest

from skuld_py import TaskContext
from skuld_py.cli import get
from skuld_py.client.claims import Claim
from skuld_py.testing import MemoryClient
from skuld_py.verbs import documents
from skuld_py.worker.journal import decode_entry, encode_entry

NOW = 1_900_000_000.0
ENTRIES, LAST = 1_500, b"far on"


@pytest.fixture
def client() -> MemoryClient:
    """A task whose first claim wrote 1.5 MB, and whose second a checkpoint."""
    made = MemoryClient(now=NOW)
    made.enqueue("q", b"x")
    first = held(made)
    for start in range(0, ENTRIES, 500):
        made.update(first, [encode_entry("log", 0, number=number, padding="x" * 1_000)
                            for number in range(start, start + 500)])
    made.release(first)
    made.update(held(made), LAST)
    return made


def held(client: MemoryClient) -> Claim:
    claim = client.claim_one("q")
    assert claim is not None
    return claim


def test_the_newest_checkpoints_are_read(client: MemoryClient) -> None:
    first, second = client.get(next(iter(client.list("q"))).id).claims
    assert second.log == (LAST,) and not second.is_cut
    assert first.is_cut and first.left_out + len(first.log) == ENTRIES
    assert decode_entry(first.log[-1])["number"] == ENTRIES - 1


def test_what_was_seen_is_asked_for_again(client: MemoryClient) -> None:
    task = client.get(next(iter(client.list("q"))).id)
    assert task.is_cut and client.get(task.id, min_seq=task.seq) == task


def test_a_worker_that_resumes_is_told(client: MemoryClient) -> None:
    task_id = next(iter(client.list("q"))).id
    context = TaskContext(task_id, 1 << 60, "q", 1e18, client.get, client.results_of)
    assert [past.is_cut for past in context.history] == [True, False]
    assert context.history[0].entries[-1]["number"] == ENTRIES - 1


def test_documents_number_what_they_show_and_say_that_it_is_cut(client: MemoryClient) -> None:
    task = client.get(next(iter(client.list("q"))).id)
    first, second = documents.task(task, has_logs=True)["claims"]
    assert (first["is_cut"], second["is_cut"]) == (True, False)
    assert [first["log"][0]["seq"], first["log"][-1]["seq"]] == [task.claims[0].left_out, ENTRIES - 1]


def test_people_are_shown_the_numbers_of_a_cut_log_and_told_where_the_rest_is(
        client: MemoryClient, capsys: pytest.CaptureFixture[str]) -> None:
    task = client.get(next(iter(client.list("q"))).id)
    get._show_logs(attrs.evolve(task, claims=(attrs.evolve(task.claims[0], log=(b"first", b"second")),)))
    out = capsys.readouterr().out

    token, left_out = str(task.claims[0].token), task.claims[0].left_out
    lines = [line.split() for line in out.splitlines()]
    assert [token, str(left_out), "first"] in lines and [token, str(left_out + 1), "second"] in lines
    assert "the oldest entries are left out; 'skuld log' shows all" in out
    get._show_logs(attrs.evolve(task, claims=task.claims[1:]))
    assert "left out" not in capsys.readouterr().out
