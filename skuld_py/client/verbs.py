"""All verbs of a client in one class, for the shells that perform them: sockets that block, sockets that are
awaited, a node in memory.

A new verb is a method in ``enqueueing``, ``holding``, ``concluding``, ``reading``, ``waiting``, ``pausing``,
``limiting``, ``scheduling``, ``groups``, ``archiving``, ``attending``, ``flows``, ``operating`` or
``selecting``, ``moving``, or in another class named here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence

from skuld_py.client.archiving import Archiving
from skuld_py.client.attending import Attending
from skuld_py.client.enqueueing import Enqueueing
from skuld_py.client.flows import Flowing
from skuld_py.client.groups import Grouping
from skuld_py.client.holding import Holding
from skuld_py.client.limiting import Limiting
from skuld_py.client.minting import Minter
from skuld_py.client.moving import Moving
from skuld_py.client.operating import Operating
from skuld_py.client.pausing import Pausing
from skuld_py.client.scheduling import Scheduling
from skuld_py.client.steady import steady_s, wall_ms
from skuld_py.client.waiting import Waiting
from skuld_py.model import names

TIMEOUT_S = 5.0
NODES = "127.0.0.1:13000"
NODES_VARIABLE = "SKULD_NODES"


class Verbs(Enqueueing, Holding, Moving, Waiting, Pausing, Limiting, Scheduling, Grouping,
            Archiving, Attending, Flowing, Operating):
    """What a client can do. ``holder`` is its name in the claims it makes."""

    def __init__(self, holder: str | None, clock: Callable[[], float] = steady_s,
                 wall: Callable[[], int] = wall_ms) -> None:
        self._is_named = holder is not None
        self.holder = names.check_name("holder", holder or _process_name(), names.WIDE_NAME)
        self._clock = clock
        self._wall_ms = wall
        self._minter = Minter()

    def after_fork(self) -> None:
        """Give the child ids of its own; and a name, unless one was given."""
        self._minter = Minter()
        if not self._is_named:
            self.holder = _process_name()


def _process_name() -> str:
    return f"{socket.gethostname()[:150]}:{os.getpid()}"


def addresses_of(nodes: str | Sequence[str] | None) -> list[str]:
    """``HOST:PORT,...`` or a list of them, as a list; those of ``$SKULD_NODES`` without any, or this machine's."""
    wanted = (os.environ.get(NODES_VARIABLE) or NODES) if nodes is None else nodes
    given = wanted.split(",") if isinstance(wanted, str) else wanted
    return [address.strip() for address in given if address.strip()]
