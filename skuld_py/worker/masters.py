"""Where Spark's jobs run: which masters there are, and the address at which executors find the driver.

The driver is always in the worker's own JVM. With a local master that is all there is. With another one executors
are elsewhere: they see no file of this machine, and call the driver back. So it listens where this machine's way
to the master begins, not on loopback. YARN's master stands in files that only Spark reads; there Spark chooses.

Rejected: Spark Connect (``sc://``). Its driver is elsewhere and shared with others, and shows no jobs of a task's
group: a worker could neither tell how far a task is nor be sure that a cancelled one has ended.
"""

from __future__ import annotations

import os
import re
import socket

from skuld_py.errors import Refused

CONNECT = "sc://"
FORMS = "local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT"

_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")
_PLACE = r"[^\s:/,@\[\]]+:\d+"
_STANDALONE = re.compile(rf"spark://({_PLACE}(?:,{_PLACE})*)")
_KUBERNETES = re.compile(r"k8s://(?:https?://)?([^\s:/,@\[\]]+)(?::(\d+))?/?")
_HTTPS = 443


def check_master(master: str) -> str:
    """A master that a worker can use; ``Refused`` says which there are."""
    if master.startswith(CONNECT):
        raise Refused("bad_master", f"master: {master} is a server of Spark Connect, through which a worker cannot"
                      " watch and cancel the jobs of a task; name the cluster's own master, as spark://HOST:7077",
                      master=master)
    if master != "yarn" and not any(form.fullmatch(master) for form in (_LOCAL, _STANDALONE, _KUBERNETES)):
        raise Refused("bad_master", f"master: Spark has no master {master!r}; write {FORMS}", master=master)
    return master


def is_local(master: str) -> bool:
    """Whether everything runs in the worker's own JVM."""
    return _LOCAL.fullmatch(master) is not None


def threads_of(master: str) -> int:
    """How many Spark tasks a local master runs at once."""
    found = _LOCAL.fullmatch(master)
    if found is None or found[1] is None:
        return 1
    return (os.cpu_count() or 1) if found[1] == "*" else max(1, int(found[1]))


def places_of(master: str) -> list[tuple[str, int]]:
    """Host and port of each server that a master names; none for YARN."""
    standalone, kubernetes = _STANDALONE.fullmatch(master), _KUBERNETES.fullmatch(master)
    if standalone is not None:
        pairs = (place.rpartition(":") for place in standalone[1].split(","))
        return [(host, int(port)) for host, _, port in pairs]
    return [(kubernetes[1], int(kubernetes[2] or _HTTPS))] if kubernetes is not None else []


def driver_address(master: str) -> str | None:
    """This machine's address on the way to the master; None where it is for Spark to choose.

    Nothing is sent: connecting a datagram socket asks the kernel for the route. ``Refused`` as a start that
    failed, to be tried again: a name service that is away comes back.
    """
    places = places_of(master)
    reasons = []
    for host, port in places:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((host, port))
                return str(probe.getsockname()[0])
        except OSError as error:
            reasons.append(f"{host}: {error.strerror or error}")
    if not places:
        return None
    raise Refused("spark_failed", f"master: there is no way to {'; '.join(reasons)}. Check the name, or give this"
                  " machine's address with --conf spark.driver.host=ADDRESS", master=master)
