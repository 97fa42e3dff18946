"""The machine that follows roots, one rule at a time; all of them together are played in ``test_acking_world``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Malformed, Refused
from skuld_py.model.checkpoint import BYTES_MAX
from skuld_py.workflow import segments
from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.acks import ACKS_MAX, Acks
from skuld_py.workflow.acking.checkpoint import (
    BATCH_MAX,
    BATCHES_MAX,
    CURSOR_BYTES_MAX,
    DECISIONS_MAX,
    DECISIONS_SPARE,
    WINDOW_MAX,
    Batch,
    Book,
)
from skuld_py.workflow.acking.feeder import Feeder, Options
from skuld_py.workflow.acking.ring import BUCKETS, Ring
from skuld_py.workflow.acking.walk import LOOKS_MAX

NOW_MS = 1_790_000_000_000
TOKEN, LATER = 1 << 32, 1 << 32 | 9
OPTIONS = Options(max_pending=4, timeout_ms=1_600, keep_ms=500, policies={
    "again": e.Policy.RESTART, "all": e.Policy.KILL})
Kind = TypeVar("Kind")


class Bench:
    """A feeder, its clock, and what it wants done that is not."""

    def __init__(self, options: Options = OPTIONS, checkpoint: object = None, **given: Any) -> None:
        self.now_ms = NOW_MS
        self.feeder = Feeder("sales", "files", attrs.evolve(options, **given))
        self.wanted: list[e.Effect] = []
        self.hear(e.Resumed(checkpoint))

    def hear(self, event: e.Event, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.wanted += self.feeder.step(self.now_ms, event)

    def tick(self, for_ms: int) -> None:
        """Time passes, in steps."""
        for _ in range(for_ms // 100):
            self.hear(e.Ticked(), 100)

    def take(self, kind: type[Kind]) -> Kind:
        """The only one of its kind that is wanted; then it is not."""
        found, = self.all(kind)
        self.wanted = [each for each in self.wanted if each is not found]
        return found

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.wanted if isinstance(each, kind)]

    def feed(self, count: int, *, is_last: bool = True) -> list[bytes]:
        """Draw and store roots; their ids."""
        draw = self.take(e.Draw)
        self.hear(e.Drawn(draw.first, count, is_last))
        self.take(e.Keep)
        self.hear(e.Kept())
        store = self.take(e.Store)
        self.hear(e.Stored(store.first))
        return segments.root_ids("sales", "files", store.first, count, store.time_ms)

    def keep(self) -> object:
        """The checkpoint that is wanted."""
        data = self.take(e.Keep).checkpoint
        self.hear(e.Kept())
        return data


def done(segment: bytes, *emitted: int, step: str = "all") -> e.Sight:
    """A segment with a claim for each number: the first's completion stands."""
    return e.Sight(segment, e.Standing.DONE, step, tuple(
        e.Try(token, NOW_MS, count) for token, count in zip((TOKEN, LATER), emitted, strict=False)))


def absent(*ids: bytes) -> tuple[e.Sight, ...]:
    return tuple(e.Sight(each, e.Standing.ABSENT) for each in ids)


def acks(root: bytes, *rows: tuple[bytes, int]) -> e.Acked:
    """Segments that are done by their only claims, with how many they emitted."""
    return e.Acked(Acks(tuple((root, segment, segments.ack_of(segment, TOKEN, count)) for segment, count in rows)))


def children(parent: bytes, count: int, token: int = TOKEN) -> list[bytes]:
    return segments.child_ids(parent, token, NOW_MS, count)


# -- feeding -----------------------------------------------------------------------------------------


def test_a_batch_is_written_down_before_its_roots_are_stored_and_the_rest_waits_for_room() -> None:
    bench = Bench()
    assert bench.take(e.Draw) == e.Draw(0, 4)
    bench.hear(e.Drawn(0, 3, is_last=False))
    assert bench.wanted == [e.Draw(3, 1), e.Keep(bench.feeder.book.encode())]
    bench.hear(e.Kept())
    assert bench.take(e.Store) == e.Store(0, NOW_MS, (0, 1, 2))
    assert Book.decode(bench.take(e.Keep).checkpoint).batches == {0: Batch(0, 3, NOW_MS)}


