"""Operators in the simulated world: seeds pass, and each rule about documents sees its breach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from simulation.story import OTHER, TASK, Story
from skuld_py.model.document import Force, Freeze, Loss, Promotion
from skuld_py.partition.candidacy import GIVEN_UP
from skuld_py.simulation.campaign import Verdict
from skuld_py.simulation.operators import __main__ as command
from skuld_py.simulation.operators import met, rules
from skuld_py.simulation.operators.campaign import run, without
from skuld_py.simulation.operators.habits import draw

pytestmark = pytest.mark.timeout(1_800)
"""Against what never ends; how long a run takes says how busy the machine is."""
KEPT = Path(__file__).with_name("operator_seeds.txt")
SEEDS, DAILY, IN_THE_DARK = 250, (3, 35, 56), 28
"""In bulk; and those of every day."""
FREEZE = Freeze("f", "me", "why", 1)
WISH = Promotion("p", "lead", "n2", 1, 9_000, "me")
FORCE = Force("r", 1, ("n1",), "me", "why", 1)
LOSS = Loss(2, ("n2", "n3"), ("n1",), "me", "why", 1, 1_100)
LED: dict[str, Any] = {"write_id": "n1.1-0-1", "horizon_ms": 1_000}


def told(verdicts: Iterable[Verdict]) -> str:
    return "\n".join(f"seed {verdict.seed}: {verdict.violated}\n  again: python -m skuld_py.simulation.operators"
                     f" --seed {verdict.seed} --trace" for verdict in verdicts if not verdict.passed)


def kept_seeds() -> list[int]:
    lines = [line.split(maxsplit=1) for line in KEPT.read_text().splitlines() if not line.startswith("#")]
    assert all(len(line) == 2 for line in lines), "a seed without a sentence"
    return [int(number) for number, _ in lines]


def test_a_few_seeds_keep_every_promise() -> None:
    verdicts = [run(seed) for seed in DAILY]

    assert all(verdict.passed for verdict in verdicts), told(verdicts)
    stats = sum((verdict.stats for verdict in verdicts), Counter[str]())
    assert stats["claims"] and stats["operators asked freeze"] and stats["operators epoch forced"]


def test_a_leader_in_the_dark_obeys_nothing() -> None:
    """Deposed behind its back it reads of that together with a wish."""
    verdict = run(IN_THE_DARK)

    assert verdict.passed, told([verdict])
    assert verdict.stats["operators by hand: wish behind a leader's back"]


@pytest.mark.slow
def test_seeds_that_once_failed_pass() -> None:
    verdicts = [run(seed) for seed in kept_seeds()]

    assert all(verdict.passed for verdict in verdicts), told(verdicts)


@pytest.mark.slow
def test_every_promise_is_kept(share: range) -> None:
    verdicts = [run(seed) for seed in range(SEEDS)[share.start::share.step]]

    assert all(verdict.passed for verdict in verdicts), told(verdicts)
    stats = sum((verdict.stats for verdict in verdicts), Counter[str]())
    assert share.step > 1 or met.unmet(stats) == []


def test_a_seed_is_the_same_run_whenever_it_is_played() -> None:
    assert run(5, seconds=2).trace_hash == run(5, seconds=2).trace_hash


def test_the_options_of_many_seeds_have_every_disaster() -> None:
    plans = [draw(seed, 10)[1] for seed in range(60)]

    for what in ("loses_ms", "restores_ms", "deletes_every_ms", "eclipses_every_ms", "resizes_every_ms",
                 "restores_after_ms"):
        assert 0 < sum(bool(getattr(plan, what)) for plan in plans) < 60
    assert any("leave" in draw(seed, 10)[0].faults for seed in range(60))


def test_the_command_plays_many_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seeds", "2", "--seconds", "2", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.endswith("all passed\n")
    assert command.main(["--seed", "2", "--seconds", "2"]) == 0
    assert "asked" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.arguments(["--trace"])


# -- rules -------------------------------------------------------------------------------------------


def broken(*documents: tuple[int, dict[str, Any]], **facts: Any) -> list[str]:
    """The rules that see something in these revisions: (epoch, fields)."""
    story = Story().know(replicas=3, wall_start_ms=0, skew_ms=100, **facts)
    for at_ms, (epoch, fields) in enumerate(documents, 10):
        story.write(epoch, at_ms, **{**LED, **fields})
    return [finding.id for finding in rules.check(story.evidence()) if finding.verdict is False]


BY_ME = {"write_id": "n1.1-op1-0-1"}


@pytest.mark.parametrize("documents", [
    [(1, {}), (1, {"freeze": FREEZE, **BY_ME}), (1, {"freeze": FREEZE, "horizon_ms": 2_000}),
     (1, {"horizon_ms": 2_000, **BY_ME})],
    [(1, {}), (1, {"promote": WISH, **BY_ME}), (2, {"leader": "n2", "cause": "n1 yielded"})],
    [(1, {}), (1, {"force": FORCE, "spent": 1_025, **BY_ME}),
     (1_026, {"cause": GIVEN_UP, "cohort": ("n1",), "spent": 1_025, "no_grant_before_ms": 1_100,
              "loss": attrs.evolve(LOSS, epoch=1_026)})],
    [(3, {}), (3, {"leader": "", "cause": "restored from data directories", "spent": 1_027, "horizon_ms": 0}),
     (1_028, {"spent": 1_027})]])
def test_what_may_be_is_let_pass(documents: list[tuple[int, dict[str, Any]]]) -> None:
    assert broken(*documents) == []


@pytest.mark.parametrize(("rule", "documents"), [
    ("P1", [(1, {}), (1, {"horizon_ms": 9_000, **BY_ME})]),
    ("P1", [(1, {}), (1, {"leader": "n2", **BY_ME})]),
    ("P2", [(1, {"freeze": FREEZE}), (1, {})]),
    ("P2", [(1, {"unknown": {"a": 1}}), (2, {})]),
    ("P2", [(1, {}), (1, {"promote": WISH})]),
    ("P2", [(2, {"loss": LOSS}), (2, {})]),
    ("P2", [(2, {"no_grant_before_ms": 5}), (2, {})]),
    ("P3", [(1, {"freeze": FREEZE}), (2, {"freeze": FREEZE, "leader": "n2"})]),
    ("P3", [(1, {"freeze": FREEZE}), (1, {"freeze": FREEZE, "learners": ("n4",)})]),
    ("P4", [(1, {"mode": "solo"}), (2, {"mode": "solo", "cohort": ("n1", "n2", "n4")})]),
    ("P5", [(1, {}), (2, {"leader": "n2", "cause": "the placement moved"})]),
    ("P5", [(1, {}), (2, {"leader": "n2", "cause": "n3 yielded"})]),
    ("P5", [(1, {"promote": WISH, **BY_ME}), (2, {"leader": "n2"}), (3, {}),
            (3, {"promote": attrs.evolve(WISH, epoch=3), **BY_ME}), (4, {"leader": "n2"})]),
    ("P6", [(1, {"promote": WISH}), (2, {"promote": WISH})]),
    ("P7", [(1, {}), (2, {"cohort": ("n1",), "cause": GIVEN_UP, "loss": LOSS, "no_grant_before_ms": 1_100})]),
    ("P7", [(1, {"force": FORCE}), (2, {"cohort": ("n1",), "cause": GIVEN_UP})]),
    ("P7", [(1, {"force": FORCE}), (2, {"cohort": ("n1",), "cause": GIVEN_UP, "loss": LOSS})]),
    ("P10", [(3, {}), (2, {"leader": "", "cause": "restored from data directories"})]),
    ("P10", [(3, {}), (2, {})]),
    ("P12", [(3, {"no_grant_before_ms": 500}), (3, {"leader": "", "cause": "restored from data directories"})])])
def test_a_breach_is_seen(rule: str, documents: list[tuple[int, dict[str, Any]]]) -> None:
    assert rule in broken(*documents)


def test_nobody_needs_to_know_of_a_barrier_that_is_over() -> None:
    def verdict(at_ms: int) -> object:
        story = Story().know(wall_start_ms=0, skew_ms=100).write(3, 1, **LED, no_grant_before_ms=500)
        return rules.barriers_outlast_restores(story.write(3, at_ms, **LED).evidence()).verdict

    assert verdict(600) is True
    assert verdict(599) is False


def test_a_grant_before_the_barrier_and_one_beyond_a_later_horizon_are_seen() -> None:
    story = Story().know(wall_start_ms=0, skew_ms=10).write(1, 1, **LED, no_grant_before_ms=500)
    story.claim(at_ms=100, until_ms=110, end_ms=2_000).write(1, 120, **LED)

    found = {finding.id for finding in rules.check(story.evidence()) if finding.verdict is False}
    assert {"P8", "P11"} <= found


def test_a_document_that_is_written_all_the_time_is_seen() -> None:
    story = Story()
    for at_ms in range(rules.WRITES_MAX + 1):
        story.write(1, at_ms, **LED)

    assert rules.writes_are_few(story.evidence()).verdict is False


def test_what_was_answered_about_a_lost_task_is_in_doubt_and_all_else_stays() -> None:
    story = Story().enqueue().enqueue(task=OTHER).claim().hold(1, 1, 2)
    less = without(story.history, {TASK: None})

    assert [operation.status.value for operation in less.operations] == ["info", "ok", "info"]
    assert [operation.status.value for operation in story.history.operations] == ["ok", "ok", "ok"]
    assert not less.holds
