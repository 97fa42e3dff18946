"""What a node knows of itself, of its partitions and of the cluster: what its features look at, each for itself.

The node sets members, session and rights, as its registry and its clock tell. Features note settings, heads and
debts as they hear of them. A view sends nothing and starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.config import Limits, Parameters, protocol_of
from skuld_py.config.timing import Retention, Timing
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import Session
from skuld_py.model.store import Store
from skuld_py.node.knowledge.attendance import Attendance
from skuld_py.node.knowledge.debts import Debts
from skuld_py.node.knowledge.heads import Router
from skuld_py.node.knowledge.leaders import Leaderships
from skuld_py.node.knowledge.notary import Notary
from skuld_py.node.knowledge.seating import Seating
from skuld_py.node.knowledge.settings import Settings
from skuld_py.partition.candidacy import Candidacy
from skuld_py.partition.copies.exchange import Progress
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.leadership.quorum import majority
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.partition.vnode import Vnode


class View:
    """One node's view."""

    def __init__(self, me: Member, parameters: Parameters, store: Store, jitter_ms: Callable[[int], int],
                 timing: Timing, limits: Limits, retention: Retention, release: str = "") -> None:
        self.me = me
        self.release = release
        self.parameters = parameters
        self.timing = timing
        self.limits = limits
        self.retention = retention
        self.live: dict[str, Member] = {}
        """The members: processes that are up, as far as the registry knows."""
        self.nodes: tuple[str, ...] = ()
        """The registered nodes; none before the registry has told."""
        self.leaving: tuple[str, ...] = ()
        """Those that are taken out and may still have something to hand on."""
        self.replicas = parameters.replicas
        """How many copies the cluster keeps; before the registry has told, as many as it was created with."""
        self.majority = majority(self.replicas)
        self.session = Session.LOST
        self.is_connected = False
        """Whether the registry session is good: elections and new grants need it, nothing else does."""
        self.may_renew = False
        """Whether the clock is good. Renewals need no registry: workers go on while ZooKeeper is away."""
        self.may_grant = False
        """Whether session and clock are good; a node that may not grant does not stand either."""
        self.rules = parameters.rules
        """By which the cluster goes."""
        self.protocol = protocol_of(parameters.rules)
        """The newest protocol that all nodes understand."""
        self.is_leaving = False
        """Whether this node is about to stop: it hands over what it leads, and stands for nothing."""
        self.notary = Notary(parameters)
        self.bulletin = Bulletin()
        self.vnodes = [Vnode(partition, me, parameters, store, timing, limits, jitter_ms, self.bulletin)
                       for partition in range(parameters.partitions)]
        for partition, reason in suspects(store, parameters.partitions).items():
            self.vnodes[partition].suspicion = reason
        self._candidacies = [Candidacy(vnode) for vnode in self.vnodes]
        self.leaderships = Leaderships(self.vnodes, self.bulletin)
        self.settings = Settings(store, self.bulletin)
        self.router = Router(me.name, timing.gossip_ms, timing.gossip_queues)
        self.debts = Debts()
        self.attendance = Attendance()
        self.seating = Seating()
        self.audited: dict[int, Progress] = {}
        """Partitions led here that are held against the leader before, and what was found lacking in them."""

    def candidacy(self, vnode: Vnode) -> Candidacy:
        """How a vnode comes to lead."""
        return self._candidacies[vnode.partition]

    def believes(self, row: m.CohortRow) -> bool:
        """Whether the voters that a peer named may be the true ones."""
        return self.vnodes[row.partition].believes(row.era, row.cohort, led=row.era)

    # -- leaders -------------------------------------------------------------------------------

    def led(self) -> list[Vnode]:
        """The partitions that this node leads and may grant from: none while its session or its clock is in
        doubt."""
        return self.leaderships.here() if self.may_grant else []

    def stocked(self, queue: str) -> list[Vnode]:
        """The led partitions in which tasks of a queue may wait."""
        if not self.may_grant:
            return []
        found = self.bulletin.stock.partitions(queue.encode(), self.leaderships.bits())
        return [self.vnodes[partition] for partition in found]

    def renewing(self, partition: int) -> Vnode | None:
        """The partition, if this node leads it and may renew its claims."""
        vnode = self.vnodes[partition]
        return vnode if vnode.is_leading and self.may_renew else None

    def leader_of(self, partition: int) -> str:
        """The live leader of a partition as far as is known, or ``""``."""
        vnode = self.vnodes[partition]
        if vnode.is_leading:
            return self.me.name
        return vnode.leader if vnode.leader in self.live and vnode.leader != self.me.name else ""

    def leaders(self) -> list[str]:
        """The other nodes that lead a partition and are alive."""
        return [name for name in self.leaderships.leaders() if name in self.live and name != self.me.name]

    @property
    def has_leaders(self) -> bool:
        """Whether some partition has a leader that grants: this node, or one that says so."""
        return bool(self.led() or self.leaders())

    @property
    def is_led_throughout(self) -> bool:
        """Whether every partition has a live leader, as far as is known."""
        return all(map(self.leader_of, range(self.parameters.partitions)))

    def route(self, queue: str) -> list[str]:
        """The nodes to try a claim at, the hinted first: this one and others that lead a partition. A node that
        leads none has nothing to grant and may be deaf; waiting for it would use up the claim's time."""
        return self.router.route(queue, self.leaders())
