"""Where a node listens and is found; and two names for one address are one too many."""

from __future__ import annotations

import socket
import threading

import pytest

from skuld_py.errors import Refused
from skuld_py.runtime.addresses import Listening, advertised, check_address, endpoint, listening

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


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"),
                                               ("::1", "::1"), ("[::1]", "::1"), ("127.1", "127.0.0.1")])
def test_without_keys_it_listens_on_loopback(host: str, address: str) -> None:
    assert listening(host, 0, is_keyed=False).address == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::7"])
def test_with_keys_it_listens_anywhere(host: str) -> None:
    assert listening(host, 0, is_keyed=True).address == host
    with pytest.raises(Refused, match=r"insecure_host"):
        listening(host, 0, is_keyed=False)


@pytest.mark.parametrize(("ports", "words"), [((70_000, 0), "port: 70000"), ((1, 70_000), "peer-port: 70000"),
                                              ((13_000, 13_000), "peer-port: 13000 is the port for clients")])
def test_ports_that_are_none_are_named(ports: tuple[int, int], words: str) -> None:
    with pytest.raises(Refused, match=words):
        listening("127.0.0.1", *ports, is_keyed=True)


def known_as(monkeypatch: pytest.MonkeyPatch, **addresses: tuple[str, ...]) -> None:
    def look(host: str, port: None) -> list[object]:
        if host not in addresses:
            raise OSError("no such name")
        return [(None, None, None, "", (address, 0)) for address in addresses[host]]
    monkeypatch.setattr(socket, "getaddrinfo", look)


@pytest.mark.parametrize("found", [("127.0.0.1",), ("::1", "127.0.1.1")])
def test_a_name_that_means_each_machine_itself_is_refused(monkeypatch: pytest.MonkeyPatch,
                                                          found: tuple[str, ...]) -> None:
    known_as(monkeypatch, vm=found)
    for at in (Listening("0.0.0.0", "0.0.0.0"), Listening("vm", "192.0.2.7")):
        with pytest.raises(Refused, match=r"vm means .* on this machine.*mend its name service"):
            advertised("vm", at)
    assert advertised("vm", Listening("127.0.0.1", "127.0.0.1")) == "vm"


def test_a_node_is_found_where_it_says_or_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, db7=("192.0.2.7", "127.0.0.1"))
    at = Listening("192.0.2.7", "192.0.2.7")
    assert [advertised(name, at) for name in ("", "db7", "unknown")] == ["192.0.2.7", "db7", "unknown"]
    with pytest.raises(Refused, match=r"listens on all interfaces.*--advertise"):
        advertised("", Listening("::", "::"))


def test_an_ipv6_address_stands_in_brackets_in_front_of_a_port() -> None:
    assert endpoint("h", 1) == "tcp://h:1"
    assert endpoint("2001:db8::7", 1, "2001:db8::8") == "tcp://[2001:db8::8]:0;[2001:db8::7]:1"
    assert (Listening("h", "::").source, Listening("h", "192.0.2.7").source) == ("", "192.0.2.7")
