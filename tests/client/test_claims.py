"""What a holder is shown of granted claims, also where tasks of several headers were granted together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.client.claims import claims_of
from skuld_py.model import columns
from skuld_py.model.body import Header, encode_body
from skuld_py.model.messages.message import ClaimBatch
from skuld_py.model.prelude import EXPIRES, Prelude

HEADERS = (Header("q"), Header("q", 7), Header("q", headers=(("from", "here"),)), Header("q", 7, prelude=EXPIRES))


def body_of(header: Header, payload: bytes) -> bytes:
    prelude = Prelude(expires_ms=99).encode() if header.prelude else b""
    return encode_body(header.encode(), prelude + payload)


@given(st.lists(st.tuples(st.sampled_from(HEADERS), st.binary(max_size=5)), max_size=12))
def test_each_claim_is_shown_with_its_own_header(tasks: list[tuple[Header, bytes]]) -> None:
    ids = [bytes([number]) * 20 for number in range(len(tasks))]
    batch = ClaimBatch(b"".join(ids), 41, 5_000, columns.pack([body_of(*task) for task in tasks]))

    claims = claims_of(batch, 12.5)

    assert [(claim.id, claim.token) for claim in claims] == list(zip(ids, range(41, 41 + len(ids)), strict=True))
    assert [(claim.priority, claim.headers, claim.payload) for claim in claims] == [
        (header.priority, dict(header.headers), payload) for header, payload in tasks]
    assert all((claim.queue, claim.end_ms, claim.deadline) == ("q", 5_000, 12.5) for claim in claims)


def test_what_is_no_body_is_refused_behind_one_that_is() -> None:
    batch = ClaimBatch(bytes(40), 1, 9, columns.pack([body_of(HEADERS[0], b"x"), b"\0"]))

    with pytest.raises(ValueError, match="header"):
        claims_of(batch, 0)
