"""A holder counts its lease from before the question, by a clock that runs on while the machine sleeps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skuld_py.client import client as subject
from skuld_py.client.client import Client
from skuld_py.client.steady import steady_s
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.leases import holder_deadline

BODY = encode_body(Header("q").encode(), b"x")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client whose clock shows 100 s before a call and 200 s after it."""
    times = iter([100.0])
    monkeypatch.setattr(subject, "steady_s", lambda: next(times, 200.0))
    with Client("127.0.0.1:1") as made:
        yield made


def test_a_claim_counts_from_the_question_and_what_the_node_waited(
        client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = m.Claimed(1, 2_000, (m.ClaimBatch(bytes(20), 1, 99, columns.pack([BODY])),))
    monkeypatch.setattr(client, "_call", lambda *_, **__: answer)

    claim = client.claim("q", lease_s=60, wait_s=5)[0]

    assert claim.deadline == holder_deadline(100.0, 60, 2_000) < 162


def test_a_renewal_counts_from_the_question_and_what_is_unknown_stays(
        client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = m.Renewed(1, columns.pack_u64([99, 0, 0]), columns.pack_u64([1]))
    monkeypatch.setattr(client, "_call", lambda *_, **__: answer)
    claims = [subject.Claim(m_id, 1, "q", 0, b"", 50, 110.0)  # type: ignore[arg-type]
              for m_id in (bytes(20), b"1" * 20, b"2" * 20)]

    assert client.renew_many(claims, lease_s=60) == [True, None, False]
    assert [claim.deadline for claim in claims] == [holder_deadline(100.0, 60), 110.0, 110.0]


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that counts sleep")
def test_the_clock_counts_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1_000.0 if clock == time.CLOCK_BOOTTIME else 7.0)

    assert steady_s() == 1_000.0
