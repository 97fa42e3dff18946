"""The requests that a feature owns at a node's two doors: of clients, and of peers.

A feature has ``asked`` and ``served``; its node puts the tables of all features together, so to add a request is a
row in the table of its feature. No request has two owners.

Rejected: one table for each door. Every feature had its handlers in two long files then, far from its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from skuld_py.model.messages import Message
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin

Begin = Callable[[int, Origin, Any], Operation | None]
"""Checks what a client asks for, and gives the operation that does it, or answers at once. Raises ``Refused``."""
Serve = Callable[[int, str, Any], Message | None]
"""Carries out what a peer asks for; gives the answer, if it is known at once."""
Asked = Mapping[type[Message], Begin]
Served = Mapping[type[Message], Serve]
Lead = Callable[[Operations, int, Origin, Any], None]
"""Begins what a leader does for a peer."""


class Feature(Protocol):
    """A feature of a node: the requests that are its own."""

    @property
    def asked(self) -> Asked:
        """Clients' requests that are its own."""

    @property
    def served(self) -> Served:
        """Peers' requests that are its own."""


def asked_of(features: Iterable[Feature]) -> dict[type[Message], Begin]:
    """Clients' requests by their class."""
    found: dict[type[Message], Begin] = {}
    for feature in features:
        assert not found.keys() & feature.asked.keys(), "a client's request has two owners"
        found |= feature.asked
    return found


def served_of(features: Iterable[Feature]) -> dict[type[Message], Serve]:
    """Peers' requests by their class."""
    found: dict[type[Message], Serve] = {}
    for feature in features:
        assert not found.keys() & feature.served.keys(), "a peer's request has two owners"
        found |= feature.served
    return found


def led(operations: Operations, lead: Lead) -> Serve:
    """What a leader does for a peer, which is answered when it is done."""
    def serve(now_ms: int, peer: str, message: Any) -> None:
        lead(operations, now_ms, Origin(message.request, peer=peer), message)
    return serve
