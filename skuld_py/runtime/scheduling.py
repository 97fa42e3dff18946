"""A scheduler's process: ``cluster.scale.scheduler`` over a node's sockets, and nothing else.

It answers questions about the placement and about seats. It has no store, no session and no place in the
coordination log; in a cluster with keys it shows one of its own, which the roster has as a node's, so nodes hear
it. Nothing is lost with it: a node that gets no answer decides by itself. So it may be killed at any time, and
started again without anything of before.

Only nodes are answered: by their keys, or, in a cluster without keys, on loopback. Clients are refused.

Rejected: schedulers found in the log or in ZooKeeper (a list that would have to be cleaned after they died; nodes
are told their addresses, as they are told other options).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from skuld_py.cluster.scale.scheduler import NEVER_MS, Scheduler
from skuld_py.config import DEFAULT_LIMITS, protocol_of
from skuld_py.errors import Refused, SkuldError
from skuld_py.keys.files import ClusterKey
from skuld_py.model.events import Answer, Asked, Compute, Computed, Received, Send, Ticked
from skuld_py.model.messages import Failed
from skuld_py.model.names import WIDE_NAME, check_name
from skuld_py.runtime.addresses import advertised, listening
from skuld_py.runtime.clock import Clock
from skuld_py.runtime.files import allow_files
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.loop import Loop
from skuld_py.runtime.node_keys import open_keyring, take_place
from skuld_py.runtime.server import Place, stopped_by_signals
from skuld_py.runtime.transport import Transport, doors_of
from skuld_py.runtime.wrong_time import time_source
from skuld_py.runtime.zookeeper.clusters import read_names, read_parameters
from skuld_py.runtime.zookeeper.rosters import follow_roster

ASKERS_MAX = 4_096
"""Nodes that it keeps a connection to."""
PAUSE_S = 5.0
"""Before it asks anew which keys there are. A node whose key it does not know yet decides by itself."""

_log = logging.getLogger(__name__)


class Office:
    """The machine: a scheduler that says what it does. Refuses clients' requests."""

    def __init__(self) -> None:
        self._scheduler = Scheduler()
        self._kinds: dict[bytes, tuple[str, float]] = {}

    def step(self, now_ms: int, event: Any) -> Sequence[Send | Compute | Answer]:
        """Take an event."""
        match event:
            case Asked(client, message):
                words = "this is a scheduler, which answers nodes alone; ask one of the cluster's nodes"
                return [Answer(client, Failed(getattr(message, "request", 0), "not_a_node", words, True))]
            case Received() | Computed() | Ticked():
                if isinstance(event, Computed):
                    self._say(event)
                effects = self._scheduler.step(now_ms, event)
                begun_s = time.monotonic()
                self._kinds |= {each.hash: (each.kind, begun_s) for each in effects if isinstance(each, Compute)}
                return effects
        return []

    def _say(self, event: Computed) -> None:
        kind, begun_s = self._kinds.pop(event.hash, ("", time.monotonic()))
        took_s = time.monotonic() - begun_s
        _log.info("decided %s in %.2f s, %d so far: question %s", kind, took_s, self._scheduler.computations,
                  event.hash.hex(), extra={"facts": {"event": "decided", "kind": kind, "took_s": round(took_s, 3),
                                                     "question": event.hash.hex()}})

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``."""
        due_ms = self._scheduler.deadline()
        return None if due_ms >= NEVER_MS else due_ms


class Nothing:
    """In the place of a store and of a registry."""

    def commit(self) -> None:
        """Nothing is kept."""

    def perform(self, effect: object) -> None:
        """Nothing is asked of ZooKeeper."""


def serve_scheduler(hosts: str, cluster: str, place: Place, *, data: Path | None = None,
                    key: ClusterKey | None = None, on_ready: Callable[[str], None] = lambda name: None) -> None:
    """Be a scheduler of a cluster until SIGTERM or SIGINT. ``data``: where its key is kept, with ``key``."""
    parameters = read_parameters(hosts, cluster)
    is_keyed = key is not None
    allow_files(doors_of(is_keyed))
    limits = attrs.evolve(DEFAULT_LIMITS, partitions=parameters.partitions)
    with ExitStack() as held:
        found_at = advertised(place.advertise, listening(place.host, place.port, place.peer_port,
                                                         is_keyed=is_keyed), is_keyed=is_keyed)
        name = check_name("host:port", f"{found_at}:{place.port}", WIDE_NAME)
        if name in read_names(hosts, cluster):
            raise Refused("bad_address", f"port: {name} is a node of {cluster}; give the scheduler another port",
                          field="port")
        keyring = _keyring(hosts, key, name, data)
        transport = Transport(name, cluster, place.host, place.port, limits, protocol_of(parameters.rules),
                              keyring, place.peer_port)
        held.callback(transport.close)
        nothing: Any = Nothing()
        loop = Loop(Office(), nothing, transport, nothing, Clock(time_source(os.environ)), me=name,
                    keyring=keyring, acquaintances_max=ASKERS_MAX, is_asked_by_anybody=True)
        if keyring is not None:
            take_place(hosts, cluster, keyring, name, f"{found_at}:{transport.peers.port}")
            keyring.on_change = loop.dial_anew
            _follow_keys(hosts, cluster, keyring, held)
        held.enter_context(stopped_by_signals(loop))
        on_ready(name)
        _log.info("scheduler %s of cluster %s answers nodes that name it", name, cluster)
        loop.run()
        _log.info("scheduler %s stops", name)


def _keyring(hosts: str, key: ClusterKey | None, name: str, data: Path | None) -> Keyring | None:
    if key is None:
        return None
    if data is None:
        raise Refused("no_directory", "data: in a cluster with keys a scheduler has a key of its own; say where"
                      " it is kept (--data)", field="data")
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    return open_keyring(hosts, key, name, data)


def _follow_keys(hosts: str, cluster: str, keyring: Keyring, held: ExitStack) -> None:
    is_over = threading.Event()
    held.callback(is_over.set)

    def follow() -> None:
        while not is_over.is_set():
            try:
                follow_roster(hosts, cluster, keyring.put, is_over)
            except SkuldError as problem:
                _log.warning("which keys the cluster has is not known anew: %s", problem)
                is_over.wait(PAUSE_S)
    threading.Thread(target=follow, name="roster", daemon=True).start()
