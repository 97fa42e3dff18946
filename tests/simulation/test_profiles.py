"""A fixed share of the seeds plays runs of another kind, and what elections send may be held up."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from simulation.test_campaign import kept_seeds
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.simulation.campaign import run
from skuld_py.simulation.options import draw_options
from skuld_py.simulation.profiles import AMNESIA, DOUBTFUL, EVERY, SELDOM, apply_profile, profile_of, seeds_of
from skuld_py.simulation.world.lateness import Envelope, Lateness
from skuld_py.simulation.world.network import CALM, JUST_MS, Network
from skuld_py.simulation.world.scheduler import Scheduler, stream

PAGE = m.ClaimPage(0, 1, b"", b"", b"", Column(), Column())
GOSSIP = m.Gossip((), ())


def test_six_of_twenty_two_seeds_are_of_a_profile_and_the_others_play_what_they_always_played() -> None:
    for seed in range(2 * SELDOM):
        drawn, profile = draw_options(seed), profile_of(seed)
        assert (apply_profile(seed, drawn) != drawn) is bool(profile)
        assert not profile or apply_profile(seed, drawn).has_losses is (profile != "doubtful")
    assert sum(bool(profile_of(seed)) for seed in range(2 * SELDOM)) == 12


def test_no_kept_seed_is_of_a_profile() -> None:
    assert [seed for seed in kept_seeds() if apply_profile(seed, draw_options(seed)) != draw_options(seed)] == []


@pytest.mark.parametrize("first", [0, AMNESIA, AMNESIA + 1])
def test_seeds_of_a_profile_begin_at_the_first_and_are_all_of_it(first: int) -> None:
    seeds = seeds_of("amnesia", first, 5)

    assert len(seeds) == 5
    assert first <= seeds[0] < first + EVERY
    assert {seed % EVERY for seed in seeds} == {AMNESIA}
    assert seeds_of("", first, 3) == range(first, first + 3)


@pytest.mark.slow
def test_a_forgetful_run_forgets_moves_and_claims() -> None:
    stats: Counter[str] = sum((run(seed).stats for seed in seeds_of("amnesia", 40, 3)), Counter())

    assert stats["probe suspect filled again"] > 3
    assert stats["probe new member filled"] > 3
    assert stats["probe stale page while pulling"] > 0
    assert stats["claims"] > 150


@pytest.mark.slow
def test_a_visited_run_has_visitors_that_go_and_residents_that_do_without_them() -> None:
    verdicts = [run(seed) for seed in seeds_of("visited", 0, 3)]
    stats: Counter[str] = sum((verdict.stats for verdict in verdicts), Counter())

    assert all(verdict.passed for verdict in verdicts)
    assert stats["fault visit"] > 10
    assert stats["claims"] > 100


@pytest.mark.slow
def test_a_cramped_run_hands_claims_on_in_pages_and_damages_voters() -> None:
    verdicts = [run(seed) for seed in seeds_of("cramped", 0, 3)]
    stats: Counter[str] = sum((verdict.stats for verdict in verdicts), Counter())

    assert all(verdict.passed for verdict in verdicts)
    assert stats["probe claims pulled over pages"] > 10
    assert stats["probe claims pushed over pages"] > 10
    assert stats["fault voter damaged"] > 0


def test_seeds_of_the_rarest_profile_are_all_of_it() -> None:
    assert [*seeds_of("doubtful", 0, 3)] == [DOUBTFUL, DOUBTFUL + SELDOM, DOUBTFUL + 2 * SELDOM]
    assert seeds_of("doubtful", DOUBTFUL + 1, 1)[0] == DOUBTFUL + SELDOM


@pytest.mark.slow
def test_in_a_doubtful_run_calls_of_the_library_are_granted_refused_and_in_doubt() -> None:
    verdicts = [run(seed) for seed in seeds_of("doubtful", 57, 3)]
    stats: Counter[str] = sum((verdict.stats for verdict in verdicts), Counter())

    assert all(verdict.passed for verdict in verdicts)
    for verb in ("retry", "put_schedule", "enqueue"):
        assert min(stats[f"call {verb} {end}"] for end in ("ok", "info")) > 0
    assert stats["call retry fail"] > 0
    assert stats["calls asked again"] > 30


# -- lateness ----------------------------------------------------------------------------------------


def holding() -> tuple[Lateness, Counter[str]]:
    counts: Counter[str] = Counter()
    lateness = Lateness(stream(2, "lateness"), counts)
    lateness.begin("n1")
    return lateness, counts


def test_what_is_held_up_goes_just_before_another_one_of_its_kind_and_of_another_epoch() -> None:
    lateness, counts = holding()
    for _ in range(20):
        assert lateness.sift(("n2", "n1"), (PAGE, GOSSIP))[1] == []
    other = attrs.evolve(PAGE, partition=1, epoch=2)
    assert lateness.sift(("n3", "n1"), (other, m.ClaimsKept(0, 2, b"", b"")))[1] == []
    assert lateness.sift(("n3", "n2"), (attrs.evolve(PAGE, epoch=2),))[1] == []
    lateness.end("n1")

    newer = attrs.evolve(PAGE, epoch=2)
    assert lateness.sift(("n3", "n1"), (newer,)) == ((newer,), [(("n2", "n1"), (PAGE,))])
    assert lateness.sift(("n3", "n1"), (newer,)) == ((newer,), [])
    assert counts["held up"] == 1


def test_trials_gossip_and_what_goes_to_others_is_not_held_up() -> None:
    lateness, _ = holding()
    trial = m.Vote(0, 1, True, True, 0, 0)

    for _ in range(20):
        assert lateness.sift(("n2", "n1"), (trial, GOSSIP)) == ((trial, GOSSIP), [])
        assert lateness.sift(("n2", "n3"), (PAGE,)) == ((PAGE,), [])
    assert lateness.sift(("n2", "n3"), (attrs.evolve(PAGE, epoch=2),))[1] == []
    assert lateness.sift(("n2", "n1"), (attrs.evolve(trial, epoch=2),))[1] == []


def test_a_link_delivers_what_was_held_up_a_moment_before_and_healing_forgets_it() -> None:
    scheduler = Scheduler(1)
    network = Network(scheduler, 1, CALM)
    heard: list[tuple[int, str, Envelope]] = []
    network.attach("n1", lambda sender, messages: heard.append((scheduler.now_ms, sender, messages)))
    network.lateness.begin("n1")
    for _ in range(20):
        network.send("n2", "n1", (PAGE,))
    scheduler.run(1_000)
    heard.clear()

    network.send("n3", "n1", (attrs.evolve(PAGE, epoch=2),))
    scheduler.run(2_000)

    assert heard[0][1:] == ("n2", (PAGE,))
    assert [sender for _, sender, _ in heard[1:]] in (["n3"], [])
    assert len(heard) == 1 or heard[0][0] == heard[1][0] - JUST_MS
    network.mend_all()
    network.send("n3", "n1", (attrs.evolve(PAGE, epoch=3),))
    scheduler.run(3_000)
    assert sum(messages == (PAGE,) for _, _, messages in heard) == 1
