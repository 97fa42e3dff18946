"""What a process owns is made anew in the child of a fork: ids, names, sockets, locks.

A server that loads its program first and forks then (gunicorn with ``preload_app``, uWSGI, Celery's prefork pool,
``multiprocessing`` by default on Linux up to Python 3.13) gives every child a copy of every client. A copy would
mint its siblings' ids, read from sockets whose other ends are the parent's, and wait for locks whose holders are
threads that a fork does not copy. So each owner is told, before anything else runs in the child, while one thread
is all there is.

What was inherited is neither closed nor collected: to take an event loop's descriptors back would take them from
the parent's, which is the same in the kernel.

Rejected: to compare process ids at every call, which costs each of them, takes a lock that may itself have been
held during the fork, and is fooled by a number that is used again.
"""

from __future__ import annotations

import os
from typing import Any, Protocol
from weakref import WeakSet


class Owner(Protocol):
    """An owner of what a fork does not copy."""

    def after_fork(self) -> None:
        """This is the child: make anew what belongs to a process."""


_owners: WeakSet[Owner] = WeakSet()
_inherited: list[Any] = []


def renew(owner: Owner) -> None:
    """Have this owner told in the child of every fork from now on, for as long as it lives."""
    _owners.add(owner)


def keep(*inherited: object) -> None:
    """Keep these from being collected: they are the parent's too."""
    _inherited.extend(inherited)


def _tell() -> None:
    for owner in [*_owners]:
        owner.after_fork()


os.register_at_fork(after_in_child=_tell)
