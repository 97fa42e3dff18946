"""When a task has ended for good, what a sealed replica takes and tells, and how a copy learns what is gone."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdt.test_laws import HISTORIES
from partition.exchanging import HEADER, Line, content, indexes, replica
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.errors import Corrupt
from skuld_py.model.body import Body, Header, Retry, encode_body
from skuld_py.model.history import (
    CANCELLED,
    DEP_FAILED,
    DEP_UNKNOWN,
    EMPTY_HISTORY,
    EXHAUSTED,
    EXPIRED,
    FAILED,
    RELEASED,
    SNOOZED,
    ClaimRecord,
    History,
    death_of,
    ending_of,
    token_of,
)
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.notes import SUB, TOLD, End, told_seq
from skuld_py.model.prelude import DEPS, PRELUDE_BYTES_MAX, Prelude
from skuld_py.model.state import State, has_ended, state_of
from skuld_py.partition.copies.garbage import collect, page_of, ripe
from skuld_py.partition.copies.remains import remains_of
from skuld_py.partition.data.facts import Grant, Mark
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import watermark_key
from skuld_py.partition.data.watermark import Watermark

TOKEN = token_of(1, 1)
BODY = Body.decode(encode_body(Header("q", retry=Retry(max_attempts=1)).encode(), b"x"))
NOW_MS = 10_000


def claims(*ends: tuple[int, int, int]) -> LatticeMap[int, ClaimRecord]:
    """One after another: the end of its lease, how it ended, and until when the task rests then."""
    return LatticeMap({TOKEN + number: ClaimRecord(1, Max(end_ms), ending_of(kind, until_ms), "w")
                       for number, (end_ms, kind, until_ms) in enumerate(ends)})


def claim(end_ms: int, kind: int = 0) -> History:
    return History(claims=LatticeMap({TOKEN: ClaimRecord(1, Max(end_ms), ending_of(kind), "w")}))


def expiring(expires_ms: int) -> Body:
    return Body.of(Header("q"), Prelude(0, expires_ms), b"x")


@pytest.mark.parametrize(("history", "body", "since_ms"), [
    (History(completion=Min((50, TOKEN))), BODY, 50),
    (History(completion=Min((50, TOKEN)), claims=claim(90).claims), BODY, 50),
    (History(cancelled=Min((40, 0))), BODY, 40),
    (History(cancelled=Min((40, 0)), claims=claim(60).claims), BODY, 60),
    (claim(70), BODY, 70),
    (claim(70, FAILED), BODY, 70),
    (History(claims=LatticeMap({TOKEN: ClaimRecord(1, Max(70), ending_of(FAILED, 30), "w")})), BODY, 30),
    (History(claims=LatticeMap({TOKEN: ClaimRecord(1, Max(70), ending_of(FAILED, 90), "w")})), BODY, 70),
    (History(cancelled=Min((40, 0)), claims=claims((90, RELEASED, 0), (60, FAILED, 50))), BODY, 50),
    (History(cancelled=Min((40, 0)), claims=claims((90, 0, 0), (60, FAILED, 50))), BODY, 90),
    (History(cancelled=Min((40, 0)), claims=claims((90, SNOOZED, 70))), BODY, 70),
    (History(cancelled=Min((40, 0)), claims=claims((90, RELEASED, 0))), BODY, 90),
    (History(died=death_of(0, EXPIRED)), expiring(80), 80),
    (History(died=death_of(0, EXHAUSTED)), BODY, 0),
    (History(died=death_of(0, DEP_FAILED)), BODY, 0),
    (History(died=death_of(0, DEP_FAILED, 80)), BODY, 80),
    (History(died=death_of(0, DEP_UNKNOWN, 80), claims=claim(90).claims), BODY, 90),
    (claim(30), None, 30),
    (EMPTY_HISTORY, None, 0),
], ids=["completed", "completed in spite of a claim", "cancelled", "cancelled and held", "lapsed at last",
        "failed at last", "failed early", "failed and rests", "given back, then failed", "no word, then failed",
        "snoozed", "given back", "expired", "dead", "dead of another, nobody knows when", "dead of another",
        "dead of another and held", "claim without a task", "nothing"])
def test_since_when_a_task_has_ended(history: History, body: Body | None, since_ms: int) -> None:
    assert has_ended(history, body, since_ms)
    assert not since_ms or not has_ended(history, body, since_ms - 1)


@pytest.mark.parametrize("history", [EMPTY_HISTORY, claim(70, RELEASED)], ids=["waiting", "given back"])
def test_what_may_be_claimed_has_not_ended(history: History) -> None:
    assert not has_ended(history, Body.decode(encode_body(HEADER, b"x")), 1 << 50)


@given(HISTORIES, st.integers(0, 7), st.integers(0, 7))
def test_what_has_ended_stays_so_and_is_in_a_state_that_is_an_end(history: History, one_ms: int,
                                                                  other_ms: int) -> None:
    if has_ended(history, BODY, min(one_ms, other_ms)):
        assert has_ended(history, BODY, max(one_ms, other_ms))
        assert state_of(history, BODY, max(one_ms, other_ms) + 11, 10) in (
            State.COMPLETED, State.CANCELLED, State.DEAD)


# -- what a sealed replica takes ---------------------------------------------------------------------


def filled(count: int = 3) -> tuple[Replica, list[bytes]]:
    """A replica with completed tasks, each with a log."""
    made = replica()
    ids = IdMint(1).mint(NOW_MS, count, 0)
    made.store_tasks(NOW_MS, HEADER, ids, [b"x"] * count)
    made.finish(NOW_MS, ids, [TOKEN] * count, NOW_MS)
    for task_id in ids:
        made.append(task_id, TOKEN, 0, [b"a", b"b"])
    made.filing.tally.settle()
    return made, ids


def test_what_is_collected_leaves_nothing_behind() -> None:
    made, ids = filled()
    waiting = IdMint(2).mint(NOW_MS, 1, 0)
    made.store_tasks(NOW_MS, HEADER, waiting, [b"y"])
    made.mark(NOW_MS, [Mark(waiting[0], CANCELLED, NOW_MS)])

    collect(made, [*ids, *waiting])
    made.filing.tally.settle()

    assert content(made) == [[], [], []]
    assert indexes(made) == [[], [], [], [], []]
    assert made.tree.root == 0
    assert [*made.filing.tally.rows()] == []
    assert made.watermark.collected == 4


def test_what_goes_in_one_leaves_as_little_behind_as_what_goes_singly() -> None:
    """Tasks of several seconds, queues and kinds: plain ones, one that needs another, one of a key, dead ones."""
    made = replica()
    made.store_tasks(NOW_MS, HEADER, kept := IdMint(9).mint(NOW_MS + 5_000, 1, 0), [b"kept"])
    left = content(made), [*made.tree.nodes.leaves]
    ids: list[bytes] = []
    for number in range(6):
        at_ms = NOW_MS + 700 * number
        header = Header(f"q{number % 2}", prelude=DEPS if number == 3 else 0, policy=1 if number == 3 else 0)
        plain = IdMint(number + 1).mint(at_ms, 3, 0, is_laned=number == 5)
        body = Prelude(deps=(ids[0],)).encode() if number == 3 else b""
        key = Header("q5", prelude=Prelude(key="k").flags)
        header, body = (key, Prelude(key="k").encode()) if number == 5 else (header, body)
        made.store_tasks(at_ms, header.encode(), plain, [body + b"x"] * 3)
        ids += plain
        if number != 4:
            made.finish(at_ms, plain, [TOKEN] * 3, at_ms)
    made.mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS) for task_id in ids[12:15]])

    page, upto = page_of(made, b"", NOW_MS + 4_000, 100)
    assert (page.ids, upto) == (sorted(ids), b"")
    collect(made, page.ids)
    made.filing.tally.settle()

    assert (content(made), [*made.tree.nodes.leaves]) == left
    assert content(made, ("need", "lane", "tell", "dep", "lease", "dead")) == [[]] * 6
    assert len([*made.filing.tally.rows()]) == 1
    assert made.watermark.collected == 18 and made.bodies(kept) != [None]


@pytest.mark.parametrize("kind", ["plain", "needy", "keyed", "cancelled", "of two queues"])
def test_tasks_of_one_kind_leave_nothing_behind(kind: str) -> None:
    made = replica()
    task, *others = IdMint(3).mint(NOW_MS, 4, 0, is_laned=kind == "keyed")
    prelude = {"needy": Prelude(deps=(IdMint(4).mint(NOW_MS, 1, 0)[0],)), "keyed": Prelude(key="k")}.get(
        kind, Prelude())
    header = Header("q", prelude=prelude.flags, policy=int(kind == "needy"))
    for queue, ids in (("q", [task]), ("r" if kind == "of two queues" else "q", others)):
        made.store_tasks(NOW_MS, attrs.evolve(header, queue=queue).encode(), ids,
                         [prelude.encode() + b"x"] * len(ids))
    if kind == "cancelled":
        made.mark(NOW_MS, [Mark(each, CANCELLED, NOW_MS) for each in (task, *others)])
    else:
        made.finish(NOW_MS, [task, *others], [TOKEN] * 4, NOW_MS)

    page, _ = page_of(made, b"", NOW_MS, 100)
    assert page.ids == [task, *others]
    collect(made, page.ids)
    made.filing.tally.settle()

    assert content(made) == [[], [], []] and content(made, ("need", "lane", "lease", "dead")) == [[]] * 4
    assert [*made.filing.tally.rows()] == []


def test_what_goes_is_read_whole_and_no_payload_is_taken_out_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever became of it, and whatever it has besides."""
    made, large, ids = replica(), b"x" * 100_000, list[bytes]()
    for number, prelude in enumerate((Prelude(), Prelude(expires_ms=NOW_MS), Prelude(key="k"),
                                      Prelude(deps=(IdMint(9).mint(NOW_MS, 1, 0)[0],)))):
        header = Header("q", prelude=prelude.flags, policy=int(bool(prelude.deps)))
        minted = IdMint(number + 1).mint(NOW_MS, 2, 0, is_laned=bool(prelude.key))
        made.store_tasks(NOW_MS, header.encode(), minted, [prelude.encode() + large] * 2)
        made.mark(NOW_MS, [Mark(minted[0], CANCELLED, NOW_MS)])
        made.finish(NOW_MS, minted[1:], [TOKEN], NOW_MS)
        ids += minted
    taken: list[int] = []
    decode, of = Body.decode.__func__, Prelude.decode.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(Body, "decode", classmethod(lambda cls, record: (
        taken.append(len(record)), decode(cls, record))[1]))
    monkeypatch.setattr(Prelude, "decode", classmethod(lambda cls, flags, rest: (
        taken.append(len(rest)), of(cls, flags, rest))[1]))

    page, upto = page_of(made, b"", NOW_MS, 100)
    collect(made, page.ids)
    made.filing.tally.settle()

    assert (page.ids, upto) == (sorted(ids), b"") and content(made) == [[], [], []]
    assert content(made, ("need", "lane", "dep", "expiry", "dead")) == [[]] * 5
    assert taken and max(taken) <= PRELUDE_BYTES_MAX


