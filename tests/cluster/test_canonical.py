"""A value has one text and comes back from it; other texts are ``Malformed``, by field."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.cluster.log.canonical import from_text, to_text
from skuld_py.cluster.log.replica import Joins, Replica, Slot
from skuld_py.errors import Malformed


def test_the_order_of_a_mapping_is_part_of_the_value() -> None:
    one, other = Replica(left={"b": 1, "a": 2}), Replica(left={"a": 2, "b": 1})

    assert one.digest() != other.digest()
    assert list(from_text(Replica, one.text()).left) == ["b", "a"]


def test_the_text_is_the_same_for_ever() -> None:
    assert to_text(Slot("a~1", ("ä", "x"))) == '{"member":"a~1","tags":["ä","x"]}'
    assert Replica(rules=3).text() == (
        '{"aborted":[],"collected":[],"failed":[],"joiners":[],"joins":{"accepted":[],"prepared":[]},"left":[],'
        '"members":[],"nodes":[],"parked":[],"replicas":3,"ring":{"pairs":[]},"rules":3,"slots":[],"version":-1,'
        '"writers":[]}')


def test_what_is_derived_is_no_part_of_the_text_and_comes_back() -> None:
    joins = Joins({"a": "d"}, {"b": "e"})

    assert "observers" not in to_text(joins)
    assert from_text(Joins, to_text(joins)).observers == {"d": "a", "e": "b"}


@pytest.mark.parametrize(("text", "problem"), [
    ("", "Replica: is no JSON"),
    ("[" * 100_000, "Replica: is no JSON"),
    ("[]", "Replica: is list, not an object"),
    ('{"version":"1"}', "Replica.version: is str, not int"),
    ('{"version":true}', "Replica.version: is bool, not int"),
    ('{"versions":1}', "Replica.versions: is not known to this version"),
    ('{"left":{"a":1}}', "Replica.left: is dict, not a list"),
    ('{"left":[["a"]]}', "Replica.left: holds something that is no pair"),
    ('{"left":[["a","b"]]}', "Replica.left.a: is str, not int"),
    ('{"left":[[1,1]]}', "Replica.left: is int, not str"),
    ('{"failed":[{"position":1}]}', "Replica.failed[0].reason: is missing"),
    ('{"left":[["\\udfff",1]]}', "Replica.left: has half a character"),
])
def test_what_is_no_text_of_it_is_told_by_field(text: str, problem: str) -> None:
    with pytest.raises(Malformed) as raised:
        from_text(Replica, text)

    assert raised.value.message == problem


def test_a_missing_field_that_has_a_default_is_that() -> None:
    assert from_text(Replica, '{"version":4}') == attrs.evolve(Replica(), version=4)
