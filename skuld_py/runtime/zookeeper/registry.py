"""A process in ZooKeeper: its session, and all that it keeps, reads and writes there (layout: see ``clusters``).

Invariants:

* ``CONNECTED`` is said only when the node's entry says this start, and then what became of the pulse;
  ``SUSPENDED`` and ``LOST`` are said at once, and a late ``CONNECTED`` can never follow them.
* The worker reconciles instead of following deltas: every watch that fires, every reconnection and a heartbeat
  lead to the same pass (entry, pulse, watched pulses, key of claims), which arms the watches again. So a watch
  that was lost, as all are when kazoo is suspended, costs at most one heartbeat.
* With ``LOST`` all wishes are void, also where the session goes on (a pass failed, the node has another life): a
  machine that is told CONNECTED afterwards wishes anew.

Rejected: kazoo's recipes and its ``ChildrenWatch`` (they retry by themselves, and lie after ``LOST``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import KazooException, NoAuthError, NoNodeError

from skuld_py.errors import Refused
from skuld_py.model.coordination import CoordinationEvent, DropPulse, SetPulse
from skuld_py.model.document import Member
from skuld_py.model.events import Event, ReadDocument, ReadRevisions, Session, SessionChanged, SwapDocument
from skuld_py.model.registration import Registration
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.claim_key import ClaimKey
from skuld_py.runtime.zookeeper.connection import Connection, Order
from skuld_py.runtime.zookeeper.coordination_log import CoordinationLog, LogEffect
from skuld_py.runtime.zookeeper.documents import Documents
from skuld_py.runtime.zookeeper.patience import Patience
from skuld_py.runtime.zookeeper.presence import Presence
from skuld_py.runtime.zookeeper.rosters import RosterWatch
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.runtime.zookeeper.unreached import unreached

_HEARTBEAT_S = 15.0
_RETRY_S = 0.5
_START_S = 10.0

_log = logging.getLogger(__name__)

RegistryEffect = ReadDocument | SwapDocument | ReadRevisions | SetPulse | DropPulse | LogEffect


class Registry:
    """One process's connection. ``emit`` takes its events, and ``put_roster`` the roster of a cluster with keys,
    from other threads than the caller's."""

    def __init__(self, hosts: str, cluster: str, me: Member, session_ms: int,
                 emit: Callable[[Event | CoordinationEvent], None], *, starts: int = 1,
                 judged: Registration | None = None, put_roster: Callable[[Roster], Roster | None] | None = None,
                 on_failure: Callable[[Exception], None] = lambda problem: None) -> None:
        self._cluster = cluster
        self._emit = emit
        self._on_failure = on_failure
        self._connection = Connection(hosts, session_ms / 1000, self._on_break, self._work, self._fail)
        root = self._root = clusters.path_of(cluster)
        self._presence = Presence(self._connection, root, me, starts, judged, emit)
        self._documents = Documents(self._connection, root, emit, me.name)
        self._key = ClaimKey(self._connection, root, emit)
        self._roster = None if put_roster is None else RosterWatch(self._connection, root, put_roster)
        self._log = CoordinationLog(self._connection, root, emit)
        self._is_announced = False
        self._losses = self._voided = 0
        """How often LOST was said, and how many of these losses have dropped the wishes."""
        self._look_at_s = 0.0
        self._patience = Patience()

    def start(self) -> None:
        """Connect and register; returns once this node's entry says this start. ``Refused`` when it cannot be."""
        hosts = self._connection.hosts
        self._connection.open(_START_S)
        try:
            self._reconcile()
            self._log.check_origin()
        except BaseException as problem:
            self._connection.close()
            if isinstance(problem, NoNodeError):
                raise Refused("unknown_cluster", f"ZooKeeper at {hosts} knows no cluster"
                              f" {self._cluster}; create it first", cluster=self._cluster) from problem
            if isinstance(problem, clusters.UNANSWERED):
                raise unreached(Servers.of(hosts)) from problem
            raise
        self._connection.begin()

    def perform(self, effect: RegistryEffect) -> None:
        """Have it done; its outcome comes as an event."""
        self._connection.put(effect)

    def rejoin(self, me: Member, starts: int) -> None:
        """Be another start of the same node: register it, and tell its machine everything from the beginning."""
        with self._connection.lock:
            self._presence.become(me, starts)
            self._key.forget_told()
            self._connection.breaks += 1
            self._on_break(Session.LOST)
        self._connection.put(Order.LOOK)

    def stop(self) -> None:
        """Leave: the pulse goes at once, not when the session would time out."""
        self._connection.close()

    def _on_break(self, session: Session) -> None:
        """Under the lock; mostly by kazoo's threads."""
        self._is_announced = False
        self._losses += session is Session.LOST
        self._emit(SessionChanged(session))

    def _fail(self, problem: Exception) -> None:
        """The worker has ended by an exception."""
        with self._connection.lock:
            self._on_break(Session.LOST)
        self._on_failure(problem)

    # The worker.

    def _work(self, jobs: list[Any]) -> float:
        """One pass; gives the seconds until the next one at the latest."""
        must_look = Order.LOOK in jobs
        documents, histories = [], []
        self._void()
        for job in jobs:
            match job:
                case ReadDocument() | SwapDocument():
                    documents.append(job)
                case ReadRevisions():
                    histories.append(job)
                case SetPulse() | DropPulse():
                    self._presence.set_pulse(job if isinstance(job, SetPulse) else None)
                    must_look = True
                case Order.READ:
                    self._log.expect_entry()
                case Order():
                    pass
                case _:
                    self._log.take(job)
        if must_look or time.monotonic() >= self._look_at_s:
            self._look_at_s = time.monotonic() + self._look()
        self._documents.carry_out(documents)
        self._log.work()
        for effect in histories[:1]:
            self._documents.recall(effect)
        for effect in histories[1:]:
            self._connection.put(effect)  # behind the documents that have come meanwhile
        return min(self._look_at_s, self._log.due_s()) - time.monotonic()

    def _look(self) -> float:
        """Compare what is with what should be; gives the seconds until the next time."""
        try:
            self._connection.revive()
            self._reconcile()
        except clusters.UNANSWERED:
            self._interrupted(Session.SUSPENDED)
            return _RETRY_S
        except (Refused, KazooException) as problem:
            pause_s = self._patience.fail(time.monotonic())
            named = clusters.denied(self._connection.hosts) if isinstance(problem, NoAuthError) else problem
            _log.error("cannot keep this node registered, trying again in %d s: %s", pause_s,
                       named.message if isinstance(named, Refused) else repr(named))
            self._interrupted(Session.LOST)
            if isinstance(problem, Refused):
                self._withdraw()
            return pause_s
        self._patience.succeed()
        return _HEARTBEAT_S

    def _interrupted(self, session: Session) -> None:
        """A pass failed. Should kazoo not have said so itself, the machine must hear it from us."""
        with self._connection.lock:
            if self._is_announced:
                self._on_break(session)

    def _withdraw(self) -> None:
        """Another process goes by our name: no member may take us for alive."""
        try:
            self._presence.drop_pulse()
        except clusters.UNANSWERED:
            _log.warning("the pulse of a node that was refused may stand until its session ends")

    def _reconcile(self) -> None:
        """Have entry and pulse stand and all watches armed, and say so."""
        if not self._connection.is_connected:
            return  # being connected again leads here again
        breaks = self._connection.breaks
        self._void()
        clusters.heed_owners(self._connection.client, self._root, self._connection.patience_s)
        self._presence.begin_session(self._connection.session())
        self._presence.keep_entry()
        self._presence.keep_pulse()
        self._key.look()
        if self._roster is not None:
            self._roster.look()
        self._log.look_again()
        with self._connection.lock:
            if breaks != self._connection.breaks:
                return  # the connection broke meanwhile; being connected again leads here again
            if not self._is_announced:
                self._is_announced = True
                self._presence.forget_told()
                self._emit(SessionChanged(Session.CONNECTED))
            self._presence.tell()

    def _void(self) -> None:
        """Drop the wishes from before the last LOST. No later wish is among them: the machine wishes only after
        CONNECTED, which is said after this."""
        with self._connection.lock:
            losses = self._losses
        if self._voided != losses:
            self._voided = losses
            self._presence.set_pulse(None)
            self._log.void()