def test_an_input_that_has_nothing_now_is_asked_again_and_one_that_has_no_more_is_exhausted() -> None:
    bench = Bench()
    bench.take(e.Draw)
    bench.hear(e.Drawn(0, 0, is_last=False))
    assert not bench.wanted
    assert bench.feeder.deadline_ms() <= bench.now_ms + OPTIONS.dry_ms
    bench.tick(1_000)
    bench.take(e.Draw)
    bench.hear(e.Drawn(0, 0, is_last=True))
    assert not bench.all(e.Exhaust)
    bench.keep()
    bench.take(e.Exhaust)
    bench.hear(e.Exhausted())
    assert bench.wanted == [e.Done(0)]
    bench.hear(e.Ticked(), 10_000)
    assert bench.wanted == [e.Done(0)]


def test_a_root_is_done_when_all_its_tree_is_heard_in_any_order_and_however_often() -> None:
    bench = Bench()
    root, other = bench.feed(2)
    first, second = children(root, 2)
    for event in (acks(root, (second, 0)), acks(root, (root, 2), (root, 2)), acks(root, (second, 0)),
                  acks(other, (other, 1)), acks(b"x" * 20, (root, 0))):
        bench.hear(event)
        assert bench.feeder.pending == 2
    bench.hear(acks(root, (first, 0)))
    assert (bench.feeder.pending, bench.feeder.book.completed, bench.feeder.registers) == (1, 1, 1)
    bench.hear(acks(other, (children(other, 1)[0], 0)))
    assert bench.feeder.pending == bench.feeder.registers == 0
    assert not bench.all(e.Exhaust)
    bench.keep()
    bench.take(e.Exhaust)


def test_a_source_is_told_where_to_go_on_and_where_it_drew_what_is_drawn_again() -> None:
    bench = Bench()
    bench.take(e.Draw)
    bench.hear(e.Drawn(0, 1, False, part=2, offset=70, cursor=b"behind"))
    bench.keep()
    bench.take(e.Store)
    assert bench.take(e.Draw) == e.Draw(1, 3, b"behind")
    later = Bench(checkpoint=bench.feeder.book.encode())
    assert later.take(e.Draw) == e.Draw(0, 1, b"", True, 2, 70)
    later.hear(e.Drawn(0, 1, False))
    later.take(e.Store)
    assert later.take(e.Draw) == e.Draw(1, 3, b"behind")


def test_what_is_done_is_written_down_now_and_then() -> None:
    bench = Bench()
    root, _ = bench.feed(2)
    bench.hear(acks(root, (root, 0)))
    assert bench.feeder.deadline_ms() <= bench.now_ms + OPTIONS.keep_ms
    bench.tick(500)
    assert Book.decode(bench.keep()).batches[0].done == 1


# -- the next life -----------------------------------------------------------------------------------


def test_a_next_life_stores_what_was_under_way_again_and_looks_after_it_at_once() -> None:
    before = Bench()
    root, _, third = before.feed(3)
    before.hear(acks(root, (root, 0)))
    before.tick(500)
    bench = Bench(checkpoint=before.keep())
    assert bench.feeder.pending == 2
    assert bench.take(e.Draw) == e.Draw(0, 3, is_again=True)
    bench.hear(e.Drawn(0, 3, is_last=False))
    assert bench.take(e.Store) == e.Store(0, NOW_MS, (1, 2))
    assert not bench.all(e.Audit)
    bench.hear(e.Stored(0))
    assert third in bench.take(e.Audit).segments


def test_a_source_that_gives_other_values_than_before_and_roots_that_are_too_old_end_the_workflow() -> None:
    before = Bench()
    before.feed(3, is_last=False)
    book = before.feeder.book.encode()
    bench = Bench(checkpoint=book)
    bench.hear(e.Drawn(0, 2, is_last=True))
    assert bench.take(e.Fail).cause == "source"
    bench = Bench(checkpoint=book)
    bench.hear(e.Drawn(0, 3, is_last=False))
    bench.hear(e.Stored(0, refused=(1,)))
    assert bench.take(e.Fail).cause == "too_old"


