"""The partition document, and a node's entry: any bytes are one, or ``Malformed`` with the field."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Malformed
from skuld_py.model.document import Document, seats_of
from skuld_py.model.registration import Registration

PLAIN = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(),
                     lambda inner: st.lists(inner, max_size=3)
                     | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                     max_leaves=5)
FIELDS = [*json.loads(Document().encode())]
FREEZE = {"id": "", "by": "me", "reason": "", "at_ms": 0, "until_ms": 0}


@given(st.dictionaries(st.sampled_from(FIELDS), PLAIN) | PLAIN)
def test_any_value_is_a_document_or_malformed(value: object) -> None:
    for of in (Document, Registration):
        with suppress(Malformed):
            of.decode(json.dumps(value).encode())


@pytest.mark.parametrize("raw", [
    b'{"floor": []}', b'{"previous": ""}', b'{"freeze": []}', b"{}", b'{"seats": [[]]}', b'{"seats": {}}',
    b'{"quarantine": ""}', b'{"learners": "abc"}', b"[]", b"[[1, 2]]", b"[" * 100_000,
    b'{"floor":' * 100_000, b"", b"\xff"])
def test_what_an_operator_may_have_written_by_hand_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        Document.decode(raw)


@pytest.mark.parametrize(("field", "value"), [
    ("freeze", []), ("freeze", "yes"), ("freeze", {"whom": 1}), ("promote", 7), ("promote", {"id": None}),
    ("mode", "single"), ("mode", None), ("freeze", {**FREEZE, "by": "\ud800"}),
    ("freeze", {**FREEZE, "until_ms": 253_402_300_800_000}), ("freeze", {**FREEZE, "reason": "ü" * 501}),
    ("promote", {"id": "", "kind": "lead", "target": "n2", "epoch": 3, "expires_ms": 1 << 63, "by": ""}),
    ("force", {"id": "", "epoch": 3, "remaining": ["n\udfff"], "by": "", "reason": "", "at_ms": 0}),
    ("force", {"id": "", "epoch": 3, "remaining": ["n3", "n3"], "by": "", "reason": "", "at_ms": 0}),
    ("barred", [{"id": "", "node": "n2", "by": "", "reason": "\ud83d", "at_ms": 0}])])
def test_what_operators_wish_stops_nothing_and_is_kept_as_it_was(field: str, value: object) -> None:
    raw = {**json.loads(Document(epoch=3).encode()), field: value}
    document = Document.decode(json.dumps(raw).encode())

    assert document.malformed == {field: value}
    assert getattr(document, field) == getattr(Document(), field)
    assert json.loads(document.encode()) == raw


def test_a_document_comes_back_as_it_was() -> None:
    document = Document(epoch=3, leader="a", seats=seats_of("abc"))

    assert Document.decode(document.encode()) == document


def test_a_nodes_entry_of_any_depth_is_malformed() -> None:
    with pytest.raises(Malformed):
        Registration.decode(b"[" * 100_000)
