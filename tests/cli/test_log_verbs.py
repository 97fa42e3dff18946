"""``skuld cluster log``, ``members`` and ``ring`` by themselves: what they make of a log, without a ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.written import raws
from skuld_py.cli.main import main
from skuld_py.cluster.log.commands import Leave, SetRules
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import Parameters
from skuld_py.runtime.zookeeper.log_following import Verdict
from skuld_py.verbs.words import moment

AT_MS = 1_700_000_000_000


class Log:
    """A log that is read where ZooKeeper would be asked; following it ends in Ctrl-C."""

    def __init__(self) -> None:
        self.raws = raws()
        self.first = 0
        self.origin = (-1, "")
        self.pulses = ("h:1~a", "h:3~c")

    def follow(self, hosts: str, cluster: str, start: int | None = None, timeout_s: float = 10.0, *,
               is_endless: bool = True, times_ms: dict[int, int] | None = None) -> Iterator[tuple[int, bytes]]:
        if times_ms is not None:
            times_ms.update((position, AT_MS + position) for position in range(len(self.raws)))
        yield from ((position, raw) for position, raw in enumerate(self.raws)
                    if position >= max(self.first, start or 0))
        if is_endless:
            raise KeyboardInterrupt

    def collect(self, position: int, first: int) -> None:
        """The origin is as of ``position``, and what is before ``first`` is gone."""
        replica = Replica(replicas=1)
        for at in range(position + 1):
            replica = play(replica, at, self.raws[at]).replica
        self.origin, self.first = (position, replica.text()), first


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    following = "skuld_py.runtime.zookeeper.log_following."
    monkeypatch.setattr("skuld_py.runtime.zookeeper.clusters.read_parameters",
                        lambda hosts, cluster, timeout_s: Parameters(cluster, "id", replicas=1))
    monkeypatch.setattr(following + "follow", made.follow)
    monkeypatch.setattr(following + "read_origin", lambda *_: made.origin)
    monkeypatch.setattr(following + "read_pulses", lambda *_: made.pulses)
    return made


def skuld(*arguments: str) -> Result:
    named = ["cluster", "log", "c", *arguments[1:]] if arguments[0] == "log" else [*arguments, "--cluster", "c"]
    return CliRunner().invoke(main, named, prog_name="skuld")


def table(*arguments: str) -> list[list[str]]:
    """The lines of a log's table as position, writer, command, outcome and the rest."""
    answer = skuld("log", *arguments)
    assert answer.exit_code == 0, answer.output
    head, *lines = answer.output.splitlines()
    assert head.split() == ["POSITION", "TIME", "WRITER", "COMMAND", "OUTCOME", "WHAT"]
    rows = [line.split(maxsplit=5) for line in lines]
    assert all(f"{row[1]} {row[2]}" == moment(AT_MS + int(row[0]))[:19] for row in rows)
    return [[row[0], *row[3:]] for row in rows]


def documents(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in skuld("log", "--json", *arguments).output.splitlines()]


# -- log -----------------------------------------------------------------------------------------


def test_each_entry_is_told_with_its_writer_its_outcome_and_what_it_changed(log: Log) -> None:
    assert table() == [
        ["0", "h:1~a", "prepare-join", "applied     joined h:1~a"],
        ["1", "h:2~b", "prepare-join", "applied     observer h:1~a, joiner h:2~b"],
        ["2", "h:1~a", "notify-join", "applied     observer h:1~a, joiner h:2~b, watches h:1~a"],
        ["3", "h:2~b", "accept-join", "applied     observer h:1~a, joined h:2~b"],
        ["4", "h:1~a", "add-slot", "applied     slot s, state counts"],
        ["5", "operator~1", "forget-node", "! refused   node h:2 lives; stop it first"],
        ["6", "?", "?", "! failed    entry: is no JSON"],
        ["7", "h:1~a", "accept-join", "unchanged   h:1~a h:2~b"],
        ["8", "h:1~a", "leave", "applied     left h:2~b, watcher h:1~a, watches h:1~a"],
        ["9", "h:2~b", "prepare-join", "late        h:2~b"],
        ["10", "h:3~c", "prepare-join", "applied     observer h:1~a, joiner h:3~c"],
        ["11", "h:4~d", "prepare-join", "applied     told no h:4~d"]]


def test_the_newest_few_or_the_first_few_from_a_position(log: Log) -> None:
    assert [row[0] for row in table("-n", "3")] == ["9", "10", "11"]
    assert [row[0] for row in table("--from", "4", "-n", "2")] == ["4", "5"]
    assert [row[0] for row in table("--from", "10")] == ["10", "11"]
    assert skuld("log", "--from", "12").output == ""


def test_json_has_all_of_it(log: Log) -> None:
    refused, odd = documents("--from", "5", "-n", "2")

    assert refused == {"position": 5, "at_ms": AT_MS + 5, "writer": "operator~1", "seq": 0,
                       "command": "forget-node", "with": {"node": "h:2"}, "outcome": "refused",
                       "reason": "node h:2 lives; stop it first",
                       "changed": {}, "reactions": []}
    assert (odd["writer"], odd["seq"], odd["command"], odd["outcome"]) == (None, None, None, "failed")
    assert documents("--from", "1", "-n", "1")[0]["reactions"] == ["h:1~a: notify-join"]


def test_following_ends_by_an_interrupt_without_a_word(log: Log) -> None:
    for arguments, positions in (([], range(12)), (["-n", "2"], (10, 11)), (["--from", "9"], (9, 10, 11)),
                                 (["--from", "9", "-n", "1"], (9, 10, 11)), (["--from", "40"], ())):
        answer = skuld("log", "--json", "--follow", *arguments)

        assert answer.exit_code == 130
        assert [json.loads(line)["position"] for line in answer.stdout.splitlines()] == [*positions]
        assert "Traceback" not in answer.output


