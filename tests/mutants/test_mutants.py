"""The mutants fit the source, and the campaign tells the truth about them: on a toy tree, with a toy simulator."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mutants import __main__ as command
from mutants import clauses, small, suite
from mutants.mutant import Mutant, mutant, script
from mutants.source import Source
from mutants.workshop import TOP
from node.script import all_scripts
from skuld_py.simulation.small.scenarios import PAIRS

MUTANTS_MIN = 100
RULES = re.compile(r"[DCOVAXLW]\d+")

SIMULATOR = '''
import argparse, sys, time
from skuld_py.rules import ACKS, CLAIMS, SPEED
parser = argparse.ArgumentParser()
for name in ("--first", "--seeds", "--jobs"):
    parser.add_argument(name, type=int)
parser.add_argument("--small", nargs="*")
asked = parser.parse_args()
if asked.small:
    if CLAIMS == "broken":
        print("FAILED after 3 schedules\\nscript crash:claim 7: FAILED\\nVIOLATED: C1 a claim")
    sys.exit(CLAIMS == "broken")
for seed in range(asked.first, asked.first + asked.seeds):
    if SPEED == "still":
        print("standing still", flush=True)
        time.sleep(600)
    if (CLAIMS == "broken" and seed == 3) or (ACKS == "broken" and seed == 8):
        print(f"seed {seed}: FAILED\\nVIOLATED: C1 a claim\\n  evidence\\nVIOLATED: C14 a mutex")
        sys.exit(1)
print("all passed")
'''
RULES_FILE = 'CLAIMS = "kept"\nACKS = "kept"\nORDER = "kept"\nSPEED = "fast"\nSYNTAX = 1\n'
TEST = "from skuld_py.rules import ORDER\n\n\ndef test_order() -> None:\n    assert ORDER == 'kept'\n"


def toy(rule: str, *tests: str, seeds: int = 10, invariant: str = "C1") -> Mutant:
    return mutant(f"{rule.lower()}-broken", f"{rule} is broken", "rules", f'{rule} = "kept"',
                  f'{rule} = "broken"', invariant, *tests, seeds=seeds)


STILL = mutant("stands-still", "never ends", "rules", 'SPEED = "fast"', 'SPEED = "still"', "C1")
ORDER = "tests/test_order.py::test_order"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with a few rules, a simulator that knows two of them, and a test that knows another one."""
    for name, text in {"skuld_py/__init__.py": "", "skuld_py/rules.py": RULES_FILE,
                       "skuld_py/simulation/__init__.py": "", "skuld_py/simulation/__main__.py": SIMULATOR,
                       "tests/test_order.py": TEST}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(tree: Path, *listed: Mutant, words: tuple[str, ...] = ()) -> int:
    return command.main(["--top", str(tree), "--jobs", "1", *words], listed)


# -- the list ----------------------------------------------------------------------------------------


def test_every_mutant_fits_the_source() -> None:
    source = Source(TOP)

    assert [problem for each in command.LISTED for problem in each.problems(source)] == []


def test_mutants_are_many_each_with_a_name_a_rule_and_a_way_to_be_seen() -> None:
    assert len(command.LISTED) >= MUTANTS_MIN
    assert len({each.name for each in command.LISTED}) == len(command.LISTED)
    assert [each.name for each in command.LISTED if not RULES.fullmatch(each.invariant)] == []
    assert [each.name for each in command.LISTED if not each.tests and not each.seeds] == []


def test_the_tests_that_mutants_name_exist() -> None:
    scripts = {script(each.title) for each in all_scripts()}
    for each in command.LISTED:
        for test in each.tests:
            file, _, name = test.partition("::")
            text = (TOP / file).read_text()
            assert not name or f"def {name.partition('[')[0]}(" in text, (each.name, test)
            assert not file.endswith("/test_scripts.py") or test in scripts, (each.name, test)


# -- where they point --------------------------------------------------------------------------------

TWO_OF_A_NAME = """
class Leader:
    limit = 3

    @property
    def epoch(self) -> int:
        return self._epoch

    @epoch.setter
    def epoch(self, value: int) -> None:
        self._epoch = value

    def grant(self, heads: list[int]) -> list[int]:
        return [head
                for head in heads]


def grant(heads: list[int]) -> list[int]:
    return [head for head in heads]
"""


@pytest.fixture
def source(tree: Path) -> Source:
    """A file with names that stand in it twice, and another that holds some of them."""
    for name, text in (("leading", TWO_OF_A_NAME), ("following", "class Follower:\n    limit = 3\n")):
        (tree / "skuld_py" / f"{name}.py").write_text(text)
    return Source(tree)


