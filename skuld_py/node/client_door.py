"""The door of clients: a request is let in as far as the node keeps up, and goes to the feature that it is of.

A refusal here is definite: nothing was sent anywhere yet. Bad input names the field and the remedy.
"""

from __future__ import annotations

from typing import Any

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.requests import Asked

LEAVING = "this node is about to stop; ask another one"
"""Said to clients that would else wait for an answer from a node that is gone."""
OF_HOLDERS = (m.Renew, m.Complete, m.Conclude)
"""Requests of holders of claims, refused last: work that was done would be lost, or done again."""
HOLDERS_PATIENCE = 3
"""Holders are refused only by a node this many times as far behind as one that refuses other clients."""
OF_ONLOOKERS = (m.Greet, m.Describe)
"""Requests that a node answers however far it is behind: who it is, and how it is."""


class ClientDoor:
    """The clients' door of one node, with the requests of its features."""

    def __init__(self, operations: Operations, asked: Asked) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._asked = asked

    def serve(self, now_ms: int, client: bytes, message: Any, open_operations: int, behind_ms: int) -> None:
        """Start what a client asks for, or refuse. ``behind_ms``: how long the node's own timers are overdue, if
        they are."""
        origin = Origin(message.request, client=client)
        try:
            self._check_load(message, open_operations, behind_ms)
            operation = self._asked[type(message)](now_ms, origin, message)
        except Refused as refusal:
            self._outbox.reply(origin, m.Failed(origin.request, refusal.code, refusal.message, True))
            return
        if operation is not None:
            operation.start(now_ms)

    def _check_load(self, message: m.Message, open_operations: int, behind_ms: int) -> None:
        """Refuse what is too much. A node that is behind and takes on more serves no client: its answers come late
        and are asked for again. To refuse costs it next to nothing."""
        limits, is_of_holder = self._view.limits, isinstance(message, OF_HOLDERS)
        if self._view.is_leaving and not isinstance(message, OF_ONLOOKERS):
            raise Refused("not_ready", LEAVING)
        if open_operations >= limits.requests - (0 if is_of_holder else limits.holders_requests):
            raise Refused("busy", "this node has too many open requests; wait and try again")
        if (behind_ms > self._view.timing.behind_ms * (HOLDERS_PATIENCE if is_of_holder else 1)
                and not isinstance(message, OF_ONLOOKERS)):
            raise Refused("busy", f"this node is {behind_ms / 1000:.1f} s behind with what it has to do; wait and"
                          " try again")
