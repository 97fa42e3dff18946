"""Two names for one address are one too many."""

from __future__ import annotations

import socket
import threading

import pytest

from skuld_py.errors import Refused
from skuld_py.runtime.addresses import check_address

HERE = "127.0.0.1:13000"


@pytest.mark.parametrize("name", ["localhost:13000", "127.1:13000"])
def test_another_name_for_the_address_of_a_node_is_refused_with_both(name: str) -> None:
    with pytest.raises(Refused, match=f"{name} is the address of node {HERE} .*start it under that name"):
        check_address(name, ["127.0.0.1:13001", "other.invalid:13000", HERE])


def test_other_addresses_and_the_same_name_are_not_refused() -> None:
    check_address(HERE, ["localhost:13001", "127.0.0.2:13000", "other.invalid:13000"])
    check_address(HERE, ["localhost:13000", HERE])
    check_address("other.invalid:13000", ["nobody.invalid:13000"])


def test_a_name_that_takes_long_to_look_up_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()
    real = socket.getaddrinfo

    def look(host: str, port: None) -> object:
        if host == "slow":
            is_over.wait(60)
        return real(host, port)
    monkeypatch.setattr(socket, "getaddrinfo", look)
    with pytest.raises(Refused):
        check_address("localhost:13000", ["slow:13000", HERE], limit_s=0.2)
    is_over.set()
