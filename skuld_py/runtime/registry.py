"""A node's membership: who is alive, who leads, as ZooKeeper has it (layout: see ``clusters``).

Invariants:

* kazoo's threads never wait here: listener and watches only put an order into the worker's queue or an
  event into the loop's. One worker thread does all that blocks, and all it waits for has a time limit.
* ``CONNECTED`` is said only when our ephemeral stands in the present session and members and nodes were
  read in it; ``SUSPENDED`` and ``LOST`` are said at once, and a late ``CONNECTED`` can never follow them.
* The worker reconciles instead of following deltas: every watch that fires, every reconnection and a
  heartbeat lead to the same pass (be registered; read both lists, which arms their watches again). So a
  watch that was lost, as all are when kazoo is suspended, costs at most one heartbeat.
* The node's entry is written by test-and-set over the one its data directory was judged by, or over its own.
  Anything else found there means that another process or directory goes by this name: this node stays out.
* Every effect is answered by exactly one event. A swap whose answer is missing is ``UNCERTAIN``: it may
  even be carried out later. Its version makes that harmless, its write id makes it recognisable.

Rejected: kazoo's recipes and its ``ChildrenWatch`` (they retry by themselves, and lie after ``LOST``); its
``retry`` for swaps (a repeated swap that won the first time looks lost).
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

import attrs
from kazoo.exceptions import BadVersionError, ConnectionLoss, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType, KazooState, KeeperState

from skuld_py.errors import Malformed, Refused
from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Event,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    ReadFailed,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.model.names import WIDE_NAME
from skuld_py.model.registration import Registration
from skuld_py.runtime import clusters

DOCUMENT_BYTES_MAX = 64 << 10
"""ZooKeeper answers a node beyond 1 MiB by cutting the connection, which would look like a broken one."""

_HEARTBEAT_S = 5.0
_RETRY_S = 0.5
_RETRY_UNEXPECTED_S = 2.0
_PIPELINE = 64
_START_S = 10.0
_DEFINITELY_LOST = (BadVersionError, NodeExistsError, NoNodeError)

_log = logging.getLogger(__name__)


class _Order(Enum):
    RECONCILE = "reconcile"
    STOP = "stop"


_Effect = ReadDocument | SwapDocument


class Registry:
    """One node's connection. ``emit`` takes its events, from other threads than the caller's."""

    def __init__(self, hosts: str, cluster: str, member: Member, session_ms: int,
                 emit: Callable[[Event], None], *, starts: int = 1,
                 judged: Registration | None = None) -> None:
        self._hosts = hosts
        self._cluster = cluster
        self._root = clusters.path_of(cluster)
        self._member = member
        self._starts = starts
        self._judged = judged
        self._emit = emit
        self._patience_s = session_ms / 1000
        self._client = clusters.open_client(hosts, self._patience_s)
        self._jobs: queue.SimpleQueue[_Effect | _Order] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="registry", daemon=True)
        self._lock = threading.Lock()
        self._breaks = 0
        self._is_announced = False
        self._is_dead = False
        self._said: tuple[NodesChanged | MembersChanged, ...] = ()

    def start(self) -> None:
        """Connect and register; returns once this node is a member. ``Refused`` when it cannot be."""
        self._client.add_listener(self._on_state)
        clusters.start(self._client, self._hosts, _START_S)
        try:
            self._reconcile()
        except BaseException as problem:
            self._client.remove_listener(self._on_state)
            clusters.stop(self._client)
            if isinstance(problem, NoNodeError):
                raise Refused("unknown_cluster", f"ZooKeeper at {self._hosts} knows no cluster"
                              f" {self._cluster}; create it first", cluster=self._cluster) from problem
            if isinstance(problem, clusters.UNANSWERED):
                raise clusters.unreachable(self._hosts) from problem
            raise
        self._worker.start()

    def perform(self, effect: _Effect) -> None:
        """Have it done; its outcome comes as an event."""
        self._jobs.put(effect)

    def rejoin(self, member: Member, starts: int) -> None:
        """Be another start of the same node: register it, and tell its machine everything from the beginning."""
        with self._lock:
            self._member, self._starts = member, starts
            self._breaks += 1
            self._is_announced = False
        self._jobs.put(_Order.RECONCILE)

    def stop(self) -> None:
        """Leave: the ephemeral goes at once, not when the session would time out."""
        self._client.remove_listener(self._on_state)
        if self._worker.is_alive():
            self._jobs.put(_Order.STOP)
            self._worker.join(2 * self._patience_s)
        clusters.stop(self._client)

    # Called by kazoo's threads.

    def _on_state(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            with self._lock:
                self._breaks += 1
                self._is_announced = False
                self._is_dead = self._client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)
                is_lost = state == KazooState.LOST
                self._emit(SessionChanged(Session.LOST if is_lost else Session.SUSPENDED))
        self._jobs.put(_Order.RECONCILE)

    def _on_watch(self, event: Any) -> None:
        if event.type != EventType.NONE:  # none: the connection broke; whoever mends it reads again
            self._jobs.put(_Order.RECONCILE)

    # The worker.

    def _work(self) -> None:
        pause_s = _HEARTBEAT_S
        while True:
            jobs = self._next_jobs(pause_s)
            if _Order.STOP in jobs:
                return
            pause_s = _HEARTBEAT_S
            try:
                if _Order.RECONCILE in jobs:
                    self._revive()
                    self._reconcile()
            except clusters.UNANSWERED:
                self._interrupted(Session.SUSPENDED)
                pause_s = _RETRY_S
            except Exception:
                _log.exception("cannot keep node %s registered; trying again", self._member.name)
                self._interrupted(Session.LOST)
                pause_s = _RETRY_UNEXPECTED_S
            self._carry_out([job for job in jobs if not isinstance(job, _Order)])

    def _next_jobs(self, pause_s: float) -> list[_Effect | _Order]:
        """What is queued, as one batch; after a pause without anything, the heartbeat."""
        try:
            jobs = [self._jobs.get(timeout=pause_s)]
        except queue.Empty:
            return [_Order.RECONCILE]
        with suppress(queue.Empty):
            while len(jobs) < _PIPELINE:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _interrupted(self, session: Session) -> None:
        """A pass failed. Should kazoo not have said so itself, the machine must hear it from us."""
        with self._lock:
            if self._is_announced:
                self._is_announced = False
                self._emit(SessionChanged(session))

    def _revive(self) -> None:
        """kazoo's connection thread ends on an error it does not expect. A new client is needed then: the
        old one, started again, would first carry out its own order to close."""
        if self._is_dead:
            self._is_dead = False
            _log.error("the connection to ZooKeeper at %s ended; starting a new one", self._hosts)
            self._client.remove_listener(self._on_state)
            clusters.stop(self._client)
            self._client = clusters.open_client(self._hosts, self._patience_s)
            self._client.add_listener(self._on_state)
            self._client.start_async()

    def _reconcile(self) -> None:
        """Be registered, know everybody, have both watches armed, and say what is new."""
        if not self._client.connected:
            return  # being connected again leads here again
        breaks = self._breaks
        self._register()
        news = (self._nodes(), MembersChanged(self._members()))
        with self._lock:
            if breaks != self._breaks:
                return  # the connection broke meanwhile; being connected again leads here again
            for event in news:
                if not self._is_announced or event not in self._said:
                    self._emit(event)
            self._said = news
            if not self._is_announced:
                self._is_announced = True
                self._emit(SessionChanged(Session.CONNECTED))

    def _register(self) -> None:
        with self._lock:
            me, starts = self._member, self._starts
        self._keep_entry(me, starts)
        path = f"{self._root}/members/{me.name}"
        ours = json.dumps({"host": me.host, "port": me.port, "boot": me.boot, "incarnation": me.incarnation},
                          sort_keys=True).encode()
        while True:
            session = self._client.client_id
            if session is None:
                raise ConnectionLoss()
            try:
                raw, stat = self._wait(self._client.get_async(path))
            except NoNodeError:
                with suppress(NodeExistsError):
                    self._wait(self._client.create_async(path, ours, ephemeral=True))
                continue
            if stat.ephemeralOwner == session[0] and raw == ours:
                return
            other = _member(me.name, raw)
            if other is not None and (other.host, other.port) != (me.host, me.port):
                raise Refused("name_taken", f"node {me.name} is alive at {other.host}:{other.port}; give this"
                              " node another name or stop that one", name=me.name)
            with suppress(NoNodeError, BadVersionError):  # an earlier process, or session, of this node
                self._wait(self._client.delete_async(path, version=stat.version))

    def _keep_entry(self, me: Member, starts: int) -> None:
        """Have the node's entry say this start; what an operator wrote in it stays."""
        path = f"{self._root}/nodes/{me.name}"
        fresh = Registration(me.host, me.port, me.incarnation, starts)
        while True:
            try:
                raw, stat = self._wait(self._client.get_async(path))
            except NoNodeError:
                with suppress(NodeExistsError):
                    self._wait(self._client.create_async(path, fresh.encode()))
                continue
            known = clusters.registration_of(me.name, raw)
            if not self._may_follow(known, me, starts):
                raise Refused("name_taken", f"another process, or another data directory, has started as node"
                              f" {me.name}; stop one of the two", name=me.name)
            wanted = attrs.evolve(fresh, is_leaving=known.is_leaving, unknown=known.unknown)
            if known == wanted:
                self._judged = None
                return
            with suppress(BadVersionError):
                self._wait(self._client.set_async(path, wanted.encode(), version=stat.version))

    def _may_follow(self, known: Registration, me: Member, starts: int) -> bool:
        if known.incarnation in ("", me.incarnation):
            return known.starts <= starts
        judged = self._judged
        return judged is not None and (judged.incarnation, judged.starts) == (known.incarnation, known.starts)

    def _nodes(self) -> NodesChanged:
        """All registered nodes; each entry is watched as well, for it says whether the node is leaving."""
        names = sorted(filter(WIDE_NAME.fullmatch, self._children("nodes")))
        answers = [self._client.get_async(f"{self._root}/nodes/{name}", watch=self._on_watch) for name in names]
        leaving = {}
        for name, answer in zip(names, answers, strict=True):
            with suppress(NoNodeError):  # gone since; the watch has fired
                leaving[name] = _is_leaving(name, self._wait(answer)[0])
        return NodesChanged(tuple(name for name in leaving if not leaving[name]),
                            tuple(name for name in leaving if leaving[name]))

    def _children(self, folder: str) -> list[str]:
        names: list[str] = self._wait(self._client.get_children_async(f"{self._root}/{folder}",
                                                                      watch=self._on_watch))
        return names

    def _members(self) -> tuple[Member, ...]:
        names = sorted(self._children("members"))
        answers = [self._client.get_async(f"{self._root}/members/{name}") for name in names]
        members = []
        for name, answer in zip(names, answers, strict=True):
            with suppress(NoNodeError):  # gone since; the watch has fired
                members.append(_member(name, self._wait(answer)[0]))
        return tuple(member for member in members if member is not None)

    def _carry_out(self, effects: Sequence[_Effect]) -> None:
        """Ask all, then wait for all: a start reads every partition in few round trips."""
        answers = [self._ask(effect) for effect in effects]
        for effect, answer in zip(effects, answers, strict=True):
            if isinstance(effect, ReadDocument):
                self._emit(self._read(effect, answer))
            else:
                outcome, version = self._outcome(answer)
                self._emit(DocumentSwapped(effect.partition, effect.document.write_id, outcome, version))

    def _ask(self, effect: _Effect) -> Any:
        """The answer to come; a ready one when it is clear without asking; None when nobody is there."""
        if not self._client.connected:
            return None
        path = f"{self._root}/partitions/{effect.partition}"
        if isinstance(effect, ReadDocument):
            self._client.sync_async(path)  # requests of a session are answered in order: no need to wait
            return self._client.get_async(path)
        raw = effect.document.encode()
        if len(raw) > DOCUMENT_BYTES_MAX:
            _log.error("the document of partition %d has %d bytes, not written", effect.partition, len(raw))
            return BadVersionError()
        if effect.version < 0:
            return self._client.create_async(path, raw)
        return self._client.set_async(path, raw, version=effect.version)

    def _read(self, effect: ReadDocument, answer: Any) -> Event:
        try:
            raw, stat = self._wait(answer)
            return DocumentRead(effect.partition, stat.version, Document.decode(raw))
        except NoNodeError:
            return DocumentRead(effect.partition, -1, NOBODY)
        except (KazooException, KazooTimeoutError, Malformed) as problem:
            _log.warning("cannot read the document of partition %d: %r", effect.partition, problem)
            return ReadFailed(effect.partition)

    def _outcome(self, answer: Any) -> tuple[Outcome, int]:
        """How a swap ended, and the version it made; a creation answers with the path: version 0."""
        try:
            stat = self._wait(answer)
            return Outcome.WON, 0 if isinstance(stat, str) else stat.version
        except _DEFINITELY_LOST:
            return Outcome.LOST, -1
        except (KazooException, KazooTimeoutError) as problem:
            _log.warning("a swap of a partition document is uncertain: %r", problem)
            return Outcome.UNCERTAIN, -1

    def _wait(self, answer: Any) -> Any:
        if answer is None:
            raise ConnectionLoss()
        if isinstance(answer, Exception):
            raise answer
        return answer.get(timeout=self._patience_s)


def _is_leaving(name: str, raw: bytes) -> bool:
    """Whether an entry says so; one that cannot be read says nothing, and must not keep others out."""
    try:
        return clusters.registration_of(name, raw).is_leaving
    except Refused as problem:
        _log.warning("%s", problem)
        return False


def _member(name: str, raw: bytes) -> Member | None:
    """The member a node describes; None, and a word in the log, when it describes none."""
    try:
        fields = json.loads(raw)
        member = Member(name, str(fields["host"]), int(fields["port"]), str(fields["boot"]),
                        str(fields.get("incarnation", "")))
        if not WIDE_NAME.fullmatch(name) or not 1 <= member.port <= 65_535:
            raise ValueError(f"name or port out of range: {member}")
        return member
    except (ValueError, KeyError, TypeError) as problem:
        _log.warning("the entry of member %s is not readable: %r", name, problem)
        return None
