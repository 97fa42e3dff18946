"""Every command in the README and in the manual is one that can be typed today."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from manual import commands, written
from manual.written import Block, Line
from skuld_py.cli.main import main
from skuld_py.keys.files import ClusterKey, write_new
from skuld_py.keys.pair import fresh

TYPED = [(line, words) for line in written.lines() for words in line.commands]
SAID = {name: [span for span in written.spans(text) if span.startswith("skuld ")]
        for name, text in written.pages()}

FILES = ("tokens.toml", "chain.pem", "key.pem")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with the files that lines name; without a configuration file."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    write_new(tmp_path / "cluster.key", ClusterKey("main", fresh(), "x").text)


def test_there_is_much_to_look_at() -> None:
    assert len(TYPED) >= 40 and sum(map(len, SAID.values())) >= 25
    assert {line.place.partition(":")[0] for line, _ in TYPED} >= {"README.md", "operating.md", "clients.md"}


@pytest.mark.parametrize(("line", "words"), TYPED, ids=[f"{line.place} {words[0]}" for line, words in TYPED])
def test_each_line_can_be_typed(line: Line, words: list[str]) -> None:
    assert commands.wrong(words) == "", line.place


@pytest.mark.parametrize("page", SAID)
def test_what_is_said_in_passing_exists(page: str) -> None:
    assert [said for said in SAID[page] if commands.wrong_mention(written.words_of(said)[1:])] == []


DEFINITIONS = [block for block in written.blocks("toml") if block.text.startswith("id = ")]
SETTINGS = [block for block in written.blocks("toml") if block not in DEFINITIONS]


@pytest.mark.parametrize("block", DEFINITIONS, ids=[block.page for block in DEFINITIONS])
def test_each_definition_of_a_workflow_is_whole(block: Block) -> None:
    Path("flow.toml").write_text(block.text)

    checked = CliRunner().invoke(main, ["workflow", "check", "flow.toml"], prog_name="skuld")
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize("block", SETTINGS, ids=[block.page for block in SETTINGS])
def test_each_configuration_file_is_one_that_verbs_take(block: Block) -> None:
    Path("skuld.toml").write_text(block.text)

    shown = CliRunner().invoke(main, ["config", "show", "--changed"], prog_name="skuld")
    assert shown.exit_code == 0 and "skuld.toml" in shown.output, shown.output


def test_the_two_commands_are_these() -> None:
    readme = written.PATHS[0].read_text(encoding="utf-8")

    assert [line.commands for line in written.lines() if line.place.startswith("README.md")][:2] == [
        [["scripts/demo"]], [["scripts/test"]]]
    for program in ("scripts/demo", "scripts/test"):
        assert commands.wrong([program]) == ""
    assert "(or of `--input DIR` of jars" in " ".join(readme.split())
    assert commands.wrong(["scripts/demo", "--input", "."]) == ""


BROKEN = [
    "skuld clam lines",
    "skuld",
    "skuld cluster make pipelines",
    "skuld claim",
    "skuld claim lines --leese 30s",
    "skuld claim lines --lease long",
    "skuld list lines --state gone",
    "skuld status && skuld statuses",
    "skuld manual guarentees",
    "scripts/dema",
    "scripts/README.md",
    "scripts/demo --inputs x",
    "scripts/simulate --seedlings 5",
    "scripts/bench speed",
    "python -m skuld_py.simulation.coordination --sed 1",
    "python -m skuld_py.no_such_module --seeds 1",
    "curl http://127.0.0.1:13080/v1/jobs",
    "curl -d '{\"queue\": \"q\"}' http://127.0.0.1:13080/v1/tasks/enqueue_one",
    "curl -d '{\"queue\": \"q\", \"pay\": \"x\"}' http://127.0.0.1:13080/v1/tasks/enqueue",
    "frobnicate all",
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_line_that_cannot_be_typed_is_noticed(text: str) -> None:
    assert any(commands.wrong(words) for words in Line("here", tuple(written.words_of(text))).commands)


@pytest.mark.parametrize("said", ["clam", "claim --leese", "cluster make", "node --help --no"])
def test_a_verb_or_option_that_is_not_there_is_noticed_in_passing(said: str) -> None:
    assert commands.wrong_mention(said.split())
