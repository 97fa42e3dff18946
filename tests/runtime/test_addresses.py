"""Where a node listens and is found; and two names for one address are one too many."""

from __future__ import annotations

import socket
import threading

import pytest

from skuld_py.errors import Refused
from skuld_py.model.names import WIDE_NAME, check_name
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
        check_address("localhost:13000", ["slow:13000", HERE], limit_s=2)
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
    loopback = Listening("vm", "127.0.0.1")
    for advertise, at in (("vm", Listening("0.0.0.0", "0.0.0.0")), ("vm", Listening("vm", "192.0.2.7")),
                          ("vm", loopback), ("", loopback)):
        with pytest.raises(Refused, match=r"vm means .* on this machine.*mend its name service"):
            advertised(advertise, at, is_keyed=True)
    assert advertised("vm", loopback, is_keyed=False) == "vm", "all nodes without keys are on one machine"


@pytest.mark.parametrize("host", ["127.1", "2130706433"])
def test_loopback_is_written_so_that_one_sees_it(host: str) -> None:
    with pytest.raises(Refused, match=rf"host: {host} means 127\.0\.0\.1 on this machine"):
        advertised("", listening(host, 0, is_keyed=True), is_keyed=True)
    for plain in ("127.0.0.1", "127.0.0.7", "localhost"):
        assert advertised("", listening(plain, 0, is_keyed=True), is_keyed=True) == plain
        with pytest.raises(Refused, match="loopback_name"):
            advertised(plain, Listening("0.0.0.0", "0.0.0.0"), is_keyed=True)


@pytest.mark.parametrize("name", ["0.0.0.0", "::", "0", "[::]"])
def test_nobody_is_found_at_all_interfaces(name: str) -> None:
    for at in (Listening("0.0.0.0", "0.0.0.0"), Listening("192.0.2.7", "192.0.2.7")):
        with pytest.raises(Refused, match=r"advertise: .* means all interfaces, at which nobody is found"):
            advertised(name, at, is_keyed=True)


def test_who_listens_to_this_machine_alone_is_not_found_elsewhere() -> None:
    with pytest.raises(Refused, match=r"look for this node at 192\.0\.2\.7, and with --host 127\.0\.0\.1"):
        advertised("192.0.2.7", Listening("127.0.0.1", "127.0.0.1"), is_keyed=True)


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_the_name_of_a_node_begins_with_a_letter_or_digit(host: str) -> None:
    assert advertised("", listening(host, 0, is_keyed=True), is_keyed=True) == "0::1"
    check_name("host:port", "0::1:13000", WIDE_NAME)


def test_a_node_at_loopback_is_none_of_a_cluster_that_is_elsewhere() -> None:
    for name in (HERE, "localhost:13001", "0::1:13001"):
        with pytest.raises(Refused, match=rf"192\.0\.2\.7:13000 of this cluster .* find itself at {name}"):
            check_address(name, ["nobody.invalid:13000", "192.0.2.7:13000"])
        check_address(name, [name, "192.0.2.7:13000"])


def test_nodes_at_loopback_and_elsewhere_are_of_one_cluster_where_all_is_one_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = f"127.0.0.1:{listener.getsockname()[1]}"
        check_address("192.0.2.7:13000", [other])
    with pytest.raises(Refused, match=rf"node {other} of this cluster is at loopback, and does not answer"):
        check_address("192.0.2.7:13000", ["192.0.2.8:13000", other])


def test_a_node_is_found_where_it_says_or_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    known_as(monkeypatch, db7=("192.0.2.7", "127.0.0.1"))
    at = Listening("192.0.2.7", "192.0.2.7")
    found = [advertised(name, at, is_keyed=True) for name in ("", "db7", "unknown")]
    assert found == ["192.0.2.7", "db7", "unknown"]
    with pytest.raises(Refused, match=r"listens on all interfaces.*--advertise"):
        advertised("", Listening("::", "::"), is_keyed=True)


def test_an_ipv6_address_stands_in_brackets_in_front_of_a_port() -> None:
    assert endpoint("h", 1) == "tcp://h:1"
    assert endpoint("2001:db8::7", 1, "2001:db8::8") == "tcp://[2001:db8::8]:0;[2001:db8::7]:1"
    assert (Listening("h", "::").source, Listening("h", "192.0.2.7").source) == ("", "192.0.2.7")


@pytest.mark.parametrize("name", ["192.0.2.7:13000", "db7:13000", "[fd00::2]:13000"])
def test_what_has_a_port_of_its_own_is_no_host(name: str) -> None:
    """The node joined as 192.0.2.7:13000:13000, had copies placed on it, and nobody could reach it."""
    with pytest.raises(Refused, match=r"advertise: .* is no host: give a name or an address alone"):
        advertised(name, Listening("0.0.0.0", "0.0.0.0"), is_keyed=True)


@pytest.mark.parametrize("name", ["fd00::2", "[fd00::2]", "192.0.2.7", "db7.example.org"])
def test_a_host_alone_is_one(name: str) -> None:
    assert advertised(name, Listening("::", "::"), is_keyed=True) == name.strip("[]")
