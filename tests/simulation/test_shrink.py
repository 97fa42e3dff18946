"""A failure gets small and stays one; what is left out is named by words that leave it out again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.planted import half
from skuld_py.partition.leadership import quorum
from skuld_py.simulation import __main__ as command
from skuld_py.simulation.campaign import run
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.options import draw_options
from skuld_py.simulation.reduction import SIMPLIFICATIONS, WHOLE, Reduction, mute
from skuld_py.simulation.shrink import Outcome, Shrinker, minimise

BROKEN, FINE = frozenset({"rule"}), frozenset[str]()


@given(st.lists(st.integers(), unique=True, max_size=30), st.data())
def test_what_is_left_fails_and_no_item_of_it_can_be_spared(items: list[int], data: st.DataObject) -> None:
    needed = frozenset(data.draw(st.lists(st.sampled_from(items), unique=True)) if items else [])

    def fails(kept: Sequence[int]) -> bool:
        return needed <= frozenset(kept)

    assert frozenset(minimise(items, fails)) == needed


def test_a_search_keeps_what_the_failure_needs_and_drops_the_rest() -> None:
    sent = tuple(("c0", number) for number in range(1, 40))

    def play(reduction: Reduction) -> Outcome:
        faults = tuple(range(20)) if reduction.faults is None else reduction.faults
        requests = tuple(request for request in sent if not reduction.is_muted(*request))
        is_broken = ({4, 9} <= {*faults} and ("c0", 7) in requests and "no-wire" not in reduction.simpler
                     and (reduction.until_ms or 20_000) > 5_000)
        return Outcome(BROKEN if is_broken else FINE, faults, requests, 20_000)
    search = Shrinker(play)
    found = search.shrink()

    assert play(found).violated == BROKEN
    assert found.faults == (4, 9)
    assert {*found.simpler} == {*SIMPLIFICATIONS} - {"no-wire"}
    assert 5_000 < found.until_ms < 7_000
    assert found.muted == (("c0", 1, 6), ("c0", 8, 39))


def test_a_search_ends_when_its_runs_are_spent_and_gives_the_best_so_far() -> None:
    def play(reduction: Reduction) -> Outcome:
        return Outcome(BROKEN, tuple(range(8)) if reduction.faults is None else reduction.faults)
    search = Shrinker(play, plays_max=1)

    assert search.shrink().faults == ()
    assert search.plays == 1


def test_another_rule_broken_is_another_failure() -> None:
    def play(reduction: Reduction) -> Outcome:
        return Outcome(BROKEN if reduction == WHOLE else frozenset({"other"}), (1, 2))

    assert Shrinker(play).shrink() == WHOLE


def test_a_run_that_passes_is_left_as_it_is() -> None:
    assert Shrinker(lambda reduction: Outcome(FINE, (1, 2, 3))).shrink() == WHOLE


requests = st.sets(st.tuples(st.sampled_from(("c0", "c1", "c10")), st.integers(1, 30)))


@given(requests)
def test_muted_requests_are_these_and_no_others(chosen: set[tuple[str, int]]) -> None:
    reduction = Reduction(muted=mute(sorted(chosen)))

    for name in ("c0", "c1", "c10"):
        assert [n for n in range(1, 40) if reduction.is_muted(name, n)] == sorted(
            number for client, number in chosen if client == name)


@given(st.none() | st.lists(st.integers(0, 99)).map(tuple), st.lists(st.sampled_from(sorted(SIMPLIFICATIONS))),
       st.integers(0, 20_000), requests)
def test_the_words_of_a_reduction_mean_it(faults: tuple[int, ...] | None, simpler: list[str], until_ms: int,
                                          muted: set[tuple[str, int]]) -> None:
    reduction = Reduction(faults, tuple(simpler), until_ms, mute(sorted(muted)))
    asked = command.arguments(["--seed", "1", *reduction.words()])

    assert command._reduction(asked) == reduction


def test_faults_of_nodes_that_are_gone_are_gone() -> None:
    faults = [Fault(0, "crash", 1, 2, ("n9",)), Fault(1, "blackout", 1, 2, ("n1", "n9"), (("n1", "n9"),))]

    kept = Reduction().keep(faults, ("n1",))

    assert kept == [Fault(1, "blackout", 1, 2, ("n1",))]


@pytest.mark.parametrize("name", SIMPLIFICATIONS)
def test_each_simplification_changes_some_runs_and_never_twice(name: str) -> None:
    simplify = SIMPLIFICATIONS[name]
    drawn = [draw_options(seed) for seed in range(40)]

    assert any(simplify(options) != options for options in drawn)
    assert all(simplify(simplify(options)) == simplify(options) for options in drawn)


def test_leaving_everything_out_still_gives_a_run_that_passes() -> None:
    verdict = run(8, seconds=20, reduction=Reduction((), tuple(SIMPLIFICATIONS), 15_000, (("c0", 1, 5),)))

    assert verdict.passed
    assert verdict.faults == ()
    assert ("c0", 3) not in verdict.requests and ("c0", 6) in verdict.requests


@pytest.mark.slow
def test_a_bug_gets_small_and_its_command_shows_it_again(monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(quorum, "majority", half)
    seed = next(seed for seed in range(200) if not run(seed, seconds=10).passed)
    whole = run(seed, seconds=10)

    assert command.main(["--seed", str(seed), "--seconds", "10", "--shrink"]) == 1

    again = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("again: "))
    words = again.removeprefix("again: python -m skuld_py.simulation ").removesuffix(" --trace").split()
    asked = command.arguments(words)
    small = run(seed, seconds=10, reduction=command._reduction(asked))
    assert {*small.violated} & {*whole.violated}
    assert len(small.requests) * 4 < len(whole.requests)
    assert len(small.faults) <= len(whole.faults)
