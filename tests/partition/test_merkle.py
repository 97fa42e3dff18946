"""The tree says of a replica's records what a scan of them would say, whatever happened to them and when."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partition.exchanging import HEADER, PLACE, draft, fill, replica
from skuld_py.model import ids
from skuld_py.model.history import HISTORY_HEAD, RELEASED, encode_claim
from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.copies.garbage import collect
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.merkle import ALL_LEAVES, LEAVES, SLICE_BITS, Nodes, Tree, leaf_of, next_stretch
from skuld_py.partition.data.replica import Replica


def scanned(made: Replica) -> Nodes:
    """A tree of the records as they are, drafted in one go."""
    tree = Tree(made.store, made.prefix)
    tree.redraft()
    tree.advance(1 << 40)
    return tree.nodes


def grant_of(task_ids: list[bytes], first_token: int, start_ms: int) -> Grant:
    return Grant(task_ids, [PLACE] * len(task_ids), first_token, start_ms, start_ms + 20, "me")


class Changes:
    """What can happen to a replica, by number; ids of several leaves, some of them in one batch."""

    def __init__(self, made: Replica, integers: st.DataObject) -> None:
        self.made = made
        self._draw = integers.draw
        mint = ids.IdMint(1)
        self.ids = [task_id for now_ms in (1, 2, 700, 1 << 21) for task_id in mint.mint(now_ms, 3, 0)]
        self.token = 10
        self.now_ms = 1

    def _some(self) -> list[bytes]:
        return list(self._draw(st.lists(st.sampled_from(self.ids), min_size=1, max_size=4)))

    def one(self) -> None:
        self.now_ms += self._draw(st.sampled_from((0, 1, 15, 40)))
        made, chosen = self.made, self._some()
        match self._draw(st.integers(0, 9)):
            case 0 | 1:
                made.store_tasks(self.now_ms, HEADER, chosen, [self._draw(st.sampled_from((b"", b"x")))
                                                               for _ in chosen])
            case 2 | 3:
                grant = grant_of(sorted(set(chosen)), self.token + 1, self.now_ms)
                made.apply_grant(self.now_ms, grant, made.objections(grant))
                self.token += len(chosen)
            case 4:
                made.finish(self.now_ms, chosen, [self.token or 1] * len(chosen), self.now_ms)
            case 5:
                ending = RELEASED * (len(chosen) > 1)
                made.amend(self.now_ms, [Amendment(each, self.token, self.now_ms + 30, ending) for each in chosen])
            case 6:
                claim = encode_claim(self._draw(st.integers(10, 19)), 1, self._draw(st.integers(1, 99)), b"me")
                made.merge_history(self.now_ms, chosen[0], HISTORY_HEAD.pack(0, 0, 0) + claim, PLACE)
            case 7:
                made.append(chosen[0], 1, self._draw(st.sampled_from((0, 1, 255))), [b"a", b"b"])
            case 8:
                collect(made, sorted({*chosen}))
            case _:
                made.filing.sweep(self.now_ms, 2)

    def perhaps_draft(self) -> None:
        match self._draw(st.integers(0, 5)):
            case 0:
                self.made.tree.redraft()
            case 1 | 2:
                self.made.tree.advance(self._draw(st.integers(1, 5)))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_tree_is_that_of_a_scan_after_any_changes_and_during_any_draft(data: st.DataObject) -> None:
    made = replica()
    changes = Changes(made, data)
    for _ in range(data.draw(st.integers(1, 25))):
        changes.one()
        changes.perhaps_draft()
        assert made.tree.nodes.is_same(scanned(made))
    draft(made)
    assert made.tree.nodes.is_same(scanned(made))
    assert made.tree.root == scanned(made).root
    assert made.tree.nodes.inner == scanned(made).inner
    assert made.tree.corrections == 0


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_tree_drafted_after_a_crash_while_records_change_is_that_of_a_scan(data: st.DataObject) -> None:
    before = replica()
    changes = Changes(before, data)
    for _ in range(8):
        changes.one()

    made = changes.made = Replica(0, before.store, 10)
    while made.tree.is_drafting:
        changes.one()
        made.tree.advance(data.draw(st.integers(1, 4)))

    assert made.tree.is_built
    assert made.tree.nodes.is_same(scanned(made))


def test_a_replica_with_records_has_no_tree_until_it_is_drafted() -> None:
    made = replica()
    fill(random.Random(1), [made, replica()], 20)
    again = Replica(0, made.store, 10)

    assert not again.tree.is_built
    draft(again, 3)
    assert again.tree.root == made.tree.root != 0


def test_body_claims_completion_and_log_are_each_in_the_leaf() -> None:
    task_id = ids.IdMint(1).mint(5, 1, 0)[0]
    made = replica()
    roots = [made.tree.root]
    for change in (lambda: made.store_tasks(1, HEADER, [task_id], [b"x"]),
                   lambda: made.apply_grant(1, grant_of([task_id], 7, 1)),
                   lambda: made.amend(1, [Amendment(task_id, 7, 99)]),
                   lambda: made.amend(1, [Amendment(task_id, 7, 99, RELEASED)]),
                   lambda: made.finish(1, [task_id], [7], 60),
                   lambda: made.append(task_id, 7, 0, [b"entry"]),
                   lambda: made.append(task_id, 7, 1, [b"entry"])):
        change()
        roots.append(made.tree.root)
        assert made.tree.nodes.leaves[leaf_of(task_id)] == made.tree.root

    assert len(set(roots)) == len(roots)


@pytest.mark.parametrize("count", [2, 4, 8, 500])
def test_equal_changes_to_several_tasks_do_not_cancel_out(count: int) -> None:
    """Under an XOR of CRCs four completions of one grant would: their tokens differ by the same bits."""
    task_ids = ids.IdMint(1).mint(5, count, 0)
    made = replica()
    made.store_tasks(1, HEADER, task_ids, [b""] * count)
    made.apply_grant(1, grant_of(task_ids, 8, 1))
    before = made.tree.root
    made.finish(1, task_ids, range(8, 8 + count), 60)

    assert made.tree.root != before


def test_an_id_that_comes_twice_in_a_batch_counts_once() -> None:
    made, task_ids = replica(), ids.IdMint(1).mint(5, 2, 0) * 2
    made.store_tasks(1, HEADER, task_ids, [b"x", b"y", b"x", b"y"])
    assert made.tree.nodes.is_same(scanned(made))
    made.apply_grant(1, grant_of(task_ids[:2], 8, 1))
    made.finish(1, task_ids, [8, 9, 8, 9], 60)

    assert made.tree.nodes.is_same(scanned(made))
    assert [*made.filing.tally.rows()] == [("q", (0, 0, 2, 0, 0, 0, 0))]


def test_a_new_draft_corrects_a_tree_that_parted_from_its_records_and_counts_it() -> None:
    made = replica()
    fill(random.Random(2), [made], 10)
    right = made.tree.root
    made.tree.nodes.change(3, 99)
    made.tree.redraft()
    assert made.tree.root != right
    draft(made, 3)

    assert made.tree.root == right
    assert made.tree.corrections == 1


@pytest.mark.parametrize("drafted", range(6))
def test_what_is_collected_while_the_tree_is_drafted_is_in_neither(drafted: int) -> None:
    made = replica()
    one, two, three = ids.IdMint(1).mint(1, 3, 0)
    made.store_tasks(1, HEADER, [one, two, three], [b""] * 3)
    made.finish(2, [one, two], [1, 1], 2)
    made.tree.redraft()
    made.tree.advance(drafted)
    collect(made, [one, two])
    assert made.tree.nodes.is_same(scanned(made))
    draft(made)
    assert made.tree.nodes.is_same(scanned(made))
    assert made.tree.corrections == 0


def test_who_watches_a_task_hears_that_it_was_collected() -> None:
    made = replica()
    one, two = ids.IdMint(1).mint(1, 2, 0)
    made.store_tasks(1, HEADER, [one, two], [b"", b""])
    made.watch.watched = {two: None}
    collect(made, [one])
    assert [*made.watch.stirred] == []
    collect(made, [two])
    assert [*made.watch.stirred] == [two]
    made.watch.stirred.clear()
    collect(made, [one, two])
    assert [*made.watch.stirred] == []


def test_an_empty_replica_takes_no_memory_for_its_tree() -> None:
    tree = Tree(MemoryStore(), b"\0\0")
    assert tree.is_built
    assert not tree.nodes.leaves
    assert tree.nodes.is_same(Nodes())
    assert tree.nodes.level(2, [3]) == [0] * 64


@settings(max_examples=100)
@given(st.sets(st.one_of(st.integers(0, 12), st.integers(LEAVES - 5, LEAVES - 1)), min_size=1),
       st.integers(0, 3 * LEAVES << SLICE_BITS))
def test_the_next_stretch_is_the_first_run_of_chosen_leaves(chosen: set[int], time_ms: int) -> None:
    leaves = sum(1 << leaf for leaf in sorted(chosen))
    low, high = next_stretch(leaves, time_ms)

    slot = time_ms >> SLICE_BITS
    while slot % LEAVES not in chosen:
        slot += 1
    end = slot
    while end % LEAVES in chosen and (end == slot or end % LEAVES):
        end += 1
    assert (low, high) == (slot << SLICE_BITS, end << SLICE_BITS)


def test_all_leaves_are_one_stretch() -> None:
    assert next_stretch(ALL_LEAVES, 5 << SLICE_BITS)[1] >= 1 << 64