@pytest.mark.parametrize("table", ["body", "history"])
def test_a_damaged_record_is_found_before_it_goes(table: str) -> None:
    """Nobody knows of which queue it was."""
    made, ids = filled()
    made.store.commit()
    assert isinstance(made.store, MemoryStore) and made.store.damage(table, made.prefix + ids[1])

    with pytest.raises(Corrupt):
        collect(made, ids)


def test_of_a_page_goes_what_was_completed_in_time() -> None:
    made, ids = filled(3)
    late = IdMint(2).mint(NOW_MS, 1, 0)
    made.store_tasks(NOW_MS, HEADER, late, [b"x"])
    made.finish(NOW_MS + 5, late, [TOKEN], NOW_MS + 5)

    held = remains_of(made, [*ids, *late])
    assert [*ripe(made, held, NOW_MS - 1)] == []
    assert [*ripe(made, held, NOW_MS + 4)] == [0, 1, 2]
    assert [*ripe(made, held, NOW_MS + 5)] == [0, 1, 2, 3]


def test_of_a_page_it_is_told_when_the_first_was_completed() -> None:
    made, (one, two, three) = replica(), IdMint(1).mint(NOW_MS, 3, 0)
    made.store_tasks(NOW_MS, HEADER, [one, two, three], [b"x"] * 3)
    made.finish(NOW_MS, [two, three], [TOKEN] * 2, NOW_MS + 9)
    made.finish(NOW_MS, [three], [TOKEN], NOW_MS + 7)

    assert remains_of(made, [two, three]).first_end_ms() == NOW_MS + 7
    made.mark(NOW_MS, [Mark(one, CANCELLED, NOW_MS)])
    assert remains_of(made, [one, two]).first_end_ms() == NOW_MS + 9
    assert remains_of(made, [one]).first_end_ms() == remains_of(made, []).first_end_ms() == 0


