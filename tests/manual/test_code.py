"""Every program in the README and in the manual runs, in the order of its page, on a cluster in memory.

What is shown as a file is a module that later programs of the page import, and functions called ``test_...`` are
called. When the page is through, the tasks that it left in the queues of its functions are run. The lines of shell
that speak with nodes only are typed, too, one after another.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import skuld_py
from manual import written
from manual.written import Block
from skuld_py.cli.main import main
from skuld_py.testing import AsyncMemoryClient, MemoryClient, MemoryCluster
from skuld_py.worker import middleware, outgoing, registry
from skuld_py.workflow.definition.reading import read

PROGRAMS = written.blocks("python")
PAGES = sorted({block.page for block in PROGRAMS})
WITHOUT_TASKS = ("workflows.md",)
ASKING = {"enqueue", "list", "results", "log", "schedule", "limit", "limits", "unlimit", "pause", "resume"}
"""Verbs that ask nodes and nothing else."""


class Spark:
    """As much of Spark as a function of the pages uses."""

    read = property(lambda self: self)

    def text(self, path: str) -> Spark:
        return self

    def count(self) -> int:
        return 3


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    """What the pages and the command line call ``Client`` is a client of this; nothing stays registered."""
    made = MemoryCluster()
    for place, kind in (("client.Client", MemoryClient), ("async_client.AsyncClient", AsyncMemoryClient)):
        monkeypatch.setattr(f"skuld_py.client.{place}", _without_nodes(kind, made))
    monkeypatch.setattr(registry, "_functions", {})
    monkeypatch.setattr(middleware, "_added", [])
    monkeypatch.setattr(outgoing, "_around", [])
    return made


def _without_nodes(kind: Callable[..., Any], cluster: MemoryCluster) -> Callable[..., Any]:
    def client(nodes: object = "", **options: Any) -> Any:
        return kind(cluster=cluster, **options)

    return client


def run(block: Block, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a block; a program's names are seen by the next one."""
    before = set(names)
    code = compile("\n" * (block.line - 1) + block.text, block.page, "exec")
    if block.module:
        module = ModuleType(block.module)
        monkeypatch.setitem(sys.modules, block.module, module)
        exec(code, module.__dict__)
        names |= {name: value for name, value in vars(module).items() if not name.startswith("__")}
        return
    exec(code, names)
    for name in names.keys() - before:
        if name.startswith("test_"):
            names[name]()


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page: str, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    for block in PROGRAMS:
        if block.page == page:
            run(block, names, monkeypatch)

    queues = {value.task_options["queue"] for value in names.values()
              if "queue" in getattr(value, "task_options", ())}
    with cluster.client() as client, skuld_py.using(client):
        ran = client.run_until_empty(*sorted(queues), spark=Spark())
    assert (bool(ran) == bool(queues) or page in WITHOUT_TASKS) and all(each.error is None for each in ran)


@pytest.mark.usefixtures("cluster")
def test_a_workflow_is_the_same_in_both_of_its_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    for block in PROGRAMS:
        if block.page == "workflows.md":
            run(block, names, monkeypatch)
    [text] = [block.text for block in written.blocks("toml") if block.page == "workflows.md"]

    assert names["census"].definition() == read(tomllib.loads(text))
    assert names["again"].definition().inputs == ("texts",)
    assert str(names["census"]).partition("\n\n")[0] in dict(written.pages())["workflows.md"]


def test_the_programs_are_many() -> None:
    assert set(PAGES) >= {"README.md", "clients.md", "workers.md"}
    assert len(PROGRAMS) >= 12


def test_a_program_that_fails_is_noticed(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from skuld_py import Client\nClient('h:1').enqeue('q', b'x')\n"

    with pytest.raises(AttributeError, match="enqeue"):
        run(Block("here", 1, "python", text), {}, monkeypatch)


SESSIONS = [(line.place, words[1:]) for line in written.lines() for words in line.commands
            if words[0] == "skuld" and words[1] in ASKING]


def test_the_lines_that_ask_nodes_are_answered(cluster: MemoryCluster) -> None:
    skuld = partial(CliRunner().invoke, main, prog_name="skuld")
    with cluster.client() as client:
        task_id = str(client.enqueue("reports", b"2026-11-20"))
        claim = client.claim_one("reports")
        assert claim is not None
        client.complete(claim)

    for place, words in SESSIONS:
        answer = skuld([task_id if len(word) == 32 else word for word in words])
        assert answer.exit_code == 0, f"{place}: {answer.output}"
    assert {words[0] for _, words in SESSIONS} == ASKING
