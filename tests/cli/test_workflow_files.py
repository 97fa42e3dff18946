"""``skuld workflow check`` and ``graph``: definitions out of files, standard input and modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click.testing
import pytest
from click.testing import CliRunner

from skuld_py.cli.main import main
from skuld_py.cli.workflow_graph import submitted
from skuld_py.testing import MemoryClient
from skuld_py.workflow.graph.rails import drawing

TOML = """
id = "census"
edges = [["lines", "words", "count"]]
[catalog.lines]
kind = "input"
files = "/data/*.txt"
[catalog.words]
kind = "function"
function = "acme:words"
[catalog.count]
kind = "output"
path = "/data/count"
"""
JSON = json.dumps({"id": "census", "edges": [["lines", "words"], ["words", "count"]], "catalog": {
    "lines": {"kind": "input", "files": "/data/*.txt"}, "words": {"kind": "function", "function": "acme:words"},
    "count": {"kind": "output", "path": "/data/count"}}})
MODULE = """
import skuld_py
flow = skuld_py.Workflow("census")
flow.input("lines", files="/data/*.txt") >> flow.step("words", "acme:words") >> flow.output("count", "/data/count")
whole = flow.definition()
def made(): return flow
def needing(something): return flow
other = 7
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"census.toml": TOML, "census.json": JSON, "census_flows.py": MODULE, "census": JSON}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*words: str, given: str = "") -> click.testing.Result:
    return CliRunner().invoke(main, ["workflow", *words], input=given, prog_name="skuld")


def test_however_it_is_written_it_is_the_same() -> None:
    said = {run("check", file).stdout for file in (
        "census.toml", "census.json", "census", "census_flows:flow", "census_flows:whole", "census_flows:made")}
    said |= {run("check", "-", given=text).stdout for text in (TOML, JSON)}

    assert said == {"workflow census is whole: 3 steps, 2 edges, digest 695f977d4bbccf3d\n"}


def test_a_program_reads_what_it_is() -> None:
    found = json.loads(run("check", "census.toml", "--json").stdout)

    assert found == {"ok": True, "id": "census", "bytes": 219, "steps": ["lines", "words", "count"],
                     "digest": "695f977d4bbccf3d95108f32f87edec83b9d570b582bf081b3bcf89c00573920",
                     "inputs": ["lines"], "leaves": ["count"]}


def test_all_that_is_wrong_is_told(here: Path) -> None:
    (here / "bad.toml").write_text(TOML.replace("kind = \"output\"", "kind = \"output\"\nleast = 0").replace(
        '"words", "count"', '"wrds", "count"'))
    told = run("check", "bad.toml")
    for_programs = run("check", "bad.toml", "--json")

    assert told.exit_code == for_programs.exit_code == 1
    assert told.stderr == (
        "error: the workflow has 2 errors:\n"
        "  count.least: 0 is not in 1..1073741824; write 1 or more\n"
        "  edges[0]: 'wrds' is no step of the catalog; did you mean words? [bad_workflow]\n")
    assert json.loads(for_programs.stdout) == {"ok": False, "left_out": 0, "errors": [
        {"entry": "count", "key": "least", "problem": "0 is not in 1..1073741824", "remedy": "write 1 or more"},
        {"entry": "edges[0]", "key": "", "problem": "'wrds' is no step of the catalog",
         "remedy": "did you mean words?"}]}


@pytest.mark.parametrize(("file", "words"), [
    ("nothing.toml", "file: nothing.toml cannot be read: No such file or directory; name a file of JSON or TOML"),
    (".", "file: . cannot be read: Is a directory"),
    ("no_such_module:flow", "there is no module no_such_module"),
    ("census_flows:nothing", "file: census_flows:nothing is nothing; name a skuld_py.Workflow"),
    ("census_flows:other", "file: census_flows:other is a int"),
    ("census_flows:needing", "file: census_flows:needing is a function; name a skuld_py.Workflow, or a function"
     " without arguments"),
])
def test_a_file_that_is_none_is_refused(file: str, words: str) -> None:
    found = run("check", file)

    assert found.exit_code == 1 and words in found.stderr


@pytest.mark.parametrize(("given", "words"), [
    ("{", "definition: is no JSON"), ("a = ", "definition: is no TOML"), ("id = 1", "id: 1 is not a name"),
    ("# " + "x" * (1 << 20), "definition: has more than 1048576 bytes")])
def test_a_text_that_is_none_is_refused(given: str, words: str) -> None:
    found = run("check", "-", given=given)

    assert found.exit_code == 1 and words in found.stderr


def test_the_graph_is_drawn() -> None:
    found = run("graph", "census.toml")

    assert found.stdout.splitlines()[:3] == [
        "▷ lines  input     /data/*.txt", "● words  function  acme:words", "■ count  output    /data/count (json)"]
    assert json.loads(run("graph", "census.toml", "--json").stdout)["definition"] == json.loads(JSON)


def test_the_graph_is_written_as_a_picture(here: Path) -> None:
    assert run("graph", "census.toml", "--svg", "census.svg").stdout == "wrote census.svg\n"
    assert ElementTree.parse(here / "census.svg").getroot().get("class") == "skuld"
    assert run("graph", "census.toml", "--svg", "-").stdout == (here / "census.svg").read_text(encoding="utf-8")


def test_what_could_move_a_cursor_is_shown_as_it_is_written() -> None:
    plain = json.loads(JSON) | {"conditions": [{"from": "words", "to": "count", "when": "acme:a",
                                                "parameters": {"\u202e": 1}}]}
    found = run("graph", "-", given=json.dumps(plain))

    assert "\\u202e" in found.stdout and "\u202e" not in found.stdout


def test_what_is_no_file_may_be_the_id_of_a_workflow() -> None:
    found = run("graph", "census-2026")
    assert "MODULE:NAME; or the id of a submitted workflow, with --submitted [no_such_file]" in found.stderr
    assert "--submitted" not in run("graph", "no_such_module:flow").stderr + run("check", "census-2026").stderr


def test_a_submitted_workflow_is_drawn_with_how_far_it_is() -> None:
    client: Any = MemoryClient()
    client.submit_workflow(JSON)
    client.enqueue_many("wf.census.words", [b"1", b"2", b"3"])
    client.complete_many(client.claim("wf.census.words", n=2))
    told = [line.split("  ")[-1].strip() for line in drawing(*submitted(client, "census")).splitlines()[:3]]
    assert told == ["waiting", "running, 1 waiting, 2 completed", "waiting"]

    client.kill_workflow("census")
    definition, standings = submitted(client, "census")
    assert definition.order == ("lines", "words", "count") and not standings
