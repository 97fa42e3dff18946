"""The lives of a node: their order, and that a place belongs to the newest of them."""

from __future__ import annotations

import attrs
import pytest

from cluster.test_membership import Log
from skuld_py.cluster.log.commands import JoinDirect, Joining, Leave, PrepareJoin
from skuld_py.cluster.log.commands.command import ID
from skuld_py.cluster.log.lives import Lives, is_newer, number_of
from skuld_py.cluster.log.replica import PLACES_BY_AGE, Failure, Place, Replica
from skuld_py.model.document import Member
from skuld_py.model.names import NAME_CHARS_MAX

N = Member("n", "127.0.0.1", 1, "boot")


def test_each_life_is_newer_than_all_before_whatever_its_tail() -> None:
    lives = Lives("n")
    ids = [lives.next(nonce) for nonce in (0xFFFFFFFF, 0, 7)]

    assert ids == ["n~00000001ffffffff", "n~0000000200000000", "n~0000000300000007"]
    assert is_newer(ids[2], ids[1]) and is_newer(ids[1], ids[0]) and not is_newer(ids[0], ids[0])


def test_the_next_process_goes_on_from_the_newest_life_that_is_known() -> None:
    first = Lives("n", "n~00000009aaaaaaaa").next(1)

    assert number_of(first) == 10 and is_newer(first, "n~00000009aaaaaaaa")


def test_an_id_of_an_earlier_release_has_no_number_and_is_older() -> None:
    assert number_of("n~ffffffff") == number_of("n") == number_of("") == 0
    assert is_newer(Lives("n", "n~ffffffff").next(0), "n~ffffffff") and is_newer("n~ffffffff", "")


def test_the_id_of_the_longest_name_is_an_id() -> None:
    assert ID.fullmatch(Lives("n" * NAME_CHARS_MAX).next(0xFFFFFFFF))


def with_two_lives(rules: int) -> Log:
    """Members a and b; life 2 of node n was let in by b, and then life 1 by a, which had been asked before."""
    log = Log(Replica(rules=rules))
    for name in "ab":
        log.join(name)
    log.write("b", JoinDirect("b", log.replica.ring.after("b"), (Joining("n~2", N),)))
    log.write("a", JoinDirect("a", log.replica.ring.after("a"), (Joining("n~1", N),)))
    assert {"n~1", "n~2"} < {*log.replica.members}
    return log


def test_a_former_life_that_comes_in_late_takes_no_place_and_its_leave_empties_none() -> None:
    log = with_two_lives(PLACES_BY_AGE)
    assert log.replica.nodes["n"] == Place("n~2", 4)
    log.write("a", Leave("n~1"))

    assert log.replica.nodes["n"].member == "n~2"


def test_by_older_rules_who_comes_last_has_the_place() -> None:
    log = with_two_lives(PLACES_BY_AGE - 1)
    assert log.replica.nodes["n"].member == "n~1"
    log.write("a", Leave("n~1"))

    assert log.replica.nodes["n"].member == ""


def test_of_two_lives_in_one_entry_the_newer_has_the_place() -> None:
    log = Log()
    log.join("a")
    log.write("a", JoinDirect("a", "a", (Joining("n~2", N), Joining("n~1", N))))

    assert log.replica.nodes["n"].member == "n~2"


def test_an_empty_place_is_anybodys() -> None:
    log = Log()
    log.join("a")
    log.write("a", JoinDirect("a", "a", (Joining("n~2", N),)), Leave("n~2"), PrepareJoin("a", N))
    log.write("a", JoinDirect("a", "a", (Joining("n~1", N),)))

    assert log.replica.nodes["n"].member == "n~1"


@pytest.mark.parametrize(("rules", "is_equal"), [(PLACES_BY_AGE, True), (PLACES_BY_AGE - 1, False)])
def test_the_words_of_a_failure_are_no_part_of_the_digest(rules: int, is_equal: bool) -> None:
    one = Replica(rules=rules, failed=(Failure(3, "is no JSON"),))
    other = attrs.evolve(one, failed=(Failure(3, "cannot be read"),))

    assert (one.digest() == other.digest()) is is_equal
    assert one.digest() != attrs.evolve(one, failed=(Failure(4, "is no JSON"),)).digest()
