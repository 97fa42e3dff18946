"""A port that was chosen for a process is still there when the process listens, late or again."""

from __future__ import annotations

import socket

import pytest
import zmq

from skuld_py.embedded.ports import held_port

HOST = "127.0.0.1"


class Owner:
    """Whoever chose it."""


def test_a_held_port_is_given_to_nobody_else_and_to_whoever_listens() -> None:
    owner = Owner()
    port = held_port(owner, HOST)

    for _ in range(2):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
        with zmq.Context() as context, context.socket(zmq.ROUTER) as node:
            node.bind(f"tcp://{HOST}:{port}")
        with socket.create_server((HOST, port)):
            pass
    held_port(owner, HOST, port)  # a second start chooses it again


def test_a_port_at_which_somebody_listens_is_not_held() -> None:
    with socket.create_server((HOST, 0)) as listener, pytest.raises(OSError, match="in use"):
        held_port(Owner(), HOST, listener.getsockname()[1])


def test_a_port_of_an_ipv6_address_is_held() -> None:
    """`skuld zookeeper --host ::1` did not start."""
    owner = Owner()
    port = held_port(owner, "::1")
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match="in use"):
        other.bind(("::1", port))


def test_a_port_goes_with_its_owner() -> None:
    owner = Owner()
    port = held_port(owner, HOST)
    del owner

    with socket.socket() as other:
        other.bind((HOST, port))
