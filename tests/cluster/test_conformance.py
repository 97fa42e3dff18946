"""The log's commands do what the scenarios say, exactly; and what became of each of Onyx's commands is told."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from cluster import scenario as s
from skuld_py.cli.manual import page
from skuld_py.cluster.log.commands import COMMANDS

HERE = Path(__file__).parent
SCENARIOS = list(s.scenarios(HERE / "scenarios"))
_ROW = re.compile(r"^- \*\*(\S+)\*\* \(([ABCD]+|-)\): ([a-z-]+)\. (.+?)(?=\n\n|\n- |\Z)", re.MULTILINE | re.DOTALL)
ROWS = [(eras, name, ours, why) for name, eras, ours, why in _ROW.findall(page("onyx-commands"))]
"""What the manual says: the releases that had a command, its name there, what stands for it, and why."""

PLACE = re.compile(r"`[\w./]+`")
"""Something that exists: the manual's tests see that it does."""
ONYX = {
    "prepare-join-cluster", "notify-join-cluster", "accept-join-cluster", "abort-join-cluster", "leave-cluster",
    "group-leave-cluster", "add-virtual-peer", "submit-job", "kill-job", "complete-job", "exhaust-input",
    "seal-output", "signal-ready", "gc", "set-replica!", "backpressure-on", "backpressure-off",
    "assign-bookkeeper-log-id", "volunteer-for-task", "seal-task", "complete-task"}

GOOD = """== toy: one leaves
start ring a>b b>a
0 a: leave b
    => members a; left b@0; down b@0
    ~ left=b, watcher=a, watches=a
"""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name.split(":")[0].replace(" ", "-"))
def test_it_comes_out_exactly_as_the_scenario_says(scenario: s.Scenario) -> None:
    assert s.run(scenario) == []


def test_no_command_is_without_a_scenario_and_no_name_is_used_twice() -> None:
    said = {step.words.split()[0] for scenario in SCENARIOS for step in scenario.steps}
    assert said - {"raw"} == COMMANDS.keys()
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


# -- what became of Onyx's commands --------------------------------------------------------------


def test_every_command_of_onyx_has_a_row_in_each_of_its_releases() -> None:
    assert {name for _, name, _, _ in ROWS} - {"-"} == ONYX
    assert {(era, name) for eras, name, _, _ in ROWS if name == "leave-cluster" for era in eras} == {
        (era, "leave-cluster") for era in "ABCD"}
    told = [(era, name) for eras, name, _, _ in ROWS if name != "-" for era in eras]
    assert len(told) == len({*told})


def test_what_stands_for_it_exists_or_is_marked_and_every_row_says_why() -> None:
    assert {ours for _, _, ours, _ in ROWS} - {"superseded"} == COMMANDS.keys()
    assert all(len(why) > 40 and PLACE.search(why) for *_, why in ROWS)


def test_a_command_s_row_names_its_file() -> None:
    files = {kind: Path(inspect.getfile(command)).name for kind, command in COMMANDS.items()}
    assert [ours for _, _, ours, why in ROWS if ours != "superseded" and f"/{files[ours]}`" not in why] == []


def test_every_line_of_the_page_that_is_a_row_is_read() -> None:
    assert len(ROWS) == page("onyx-commands").count("\n- **")


# -- the format ----------------------------------------------------------------------------------


def test_the_toy_is_a_scenario() -> None:
    (toy,) = s.parse("toy.txt", GOOD)
    assert s.run(toy) == []


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("left b@0", "left b@1", "toy.txt:3: left is"),
    ("; left b@0", "", "toy.txt:3: left is"),
    ("; down b@0", "", "toy.txt:3: nodes is"),
    ("members a;", "members a; aborted x@0;", "toy.txt:3: aborted is"),
    ("watches=a", "watches=b", "toy.txt:3: the diff is"),
    ("    ~ left=b, watcher=a, watches=a\n", "", "toy.txt:3: the diff is"),
    ("    ~", "    -> a: gc\n    ~", "toy.txt:3: reactions are"),
    ("    ~", "    watch a b\n    ~", "toy.txt:3: a watches nobody, not b"),
    ("    ~", "    ! refused: no\n    ~", "toy.txt:3: it is applied '', not refused 'no'"),
    ("=> members a; left b@0; down b@0", "=> same", "toy.txt:3: it is applied '', not unchanged ''"),
])
def test_what_is_otherwise_than_told_is_found(old: str, new: str, problem: str) -> None:
    (toy,) = s.parse("toy.txt", GOOD.replace(old, new))
    assert [found for found in s.run(toy) if found.startswith(problem)]


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("== toy: one leaves\n", "", "toy.txt:1: something before the first == NAME"),
    ("start ring", "start rong", "toy.txt:2: 'rong' is no container; there are members, ring,"),
    ("a>b", "a:b", "toy.txt:2: 'a:b' is no X>Y"),
    ("0 a:", "x a:", "toy.txt:3: 'x a: leave b' is no step; a step is POSITION WRITER: COMMAND"),
    ("leave b", "live b", "toy.txt:3: 'live' is no command; there are prepare-join,"),
    ("leave b", "leave", "toy.txt:3: 'leave': "),
    ("leave b", "leave ?", "toy.txt:3: 'leave ?': Leave.member: is no id"),
    ("leave b", "rejoin", "toy.txt:3: rejoin is a reaction, not an entry"),
    ("0 a: leave b", "0: leave b", "toy.txt:3: a command has a writer, and a raw text has none"),
    ("=>", "==>", "toy.txt:4: '==>' begins no line of a step; those are => -> ~ ! watch"),
    ("left b@0", "left b@x", "toy.txt:4: left b@x: there is no number where one must be"),
    ("left b@0", "left b", "toy.txt:4: 'b' is no X@Y"),
    ("left b@0", "members a", "toy.txt:4: members stands there twice"),
    ("left b@0", "members a b", "toy.txt:4: members stands there twice"),
    ("members a;", "members a b;", "toy.txt:4: the members are a b, but the ring has nobody"),
    ("down b@0", "leaving b", "toy.txt:4: leaving b: neither a member's node nor down"),
    ("    => members a; left b@0; down b@0\n", "", "toy.txt:3: the step before says not what comes of it (=>)"),
    ("    ~", "    ! perhaps\n    ~", "toy.txt:5: 'perhaps' is no outcome; there are applied,"),
    ("    ~ left=b, watcher=a, watches=a", "0 a: gc", "toy.txt:5: position 0 does not come after 0"),
    ("    ~ left=b, watcher=a, watches=a", "start", "toy.txt:5: a second start"),
    ("start ring a>b b>a\n", "", "toy.txt:2: a step before the start"),
])
def test_what_is_no_scenario_is_told_with_its_line(old: str, new: str, problem: str) -> None:
    with pytest.raises(s.BadScenario) as raised:
        s.parse("toy.txt", GOOD.replace(old, new))

    assert str(raised.value).startswith(problem)
