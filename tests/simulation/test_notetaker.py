"""What is noted of a node's turn, for the checkers that judge the whole run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from skuld_py.model.memory_store import MemoryStore
from skuld_py.simulation.notetaker import _waiting

BASE = b"q\0"
READY, HISTORY = b"\0\0q\0" + b"\x7f\xff\xff\xff" + b"t" * 20, b"\0\0" + b"t" * 20


def test_what_waits_did_so_before_the_turn_and_was_not_claimed_in_it() -> None:
    store = MemoryStore()
    process: Any = SimpleNamespace(store=store)
    store.put_many("ready", [(READY, b"\0")])
    assert [*_waiting(process, 0, BASE)] == [], "it came in this turn"
    store.commit()
    assert [*_waiting(process, 0, BASE)] == [READY[2:]]

    store.pop_many("ready", [READY])
    store.put_many("history", [(HISTORY, b"claimed, and given back")])
    store.put_many("ready", [(READY, b"\0")])
    assert [*_waiting(process, 0, BASE)] == []
