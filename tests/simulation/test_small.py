"""No single deviation from the small schedules breaks a rule; what is planted is soon seen; scripts are runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, repeat
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest

from simulation.planted import half
from skuld_py.model.document import Document
from skuld_py.partition.leadership import quorum
from skuld_py.simulation import __main__ as command
from skuld_py.simulation.small import log
from skuld_py.simulation.small.branches import branches
from skuld_py.simulation.small.run import Story, run
from skuld_py.simulation.small.scenarios import FOCUSES, PAIRS, SCENARIOS, SPARE
from skuld_py.simulation.small.script import Choices, Script, shrunk
from skuld_py.simulation.small.search import Guided, singles
from skuld_py.simulation.small.verdict import Verdict
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.scheduler import STILL, stream

pytestmark = pytest.mark.timeout(3_600)
"""Against what never ends."""
KEPT = Path(__file__).with_name("small_scripts.txt")
SAMPLE = 4
"""Single deviations of each pair that are tried every day."""


def told(verdicts: Sequence[Verdict]) -> str:
    """What failed, and how to see it again."""
    return "\n".join(f"{verdict.script} {verdict.taken}: {verdict.violated}\n"
                     f"  again: python -m skuld_py.simulation --small {verdict.script} --trace"
                     for verdict in verdicts if not verdict.passed)


@pytest.mark.parametrize("pair", [*PAIRS, *log.PAIRS])
def test_the_usual_schedule_and_some_deviations_break_nothing(pair: str) -> None:
    usual = run(Script(pair))
    verdicts = [usual, *map(run, singles(pair, usual.ways)[:SAMPLE])]

    assert usual.ways > 80
    assert not usual.taken
    assert all(len(verdict.taken) == 1 for verdict in verdicts[1:])
    assert all(verdict.passed for verdict in verdicts), told(verdicts)


@pytest.mark.slow
def test_no_single_deviation_breaks_anything(share: range) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        verdicts = list(chain.from_iterable(pool.map(branches, (*PAIRS, *log.PAIRS), repeat(share))))

    assert len(verdicts) * share.step > 5_000
    assert all(verdict.passed for verdict in verdicts), told(verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["crash:elect", "logcrash:log"])
def test_a_branch_is_the_run_of_its_script(pair: str) -> None:
    usual, *deviating = branches(pair, range(5, sys.maxsize, 9))

    assert [verdict.script.numbers for verdict in deviating] == [(number,) for number in range(5, usual.ways, 9)]
    assert [usual, *deviating] == [run(verdict.script) for verdict in (usual, *deviating)]
    assert len({verdict.trace_hash for verdict in deviating}) > len(deviating) / 2


def test_scripts_that_once_failed_pass() -> None:
    lines = [line.rpartition(": ") for line in KEPT.read_text().splitlines() if not line.startswith("#")]
    verdicts = [run(Script.parse(script)) for script, _, _ in lines]

    assert all(sentence for _, _, sentence in lines), "a script without a sentence"
    assert all(verdict.passed for verdict in verdicts), told(verdicts)


def test_pairs_are_of_all_scenarios_and_focuses() -> None:
    named = [tuple(pair.split(":")) for pair in PAIRS]

    assert len(PAIRS) >= 14
    assert {scenario for scenario, _ in named} == SCENARIOS.keys()
    assert {focus for _, focus in named} == FOCUSES.keys()


def test_what_a_scenario_is_named_for_happens_in_it() -> None:
    moved, vetoed = run(Script("join:move")), run(Script("veto:claim"))

    assert any(pair.startswith("Sync ") for pair in moved.pairs)
    assert any(pair.startswith("Granted ") for pair in vetoed.pairs)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if SCENARIOS[pair.partition(":")[0]].joins])
def test_a_node_that_joins_votes_while_the_run_may_deviate(pair: str) -> None:
    """A seat took half a minute longer than the story: the cohort moved while all was being healed."""
    story, voters = Story(Script(pair), Trace()), set[str]()

    def note(now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        if story.small.is_open:
            voters.update(document.cohort)
    story.small.registry.on_written.append(note)
    story.play()

    assert SPARE in voters


# -- scripts -----------------------------------------------------------------------------------------


def test_a_script_is_the_same_run_whenever_it_is_played() -> None:
    script = Script("crash:elect", (3, 40))
    first, again, other = run(script), run(script), run(Script("crash:elect", (4,)))

    assert first == again
    assert first.trace_hash != other.trace_hash


def test_numbers_name_the_ways_in_the_order_in_which_they_come_up() -> None:
    choices = Choices((1, 4))

    assert [choices.at("ab", "x"), choices.at("cd", "y"), choices.at("e", "z", 7)] == ["b", "", "e"]
    assert choices.count == 5
    assert choices.taken == ["x b", "z 7 e"]


def test_a_script_is_a_line() -> None:
    assert str(Script.parse("crash:elect 7 180")) == "crash:elect 7 180"
    assert Script("crash:elect", (7,)).deviating(180) == Script.parse("crash:elect 180 7")


def test_a_script_shrinks_by_leaving_numbers_out() -> None:
    script = Script("crash:elect", (1, 5, 9, 12))

    assert shrunk(script, lambda less: {5, 12} <= {*less.numbers}).numbers == (5, 12)


def test_without_chance_all_gets_its_turn_and_nothing_takes_longer() -> None:
    still = stream(STILL, "any")

    assert {still.choice("abc") for _ in range(8)} == {*"abc"}
    assert still.expovariate(1.0) == 0
    assert still.random() < 1 and still.random() > 0.999


# -- search ------------------------------------------------------------------------------------------


def verdict(script: Script, *pairs: str) -> Verdict:
    return Verdict(script, 50, {}, (), Counter(pairs), "", ())


def test_every_single_deviation_is_tried_once() -> None:
    scripts = singles("crash:elect", 40)

    assert sorted(script.numbers for script in scripts) == [(number,) for number in range(40)]
    assert abs(scripts[0].numbers[0] - scripts[1].numbers[0]) > 5


def test_a_guided_search_goes_on_from_what_met_something_new() -> None:
    search = Guided(["crash:elect"], Random(1))
    assert search.draw() == Script("crash:elect")
    assert search.note(verdict(Script("crash:elect"), "Vote idle")) == 1
    assert search.note(verdict(Script("crash:elect", (3,)), "Vote idle", "Vote voting")) == 1
    assert search.note(verdict(Script("crash:elect", (4,)), "Vote idle")) == 0

    drawn = [search.draw() for _ in range(50)]

    assert any(script.numbers[0] == 3 and len(script.numbers) == 2 for script in drawn)
    assert not any(script.numbers[0] == 4 and len(script.numbers) == 2 for script in drawn)
    assert all(list(script.numbers) == sorted({*script.numbers}) for script in drawn)


# -- planted bugs ------------------------------------------------------------------------------------


def test_half_taken_for_a_majority_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum, "majority", half)

    assert any(not run(script).passed for script in [Script("crash3:claim"), *singles("crash3:claim", 100)[:40]])


# -- the command -------------------------------------------------------------------------------------


def test_the_command_plays_a_script_and_tells_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--small", "crash:elect", "7", "--jobs", "1", "--trace"]) == 0

    out = capsys.readouterr().out
    assert "script" in out and "Gossip(" in out
    assert out.endswith("all passed\n")


def test_a_failure_is_told_with_its_deviations(monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(quorum, "majority", half)

    code = command.main(["--small", "pause3:claim", "--jobs", "1"])

    out = capsys.readouterr().out
    assert code == 1
    assert "FAILED after 1 schedules\nscript pause3:claim: FAILED" in out
    assert "VIOLATED: " in out
    assert "again: python -m skuld_py.simulation --small pause3:claim --trace" in out


def test_a_search_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--guided", "--minutes", "0.01", "--jobs", "1", "--small", "crash:elect"]) == 0

    out = capsys.readouterr().out
    assert "new pairs" in out and "fresh seeds" in out


@pytest.mark.parametrize("words", [["--small", "crash"], ["--small", "flood:elect"], ["--small", "crash:dance"],
                                   ["--small", "crash:elect", "x7"]])
def test_what_there_is_not_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(words)

    assert end.value.code == 2
    assert "scenarios are crash, " in capsys.readouterr().err
