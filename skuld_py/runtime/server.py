"""One node process: its parts made, put together, run until a signal, and taken down in order.

The order of the start is the order of the refusals: parameters (is there such a cluster?), the data
directory (is it free, and this cluster's?), the port (is it free?), and membership last, so that no
peer hears of a node that cannot serve. Down it goes the other way round: first leave, then close.

The data directory is bound to the cluster's id, not its name: a cluster that was destroyed and made
again under the same name is another one, and old promises must not speak in it.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from skuld_py.config import Parameters
from skuld_py.errors import Refused
from skuld_py.model.document import Member
from skuld_py.model.events import Event
from skuld_py.model.names import WIDE_NAME, check_name
from skuld_py.runtime.clock import Clock
from skuld_py.runtime.clusters import read_parameters
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.runtime.loop import Loop
from skuld_py.runtime.registry import Registry
from skuld_py.runtime.transport import Transport
from skuld_py.runtime.wrong_time import time_source

_CLUSTER_KEY = b"cluster"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(hosts: str, cluster: str, host: str, port: int, data: Path, *, session_ms: int = 4_000,
          on_ready: Callable[[], None] = lambda: None) -> None:
    """Be a node until SIGTERM or SIGINT; raises ``Refused`` when it cannot be one, anything else when it
    must not go on. ``on_ready`` is called once it is a member and takes requests."""
    from skuld_py.node.node import Node

    clock = Clock(time_source(os.environ))
    parameters = read_parameters(hosts, cluster)
    with ExitStack() as held:
        store = LmdbStore(data)
        held.callback(store.close)
        claim_directory(store, parameters, data)
        me = Member(check_name("host:port", f"{host}:{port}", WIDE_NAME), host, port, secrets.token_hex(8))
        transport = Transport(me.name, cluster, host, port)
        held.callback(transport.close)

        def emit(event: Event) -> None:
            loop.post(event)

        registry = Registry(hosts, cluster, me, session_ms, emit)
        jitter = random.Random()
        node = Node(me=me, parameters=parameters, store=store, jitter_ms=lambda most: jitter.randint(0, most),
                    nonce=secrets.randbits(32))
        store.commit()  # what the node read at its start
        loop = Loop(node, store, transport, registry, clock)
        held.enter_context(_stopped_by_signals(loop))
        registry.start()
        held.callback(registry.stop)
        on_ready()
        loop.run()


def claim_directory(store: LmdbStore, parameters: Parameters, data: Path) -> None:
    """Bind a fresh store to the cluster; ``Refused`` when it belongs to another one."""
    wanted = parameters.cluster_id.encode()
    found = store.get("meta", _CLUSTER_KEY)
    if found is None:
        store.put_many("meta", [(_CLUSTER_KEY, wanted)])
    elif found != wanted:
        raise Refused("wrong_data", f"{data} holds data of cluster {found.decode(errors='replace')}, not of"
                      f" {parameters.cluster_id} ({parameters.cluster}); give this node a data directory of"
                      " its own, or move the old data away", data=str(data))
    store.commit()


@contextmanager
def _stopped_by_signals(loop: Loop) -> Iterator[None]:
    """Turn the signals into ``loop.stop``; outside the main thread, where Python has no signals, nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: loop.stop()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
