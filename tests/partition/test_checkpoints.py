"""A task's checkpoint on one copy: what a holder may say, what peers bring, and that it counts into the tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Malformed
from skuld_py.model import columns
from skuld_py.model.checkpoint import SLOT, Checkpoint
from skuld_py.model.cuts import cut
from skuld_py.model.history import RELEASED, token_of
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages import TaskRow
from skuld_py.model.outcomes import entries_of, join_entries, with_entries
from skuld_py.partition.copies.garbage import collect
from skuld_py.partition.data.checkpoints import Word, join_checkpoint, judged
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.merkle import ALL_LEAVES
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import covers, merge_rows, read_cut, row_of
from skuld_py.partition.data.units import read_page, read_units

ID = (1).to_bytes(20, "big")
FIRST, SECOND = token_of(1, 1), token_of(1, 2)
CHECKPOINTS = st.builds(Checkpoint, st.sampled_from([FIRST, SECOND]), st.integers(0, 3), st.integers(0, 2),
                        st.sampled_from([b"", b"a", b"b"]))


def replica() -> Replica:
    return Replica(0, MemoryStore(), 10)


def with_claims(*tokens: int, end_ms: int = 100) -> Replica:
    made = replica()
    for token in tokens:
        made.apply_grant(1, Grant([ID], [b"q" + bytes(5)], token, 1, end_ms, "w"))
    return made


def held(copy: Replica) -> Checkpoint | None:
    found = [data for token, seq, data in copy.entries(ID)[0] if (token, seq) == SLOT]
    return Checkpoint.decode(found[0]) if found else None


def said(token: int = FIRST, number: int = 1, data: bytes = b"a") -> Checkpoint:
    return Checkpoint(token, number, 5, data)


def test_a_claims_word_is_taken_while_it_is_open_here() -> None:
    copy = with_claims(FIRST)
    assert judged(copy, 100, ID, said()) is Word.FRESH
    assert judged(copy, 101, ID, said()) is Word.UNSURE
    assert judged(copy, 100, ID, said(SECOND)) is Word.UNSURE


def test_a_claim_that_is_over_for_good_is_told_so() -> None:
    assert judged(with_claims(FIRST, SECOND), 50, ID, said()) is Word.OVER
    released = with_claims(FIRST)
    released.amend(2, [Amendment(ID, FIRST, 100, RELEASED)])
    assert judged(released, 50, ID, said()) is Word.OVER
    done = with_claims(FIRST)
    done.finish(2, [ID], [FIRST], 2)
    assert judged(done, 50, ID, said()) is Word.OVER


def test_what_is_here_is_known_though_its_claim_be_over_and_a_number_is_bound_to_its_data() -> None:
    copy = with_claims(FIRST, SECOND)
    join_checkpoint(copy, ID, said().encode())
    assert judged(copy, 999, ID, said()) is Word.KNOWN
    assert judged(copy, 999, ID, said(number=0, data=b"old")) is Word.KNOWN
    assert judged(copy, 999, ID, said(data=b"b")) is Word.BOUND
    assert judged(copy, 50, ID, said(number=2)) is Word.OVER


@given(st.lists(CHECKPOINTS, min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_copies_that_hear_the_same_in_any_order_are_equal_and_only_news_changes_the_tree(
        words: list[Checkpoint], random: object) -> None:
    one, other = with_claims(FIRST, SECOND), with_claims(FIRST, SECOND)
    for word in words:
        before, was = one.tree.root, held(one)
        join_checkpoint(one, ID, word.encode())
        assert (one.tree.root == before) is (held(one) == was)
    shuffled = list(words)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for word in shuffled * 2:
        join_checkpoint(other, ID, word.encode())
    assert held(one) == held(other) == max(words)
    assert one.tree.root == other.tree.root


def test_replicas_that_differ_in_it_find_it_and_peers_give_it() -> None:
    one, other = with_claims(FIRST), with_claims(FIRST)
    assert one.tree.root == other.tree.root
    join_checkpoint(one, ID, said().encode())
    join_checkpoint(other, ID, said(number=0).encode())
    assert one.tree.root != other.tree.root

    pages = [read_page(copy.store, copy.prefix, ALL_LEAVES, b"", b"", DEFAULT_LIMITS).digests
             for copy in (one, other)]
    differing = [unit for unit in pages[0] if pages[0][unit] != pages[1][unit]]
    assert len(differing) == 1
    rows = [row_of(unit) for copy in (one, other) for unit in read_units(copy.store, copy.prefix, differing)]
    assert covers(rows[0], rows[1]) and not covers(rows[1], rows[0])
    for copy in (one, other):
        assert merge_rows(copy, 9, 1, rows) == []
    assert held(one) == held(other) == said()
    assert one.tree.root == other.tree.root


def test_a_log_that_is_cut_and_a_reader_with_less_leave_it() -> None:
    copy = with_claims(FIRST)
    join_checkpoint(copy, ID, said().encode())
    for number in range(40):
        copy.append(ID, FIRST, number, [bytes(DEFAULT_LIMITS.entry_bytes)])
    (row, cuts), = read_cut(copy, [ID])
    assert cuts and entries_of(row)[SLOT] == said().encode()
    kept, _ = cut({**entries_of(row), **{(FIRST, 100 + n): bytes(1 << 16) for n in range(40)}}, {})
    assert kept[SLOT] == said().encode()
    older = with_entries(row, {SLOT: said(number=0).encode()})
    assert join_entries(entries_of(older), entries_of(row))[SLOT] == said().encode()
    assert join_entries(entries_of(row), entries_of(older))[SLOT] == said().encode()


def test_it_goes_with_its_task_and_does_not_come_back() -> None:
    copy = with_claims(FIRST)
    empty = replica().tree.root
    join_checkpoint(copy, ID, said().encode())
    copy.watermark.close(1 << 40)
    copy.watermark.seal(1 << 40)
    collect(copy, [ID])
    assert held(copy) is None and copy.tree.root == empty
    join_checkpoint(copy, ID, said().encode())
    assert held(copy) is None


@pytest.mark.parametrize("record", [b"", said(token_of(9, 1)).encode()])
def test_peers_bring_none_that_is_none_or_of_an_epoch_that_nobody_has_come_to(record: bytes) -> None:
    copy = with_claims(FIRST)
    copy.token_max = token_of(8, 0)
    row = TaskRow(ID, columns.pack([]), b"", columns.pack_u64([0]), columns.pack_u64([0]), columns.pack([record]))
    with pytest.raises(Malformed, match="checkpoint"):
        merge_rows(copy, 9, 1, [row])