@pytest.mark.parametrize("size", [10, 100_000, 2_000_000])
def test_a_page_is_bounded_by_its_bytes_and_leaves_nothing_out(size: int) -> None:
    made, ids = filled(30)
    for number, task_id in enumerate(ids):
        made.append(task_id, TOKEN, 2, [b"%d" % number * (size // 2)])

    found, after, pages = list[bytes](), b"", list[int]()
    while after or not pages:
        page, after = page_of(made, after, NOW_MS, 20)
        found += page.ids
        pages.append(sum(page.sizes()) - page.sizes()[-1])
    assert found == ids
    assert max(pages) < DEFAULT_LIMITS.page_bytes


def test_a_sealed_replica_takes_nothing_back_and_changes_what_it_has() -> None:
    made, ids = filled()
    collect(made, ids[:1])
    made.watermark.seal(NOW_MS)

    for task_id in ids[:2]:
        made.store_tasks(NOW_MS, HEADER, [task_id], [b"x"])
        made.finish(NOW_MS, [task_id], [TOKEN], NOW_MS - 1)
        made.mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS)])
        made.append(task_id, TOKEN, 2, [b"late"])
        made.note_outcomes(1 << 31, [task_id], [TOKEN], [b"result"])
        grant = Grant([task_id], [b"q\0" + bytes(4)], TOKEN + 1, NOW_MS, NOW_MS + 1, "w")
        assert made.objections(grant) == [0]

    remains = remains_of(made, ids)
    assert remains.is_nothing(0)
    assert not remains.is_nothing(1) and remains.logs[ids[1]].count == 4
    assert list(made.gone(ids)) == ids[:1]
    fresh = IdMint(3).mint(NOW_MS + 1, 1, 0)
    assert made.store_tasks(NOW_MS, HEADER, fresh, [b"new"]) == []
    assert made.bodies(fresh) != [None]