def test_a_life_that_finds_all_done_calls_its_input_exhausted_again() -> None:
    bench = Bench(checkpoint=Book(next=7, is_drained=True, completed=7).encode())
    bench.keep()
    bench.take(e.Exhaust)
    bench.hear(e.Exhausted())
    assert bench.take(e.Done) == e.Done(7)


# -- looking after roots -----------------------------------------------------------------------------


def test_a_root_that_is_not_heard_of_is_looked_after_less_and_less_often() -> None:
    bench = Bench()
    root, = bench.feed(1)
    gaps, last_ms = list[int](), bench.now_ms
    while len(gaps) < 4:
        bench.tick(100)
        if bench.all(e.Audit):
            gaps.append(bench.now_ms - last_ms)
            last_ms = bench.now_ms
            assert bench.take(e.Audit).segments == (root,)
            bench.hear(e.Audited((e.Sight(root, e.Standing.OPEN),)))
    wanted = (1_600, 3_200, 6_400, 12_800)
    assert all(most - 1_600 <= gap <= most + 400 for gap, most in zip(gaps, wanted, strict=True))
    assert gaps == sorted(gaps)


def test_a_root_that_is_heard_of_is_left_alone() -> None:
    bench = Bench()
    root, = bench.feed(1)
    for number, child in enumerate(children(root, 20)):
        bench.tick(700)
        bench.hear(acks(root, (child, number)))
    assert not bench.all(e.Audit)


def audited(bench: Bench, *sights: e.Sight) -> None:
    """A root is looked after, down to these sights; each must be asked for."""
    while not bench.all(e.Audit):
        bench.tick(100)
    asked = bench.take(e.Audit).segments
    known = {sight.segment: sight for sight in sights}
    assert set(asked) <= {*known}, "not asked for"
    bench.hear(e.Audited(tuple(known[each] for each in asked)))


def test_what_is_lost_of_acks_is_found_by_a_walk() -> None:
    bench = Bench()
    root, = bench.feed(1)
    first, second = children(root, 2)
    audited(bench, done(root, 2))
    audited(bench, done(first, 0), done(second, 0))
    assert bench.feeder.book.completed == 1


def test_children_that_are_not_there_are_enqueued_again() -> None:
    bench = Bench()
    root, = bench.feed(1)
    ids = children(root, 3)
    audited(bench, done(root, 3))
    audited(bench, done(ids[1], 0), *absent(ids[0], ids[2]))
    assert bench.take(e.Repair) == e.Repair(root, root, TOKEN, (0, 2))
    bench.hear(acks(root, (ids[0], 0), (ids[2], 0)))
    assert bench.feeder.book.completed == 1


def test_children_that_are_taken_no_more_end_the_workflow() -> None:
    bench = Bench()
    root, = bench.feed(1)
    bench.hear(e.Repaired(root, root, TOKEN, is_done=False, is_late=True))
    assert bench.take(e.Fail) == e.Fail(root, root, "", "too_old")


def test_a_stored_root_that_is_not_there_ends_the_workflow() -> None:
    bench = Bench()
    root, = bench.feed(1)
    audited(bench, *absent(root))
    assert bench.take(e.Fail).cause == "too_old"


# -- several claims ----------------------------------------------------------------------------------


def hinted(bench: Bench, root: bytes) -> None:
    """Its holder leaves the root to the feeder."""
    bench.hear(e.Acked(Acks((), ((root, root),))))
    assert bench.take(e.Audit).segments == (root,)


def test_of_several_claims_that_whose_children_are_there_counts_whichever_stands() -> None:
    bench = Bench()
    root, = bench.feed(1)
    hinted(bench, root)
    bench.hear(e.Audited((done(root, 2, 1),)))
    first, later = children(root, 1)[0], children(root, 1, LATER)[0]
    assert bench.take(e.Audit).segments == (first, later)
    bench.hear(e.Audited((*absent(first), e.Sight(later, e.Standing.OPEN))))
    assert not bench.all(e.Repair)
    assert bench.take(e.Audit).segments == (later,)
    bench.hear(e.Audited((done(later, 0),)))
    assert bench.feeder.book.completed == 1