@pytest.mark.parametrize(("place", "old", "new", "line"), [
    ("Leader.grant", "[head for head in heads]", "heads", "        return heads\n"),
    ("leading.grant", "[head for head in heads]", "heads", "    return heads\n"),
    ("Leader.limit", "3", "4", "    limit = 4\n"),
    ("Leader.epoch.setter", "        self._epoch = value\n", "        pass\n", "        pass\n"),
    ("Leader.epoch", "return self._epoch", "return 0", "        return 0\n")])
def test_a_place_is_found_by_the_end_of_its_name_and_a_pattern_however_its_lines_are_broken(
        tree: Path, source: Source, place: str, old: str, new: str, line: str) -> None:
    assert source.problem(place, old, new) == ""
    source.change(place, old, new)

    changed = (tree / "skuld_py" / "leading.py").read_text()
    assert line in changed and compile(changed, "leading.py", "exec")


@pytest.mark.parametrize(("place", "problem"), [
    ("grant", "there are 2 such places"), ("limit", "there are 2 such places"),
    ("Leader.deny", "there are 0 such places"), ("leading", "the pattern stands there 2 times")])
def test_a_place_or_a_pattern_that_is_not_one_is_told(source: Source, place: str, problem: str) -> None:
    assert problem in source.problem(place, "[head for head in heads]", "heads")


def test_a_file_may_be_moved_without_a_mutant_taking_notice(tree: Path, source: Source) -> None:
    (tree / "skuld_py" / "simulation" / "leading.py").write_text((tree / "skuld_py" / "leading.py").read_text())
    (tree / "skuld_py" / "leading.py").unlink()

    assert Source(tree).problem("Leader.grant", "[head for head in heads]", "heads") == ""


# -- the campaign ------------------------------------------------------------------------------------


def test_a_killed_mutant_is_told_with_what_noticed_and_after_how_many_seeds(
        tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("CLAIMS"), toy("ORDER", ORDER, seeds=0)) == 0

    out = capsys.readouterr().out
    assert re.search(r"claims-broken +C1 +killed +4 .* C1, C14", out)
    assert re.search(r"order-broken +C1 +killed +test .* test_order", out)
    assert "2 of 2 killed, median 4 seeds, worst 4" in out


def test_what_the_small_world_must_find_is_tried_there_alone(
        tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "PAIRS", {"claims-broken": "crash:claim", "order-broken": "crash:elect"})

    assert run(tree, toy("CLAIMS"), toy("ACKS"), toy("ORDER", ORDER), words=("--small",)) == 1

    out = capsys.readouterr().out
    assert re.search(r"claims-broken +C1 +killed +3 .* C1  crash:claim 7", out)
    assert re.search(r"order-broken +C1 +SURVIVED", out)
    assert "1 of 2 killed, median 3 schedules, worst 3" in out


def test_the_small_world_has_mutants_that_exist_and_pairs_that_are_tried() -> None:
    assert small.PAIRS.keys() <= {each.name for each in command.LISTED}
    assert {*small.PAIRS.values()} <= {*PAIRS}
    assert len(small.TWELVE) == 12


def test_one_that_other_rules_notice_is_told_so(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("CLAIMS", invariant="D1")) == 0

    assert "C1, C14  (not by its own)" in capsys.readouterr().out


def test_a_survivor_fails_the_campaign(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("ORDER"), toy("CLAIMS")) == 1

    out = capsys.readouterr().out
    assert re.search(r"order-broken +C1 +SURVIVED +10 ", out)
    assert "survived: order-broken" in out


def test_a_bound_on_seeds_is_kept(tree: Path) -> None:
    assert run(tree, toy("CLAIMS"), words=("--seeds", "3")) == 1
    assert run(tree, toy("CLAIMS"), words=("--seeds", "4")) == 0
    assert run(tree, toy("CLAIMS"), words=("--first", "3", "--seeds", "1")) == 0


def test_a_mutant_that_does_not_end_is_a_survivor(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, STILL, words=("--timeout", "1")) == 1

    assert "STUCK" in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new"), [('CLAIMS = "lost"', "x"), ("kept", "x"), ("SYNTAX", "SYNTAX"),
                                          ("SYNTAX = 1", "SYNTAX = 1"), ("SYNTAX = 1", "SYNTAX = ")])
def test_a_mutant_that_does_not_fit_stops_everything(tree: Path, capsys: pytest.CaptureFixture[str], old: str,
                                                     new: str) -> None:
    rotten = mutant("rotten", "nothing", "rules", old, new, "C1")

    assert run(tree, toy("CLAIMS"), rotten) == 3
    assert "Rotten: rotten: rules" in capsys.readouterr().err


