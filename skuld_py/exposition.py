"""Metrics for Prometheus: where a process shows them, for node, gateway and worker alike.

They are shown by the library's own server, in a thread, at an address of its own: a scrape must come through when
the process is busy, and needs no token. So the default host is loopback; whoever names another one shows queue
names and depths to all who reach it. Without ``--metrics`` nothing listens.

Invariant: a collector reads what the process has published, and never a machine or a store of another thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from skuld_py.errors import Refused

LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535
_log = logging.getLogger(__name__)


def address_of(text: str) -> tuple[str, int]:
    """``HOST:PORT``, or ``PORT`` on loopback; raises ``Refused``."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > PORT_MAX or (":" in text and not host):
        raise Refused("bad_metrics", f"metrics: {text!r} is no HOST:PORT; write 127.0.0.1:9464, or 9464 alone",
                      field="metrics")
    return host.strip("[]") or LOOPBACK, int(port)


@contextmanager
def exposed(address: str, *collectors: object) -> Iterator[str]:
    """Show these collectors, and what the library knows of the process, while the block runs; gives the URL."""
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in collectors:
        registry.register(collector)  # type: ignore[arg-type]  # any object with a collect method
    host, port = address_of(address)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise Refused("metrics_in_use", f"metrics: cannot listen at {host}:{port}: {error.strerror or error};"
                      " choose another address for --metrics", field="metrics") from error
    url = f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    _log.info("metrics are shown at %s", url)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
