"""The keys that prove claims, watched where the cluster's parameters are: one may be drawn while nodes run, and
replaced.

Parameters that cannot be read, since a later release has written them, say
nothing new to a node that runs; they are named in the log, and hinder the node at its next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from skuld_py.errors import Refused
from skuld_py.model.events import KeyTold
from skuld_py.runtime.zookeeper.clusters import parameters_of
from skuld_py.runtime.zookeeper.connection import Connection

_log = logging.getLogger(__name__)


class ClaimKey:
    """Tells the key, once to each machine; all in the worker's thread."""

    def __init__(self, connection: Connection, root: str, emit: Callable[[KeyTold], None]) -> None:
        self._connection = connection
        self._root = root
        self._emit = emit
        self._told: KeyTold | None = None
        self._unread = b""

    def forget_told(self) -> None:
        """The machine is a new one: tell it the key again."""
        self._told = None

    def look(self) -> None:
        """Read it, watched, and tell of it if there is one."""
        raw, _ = self._connection.wait(self._connection.client.get_async(
            f"{self._root}/parameters", watch=self._connection.on_watch))
        try:
            parameters = parameters_of(self._root, raw)
        except Refused as problem:
            if raw != self._unread:
                _log.error("%s", problem.message)
            self._unread = raw
            return
        found = KeyTold(parameters.claim_key, parameters.proofs_from_ms, parameters.claim_from_ms,
                        parameters.former_keys)
        if found.claim_key and found != self._told:
            self._told = found
            self._emit(found)
