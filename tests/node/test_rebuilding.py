"""What ZooKeeper knew is made anew from data directories: of one cluster, enough of them, with rising epochs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from node.machines import Machines
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.config import RULES
from skuld_py.errors import Refused
from skuld_py.model.document import Member
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.life.identity import Identity, Verdict, judge
from skuld_py.node.life.keepsake import Keepsake, load_keepsake
from skuld_py.node.life.rebuilding import EPOCHS_LOST, Memory, Remains, read_remains, rebuilt
from skuld_py.partition.leadership.standing import Standing
from skuld_py.runtime.zookeeper.restoring import shown

FIXED = {"partitions": 1, "replicas": 3, "skew_ms": 500, "rules": RULES, "cluster": "c"}
COHORT = ("h:1", "h:2", "h:3")
KEY = "ab" * 32


def remains(node: str, promised: int = 4, standing: Standing | None = None, **changes: Any) -> Remains:
    memory = Memory(promised, standing or Standing(4, 1, COHORT), False)
    made = Remains(f"/{node}", "id", node, FIXED, Identity(f"data of {node}", 2), (memory,))
    return attrs.evolve(made, **changes)


def of_all(**changes: Any) -> list[Remains]:
    return [remains(node, **changes) for node in COHORT]


def test_documents_are_above_all_that_was_promised_and_keep_the_voters() -> None:
    made = rebuilt("c", [remains("h:1", 9), remains("h:2", 4, Standing(3, 1, ("h:1", "h:2")))], KEY)

    document = made.documents[0]
    assert (document.epoch, document.era, document.spent) == (9, 9, 9 + EPOCHS_LOST)
    assert [(seat.node, seat.incarnation) for seat in document.seats] == [
        ("h:1", "data of h:1"), ("h:2", "data of h:2"), ("h:3", "")]
    assert (document.leader, document.no_grant_before_ms) == ("", 0)
    entry = made.registrations["h:2"]
    assert (entry.host, entry.port, entry.incarnation, entry.starts) == ("h", 2, "data of h:2", 2)
    assert (made.parameters.cluster_id, made.parameters.claim_key, made.parameters.skew_ms) == ("id", KEY, 500)


def test_where_a_candidacy_is_open_its_voters_count_and_grants_wait_for_the_last_claim() -> None:
    is_open = Standing(4, 1, COHORT, ((5, ("h:3", "h:4", "h:5")),))
    first = remains("h:1", standing=is_open, memories=(Memory(5, is_open, False, 70_000),))
    with pytest.raises(Refused, match="1 more of h:4, h:5"):
        rebuilt("c", [first, remains("h:3")], KEY)
    document = rebuilt("c", [first, remains("h:3"), remains("h:4")], KEY).documents[0]
    assert (document.cohort, document.no_grant_before_ms, document.horizon_ms) == (COHORT, 70_500, 70_000)
    over = Standing(6, 1, COHORT, ())
    assert rebuilt("c", [first, remains("h:3", standing=over)], KEY).documents[0].no_grant_before_ms == 0


def test_the_horizon_is_no_nearer_than_the_end_of_any_claim() -> None:
    settled = Standing(4, 1, COHORT)
    given = [remains(node, memories=(Memory(4, settled, False, lapse_ms),))
             for node, lapse_ms in zip(COHORT, (70_000, 0, 90_000), strict=True)]

    document = rebuilt("c", given, KEY).documents[0]
    assert (document.horizon_ms, document.no_grant_before_ms) == (90_000, 0)


def test_a_barrier_stays_whichever_directory_remembers_it() -> None:
    settled = Standing(4, 1, COHORT)
    given = [remains(node, memories=(Memory(4, settled, False, 70_000, barrier_ms=barrier_ms),))
             for node, barrier_ms in zip(COHORT, (0, 95_000, 80_000), strict=True)]

    document = rebuilt("c", given, KEY).documents[0]
    assert (document.no_grant_before_ms, document.horizon_ms) == (95_000, 94_500)
    is_open = Standing(4, 1, COHORT, ((5, COHORT),))
    later = attrs.evolve(given[0], memories=(Memory(5, is_open, False, 96_000),))
    document = rebuilt("c", [later, *given[1:]], KEY).documents[0]
    assert (document.no_grant_before_ms, document.horizon_ms) == (96_500, 96_000)


def test_a_barrier_that_is_further_away_than_a_horizon_is_named() -> None:
    def told(barrier_ms: int, latest_ms: int = 95_000) -> tuple[str, ...]:
        memory = Memory(4, Standing(4, 1, COHORT), False, barrier_ms=barrier_ms)
        made = rebuilt("c", of_all(memories=(memory,)), KEY, moment=lambda ms: f"at {ms}", latest_ms=latest_ms)
        return made.warnings[1:]  # the first says that no directory had kept the log

    (words,) = told(95_501)
    assert "nothing is granted in partitions 0 before at 95501" in words and "no_grant_before_ms" in words
    assert told(95_500) == told(0) == told(95_501, latest_ms=0) == ()


def test_a_voter_whose_directory_is_not_given_has_lost_its_memory_whatever_it_starts_with() -> None:
    made = rebuilt("c", [remains("h:1"), remains("h:2")], KEY)

    for stored in (None, Identity("data of h:3", 2)):
        assert judge(stored, made.registrations["h:3"]) is Verdict.WIPED
    assert "h:3" not in made.origin.nodes and "h:3" in made.registrations
    assert shown(made)["nodes"] == ["h:1", "h:2"]


def test_a_partition_that_never_had_a_leader_has_no_document() -> None:
    assert not rebuilt("c", of_all(promised=1, standing=Standing()), KEY).documents


@pytest.mark.parametrize(("given", "why"), [
    ([remains("h:1")], "give those of 1 more of h:2, h:3"),
    ([remains("h:1"), remains("h:2", memories=(Memory(4, Standing(4, 1, COHORT), True),))], "1 more of h:2, h:3"),
    ([remains("h:1"), remains("h:2", cluster_id="other")], "of cluster other, and /h:1 of id"),
    ([remains("h:1"), remains("h:1", place="/copy")], "/copy and /h:1 are both of node h:1"),
    ([remains("h:1"), remains("h:2", fixed={**FIXED, "skew_ms": 1})], "do not agree on the cluster's skew_ms"),
    ([remains("h:1", fixed={**FIXED, "cluster": "d"})], "the cluster named d"),
    ([remains("h:1", fixed={"partitions": 1})], "is not whole"),
    ([remains("h:1", fixed={**FIXED, "skew_ms": "x"})], "is not whole")])
def test_directories_that_do_not_fit_are_refused_by_name(given: list[Remains], why: str) -> None:
    with pytest.raises(Refused, match=why):
        rebuilt("c", given, KEY)


def test_the_log_goes_on_with_the_nodes_that_were_placed_and_without_the_lives_that_were_in_it() -> None:
    life = {"h:1~1": Member("h:1", "h", 1, "")}
    replica = Replica(version=7, members=life, nodes={"h:1": Place("h:1~1", 3), "h:9": Place(is_leaving=True)})
    made = rebuilt("c", [*of_all()[:2], remains("h:3", replica=replica),
                         remains("h:4", replica=attrs.evolve(replica, version=5, nodes={}))], KEY)

    assert made.origin.version == 7 and not made.origin.members and made.origin.left == {"h:1~1": 7}
    assert made.origin.nodes["h:1"] == Place("", 3) and made.origin.nodes["h:9"].is_leaving
    assert set(made.origin.nodes) == {*COHORT, "h:4", "h:9"}
    assert made.warnings == ("not given: h:9; started again they fill from the others",)
    (warning,) = rebuilt("c", of_all(), KEY).warnings
    assert "had kept the coordination log" in warning


@pytest.mark.parametrize(("voters", "copies"), [(5, 5), (3, 3), (1, 3)])
def test_without_a_kept_log_as_many_copies_stay_as_there_are_voters_and_no_fewer_than_at_creation(
        voters: int, copies: int) -> None:
    """The number may have been changed by an entry, which is in no directory."""
    cohort = tuple(f"h:{number}" for number in range(1, voters + 1))
    given = [remains(node, standing=Standing(4, 1, cohort)) for node in cohort]
    made = rebuilt("c", given, KEY)

    assert (made.origin.replicas, made.parameters.replicas) == (copies, 3), "directories know the one of creation"
    (warning,) = made.warnings
    assert f"keep {copies} copies of each task" in warning and "'skuld cluster replicas c NUMBER'" in warning
    kept = Replica(version=7, replicas=voters, nodes={node: Place() for node in cohort})
    told = rebuilt("c", [attrs.evolve(given[0], replica=kept), *given[1:]], KEY)
    assert told.origin.replicas == voters and not told.warnings


def test_the_log_is_kept_when_it_has_changed_and_not_at_every_turn() -> None:
    store, replica = MemoryStore(), Replica(version=3)
    keepsake = Keepsake(store)
    keepsake.keep(1_000, replica)
    assert load_keepsake(store) == replica
    keepsake.keep(1_500, attrs.evolve(replica, version=4))
    assert load_keepsake(store) == replica
    keepsake.keep(2_000, attrs.evolve(replica, version=4))
    assert load_keepsake(store) == attrs.evolve(replica, version=4)
    store.put_many("meta", [(b"coordination", b"{}!")])
    assert load_keepsake(store) is None


def test_what_nodes_keep_is_read_back() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    name = machines.names[0]
    store = machines.stores[name]
    with pytest.raises(Refused, match="leave it out"):
        read_remains(store, "/d")
    store.put_many("meta", [(b"cluster", b"id"), (b"node", name.encode()), (b"identity", bytes(7) + b"\x01data"),
                            (b"parameters", b'{"partitions":2}')])
    found = read_remains(store, "/d")
    assert (found.node, found.identity, len(found.memories)) == (name, Identity("data", 1), 2)
    assert found.memories[0].standing.cohort == machines.documents[0][1].cohort
    assert found.memories[0].promised == machines.documents[0][1].epoch
    store.put_many("meta", [(b"parameters", b"[]")])
    with pytest.raises(Refused, match="cannot be read"):
        read_remains(store, "/d")
