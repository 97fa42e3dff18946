"""The roster: which keys a cluster knows, whose they are, and what their owners may do.

One value of all keys, kept in ZooKeeper by test-and-set. Nodes look a key up with every message, so a key that
is taken out counts no more at once, also on a connection that stands. A key stands for one name; a name may have
several keys, so that one can be replaced by the next without a pause. A key that was revoked is remembered, so
that its owner cannot put it back by itself.

The cluster has a key of its own, which its nodes show to clients. While it is replaced there are two: each node
shows one of them, and says here which.

Invariants: no two rows have one key; no revoked key has a row; the keys of a node have the role ``node`` alone,
and no other has it. The cluster has two keys at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

import attrs

from skuld_py.errors import Malformed, Refused
from skuld_py.model.names import NAME, WIDE_NAME
from skuld_py.model.roles import Role

ROWS_MAX = 3_000
"""Keys of a cluster, and as many that were revoked, the newest of them."""
BYTES_MAX, CLIENTS_BYTES_MAX = 1_000_000, 900_000
"""A znode has at most 1 MiB; clients leave room for nodes, which could not start without."""
NODE_ROLE = Role.NODE.value
ROLES = tuple(role.value for role in Role)
QUEUES_MAX = 32
CLUSTER_MAX = 2
_KEY = re.compile(r"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")
"""A public key of CURVE in Z85, ZeroMQ's printable form."""


@attrs.frozen
class KeyRow:
    """A public key. ``roles``: what its owner may do; ``queues``: only with queues that begin with one of these,
    if any are named. ``until_ms``: when it ends by itself (0: never). ``address``: where other nodes dial the node
    that has it, as HOST:PORT; empty for a client, or until the node has run. ``shows``: which key of the cluster
    that node shows to clients; empty if it has not said so."""

    key: str
    name: str
    roles: tuple[str, ...]
    queues: tuple[str, ...] = ()
    until_ms: int = 0
    address: str = ""
    shows: str = ""

    @property
    def is_node(self) -> bool:
        """Whether it is a node's."""
        return self.roles == (NODE_ROLE,)

    def is_valid(self, now_ms: int) -> bool:
        """Whether it has not ended."""
        return not self.until_ms or now_ms < self.until_ms


