"""What the standing duties of a node may use of it: all that an operation may, and its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skuld_py.config import Retention
from skuld_py.model import messages as m
from skuld_py.model.events import Effect
from skuld_py.node.knowledge.interests import Interests
from skuld_py.node.knowledge.leaders import Leaderships
from skuld_py.node.operations.operation import Host
from skuld_py.partition.candidacy import Candidacy
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.vnode import Vnode


class Household(Host, Protocol):
    """What duties may use of their node."""

    interests: Interests
    bulletin: Bulletin
    leaderships: Leaderships
    retention: Retention
    is_connected: bool
    """Whether the registry session is good."""

    def candidacy(self, vnode: Vnode) -> Candidacy:
        """How a vnode comes to lead."""

    def on_pass(self, now_ms: int, ended: Pass) -> None:
        """An exchange that this node began is through."""

    def is_agreed(self, name: str) -> bool:
        """Whether a peer's clock is known to go with the others."""

    def description(self, request: int) -> m.Described:
        """The cluster as seen from here."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Effects of the protocol, on their way out."""
