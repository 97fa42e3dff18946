"""What the node machine is told of the coordination log: which rules hold, which members live, which nodes are
placed, what the session is worth.

Nothing is told before the log was read to its end once, since what it said long ago would move data to and fro. A
session is CONNECTED only for a member: a process that has not joined, or was taken for dead, must not act as one.

A placement that is decided aside (``scale.derivation``) is told with the nodes that it places, once it is theirs.
While it lags behind them the node goes on with the nodes and the placement that it has, as any node does that
hears of news a little later; nodes that are overtaken meanwhile are never told.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.cluster.placement import Placement
from skuld_py.cluster.scale.seating import is_news
from skuld_py.model.coordination import Announce
from skuld_py.model.document import Member
from skuld_py.model.events import MembersChanged, NodesChanged, RulesChanged, SeatsChanged, Session, SessionChanged
from skuld_py.model.seats import Seats


@attrs.define
class Teller:
    """Says what is new, once."""

    _session: Session | None = None
    _places: Mapping[str, Place] = attrs.field(factory=dict)
    """The nodes of the replica that was last told of."""
    _replicas: int = 0
    """How many copies that one wants."""
    _is_held: bool = False
    """Whether those nodes are not told yet, since their placement lags."""
    _nodes: NodesChanged | None = None
    _members: MembersChanged | None = None
    _rules: int = 0
    _seats: Seats = attrs.field(factory=Seats)

    def tell(self, replica: Replica, is_lagging: bool = False, placement: Placement | None = None
             ) -> list[Announce]:
        """The rules, the nodes and the members, where they changed. ``placement`` is that of the nodes unless it
        lags; None: the node works it out itself."""
        rules = [Announce(RulesChanged(replica.rules))] if replica.rules != self._rules else []
        self._rules = replica.rules
        is_same = replica.nodes is self._places and replica.replicas == self._replicas
        if is_same and (is_lagging or not self._is_held):
            return rules
        self._places, self._replicas, self._is_held = replica.nodes, replica.replicas, is_lagging
        nodes = self._nodes if is_lagging else attrs.evolve(nodes_of(replica), placement=placement)
        members = MembersChanged(members_of(replica))
        news = [Announce(event) for event, known in ((nodes, self._nodes), (members, self._members))
                if event is not None and event != known]
        self._nodes, self._members = nodes, members
        return [*rules, *news]

    def tell_seats(self, seats: Seats) -> list[Announce]:
        """The seats of workflows, where they changed."""
        if seats is self._seats or not is_news(self._seats, seats):
            return []
        self._seats = seats
        return [Announce(SeatsChanged(seats))]

    def tell_session(self, session: Session) -> list[Announce]:
        """Tell of a change of the session; a loss only to a node that was told CONNECTED."""
        had_one = self._session in (Session.CONNECTED, Session.SUSPENDED)
        if session is self._session or not (had_one or session is Session.CONNECTED):
            return []
        self._session = session
        return [Announce(SessionChanged(session))]


def nodes_of(replica: Replica) -> NodesChanged:
    """The nodes that own partitions, and those on their way out, by name; and how many own each partition."""
    leaving = sorted(name for name, place in replica.nodes.items() if place.is_leaving)
    return NodesChanged(tuple(placed(replica)), tuple(leaving), replicas=replica.replicas)


def members_of(replica: Replica) -> tuple[Member, ...]:
    """The newest life of each node that lives, by the node's name."""
    return tuple(replica.members[place.member] for _, place in sorted(replica.nodes.items()) if place.member)
