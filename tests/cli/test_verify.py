"""``skuld verify`` in a dozen states of a cluster: a line, and an exit status that monitoring knows."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.cli.situation import Situation
from skuld_py.model import messages as m

OWNERS = ("a:1", "b:1", "c:1")
GREETED = m.Greeted(1, "a:1", "prod", 2, 3, 2_000, 0, 1 << 20, ())
OK, WARNING, CRITICAL, UNKNOWN = range(4)


def seen(live: str = "abc", leader: str = "a:1", *, clock: str = "agreed", session: str = "connected",
         doubt: str = "", **more: Any) -> Situation:
    nodes = tuple(m.NodeRow(name, name[0] in live, 0, 2, clock if name == leader else "agreed") for name in OWNERS)
    partitions = (m.PartitionRow(0, 1, "b:1", OWNERS, OWNERS), m.PartitionRow(1, 1, leader, OWNERS, OWNERS))
    return Situation(GREETED, m.Described(2, "a:1", session, nodes, partitions, **more), (), doubt)


def unplaced() -> Situation:
    return Situation(GREETED, m.Described(2, "a:1", "connected", (m.NodeRow("a:1", True, 0, 0),), ()))


def released(*releases: str) -> Situation:
    rows = tuple(attrs.evolve(row, release=release, rules=1) for row, release in zip(
        seen().described.nodes, releases, strict=True))
    return attrs.evolve(seen(), described=attrs.evolve(seen().described, nodes=rows))


STATES: dict[str, tuple[Situation, int, str, str]] = {
    "well": (seen(), OK, "full", "2 of 2 partitions full"),
    "a node down": (seen("ab"), WARNING, "full", "c:1"),
    "no leader": (seen(leader=""), CRITICAL, "enqueue-only", "1 of 2 partitions enqueue-only"),
    "no majority": (seen("b", ""), CRITICAL, "unavailable", "2 of 2 partitions unavailable"),
    "a leader's clock": (seen(clock="outside"), CRITICAL, "enqueue-only", "clock"),
    "no session": (seen(session="suspended"), WARNING, "full", "no session"),
    "a paused queue": (seen(paused=("mails",)), WARNING, "full", "queue mails is paused"),
    "a frozen partition": (seen(held=(m.HeldRow(1, "frozen", "by ann: disks", 0),)), WARNING, "full", "ann"),
    "a promotion that waits": (seen(held=(m.HeldRow(1, "promotion", "b:1 leads", 0),)), WARNING, "full", "b:1"),
    "a starved workflow": (seen(starved=(m.StarvedRow("census", "no slot"),), starved_count=1), WARNING, "full",
                           "census"),
    "too few nodes": (unplaced(), CRITICAL, "unavailable", "2 more nodes"),
    "queues uncounted": (seen(doubt="no majority"), WARNING, "full", "could not be counted"),
    "two releases": (released("1", "1", "2"), WARNING, "full", "different releases"),
}


def run(*options: str) -> Result:
    return CliRunner().invoke(main, ["verify", *options])


@pytest.mark.parametrize("state", STATES)
def test_a_state_has_a_line_and_an_exit_status(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    situation, status, service, words = STATES[state]
    monkeypatch.setattr("skuld_py.cli.situation.ask", lambda *_: situation)
    told, document = run(), run("--json")

    level = ("OK", "WARNING", "CRITICAL", "UNKNOWN")[status]
    assert (told.exit_code, document.exit_code) == (status, status)
    assert told.stdout.startswith(f"{level}: cluster prod: ") and words in told.stdout
    assert told.stdout.count("\n") == 1 and not told.stderr
    facts = json.loads(document.stdout)
    assert (facts["level"], facts["service"]) == (level.lower(), service)
    assert sum(facts["partitions"].values()) == len(situation.described.partitions)


def test_a_cluster_of_which_no_node_answers_is_unknown() -> None:
    told = run("--nodes", "127.0.0.1:1", "--timeout", "300ms")

    assert told.exit_code == UNKNOWN and told.stdout.startswith("UNKNOWN: no node answers: ")
    assert json.loads(run("--nodes", "127.0.0.1:1", "--timeout", "300ms", "--json").stdout)["level"] == "unknown"