def decide(bench: Bench, root: bytes) -> None:
    """None of several claims' children are there."""
    bench.hear(e.Audited((done(root, 2, 1),)))
    bench.hear(e.Audited(absent(*bench.take(e.Audit).segments)))


def test_where_nobody_has_emitted_the_feeder_writes_down_whose_children_there_will_be_and_emits_them() -> None:
    bench = Bench()
    root, = bench.feed(1)
    hinted(bench, root)
    decide(bench, root)
    assert not bench.all(e.Repair)
    hinted(bench, root)
    bench.hear(e.Audited((done(root, 2, 1),)))
    assert not bench.all(e.Repair), "it is not written down yet"
    assert Book.decode(bench.keep()).decisions == {root: TOKEN}
    assert bench.take(e.Repair) == e.Repair(root, root, TOKEN)
    bench.hear(e.Repaired(root, root, TOKEN))
    assert bench.take(e.Audit).segments == (root,), "now its children show it"
    assert not bench.feeder.book.decisions


def test_two_looks_at_what_several_claims_completed_come_to_one_decision() -> None:
    """They see different completions stand; and a look at its children may be older than what is emitted."""
    bench = Bench()
    root, = bench.feed(1)
    bench.hear(e.Acked(Acks((), ((root, root), (root, root)))))
    assert bench.take(e.Audit).segments == (root, root)
    stands = done(root, 0, 2)
    bench.hear(e.Audited((attrs.evolve(stands, tries=stands.tries[::-1]), stands)))
    children_of_both = bench.take(e.Audit).segments
    assert children_of_both == (*children(root, 1, LATER), *children(root, 1))
    bench.hear(e.Audited(absent(*children_of_both)))
    assert Book.decode(bench.keep()).decisions == {root: LATER}
    assert bench.take(e.Repair) == e.Repair(root, root, LATER)
    assert not bench.feeder.book.completed, "what it emits is not counted yet"


def test_a_decision_stands_in_the_next_life_though_another_completion_stands_by_then() -> None:
    before = Bench()
    root, = before.feed(1)
    hinted(before, root)
    decide(before, root)
    bench = Bench(checkpoint=before.keep())
    bench.take(e.Draw)
    bench.hear(e.Drawn(0, 1, is_last=True))
    bench.hear(e.Stored(0))
    bench.take(e.Audit)
    flipped = attrs.evolve(done(root, 2, 1), tries=done(root, 2, 1).tries[::-1])
    bench.hear(e.Audited((flipped,)))
    assert bench.take(e.Repair).token == TOKEN
    bench.hear(e.Repaired(root, root, TOKEN, is_done=False))
    assert bench.feeder.book.decisions == {root: TOKEN}, "not all are stored"


def test_a_completion_that_emits_nothing_needs_no_decision() -> None:
    bench = Bench()
    root, = bench.feed(1)
    hinted(bench, root)
    bench.hear(e.Audited((done(root, 0, 3),)))
    bench.hear(e.Audited(absent(*bench.take(e.Audit).segments)))
    assert (bench.feeder.book.completed, bench.feeder.book.decisions) == (1, {})


def test_what_was_counted_stands_whatever_turns_out_to_be_the_earliest() -> None:
    bench = Bench()
    root, = bench.feed(1)
    first, second = children(root, 2)
    for sight in (done(first, 0, 2), attrs.evolve(done(first, 0, 2), tries=done(first, 0, 2).tries[::-1])):
        audited(bench, done(root, 2))
        audited(bench, sight, e.Sight(second, e.Standing.OPEN))
        audited(bench, *absent(*(segments.child_id(first, token, NOW_MS, 0) for token in (TOKEN, LATER))))
    assert not bench.feeder.book.decisions
    bench.hear(acks(root, (second, 0)))
    assert bench.feeder.book.completed == 1


def test_where_a_holder_that_was_alone_told_its_ack_its_children_are_enqueued() -> None:
    bench = Bench()
    root, = bench.feed(1)
    bench.hear(acks(root, (root, 2)))
    audited(bench, done(root, 2, 0))
    audited(bench, *absent(*(segments.child_id(root, token, NOW_MS, 0) for token in (TOKEN, LATER))))
    audited(bench, *absent(*children(root, 2)))
    assert bench.take(e.Repair) == e.Repair(root, root, TOKEN, (0, 1))


