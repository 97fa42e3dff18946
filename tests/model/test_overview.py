"""Where nodes are more than copies: who is asked what is held of partitions, and what is not known by silence."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.model import messages as m
from skuld_py.model.overview import Canvass, Overview, untold_by
from skuld_py.model.service import Service, services_of

NAMES = ("a:1", "b:1", "c:1", "d:1", "e:1")
COHORTS = (("a:1", "b:1", "c:1"), ("b:1", "c:1", "d:1"), ("c:1", "d:1", "e:1"), ("d:1", "e:1", "a:1"))
BARRIER = m.HeldRow(1, "barrier", "", 9)


def seen_by(name: str, *held: m.HeldRow, session: str = "connected", live: str = "abcde",
            silent: str = "") -> m.Described:
    """What a node says, which keeps three partitions of four but for ``b`` and ``e``, that keep two."""
    nodes = tuple(m.NodeRow(each, each[0] in live, 1, 2, "agreed", is_silent=each[0] in silent) for each in NAMES)
    partitions = tuple(m.PartitionRow(number, 1, names[0], names, names) for number, names in enumerate(COHORTS))
    return m.Described(1, name, session, nodes, partitions, held=held)


def services(seen: Overview) -> list[Service]:
    return [*services_of(seen.described, seen.untold).values()]


def test_where_the_first_keeps_all_nobody_else_is_asked() -> None:
    first = seen_by("a:1", BARRIER)
    first = attrs.evolve(first, partitions=tuple(attrs.evolve(row, cohort=NAMES) for row in first.partitions))

    assert not untold_by(first) and not Canvass(first).wanted()
    assert Canvass(first).overview() == Overview(first)


def test_who_votes_in_most_that_are_untold_is_asked_and_what_he_tells_counts() -> None:
    canvass = Canvass(seen_by("a:1"))
    assert canvass.wanted() == "c:1"
    frozen = m.HeldRow(2, "frozen", "by ann", 0)
    canvass.hear("c:1", seen_by("c:1", BARRIER, frozen, m.HeldRow(0, "solo", "", 0)))

    assert not canvass.wanted(), "one was enough, and each is asked once"
    seen = canvass.overview()
    assert seen.described.held == (BARRIER, frozen), "of partition 0 the first has told, who votes there"
    assert (seen.silent, seen.untold) == ({}, frozenset())
    assert services(seen) == [Service.FULL, Service.ENQUEUE_ONLY, Service.FULL, Service.FULL]


def test_instead_of_one_that_is_silent_another_is_asked_and_the_silent_one_named() -> None:
    canvass = Canvass(seen_by("a:1"))
    canvass.miss("c:1", "did not answer (deadline)")
    assert canvass.wanted() == "d:1"
    canvass.hear("d:1", seen_by("d:1", BARRIER))

    assert canvass.overview().silent == {"c:1": "did not answer (deadline)"}
    assert services(canvass.overview())[1] is Service.ENQUEUE_ONLY


def test_of_what_nobody_tells_nothing_is_taken_for_well() -> None:
    canvass, asked = Canvass(seen_by("a:1")), list[str]()
    while name := canvass.wanted():
        asked.append(name)
        canvass.miss(name, "did not answer (deadline)")

    assert asked == ["c:1", "d:1", "b:1", "e:1"], "each once"
    seen = canvass.overview()
    assert seen.untold == {1, 2} and [*seen.silent] == asked
    assert services(seen) == [Service.FULL, Service.UNKNOWN, Service.UNKNOWN, Service.FULL]


def test_what_looks_bad_from_outside_is_bad_though_nobody_tells() -> None:
    canvass = Canvass(seen_by("a:1", live="ac"))
    assert canvass.wanted() == "c:1", "those that are down are not asked"
    canvass.miss("c:1", "did not answer (deadline)")

    assert not canvass.wanted()
    assert services(canvass.overview()) == [Service.FULL, *[Service.UNAVAILABLE] * 3]


def test_nodes_of_which_the_first_hears_nothing_are_asked_last() -> None:
    canvass = Canvass(seen_by("a:1", silent="cd"))

    assert canvass.wanted() == "b:1"


@pytest.mark.parametrize(("told", "why"), [
    (seen_by("e:1"), "is another node by now, e:1"),
    (seen_by("c:1", session="suspended"), "has no session with ZooKeeper (suspended)")])
def test_who_is_another_one_or_cannot_know_does_not_tell(told: m.Described, why: str) -> None:
    canvass = Canvass(seen_by("a:1"))
    canvass.hear("c:1", told)

    assert canvass.wanted() == "d:1" and canvass.overview().silent == {"c:1": why}


@pytest.mark.parametrize("cohort", [(), ("a:1", "b:1", "d:1")])
def test_who_does_not_know_that_it_votes_does_not_tell(cohort: tuple[str, ...]) -> None:
    told, canvass = seen_by("c:1"), Canvass(seen_by("a:1"))
    rows = [attrs.evolve(row, cohort=cohort) if row.partition == 1 else row for row in told.partitions]
    canvass.hear("c:1", attrs.evolve(told, partitions=tuple(rows)))

    assert canvass.overview().untold == {1} and canvass.wanted() == "b:1"
    assert canvass.overview().silent == {"c:1": "does not know that it votes in partition 1"}
    canvass.hear("b:1", seen_by("b:1", BARRIER))
    assert not canvass.overview().untold and canvass.overview().described.held == (BARRIER,)
    assert not canvass.overview().silent, "another has told, so nobody is missed"


def test_where_zookeeper_is_away_for_the_first_too_all_tell_what_they_know() -> None:
    canvass = Canvass(seen_by("a:1", session="suspended"))
    canvass.hear("c:1", seen_by("c:1", BARRIER, session="suspended"))

    assert not canvass.overview().untold and canvass.overview().described.held == (BARRIER,)


def test_voters_know_better_than_who_is_only_to_become_one() -> None:
    old = m.HeldRow(1, "frozen", "by ann", 0)
    first = seen_by("a:1", old)
    canvass = Canvass(first)
    assert canvass.overview().described.held == (old,), "as long as no voter has told"
    canvass.hear("c:1", seen_by("c:1", BARRIER))

    assert canvass.overview().described.held == (BARRIER,)
