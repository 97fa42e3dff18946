"""The keys of one node, and the newest roster that it knows: who a peer is, and where it is dialled.

The registry's thread puts a new roster in, the thread of the sockets and that of the handshakes look into it. A
roster is one value that never changes, so each of them sees a whole one.
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.keys.pair import Pair
from skuld_py.model.roster import KeyRow, Roster


class Keyring:
    """``cluster``: the pair that clients are shown; ``me``: that of the node itself, shown to other nodes, and
    ``mine`` its row, once it has its place. ``keep``: keeps each
    roster."""

    def __init__(self, cluster: Pair, me: Pair, roster: Roster | None = None,
                 keep: Callable[[Roster], None] = lambda roster: None) -> None:
        self.cluster = cluster
        self.me = me
        self.mine: KeyRow | None = None
        self.roster = roster or Roster()
        self.on_change: Callable[[], None] = lambda: None
        """Called in the thread that puts a roster in."""
        self._keep = keep
        keep(self.roster)

    def put(self, roster: Roster) -> Roster | None:
        """Go by this roster from now on. Gives the one that has to stand in its place, if any: it may lack this
        node, which was forgotten when it was about to start."""
        if roster != self.roster:
            self.roster = roster
            self.on_change()
            self._keep(roster)
        mine = self.mine
        if mine is None or mine.key in roster.revoked or roster.node(mine.name):
            return None
        return roster.authorised(mine)

    def owner(self, key: str, now_ms: Callable[[], int]) -> KeyRow | None:
        """Whose key this is; None if it is unknown, revoked or over. Most keys never end, and need no time."""
        row = self.roster.by_key.get(key)
        return row if row is not None and (not row.until_ms or row.is_valid(now_ms())) else None

    def place(self, node: str) -> tuple[str, str, int] | None:
        """The key that a node shows, and the host and port at which other nodes dial it; None before it has said
        so."""
        for row in reversed(self.roster.node(node)):
            host, _, port = row.address.rpartition(":")
            if host and port.isdecimal():
                return row.key, host, int(port)
        return None