def test_children_of_what_was_counted_as_one_that_emits_nothing_are_not_looked_after() -> None:
    """Another of its holders emits, late, or one that is dead."""
    bench = Bench()
    root, = bench.feed(1)
    first, second = children(root, 2)
    none, some = (segments.child_id(first, token, NOW_MS, 0) for token in (TOKEN, LATER))
    for late in (e.Sight(some, e.Standing.ABSENT), e.Sight(some, e.Standing.OPEN)):
        audited(bench, done(root, 2))
        audited(bench, done(first, 0, 2), e.Sight(second, e.Standing.OPEN))
        audited(bench, *absent(none), late)
    assert not bench.all(e.Audit)
    bench.hear(acks(root, (second, 0)))
    assert bench.feeder.book.completed == 1


def test_so_many_are_decided_on_at_a_time() -> None:
    bench = Bench(decisions_max=1)
    roots = bench.feed(2)
    for root in roots:
        hinted(bench, root)
        decide(bench, root)
    assert bench.feeder.book.decisions == {roots[0]: TOKEN}


# -- dead segments -----------------------------------------------------------------------------------


def test_a_dead_segment_is_tried_again_until_that_cannot_be() -> None:
    bench = Bench()
    root, = bench.feed(1)
    dead = e.Sight(root, e.Standing.DEAD, "again")
    for _ in range(2):
        audited(bench, dead)
        assert bench.take(e.Revive) == e.Revive(root, root, "again")
    bench.hear(e.Unrevived(root, root, "again"))
    assert bench.take(e.Fail) == e.Fail(root, root, "again")


@pytest.mark.parametrize("step", ["all", "not in the catalog"])
def test_a_dead_segment_kills_the_workflow(step: str) -> None:
    bench = Bench()
    root, = bench.feed(1)
    audited(bench, e.Sight(root, e.Standing.DEAD, step))
    assert bench.take(e.Fail) == e.Fail(root, root, step)
    bench.hear(e.Ticked(), 100_000)
    assert not bench.wanted


@pytest.mark.parametrize("step", ["all", "again"])
def test_what_says_nothing_of_what_it_emits_ends_the_workflow(step: str) -> None:
    bench = Bench()
    root, = bench.feed(1)
    audited(bench, e.Sight(root, e.Standing.DONE, step, (e.Try(TOKEN, NOW_MS, None),)))
    assert bench.take(e.Fail) == e.Fail(root, root, step, "result")


# -- bounds ------------------------------------------------------------------------------------------


def test_a_tree_that_is_too_large_ends_the_workflow_with_the_limits_name() -> None:
    bench = Bench(segments_of_root=10)
    root, = bench.feed(1)
    bench.hear(acks(root, *((child, 0) for child in children(root, 11))))
    assert bench.take(e.Fail).cause == "too_large"


def test_without_room_registers_are_forgotten_except_the_oldest_roots() -> None:
    bench = Bench(segments_max=10)
    oldest, other = bench.feed(2)
    bench.hear(acks(oldest, *((child, 0) for child in children(oldest, 8))))
    bench.hear(acks(other, *((child, 0) for child in children(other, 3))))
    assert bench.feeder.registers == 8
    bench.hear(acks(other, (other, 0)))
    assert bench.feeder.registers == 8, "it begins anew when it is looked after"
    bench.hear(acks(oldest, *((child, 0) for child in children(oldest, 20))))
    assert bench.feeder.registers == 20


def test_a_walk_asks_for_so_many_at_a_time_and_keeps_a_row_for_each_parent() -> None:
    bench = Bench()
    root, = bench.feed(1)
    audited(bench, done(root, 1_000))
    for _ in range(3):
        asked = bench.take(e.Audit).segments
        assert len(asked) == LOOKS_MAX
        bench.hear(e.Audited(tuple(e.Sight(each, e.Standing.OPEN) for each in asked)))
        assert len(bench.feeder.walk) <= 2


