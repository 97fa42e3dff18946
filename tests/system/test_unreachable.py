"""A client without nodes says so in time, whatever it was asked to wait for."""

from __future__ import annotations

import time

import pytest

from skuld_py import Client, Refused


def test_a_waiting_claim_does_not_wait_for_nodes_that_are_not_there() -> None:
    start = time.monotonic()
    with Client("127.0.0.1:9", timeout_s=0.5) as client, pytest.raises(Refused, match="can be reached"):
        client.claim("q", wait_s=60)

    assert time.monotonic() - start < 10


@pytest.mark.parametrize("address", ["", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":13000", "a:b"])
def test_a_bad_address_is_refused_before_anything_is_opened(address: str) -> None:
    with pytest.raises(Refused, match=r"HOST:PORT"):
        Client(["127.0.0.1:13000", address] if address else "")
