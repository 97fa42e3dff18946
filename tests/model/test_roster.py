"""The roster: what it keeps, what it refuses, and that any bytes are one or are named."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Malformed, Refused
from skuld_py.model import roster as rosters
from skuld_py.model.roster import NODE_ROLE, ROLES, KeyRow, Roster, make_row

A, B, C = (letter * 40 for letter in "abc")
NODE = KeyRow(A, "h:1", (NODE_ROLE,), address="h:2")
SHOP = make_row(B, "shop", ("producer", "reader"), ("shop", "mail"), 5)


def test_what_is_encoded_is_decoded() -> None:
    whole = Roster().authorised(NODE).authorised(SHOP).revoking(A)
    for roster in (Roster(), Roster((NODE, SHOP)), whole):
        assert Roster.decode(roster.encode()) == roster
    assert whole.by_key == {B: SHOP} and whole.revoked == (A,)


def test_the_cluster_s_own_keys_stay_whatever_becomes_of_others() -> None:
    roster = attrs.evolve(Roster((NODE, SHOP)), cluster=(C,))
    assert Roster.decode(roster.encode()) == roster
    for changed in (roster.authorised(make_row("d" * 40, "x", ("reader",))), roster.authorised(SHOP),
                    roster.revoking(B)):
        assert changed.cluster == (C,)
    shown = roster.authorised(attrs.evolve(NODE, shows=C))
    assert Roster.decode(shown.encode()).node("h:1")[0].shows == C


def test_the_cluster_s_key_is_replaced_by_the_next_once_no_live_node_shows_it() -> None:
    old, new, other = C, "d" * 40, "e" * 40
    both = attrs.evolve(Roster((NODE,)), cluster=(old,)).succeeded(new, old)
    assert both.cluster == (new, old) and both.succeeded(new, old) == both, "it may be done again"
    assert Roster().succeeded(new, old).cluster == (new, old), "as a release before left it"
    for shown in (new, old):
        both.check_shown(shown)
    both.check_newest(new)
    for wrong in (lambda: both.succeeded(other, new), lambda: both.succeeded(other, old),
                  lambda: both.check_newest(old), lambda: both.check_shown(other)):
        with pytest.raises(Refused, match=r"skuld cluster rotate|newe"):
            wrong()
    for row in (NODE, attrs.evolve(NODE, shows=old)):
        with pytest.raises(Refused, match="h:1 still shows the key before; start it"):
            both.authorised(row).settled(new, ["h:1"])
        assert both.authorised(row).settled(new, []).cluster == (new,), "it is down, and will need the new one"
    with pytest.raises(Refused, match="h:9 still shows"):
        both.settled(new, ["h:9"])
    after = both.authorised(attrs.evolve(NODE, shows=new)).settled(new, ["h:1"])
    assert after.cluster == (new,) and after.settled(new, ["h:1"]) == after
    with pytest.raises(Refused, match="counts no more"):
        after.check_shown(old)
    with pytest.raises(Refused, match="old_cluster_key"):
        both.settled(old, [])


def test_a_key_that_is_authorised_again_has_its_new_row_in_its_old_place() -> None:
    roster = Roster((SHOP, NODE)).authorised(make_row(B, "shop", ("reader",)))
    assert [row.roles for row in roster.rows] == [("reader",), (NODE_ROLE,)]


def test_a_revoked_key_does_not_come_back_and_a_key_has_one_owner() -> None:
    with pytest.raises(Refused, match=r"'skuld keys make'.*revoked_key"):
        Roster((SHOP,)).revoking(B).authorised(SHOP)
    with pytest.raises(Refused, match=r"remove node\.key from its data directory.*revoked_key"):
        Roster((NODE,)).revoking(NODE.key).authorised(NODE)
    with pytest.raises(Refused, match="is that of shop"):
        Roster((SHOP,)).authorised(make_row(B, "other", ("reader",)))


def test_a_node_s_keys_are_those_of_its_name_and_no_client_s() -> None:
    false = KeyRow(C, "h:1", ("admin",))
    assert Roster((NODE, false)).node("h:1") == (NODE,)


def test_there_are_only_so_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rosters, "ROWS_MAX", 2)
    full = Roster((NODE, SHOP))
    assert full.authorised(NODE) == full
    with pytest.raises(Refused, match="knows 2 keys already"):
        full.authorised(make_row(C, "third", ("reader",)))
    assert Roster((), (C,)).revoking(A).revoking(B).revoked == (A, B), "the oldest is forgotten"


def test_a_list_of_keys_that_zookeeper_would_not_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """ZooKeeper cut the connection, and what became of the key was said to be uncertain."""
    monkeypatch.setattr(rosters, "CLIENTS_BYTES_MAX", 600)
    full = Roster((SHOP,))
    wide = make_row(C, "third", ("reader",), tuple(f"{'q' * 100}{each}" for each in range(5)))
    with pytest.raises(Refused, match=r"too many for ZooKeeper; revoke some .* \[too_many_keys\]"):
        full.authorised(wide)
    assert full.authorised(attrs.evolve(NODE, address="h" * 200)).node("h:1"), "room is left for nodes"
    over = Roster((SHOP, wide))
    smaller = over.authorised(attrs.evolve(wide, queues=wide.queues[:4]))
    assert len(smaller.encode()) > 600, "what makes it smaller is taken"
    monkeypatch.setattr(rosters, "BYTES_MAX", 700)
    with pytest.raises(Refused, match="too_many_keys"):
        over.authorised(NODE)


@pytest.mark.parametrize(("given", "words"), [
    (("short", "n", ("reader",)), "is no public key"), ((A, "n", ()), "role: none"),
    ((A, "n", (NODE_ROLE,)), "role: node is no role of a client"), ((A, "n", ("king",)), "role: king"),
    ((A, "a b", ("reader",)), "name: 'a b' is no name; use letters"),
    ((A, "n", ("reader",), ("/",)), "'/' does not begin a queue"),
    ((A, "n", ("reader",), ("q",) * 33), "name 32 at most")])
def test_what_is_no_row_is_named(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(Refused, match=words):
        make_row(*given)


PLAIN = json.loads(Roster((NODE, SHOP), (C,)).encode())
WRONG: dict[str, Any] = {
    "no object": [], "no rows": {"revoked": []}, "rows of another kind": {**PLAIN, "rows": {}},
    "a row that is none": {**PLAIN, "rows": [1]}, "a key twice": {**PLAIN, "rows": PLAIN["rows"] * 2},
    "a revoked key with a row": {**PLAIN, "revoked": [A]},
    "a node that is more": {**PLAIN, "rows": [{**PLAIN["rows"][0], "roles": ["node", "admin"]}]},
    "a key that is none": {**PLAIN, "rows": [{**PLAIN["rows"][0], "key": "a"}]},
    "a time before all": {**PLAIN, "rows": [{**PLAIN["rows"][0], "until_ms": -1}]},
    "an address of another kind": {**PLAIN, "rows": [{**PLAIN["rows"][0], "address": 5}]},
    "roles of another kind": {**PLAIN, "rows": [{**PLAIN["rows"][0], "roles": "admin"}]}}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_roster_is_named_by_field(name: str) -> None:
    with pytest.raises(Malformed, match="roster"):
        Roster.decode(json.dumps(WRONG[name]).encode())


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["rows", "revoked", "key", "name", "roles"]), inner, max_size=4)).map(
            lambda plain: json.dumps(plain).encode()))
def test_any_bytes_are_a_roster_or_malformed(raw: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(Roster.decode(raw), Roster)


def test_roles_are_those_that_the_manual_lists() -> None:
    assert ROLES == ("node", "worker", "producer", "reader", "archiver", "admin")