def test_a_page_ends_where_it_is_full_and_passes_over_what_has_not_ended() -> None:
    made, ids = filled(5)
    waiting = IdMint(2).mint(NOW_MS, 2, 0)
    made.store_tasks(NOW_MS, HEADER, waiting, [b"y"] * 2)
    late = IdMint(2).mint(NOW_MS + 1, 1, 0)
    made.finish(NOW_MS, late, [TOKEN], 1)
    every = sorted([*ids, *waiting])

    found, after = [], b""
    while True:
        page, after = page_of(made, after, NOW_MS, 2)
        found += page.ids
        if not after:
            break
        assert after in every

    assert found == ids


def test_an_end_that_somebody_waits_for_is_told_before_the_task_goes() -> None:
    made, ids = filled()
    made.note(NOW_MS, SUB, 5, [ids[0]])
    assert page_of(made, b"", NOW_MS, 10)[0].ids == ids[1:]

    made.note(NOW_MS, TOLD, told_seq(5, End.DONE, 0), [ids[0]])
    assert page_of(made, b"", NOW_MS, 10)[0].ids == ids


def test_who_waits_for_what_is_gone_leaves_no_trace() -> None:
    made, ids = filled(1)
    made.note(NOW_MS, SUB, 5, [ids[0]])
    collect(made, ids)
    made.watermark.seal(NOW_MS)

    made.note(NOW_MS, SUB, 6, [ids[0]])

    assert content(made, ("body", "history", "log", "dep", "tell")) == [[]] * 5