@attrs.frozen
class Roster:
    """All keys of a cluster, in the order in which they were authorised. ``cluster``: its own, the newest first;
    none in a roster from before they were noted."""

    rows: tuple[KeyRow, ...] = ()
    revoked: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    by_key: Mapping[str, KeyRow] = attrs.field(
        default=attrs.Factory(lambda self: {row.key: row for row in self.rows}, takes_self=True), init=False,
        eq=False, repr=False)

    def node(self, name: str) -> tuple[KeyRow, ...]:
        """The keys of a node, the newest last."""
        return tuple(row for row in self.rows if row.is_node and row.name == name)

    def authorised(self, row: KeyRow) -> Roster:
        """With this row in place of that of the same key, if there is one. ``Refused`` for a revoked key, and for
        a client that is called like a node: what is said of the one's keys would be said of the other's."""
        self.check_revoked(row)
        known = self.by_key.get(row.key)
        if known is None and not row.is_node and {each.is_node for each in self.rows if each.name == row.name} == {
                True}:
            raise Refused("name_taken", f"name: {row.name} is a node of this cluster; call the client otherwise",
                          field="name")
        if known is not None and known.name != row.name:
            raise Refused("key_taken", f"key {row.key} is that of {known.name}; make another one for {row.name}",
                          name=row.name)
        if known is None and len(self.rows) >= ROWS_MAX:
            raise Refused("too_many_keys", f"the cluster knows {ROWS_MAX} keys already; revoke some that"
                          " nobody uses ('skuld keys list' shows them)")
        rows = tuple(row if each.key == row.key else each for each in self.rows)
        made = attrs.evolve(self, rows=rows if known is not None else (*rows, row))
        size = len(made.encode())
        if size > (BYTES_MAX if row.is_node else CLIENTS_BYTES_MAX) and size > len(self.encode()):
            raise Refused("too_many_keys", f"the cluster's list of keys has {size} bytes then, which are too many"
                          " for ZooKeeper; revoke some that nobody uses, or name fewer queues", bytes=size)
        return made

    def check_revoked(self, row: KeyRow) -> None:
        """``Refused`` if the key of this row is revoked."""
        if row.key in self.revoked:
            remedy = ("remove node.key from its data directory, and start it again: it makes another one"
                      if row.is_node else "make another one ('skuld keys make', or 'skuld keys rotate')")
            raise Refused("revoked_key", f"key {row.key} of {row.name} is revoked; {remedy}", name=row.name)

    def revoking(self, key: str) -> Roster:
        """Without this key, for good."""
        rows = tuple(row for row in self.rows if row.key != key)
        return attrs.evolve(self, rows=rows, revoked=(
            (*self.revoked, key)[-ROWS_MAX:] if key not in self.revoked else self.revoked))

    def without_nodes(self, names: Container[str]) -> Roster:
        """Without the keys of these nodes. They are not revoked: who starts such a node again with the cluster's
        key authorises its key anew."""
        return attrs.evolve(self, rows=tuple(row for row in self.rows if not (row.is_node and row.name in names)))

    def check_shown(self, key: str) -> None:
        """``Refused`` unless nodes may show this key of the cluster."""
        if self.cluster and key not in self.cluster:
            raise Refused("old_cluster_key", "cluster-key: the cluster's key was replaced, and this one counts"
                          " no more; give the newest file ('skuld cluster rotate' has written it). If this is the"
                          " newest, that was interrupted; run it again")

    def check_newest(self, key: str) -> None:
        """``Refused`` unless this is the cluster's newest key."""
        self.check_shown(key)
        if self.cluster and key != self.cluster[0]:
            raise Refused("old_cluster_key", "cluster-key: the cluster's key is being replaced; give the newer"
                          " file ('skuld cluster rotate' has written it)")

    def succeeded(self, key: str, before: str) -> Roster:
        """With this key of the cluster beside the one before, which it takes the place of."""
        if self.cluster == (key, before):
            return self
        self.check_newest(before)
        if len(self.cluster) > 1:
            raise Refused("rotation_under_way", "cluster-key: it is taking the place of another one already; end"
                          " that first ('skuld cluster rotate NAME --finish')")
        return attrs.evolve(self, cluster=(key, before))

    def settled(self, key: str, live: Iterable[str]) -> Roster:
        """With this key of the cluster alone. ``Refused`` while a live node shows another one."""
        self.check_newest(key)
        behind = sorted(name for name in live if not (rows := self.node(name)) or rows[-1].shows != key)
        if behind:
            raise Refused("nodes_behind", f"cluster-key: {', '.join(behind)} still"
                          f" {'shows' if len(behind) == 1 else 'show'} the key before; start"
                          f" {'it' if len(behind) == 1 else 'them'} again with the newest file, and run this"
                          " again", nodes=", ".join(behind))
        return attrs.evolve(self, cluster=(key,))

    def encode(self) -> bytes:
        """JSON, so that an operator can read it."""
        rows = [attrs.asdict(row) for row in self.rows]
        plain = {"rows": rows, "revoked": self.revoked, "cluster": self.cluster}
        return json.dumps(plain, sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Roster:
        """Parse; raises ``Malformed`` naming the field."""
        try:
            plain = json.loads(raw)
        except (ValueError, RecursionError) as problem:
            raise Malformed("roster", repr(problem)) from None
        if not isinstance(plain, dict):
            raise Malformed("roster", "is no object")
        rows = [_row(f"roster.rows[{at}]", each)
                for at, each in enumerate(_list("roster.rows", plain.get("rows")))]
        revoked = [_text("roster.revoked", each, _KEY) for each in _list("roster.revoked", plain.get("revoked"))]
        own = _list("roster.cluster", plain.get("cluster", []))
        cluster = [_text("roster.cluster", each, _KEY) for each in own]
        if len({row.key for row in rows} | {*revoked}) < len(rows) + len(revoked):
            raise Malformed("roster", "has a key twice")
        if len({*cluster}) != len(cluster) or len(cluster) > CLUSTER_MAX:
            raise Malformed("roster.cluster", f"is not one of at most {CLUSTER_MAX} keys")
        return cls(tuple(rows), tuple(revoked), tuple(cluster))


def check_key(field: str, key: str) -> str:
    """The key itself, or ``Refused``."""
    if not _KEY.fullmatch(key):
        raise Refused("bad_key", f"{field}: {key[:60]!r} is no public key, which has 40 characters")
    return key


def make_row(key: str, name: str, roles: tuple[str, ...], queues: tuple[str, ...] = (),
             until_ms: int = 0) -> KeyRow:
    """A row for a client; ``Refused`` naming what is wrong."""
    unknown = [role for role in roles if role not in ROLES or role == NODE_ROLE]
    if unknown or not roles:
        raise Refused("bad_role", f"role: {unknown[0] if unknown else 'none'} is no role of a client; use"
                      f" {', '.join(role for role in ROLES if role != NODE_ROLE)}")
    if len(queues) > QUEUES_MAX or not all(map(NAME.fullmatch, queues)):
        wrong = next((each for each in queues if not NAME.fullmatch(each)), "")
        raise Refused("bad_queue", f"queue: {wrong[:60]!r} does not begin a queue's name, which is of letters,"
                      " digits, '.', '_' and '-'" if wrong or "" in queues else
                      f"queue: {len(queues)} beginnings are named; name {QUEUES_MAX} at most")
    if not WIDE_NAME.fullmatch(name):
        raise Refused("bad_name", f"name: {name[:60]!r} is no name; use letters, digits, '.', '_', ':', '@' and"
                      " '-', starting with a letter or digit, at most 200", field="name")
    return KeyRow(check_key("key", key), name, roles, queues, until_ms)


def _row(where: str, plain: Any) -> KeyRow:
    if not isinstance(plain, dict):
        raise Malformed(where, "is no object")
    roles = tuple(_text(f"{where}.roles", each, NAME) for each in _list(f"{where}.roles", plain.get("roles")))
    if (NODE_ROLE in roles) != (roles == (NODE_ROLE,)):
        raise Malformed(f"{where}.roles", "has other roles besides node")
    until_ms, address, shows = plain.get("until_ms", 0), plain.get("address", ""), plain.get("shows", "")
    if type(until_ms) is not int or until_ms < 0:
        raise Malformed(f"{where}.until_ms", "is no time")
    queues = tuple(_text(f"{where}.queues", each, NAME) for each in _list(f"{where}.queues", plain.get("queues")))
    return KeyRow(_text(f"{where}.key", plain.get("key"), _KEY),
                  _text(f"{where}.name", plain.get("name"), WIDE_NAME), roles, queues, until_ms,
                  _text(f"{where}.address", address, WIDE_NAME) if address else "",
                  _text(f"{where}.shows", shows, _KEY) if shows else "")


def _list(where: str, plain: Any) -> list[Any]:
    if not isinstance(plain, list) or len(plain) > ROWS_MAX:
        raise Malformed(where, "is no list, or is too long")
    return plain


def _text(where: str, plain: Any, grammar: re.Pattern[str]) -> str:
    if not isinstance(plain, str) or not grammar.fullmatch(plain):
        raise Malformed(where, f"{str(plain)[:60]!r} is none")
    return plain