@pytest.mark.parametrize("broken", [
    mutant("dead", "nothing runs", "rules", "SYNTAX = 1", "SYNTAX = nothing", "C1"),
    toy("ORDER", "tests/test_order.py::test_nothing"), toy("ORDER", "tests/test_no_file.py")])
def test_what_does_not_run_is_no_kill(tree: Path, capsys: pytest.CaptureFixture[str], broken: Mutant) -> None:
    assert run(tree, broken) == 3
    assert "Broken: " in capsys.readouterr().err


def test_a_test_or_a_seed_that_fails_without_the_mutant_is_no_kill(
        tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tree / "skuld_py" / "rules.py"
    rules.write_text(RULES_FILE.replace('ORDER = "kept"', 'ORDER = "lost"'))
    assert run(tree, toy("CLAIMS", ORDER)) == 3
    rules.write_text(RULES_FILE.replace('CLAIMS = "kept"', 'CLAIMS = "broken"'))
    assert run(tree, toy("ORDER")) == 3

    assert "seed 3 fails without order-broken as well" in capsys.readouterr().err


def test_the_tree_itself_is_never_changed(tree: Path) -> None:
    run(tree, toy("CLAIMS"), toy("ORDER"))

    assert (tree / "skuld_py" / "rules.py").read_text() == RULES_FILE


# -- the command -------------------------------------------------------------------------------------


def test_the_list_names_each_mutant_and_its_rule(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("CLAIMS"), toy("ORDER", ORDER, seeds=0), words=("--list",)) == 0

    out = capsys.readouterr().out
    assert re.search(r"^claims-broken +C1 +CLAIMS is broken  \[10 seeds\]$", out, re.MULTILINE)
    assert re.search(r"^order-broken +C1 +ORDER is broken  \[tests\]$", out, re.MULTILINE)


@pytest.mark.parametrize("words", [("--only", "nothing"), ("--jobs", "0"), ("--seeds", "-1"), ("--timeout", "0"),
                                   ("--no-such",)])
def test_bad_usage_ends_with_2(tree: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        run(tree, toy("CLAIMS"), words=words)

    assert end.value.code == 2


def test_only_those_named_are_tried(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("CLAIMS"), toy("ORDER"), words=("--only", "claims")) == 0

    assert "1 of 1 killed" in capsys.readouterr().out


def test_the_simulator_may_be_asked_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, toy("CLAIMS", ORDER), toy("ORDER", ORDER), toy("ORDER", ORDER, seeds=0),
               words=("--no-tests",)) == 1

    assert "survived: order-broken\n" in capsys.readouterr().out


def test_an_interrupt_ends_the_campaign_and_all_it_runs(tree: Path) -> None:
    script = ("import sys; from mutants.__main__ import main; from mutants.test_mutants import STILL;"
              f"sys.exit(main(['--top', {str(tree)!r}], [STILL]))")
    paths = os.pathsep.join([str(TOP), str(TOP / "tests")])
    campaign = subprocess.Popen([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": paths})
    try:
        process = psutil.Process(campaign.pid)
        deadline = time.monotonic() + 60
        while not (children := process.children(recursive=True)) and time.monotonic() < deadline:
            time.sleep(0.05)
        campaign.send_signal(signal.SIGINT)
        out, _ = campaign.communicate(timeout=60)
    finally:
        campaign.kill()

    assert campaign.returncode == 130
    assert "interrupted; so far:" in out and "Traceback" not in out
    assert children and psutil.wait_procs(children, timeout=60)[1] == []


# -- mutants of checkers -----------------------------------------------------------------------------


def test_every_clause_of_a_function_is_bent() -> None:
    source = ("def check(rows):\n    for row in rows:\n        if row.a < 1 and row.b:\n"
              "            yield f'{row.c}'\n    return [row for row in rows if row]\n")

    made = list(clauses.mutants_of("x.py", source))

    assert sorted(each.rule for each in made) == [
        "check: comparison bent", "check: condition false", "check: condition true", "check: filter dropped",
        "check: nothing reported", "check: without row.a < 1", "check: without row.b"]
    for each in made:
        compile(each.edits[0].new, "x.py", "exec")


def test_the_quick_runner_runs_every_set_of_parameters(monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(["tests/mutants/two_tests.py"]) == 0
    assert capsys.readouterr().out == "5 passed\n"

    monkeypatch.setenv("SKULD_TEST_TWO_TESTS", "3")
    assert suite.main(["tests/mutants/two_tests.py"]) == 1
    assert capsys.readouterr().out == "FAILED tests/mutants/two_tests.py::test_numbers AssertionError\n"
