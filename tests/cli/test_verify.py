"""``skuld verify`` in a dozen states of a cluster: a line, and an exit status that monitoring knows."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.cli.situation import Situation, concerns
from skuld_py.model import messages as m
from skuld_py.verbs.attention import HELD, KINDS

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


def held(what: str, words: str = "by ann: disks", until_ms: int = 0) -> Situation:
    return seen(held=(m.HeldRow(1, what, words, until_ms),))


def voting(wanted: int, *cohort: str) -> Situation:
    """So many copies are wanted, and partition 1 has these voters."""
    rows = seen().described.partitions
    rows = (attrs.evolve(rows[0], cohort=OWNERS[:wanted]), attrs.evolve(rows[1], cohort=cohort))
    return attrs.evolve(seen(), greeted=attrs.evolve(GREETED, replicas=wanted),
                        described=attrs.evolve(seen().described, partitions=rows))


def clocks(*verdicts: str) -> Situation:
    rows = tuple(attrs.evolve(row, clock=verdict) for row, verdict in zip(
        seen().described.nodes, verdicts, strict=True))
    return attrs.evolve(seen(), described=attrs.evolve(seen().described, nodes=rows))


def leaving(votes: bool) -> Situation:
    """The third node is taken out, and owns nothing any more; perhaps it votes still."""
    described = seen().described
    *others, last = described.nodes
    rows = (*others, attrs.evolve(last, owns=0, is_leaving=True))
    less = tuple(attrs.evolve(row, owners=OWNERS[:2], cohort=OWNERS if votes else OWNERS[:2])
                 for row in described.partitions)
    return attrs.evolve(seen(), greeted=attrs.evolve(GREETED, replicas=3 if votes else 2),
                        described=attrs.evolve(described, nodes=rows, partitions=less))


def unheard() -> Situation:
    first, *rest = seen().described.nodes
    return attrs.evolve(seen(), described=attrs.evolve(
        seen().described, nodes=(first, *(attrs.evolve(row, is_silent=True) for row in rest))))


def asked(*untold: int, **silent: str) -> Situation:
    """Others were asked, who keep partitions that the first does not."""
    return attrs.evolve(seen(), silent={f"{name}:1": why for name, why in silent.items()},
                        untold=frozenset(untold))


LATER_MS = 4_000_000_000_000
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
    "clocks at odds": (clocks("disagreed", "disagreed", "disagreed"), CRITICAL, "enqueue-only",
                       "no majority of the clocks agrees"),
    "a node that leaves": (leaving(True), OK, "full", "votes in 2, hands off 0 partitions; do not stop it yet"),
    "a node that may be stopped": (leaving(False), OK, "full", "c:1 is taken out and has nothing left: stop it,"
                                   " then 'skuld cluster forget prod c:1'"),
    "nodes unheard": (unheard(), WARNING, "full", "hears nothing of b:1, c:1"),
    "one that does not tell, and others do": (asked(d="did not answer (deadline)"), WARNING, "full",
                                              "node d:1 did not answer (deadline): others told"),
    "none that tells": (asked(1, d="did not answer (deadline)"), UNKNOWN, "unknown",
                        "of partition 1 is not known, nor whether it grants claims: node d:1 did not answer"),
    "none that could tell": (asked(0, 1), UNKNOWN, "unknown", "2 of 2 partitions unknown; what is held of 2"
                             " partitions (0, 1) is not known, nor whether they grant claims: no node that votes"),
    "none that tells, and one that grants nothing": (attrs.evolve(
        asked(0, d="did not answer (deadline)"), described=held("barrier", "", LATER_MS).described), CRITICAL,
        "enqueue-only", "of partition 0 is not known"),
    "one copy, as was chosen": (voting(1, "a:1"), OK, "full", "each task has one copy"),
    "one copy, and voters that go": (voting(1, *OWNERS), WARNING, "full", "more voters than the 1 copy"),
    "too few voters": (voting(3, "a:1", "b:1"), WARNING, "full", "fewer voters than the 3 copies"),
    "data on its way": (seen(moves=(m.MoveRow(1, "c:1", "suspect", 7, False, "wiped"),)), WARNING, "full",
                        "node c:1 fills 1 partition again from the others"),
    "collection that waits": (seen("ab", collections=(m.CollectionRow("a:1", 3, 9, ("c:1",)),)), WARNING, "full",
                              "ended tasks are not deleted while 1 node is away: c:1"),
    "an archive that is late": (seen(collections=(m.CollectionRow("a:1", 3, 9, (), 5, 1),)), WARNING, "full",
                                "5 ended tasks wait on the nodes for an archive"),
    "claims without proofs": (seen(is_unproven=True), WARNING, "full", "claims count without a proof"),
    "a node in quarantine": (held("quarantine", "c:1, by ann"), WARNING, "full",
                             "not to trust a node: c:1, by ann"),
    "a solo partition": (held("solo", ""), WARNING, "full", "no other node gets a vote"),
    "a leader not compared": (held("floor", "c:1"), WARNING, "full", "was not compared yet"),
    "a wish that makes no sense": (held("malformed", "freeze"), WARNING, "full", "makes no sense: freeze"),
    "led by nobody": (attrs.evolve(held("unled"), described=attrs.evolve(
        held("unled").described, partitions=seen(leader="").described.partitions)), CRITICAL, "enqueue-only",
        "led by nobody, and takes tasks"),
    "who remains is to elect": (attrs.evolve(held("force", "a:1; by ann"), described=attrs.evolve(
        held("force", "a:1; by ann").described, partitions=seen(leader="").described.partitions)), CRITICAL,
        "enqueue-only", "waiting for those who are said to remain"),
    "voters given up, nothing granted yet": (held("loss", until_ms=LATER_MS), CRITICAL, "enqueue-only",
                                             "nothing is granted until 2096-10-02"),
    "voters given up": (held("loss"), WARNING, "full", "without voters that were lost"),
    "back on old copies": (held("barrier", "", LATER_MS), CRITICAL, "enqueue-only",
                           "granting nothing until 2096-10-02"),
    "a horizon that stays": (held("horizon", "", LATER_MS), WARNING, "full", "claims may last until 2096-10-02"),
    "a horizon that is over": (held("horizon", ""), CRITICAL, "enqueue-only", "led, and grants nothing"),
}


def run(*options: str) -> Result:
    return CliRunner().invoke(main, ["verify", *options])


def test_there_is_a_state_of_every_kind_and_of_all_that_may_be_held() -> None:
    kinds = {concern.kind for situation, *_ in STATES.values() for concern in concerns(situation)}
    assert kinds == {*KINDS}
    assert {row.what for situation, *_ in STATES.values() for row in situation.described.held} == {*HELD}


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
