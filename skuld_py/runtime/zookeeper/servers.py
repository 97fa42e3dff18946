"""Which ZooKeeper is meant, and who asks: the connection string, with the name and password that it is given.

A string like any other for all that only passes it on, shows it or compares it; ``clusters.open_client`` looks at
the rest. So no password stands in a connection string, which errors and logs quote.
"""

from __future__ import annotations


class Servers(str):
    """``HOST:PORT,...``, perhaps with ``/PATH`` behind it, below which everything is kept. ``login``:
    NAME:PASSWORD."""

    login: str

    def __new__(cls, hosts: str, login: str = "") -> Servers:
        """The same servers, asked under a name."""
        made = super().__new__(cls, hosts)
        made.login = login
        return made
