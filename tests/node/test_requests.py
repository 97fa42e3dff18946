"""Each request is of one feature, and of each that clients may ask there is an owner."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.node.operations.requests import Asked, Served, asked_of, served_of


class Owner:
    def __init__(self) -> None:
        self.asked: Asked = {m.Get: lambda now_ms, origin, request: None}
        self.served: Served = {m.Get: lambda now_ms, peer, request: None}


def test_no_request_has_two_owners() -> None:
    with pytest.raises(AssertionError, match="a client's request has two owners"):
        asked_of([Owner(), Owner()])
    with pytest.raises(AssertionError, match="a peer's request has two owners"):
        served_of([Owner(), Owner()])


def test_each_request_that_clients_may_send_has_an_owner() -> None:
    node = next(iter(Machines(1).nodes.values()))
    of_clients = [each for each in m.MESSAGES if each.roles & m.ROLE_CLIENT]

    assert {*of_clients} == {*node._clients._asked}
