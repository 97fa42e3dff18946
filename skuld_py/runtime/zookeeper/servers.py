"""Which ZooKeeper is meant, and who asks: the connection string, with what is shown to its servers.

A string like any other for all that only passes it on, shows it or compares it; ``clusters.open_client`` looks at
the rest. So no password stands in a connection string, which errors and logs quote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skuld_py.runtime.zookeeper.tls import Tls


class Servers(str):
    """``HOST:PORT,...``, perhaps with ``/PATH`` behind it, below which everything is kept.

    ``logins``: gives NAME:PASSWORD, as which the znodes of a cluster with keys are made and read: none for nobody,
    two while one takes the place of the other. ``tls``: what a connection is sealed with. ``sasl``: gives the name
    and the password by which the servers let a connection in at all. Both functions are asked whenever a
    connection is made.
    """

    logins: Callable[[], tuple[str, ...]]
    tls: Tls | None
    sasl: Callable[[], tuple[str, str]] | None

    def __new__(cls, hosts: str, logins: Callable[[], tuple[str, ...]] = tuple, *, tls: Tls | None = None,
                sasl: Callable[[], tuple[str, str]] | None = None) -> Servers:
        """The servers, asked by somebody."""
        made = super().__new__(cls, hosts)
        made.logins, made.tls, made.sasl = logins, tls, sasl
        return made

    @classmethod
    def of(cls, hosts: str) -> Servers:
        """Servers of which perhaps no more is known than where they are."""
        return hosts if isinstance(hosts, Servers) else cls(hosts)

    def owned(self, logins: Callable[[], tuple[str, ...]]) -> Servers:
        """The same servers, asked under a name."""
        return Servers(self, logins, tls=self.tls, sasl=self.sasl)

    @property
    def path(self) -> str:
        """The path behind the servers; empty without one."""
        return self[len(self.without_path):]

    @property
    def without_path(self) -> Servers:
        """The same servers, asked for everything."""
        return Servers(self.partition("/")[0], self.logins, tls=self.tls, sasl=self.sasl)