def test_what_is_older_than_the_origin_is_shown_unjudged(log: Log) -> None:
    log.collect(7, first=5)

    assert [row[:3] + row[3].split()[:1] for row in table()][:4] == [
        ["5", "operator~1", "forget-node", "collected"], ["6", "?", "?", "collected"],
        ["7", "h:1~a", "accept-join", "collected"], ["8", "h:1~a", "leave", "applied"]]
    assert table("--from", "9")[0][3].split()[0] == "late"


def test_a_log_that_is_collected_while_it_is_read_goes_on_from_its_origin(
        log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.collect(7, first=6)
    answers = iter([(-1, ""), log.origin])
    monkeypatch.setattr("skuld_py.runtime.zookeeper.log_following.read_origin", lambda *_: next(answers))

    rows = [row for row in table() if int(row[0]) <= 8]
    assert [row[3] for row in rows] == ["collected", "collected   h:1~a h:2~b",
                                        "applied     left h:2~b, watcher h:1~a, watches h:1~a"]


def test_a_command_with_an_error_in_it_is_seen_by_whoever_looks(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Leave, replica: Replica, position: int) -> Replica:
        raise KeyError(position)

    monkeypatch.setattr(Leave, "apply", fail)

    assert table("--from", "8", "-n", "2") == [["8", "h:1~a", "leave", "! failed    KeyError"],
                                               ["9", "h:2~b", "prepare-join", "unchanged   h:2~b"]]


def test_rules_that_are_not_known_are_said(log: Log) -> None:
    log.raws[3] = Entry("operator~1", 0, SetRules(9)).encode()
    answer = skuld("log")

    assert answer.exit_code == 1
    assert "entry 3 of the coordination log sets rules 9" in answer.stderr


# -- members and ring ----------------------------------------------------------------------------


def test_members_are_told_with_their_nodes_slots_and_who_is_on_the_way(log: Log) -> None:
    answer = skuld("members")

    assert answer.exit_code == 0
    assert "cluster c: 1 member at position 11 of its log" in answer.output
    rows = [" ".join(line.split()) for line in answer.output.splitlines() if line.startswith("h:")]
    assert rows == ["h:1~a h:1 h:1 in 0 1", "h:3~c h:3 h:3 joining (prepared by h:1~a) 0",
                    "h:4~d told no, tries again 11 0", "h:2 8 keeps its partitions"]
    assert "skuld cluster forget c NODE" in answer.output


def test_a_member_without_a_pulse_stands_out(log: Log) -> None:
    log.pulses = ()
    assert "! h:1~a has no pulse; who watches it will say so" in skuld("members").output

    made = json.loads(skuld("members", "--json").output)
    assert made["position"] == 11
    assert [(row["member"], row["state"], row["has_pulse"]) for row in made["members"]] == [
        ("h:1~a", "in", False), ("h:3~c", "joining (prepared by h:1~a)", False),
        ("h:4~d", "told no, tries again", False)]
    assert made["down"] == [{"node": "h:2", "since": 8, "is_leaving": False}]


def test_the_ring_is_one_walk_with_joiners_and_the_dead_marked(log: Log) -> None:
    del log.raws[8:]
    log.pulses = ("h:1~a",)

    assert skuld("ring").output.splitlines() == [
        "cluster c: 2 members in the ring at position 7 of its log, each watches the next", "",
        "  h:1~a", "  h:2~b  ! no pulse", "  and back to h:1~a"]
    assert json.loads(skuld("ring", "--json").output)["ring"][1] == {
        "member": "h:2~b", "watches": "h:1~a", "has_pulse": False, "joiner": None, "phase": None,
        "joiner_has_pulse": False}


def test_a_ring_of_one_and_of_none(log: Log) -> None:
    assert skuld("ring").output.splitlines() == [
        "cluster c has one member at position 11 of its log, which nobody watches", "",
        "  h:1~a", "    + prepared: h:3~c"]
    log.raws.clear()
    assert skuld("ring").output == "cluster c has no members yet; its log is empty\n"
    assert "nobody so far" in skuld("members").output


# -- forget --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "reason", "status", "said"), [
    (Outcome.APPLIED, "", 0, "node h:9 of cluster c is forgotten (entry 7 of its log)\n"),
    (Outcome.UNCHANGED, "", 1, "error: NODE: cluster c has no node h:9; it has: none [unknown_node]\n"),
    (Outcome.REFUSED, "node h:9 lives; stop it first", 1,
     "error: NODE: node h:9 lives; stop it first [not_forgotten]\n"),
    (Outcome.LATE, "", 1, "error: NODE: late [not_forgotten]\n"),
])
def test_a_verdict_is_told_with_the_node_and_the_remedy(
        log: Log, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, reason: str, status: int, said: str) -> None:
    monkeypatch.setattr("skuld_py.runtime.zookeeper.log_following.command",
                        lambda *_: Verdict(7, outcome, reason, Replica()))
    dropped: list[str] = []
    monkeypatch.setattr("skuld_py.runtime.zookeeper.rosters.drop_node",
                        lambda hosts, cluster, node, timeout_s: dropped.append(f"{cluster} {node}"))
    answer = CliRunner().invoke(main, ["cluster", "forget", "c", "h:9"], prog_name="skuld")

    assert (answer.exit_code, answer.output) == (status, said)
    assert dropped == ["c h:9"] * (outcome is Outcome.APPLIED)
