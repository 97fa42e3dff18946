"""What a partition does for its clients, by who lives, leads, and has the right time."""

from __future__ import annotations

import pytest

from skuld_py.model import messages as m
from skuld_py.model.service import Service, service_of, services_of, tally, worst

OWNERS = ("a:1", "b:1", "c:1")


def nodes(live: str, clock: str = "agreed") -> tuple[m.NodeRow, ...]:
    return tuple(m.NodeRow(name, name[0] in live, 0, 1, clock) for name in OWNERS)


@pytest.mark.parametrize(("live", "leader", "clock", "service"), [
    ("abc", "a:1", "agreed", "full"), ("ab", "a:1", "agreed", "full"), ("ab", "a:1", "unheard", "full"),
    ("abc", "", "agreed", "enqueue-only"), ("bc", "a:1", "agreed", "enqueue-only"),
    ("abc", "d:1", "agreed", "enqueue-only"), ("abc", "a:1", "outside", "enqueue-only"),
    ("abc", "a:1", "far", "enqueue-only"), ("abc", "a:1", "disagreed", "enqueue-only"),
    ("a", "a:1", "agreed", "unavailable"),
    ("", "", "agreed", "unavailable")])
def test_a_partition_stores_by_a_majority_of_its_owners_and_grants_by_a_leader_that_may(
        live: str, leader: str, clock: str, service: str) -> None:
    known = {node.name: node for node in nodes(live, clock)}
    assert service_of(m.PartitionRow(0, 1, leader, OWNERS, OWNERS), known) == service


def test_a_cluster_does_what_its_worst_partition_does() -> None:
    rows = (m.PartitionRow(0, 1, "a:1", OWNERS, OWNERS), m.PartitionRow(1, 1, "", OWNERS, OWNERS))
    services = services_of(m.Described(1, "a:1", "connected", nodes("abc"), rows))

    assert services == {0: Service.FULL, 1: Service.ENQUEUE_ONLY} and worst(services) is Service.ENQUEUE_ONLY
    assert worst({}) is Service.UNAVAILABLE


@pytest.mark.parametrize(("what", "until_ms", "service"), [
    ("loss", 9, "enqueue-only"), ("loss", 0, "full"), ("barrier", 9, "enqueue-only"), ("frozen", 9, "full"),
    ("horizon", 9, "full"), ("horizon", 0, "enqueue-only")])
def test_a_leader_that_may_grant_nothing_yet_grants_nothing(what: str, until_ms: int, service: str) -> None:
    rows = tuple(m.PartitionRow(number, 1, "a:1", OWNERS, OWNERS) for number in (0, 1))
    held = (m.HeldRow(1, what, "", until_ms),)
    services = services_of(m.Described(1, "a:1", "connected", nodes("abc"), rows, held=held))
    assert (services[0], services[1]) == (Service.FULL, service)


def test_who_fills_again_stores_nothing_and_records_no_grant() -> None:
    """One of three was wiped, and another one is down: nothing is stored, and no grant is recorded by two."""
    row = m.PartitionRow(1, 1, "a:1", OWNERS, OWNERS)

    def of(live: str, *moves: m.MoveRow) -> Service:
        return services_of(m.Described(1, "a:1", "connected", nodes(live), (row,), moves))[1]
    assert of("ab", m.MoveRow(1, "b:1", "suspect", 0, False, "wiped")) is Service.UNAVAILABLE
    assert of("ab", m.MoveRow(1, "b:1", "suspect", 0, True, "wiped")) is Service.FULL
    assert of("ab", m.MoveRow(0, "b:1", "suspect", 0, False, "wiped")) is Service.FULL
    assert of("ab", m.MoveRow(1, "b:1", "learner", 0, False, "")) is Service.FULL
    assert of("abc", m.MoveRow(1, "b:1", "suspect", 0, False, "wiped")) is Service.FULL


@pytest.mark.parametrize(("live", "owners", "cohort", "service"), [
    ("abc", "abc", "ade", "unavailable"), ("abcde", "abc", "ade", "full"), ("a", "abc", "a", "unavailable"),
    ("ab", "abc", "a", "full"), ("a", "a", "abc", "unavailable"), ("ab", "a", "abc", "full"),
    ("ab", "abc", "", "full")])
def test_voters_count_and_copies(live: str, owners: str, cohort: str, service: str) -> None:
    """Owners have no vote before they have filled; and the voters may be fewer than the copies that are kept."""
    known = {f"{name}:1": m.NodeRow(f"{name}:1", name in live, 0, 1, "agreed") for name in "abcde"}
    row = m.PartitionRow(0, 1, "a:1", tuple(f"{name}:1" for name in owners),
                         tuple(f"{name}:1" for name in cohort))
    assert service_of(row, known) == service


def test_how_many_partitions_do_what() -> None:
    services = {0: Service.FULL, 1: Service.ENQUEUE_ONLY}
    assert tally(services) == {Service.FULL: 1, Service.UNKNOWN: 0, Service.ENQUEUE_ONLY: 1,
                               Service.UNAVAILABLE: 0}


def test_a_partition_of_which_nobody_told_is_worse_than_one_that_is_well_and_better_than_one_that_is_not() -> None:
    rows = tuple(m.PartitionRow(number, 1, leader, OWNERS, OWNERS)
                 for number, leader in enumerate(("a:1", "a:1", "")))
    described = m.Described(1, "a:1", "connected", nodes("abc"), rows)

    services = services_of(described, untold={1, 2})
    assert [*services.values()] == [Service.FULL, Service.UNKNOWN, Service.ENQUEUE_ONLY]
    assert worst(services) is Service.ENQUEUE_ONLY
    assert worst({0: Service.FULL, 1: Service.UNKNOWN}) is Service.UNKNOWN