def test_a_checkpoint_has_room_for_all_it_may_hold() -> None:
    size = WINDOW_MAX // BATCHES_MAX
    book = Book(decisions={number.to_bytes(20, "big"): 1 for number in range(DECISIONS_MAX + DECISIONS_SPARE)},
                cursor=bytes(CURSOR_BYTES_MAX))
    while book.room:
        book.add(min(size, book.room), NOW_MS)
    assert len(book.batches) == BATCHES_MAX
    assert len(book.encode()) < BYTES_MAX
    assert Book.decode(book.encode()) == book
    wide = Book()
    while wide.room:
        wide.add(wide.room, NOW_MS)
    assert wide.window == WINDOW_MAX


# -- forms -------------------------------------------------------------------------------------------

IDS = st.binary(min_size=20, max_size=20)
U64 = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(IDS, IDS, U64), max_size=5), st.lists(st.tuples(IDS, IDS), max_size=5),
       st.binary(max_size=9))
def test_acks_are_read_as_they_were_written_and_nothing_else_is(sure: Any, unsure: Any, more: bytes) -> None:
    told = Acks(tuple(sure), tuple(unsure))
    assert Acks.decode(told.encode()) == told
    for bad in (more, told.encode() + more + b"x", told.encode()[:-1], b"skA\x01" + more):
        with pytest.raises(Malformed):
            Acks.decode(bad)


def test_a_message_tells_of_so_many_segments() -> None:
    with pytest.raises(Refused, match="send several"):
        Acks((), ((b"a" * 20, b"b" * 20),) * (ACKS_MAX + 1)).encode()


@given(st.lists(st.tuples(st.integers(1, BATCH_MAX), st.integers(0, 9)), max_size=9), st.binary(max_size=60),
       st.data())
def test_a_checkpoint_is_read_as_it_was_written_or_malformed(rows: Any, noise: bytes, data: st.DataObject) -> None:
    book = Book(decisions={b"s" * 20: 7}, completed=3, cursor=noise)
    for count, finished in rows:
        batch = book.add(count, NOW_MS, finished, count)
        for number in range(batch.first, batch.first + min(finished, count - 1)):
            book.finish(batch, number)
    written = book.encode()
    assert Book.decode(written) == book
    damaged = bytearray(written)
    damaged[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    for bad in (noise, written + b"x", written[:-1], "text", 7, bytes(damaged), written[:5] + noise):
        try:
            found = Book.decode(bad)
        except Malformed:
            continue
        assert len(found.batches) <= BATCHES_MAX
        assert found.window <= found.next


def turned(ring: Ring[str], times: Sequence[int]) -> list[tuple[int, str]]:
    return [(at_ms, each) for at_ms in times for each in ring.turn(at_ms)]


def test_a_ring_gives_out_after_the_delay_and_at_most_two_turns_later() -> None:
    ring: Ring[str] = Ring(0, 1_600)
    for delay_ms in (1, 100, 750, 1_600, 9_000):
        ring.put(str(delay_ms), delay_ms)
    given_out = [(100, "1"), (100, "100"), (800, "750"), (1_600, "1600"), (1_600, "9000")]
    assert turned(ring, range(0, 2_000, 50)) == given_out


def test_a_ring_that_stood_still_gives_out_everything_once_and_goes_on_from_now() -> None:
    ring: Ring[str] = Ring(0, 1_600)
    for delay_ms in (100, 1_600):
        ring.put(str(delay_ms), delay_ms)
    assert ring.turn(1_000_000) == ["100", "1600"]
    ring.put("new", 100)
    assert ring.turn(1_000_000) == []
    assert ring.next_ms == 1_000_100
    assert BUCKETS == 16


def test_a_root_with_a_segment_that_is_tried_again_is_looked_after_no_less_often() -> None:
    bench = Bench()
    root, = bench.feed(1)
    asked = []
    while len(asked) < 6:
        bench.tick(100)
        if bench.all(e.Audit):
            asked.append(bench.now_ms)
            bench.take(e.Audit)
            bench.hear(e.Audited((e.Sight(root, e.Standing.DEAD, "again"),)))
            bench.take(e.Revive)
    apart = [later - earlier for earlier, later in pairwise(asked)]
    assert max(apart) <= 2 * OPTIONS.timeout_ms, apart
