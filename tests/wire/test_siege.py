"""A hundred thousand typed peer messages against a running node; ``scripts/fuzz_peers`` sends a million."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.model import messages as m
from skuld_py.model.document import Document, Seat
from skuld_py.model.history import History, encode_claim
from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.data import tables
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD, Promise, save_promise
from skuld_py.partition.leadership.standing import Standing, save_standing
from wire import siege
from wire.siege import Forbidden, Siege, Watch

ROUNDS = 20
NAMES = ("n1", "n2", "n3")


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_siege_changes_nothing_that_it_must_not(number: int) -> None:
    outcomes = siege.run(f"suite {number}", siege.ROUND)

    assert outcomes.total() == siege.ROUND
    for guise in {*siege.GUISES}:
        assert outcomes[f"{guise} heard"] > siege.ROUND // 50, "the checks behind the wire were hardly reached"


def test_there_are_enough_of_them_and_of_all_sorts() -> None:
    assert ROUNDS * siege.ROUND >= 100_000
    one = Siege("sorts")
    heard = {of for of in siege.OF_NODES for _ in range(60) if one._arrive("n", [one.forger.message(of)])}

    assert heard == {of for of in m.MESSAGES if of.roles & m.ROLE_NODE}


def test_it_says_how_to_replay_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "look", lambda self, store: 1 // 0)

    with pytest.raises(ZeroDivisionError) as raised:
        siege.run("a seed", 100)

    assert raised.value.__notes__[0].startswith("seed 'a seed', against ")


# -- what it would notice ----------------------------------------------------------------------------


@pytest.fixture
def watched() -> tuple[Watch, MemoryStore]:
    """A store with a task and its history, promises and a standing, all of which may be."""
    watch, store = Watch(NAMES, 1, 100, now_ms=10_000), MemoryStore()
    watch.see(0, Document(epoch=3, era=2, seats=tuple(map(Seat, NAMES))))
    save_standing(store, 0, Standing(3, 2, NAMES, ((4, NAMES[:2]),)))
    save_promise(store, 0, Promise(4, "n1"))
    store.put_many("history", [(KEY, claimed(1 << 32))])
    store.put_many("log", [(tables.log_key(b"\0\0", KEY[2:], 1 << 32, 0), b"entry")])
    watch.look(store)
    store.commit()
    return watch, store


KEY = bytes(2) + (9_000).to_bytes(8, "big") + bytes(12)


def claimed(token: int) -> bytes:
    return History.decode(bytes(24) + encode_claim(token, 1, 2, b"w")).encode()


def forbidden(watched: tuple[Watch, MemoryStore]) -> str:
    with pytest.raises(Forbidden) as raised:
        watched[0].look(watched[1])
    return str(raised.value)


@pytest.mark.parametrize("promise", [Promise(3, "n1"), Promise(3 + EPOCHS_AHEAD + 1, "n1"), Promise(5, "evil:1")])
def test_a_promise_that_must_not_be(watched: tuple[Watch, MemoryStore], promise: Promise) -> None:
    save_promise(watched[1], 0, promise)
    assert "promised" in forbidden(watched)


KNOWN = Standing(3, 2, NAMES)


@pytest.mark.parametrize("standing", [
    attrs.evolve(KNOWN, epoch=4), attrs.evolve(KNOWN, era=3), attrs.evolve(KNOWN, cohort=NAMES[:1]),
    attrs.evolve(KNOWN, pending=((4, ("n1", "evil:1")),)), attrs.evolve(KNOWN, pending=((5_000, NAMES),))])
def test_voters_that_must_not_be(watched: tuple[Watch, MemoryStore], standing: Standing) -> None:
    save_standing(watched[1], 0, standing)
    assert "of partition 0" in forbidden(watched) or "may come to be" in forbidden(watched)


@pytest.mark.parametrize("record", [bytes(24), claimed(2 << 32), claimed((3 + EPOCHS_AHEAD + 1) << 32)])
def test_a_history_that_forgets_or_knows_too_much(watched: tuple[Watch, MemoryStore], record: bytes) -> None:
    watched[1].put_many("history", [(KEY, record)])
    assert "history" in forbidden(watched)


@pytest.mark.parametrize("table", ["history", "log"])
def test_what_was_deleted(watched: tuple[Watch, MemoryStore], table: str) -> None:
    store = watched[1]
    store.pop_many(table, [*store.tables[table]])
    assert "was deleted" in forbidden(watched)

    store.put_many("meta", [(tables.watermark_key(0), (9_000).to_bytes(8, "big") + bytes(24))])
    watched[0].look(store)


@pytest.mark.parametrize(("table", "key", "value"), [
    ("log", tables.log_key(b"\0\0", KEY[2:], 1 << 32, 0), b"other"),
    ("meta", tables.watermark_key(0), (20_000).to_bytes(8, "big") + bytes(24)),
    ("meta", b"floor", (1 << 40).to_bytes(8, "big")),
])
def test_other_changes_that_must_not_be(watched: tuple[Watch, MemoryStore], table: str, key: bytes,
                                        value: bytes) -> None:
    watched[1].put_many(table, [(key, value)])
    forbidden(watched)