# -- how a copy learns it ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_asking", [True, False])
def test_a_copy_drops_what_a_sealed_one_has_collected(is_asking: bool) -> None:
    old, ids = filled()
    sealed, _ = filled()
    sealed.store_tasks(NOW_MS, HEADER, IdMint(5).mint(NOW_MS, 2, 0), [b"kept"] * 2)
    collect(sealed, ids)
    sealed.watermark.seal(NOW_MS)
    if not is_asking:
        Line(sealed, old).run()
        assert len(content(old)[0]) == len(ids) + 2, "it takes nobody's word for what it was not closed to"
        old.watermark.close(NOW_MS)
    line = Line(old, sealed) if is_asking else Line(sealed, old)

    line.run()

    assert content(old) == content(sealed)
    assert len(content(old)[0]) == 2
    assert old.tree.root == sealed.tree.root
    assert old.watermark.sealed_ms == (NOW_MS if is_asking else 0), "who asks has all that the other had"


def test_who_fills_takes_all_that_is_left_below_the_seal_and_only_then_the_seal() -> None:
    sealed, ids = filled()
    sealed.watermark.seal(NOW_MS)
    empty = replica()
    line = Line(empty, sealed, on_pause=lambda: seen.append(empty.watermark.sealed_ms))
    seen: list[int] = []

    line.run()

    assert seen == [0]
    assert content(empty) == content(sealed)
    assert empty.watermark.sealed_ms == NOW_MS
    assert list(empty.gone(ids)) == []


def test_who_is_leaving_is_told_what_is_gone_and_takes_no_seal() -> None:
    old, ids = filled()
    sealed, _ = filled()
    collect(sealed, ids)
    sealed.watermark.seal(NOW_MS)

    exchange = Line(old, sealed, is_leaving=True).run()

    assert exchange.progress.given_rows == 0
    assert content(old) == [[], [], []]
    assert not old.watermark.sealed_ms


def test_one_in_doubt_says_of_nothing_that_it_is_gone() -> None:
    old, ids = filled()
    doubtful = replica()
    doubtful.watermark.seal(NOW_MS)
    doubtful.watermark.is_trusted = False

    Line(old, doubtful).run()

    assert content(old) == content(doubtful)
    assert len(content(old)[0]) == len(ids)


# -- the record ------------------------------------------------------------------------------------------


def test_watermarks_only_rise_and_are_kept() -> None:
    store = MemoryStore()
    watermark = Watermark(store, 3)
    watermark.close(9)
    watermark.close(5)
    watermark.seal(7)
    watermark.seal(6)
    watermark.begin_life(11)
    watermark.count(2)

    for found in (watermark, Watermark(store, 3)):
        assert (found.closed_ms, found.sealed_ms, found.life, found.collected) == (9, 7, 11, 2)
    watermark.seal(20)
    assert watermark.closed_ms == 20
    watermark.forget()
    assert (watermark.closed_ms, watermark.sealed_ms, watermark.life) == (20, 0, 0)
    assert Watermark(store, 4).closed_ms == 0


def test_a_damaged_record_is_corrupt() -> None:
    store = MemoryStore()
    store.put_many("meta", [(watermark_key(3), b"short")])

    with pytest.raises(Corrupt):
        Watermark(store, 3)
