"""A walk makes two replicas equal: bodies, histories and logs, whatever the page size."""

from __future__ import annotations

import random

import attrs
import pytest

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.events import Send
from skuld_py.model.task import HISTORY_HEAD, Header, History, encode_claim
from skuld_py.partition import tables
from skuld_py.partition.exchange import Exchange, compare
from skuld_py.partition.replica import Replica
from skuld_py.partition.rows import digests, merge_rows
from skuld_py.simulation.store import MemoryStore

HEADER = Header("q").encode()


def replica() -> Replica:
    return Replica(0, MemoryStore(), 10)


def walk(here: Replica, there: Replica, page_rows: int) -> int:
    """Run one exchange to its end; gives the number of pages."""
    limits = attrs.evolve(DEFAULT_LIMITS, page_rows=page_rows)
    exchange = Exchange(here, "there", limits, 1, 1_000)
    waiting, pages = exchange.ask(1), 0
    while waiting:
        effect = waiting.pop(0)
        assert isinstance(effect, Send)
        if isinstance(effect.message, m.Repair):
            merge_rows(there, 1, 1, effect.message.tasks)
        else:
            assert isinstance(effect.message, m.Compare)
            pages += 1
            waiting += exchange.on_compared(1, compare(there, limits, effect.message))
    assert exchange.is_done
    return pages


def content(made: Replica) -> list[list[tuple[bytes, bytes]]]:
    return [made.store.scan(table, made.prefix, tables.end_of(made.prefix), 10_000)
            for table in ("body", "history", "log", "ready", "lease")]


@pytest.mark.parametrize("page_rows", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("seed", range(5))
def test_two_replicas_become_equal(seed: int, page_rows: int) -> None:
    dice, here, there = random.Random(seed), replica(), replica()
    mint = ids.IdMint(1)
    for task_id in mint.mint(1, 40, 0):
        for made in dice.sample([here, there], dice.randrange(3)):
            made.store_tasks(1, HEADER, [task_id], [task_id])
        for made in dice.sample([here, there], dice.randrange(2)):
            made.finish(1, [task_id], [9], 50)
        for made in dice.sample([here, there], dice.randrange(3)):
            made.append(task_id, 9, 0, [b"note"])

    walk(here, there, page_rows)

    assert content(here) == content(there)
    assert walk(here, there, 1_000) == 1


def test_a_log_entry_of_the_last_task_of_a_page_is_seen() -> None:
    made, bare = replica(), replica()
    task_id = ids.IdMint(1).mint(1, 1, 0)[0]
    for each in (made, bare):
        each.store_tasks(1, HEADER, [task_id], [b""])
    made.append(task_id, 1, 0, [b"entry"])

    assert digests(made, b"", task_id, 10) != digests(bare, b"", task_id, 10)


def test_rows_of_a_stranger_are_checked() -> None:
    made, task_id = replica(), ids.IdMint(1).mint(1, 1, 0)[0]
    nothing = columns.pack([])
    endless = HISTORY_HEAD.pack(0, 0, 0) + encode_claim(1, 1, (1 << 64) - 1, b"me")
    spaced = columns.pack([(6).to_bytes(2, "big") + b"\0\0\0\0\1 " + b"payload"])
    for row in (m.TaskRow(task_id, nothing, endless, b"", b"", nothing),
                m.TaskRow(task_id, nothing, b"short", b"", b"", nothing),
                m.TaskRow(task_id, spaced, b"", b"", b"", nothing)):
        with pytest.raises(Malformed):
            merge_rows(made, 1, 1, [row])
    with pytest.raises(Malformed, match="another partition"):
        merge_rows(made, 1, 2, [m.TaskRow(task_id[:19] + b"\1", nothing, b"", b"", b"", nothing)])

    assert content(made) == [[], [], [], [], []]
    assert History.decode(HISTORY_HEAD.pack(0, 0, 0)) == History()
