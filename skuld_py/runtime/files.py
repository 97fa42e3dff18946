"""The files that a node may have open, and how many connections its doors may have by that.

A connection is a file. When the kernel gives no more files, libzmq drops nobody and aborts the process at its next
look for an address; the store, ZooKeeper and the peers want files too. So the limit is never reached:

* ``OWN_FILES`` are the node's own, for what is no connection at its doors: peers are dialled with two each.
* The doors share the rest alike. ``FILES_EACH`` of its share is one connection that stands: the rest is for those
  that come before the node has looked, and for those that are cut and that libzmq has not closed yet.
* A node takes what it wants of the limit, as far as it may (``ulimit -Hn``). With less it says so and has fewer
  connections; below ``FILES_MIN`` it does not start.

Rejected: to refuse to start below what it wants; a laptop's shell often gives 1,024, which serve a hundred
clients.
"""

from __future__ import annotations

import logging

from skuld_py.files import may_have, remedy, take

CONNECTIONS_MAX = 2_000
"""Connections of one door."""
OWN_FILES = 192
FILES_EACH = 2
FILES_MIN = 512
DOORS_MAX = 2
FILES_WANTED = OWN_FILES + DOORS_MAX * FILES_EACH * CONNECTIONS_MAX

_log = logging.getLogger(__name__)


def allow_files(doors: int) -> None:
    """Raise the limit of open files to what ``CONNECTIONS_MAX`` connections at each of so many doors need, as far
    as allowed. Logs when it is less; ``Refused`` when it is too little for a node."""
    wanted = OWN_FILES + doors * FILES_EACH * CONNECTIONS_MAX
    allowed = take("a node", wanted, FILES_MIN)
    if allowed < wanted:
        _log.warning("this process may have %d files open: so this node has at most %d connections%s, and not %d;"
                     " for more %s", allowed, connections_most(doors), " at each of its two ports" * (doors > 1),
                     CONNECTIONS_MAX, remedy(wanted))


def connections_most(doors: int) -> int:
    """Connections that may stand at each of so many doors of this process."""
    shared = max(0, may_have(FILES_WANTED) - OWN_FILES)
    return max(1, min(CONNECTIONS_MAX, shared // (FILES_EACH * doors)))
