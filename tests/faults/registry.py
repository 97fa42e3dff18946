"""Looking into ZooKeeper, and ending somebody else's session there, at once, from outside.

Whoever knows a session's id and password may take it over, and close it. Every server makes the password from
the id and a constant of its source, with Java's generator of random numbers; so it can be made here as well.
What the owner of the session then lives through is a true expiry, without the wait for one.

Source: org.apache.zookeeper.server.ZooKeeperServer.generatePasswd.
"""

from __future__ import annotations

from kazoo.client import KazooClient

from machines.town import NAME
from skuld_py.model.document import Document
from skuld_py.runtime.zookeeper.clusters import connection, path_of

_SUPER_SECRET = 0xB3415C00
_MULTIPLIER, _MASK = 0x5DEECE66D, (1 << 48) - 1
_TIMEOUT_S = 10.0


def password_of(session: int) -> bytes:
    """The 16 bytes that go with a session id."""
    state = (session ^ _SUPER_SECRET ^ _MULTIPLIER) & _MASK
    made = b""
    for _ in range(4):
        state = (state * _MULTIPLIER + 0xB) & _MASK
        made += (state >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return made


def documents(hosts: str) -> dict[int, Document]:
    """The documents of all partitions, as they are now."""
    place = f"{path_of(NAME)}/partitions"
    with connection(hosts, _TIMEOUT_S, is_write=False) as looker:
        names = sorted(looker.get_children(place), key=int)
        return {int(name): Document.decode(looker.get(f"{place}/{name}")[0]) for name in names}


def expire(hosts: str, member: str) -> None:
    """End the session that keeps a member alive."""
    place = f"{path_of(NAME)}/members"
    with connection(hosts, _TIMEOUT_S, is_write=False) as looker:
        life = next(name for name in looker.get_children(place) if name.partition("~")[0] == member)
        session = looker.get(f"{place}/{life}")[1].ephemeralOwner
    thief = KazooClient(hosts=hosts, timeout=_TIMEOUT_S, client_id=(session, password_of(session)))
    thief.start(timeout=_TIMEOUT_S)
    if thief.client_id[0] != session:
        raise RuntimeError(f"the session {session:#x} of {member} could not be taken over")
    thief.stop()
    thief.close()
