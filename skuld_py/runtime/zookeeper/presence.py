"""How a process shows in ZooKeeper: the entry of its node, and the pulse of its life.

Invariants:

* The entry (``nodes/NAME``) is written by test-and-set over the one its data directory was judged by, or over its
  own. Anything else found there means that another process or directory goes by this name: this node stays out.
* A data directory counts its starts, so an entry of the same count is this process's own, by ``boot``, or that of
  a process on a copy of the directory, which was there first. Earlier releases write no ``boot``.
* The entry names the newest life before that one's pulse is made. So the next process of the node knows which
  pulse may still stand although its own process is gone, and removes it without a walk over all pulses.
* An entry that is gone is made anew: it was removed because the node had been forgotten (``entry_sweep``).
* The pulse (``members/ID``, ephemeral) is of the present session; of what one process set, the last one stands.
  One that stood and is gone is not made anew: its life is over, for a watcher may have seen it gone.

Rejected: names as pulses (a watcher would take the pulse of a restarted node for that of the life it watches).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import attrs
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from skuld_py.config import RULES
from skuld_py.errors import Refused
from skuld_py.model.coordination import PulseGone, PulseStands, SetPulse
from skuld_py.model.document import Member
from skuld_py.model.registration import Registration
from skuld_py.runtime.zookeeper.clusters import registration_of
from skuld_py.runtime.zookeeper.connection import Connection


class Presence:
    """Keeps entry and pulse; all in the worker's thread. ``judged`` is the entry that this start was judged by."""

    def __init__(self, connection: Connection, root: str, me: Member, starts: int, judged: Registration | None,
                 emit: Callable[[PulseStands | PulseGone], None]) -> None:
        self._connection = connection
        self._root = root
        self._me = me
        self._starts = starts
        self._judged = judged
        self._emit = emit
        self._session = 0
        self._named = ""
        """The newest life that the entry was made to name."""
        self._wanted: SetPulse | None = None
        self._standing = ""
        self._is_told = False

    def become(self, me: Member, starts: int) -> None:
        """Be another start of the same node."""
        self._me, self._starts = me, starts

    def set_pulse(self, wanted: SetPulse | None) -> None:
        """Let this pulse stand, or none, once ``keep_pulse`` is called."""
        self._wanted = wanted
        self.forget_told()

    def forget_told(self) -> None:
        """The machine is a new one: tell it of the pulse again."""
        self._is_told = False

    def begin_session(self, session: int) -> None:
        """The pulses of an earlier session have gone with it."""
        if session != self._session:
            self._session, self._standing = session, ""

    def keep_entry(self) -> None:
        """Have the node's entry name this start, and watch it; what else is in it stays."""
        while True:
            known, version = self._entry()
            if not self._may_follow(known):
                raise Refused("name_taken", "another process, on another data directory or a copy of this one,"
                              f" has started as node {self._me.name}; stop one of the two", name=self._me.name)
            wanted = attrs.evolve(self._fresh(), life=known.life, unknown=known.unknown)
            if known == wanted:
                self._judged = None
                return
            self._swap(wanted, version)

    @property
    def _path(self) -> str:
        return f"{self._root}/nodes/{self._me.name}"

    def _fresh(self) -> Registration:
        me = self._me
        return Registration(me.host, me.port, me.incarnation, self._starts, me.boot, self._named, RULES, me.boot)

    def _entry(self) -> tuple[Registration, int]:
        while True:
            try:
                raw, stat = self._connection.wait(
                    self._connection.client.get_async(self._path, watch=self._connection.on_watch))
                return registration_of(self._me.name, raw), stat.version
            except NoNodeError:
                with suppress(NodeExistsError):
                    self._connection.wait(self._connection.client.create_async(self._path, self._fresh().encode()))

    def _swap(self, entry: Registration, version: int) -> bool:
        try:
            self._connection.wait(self._connection.client.set_async(self._path, entry.encode(), version=version))
        except (BadVersionError, NoNodeError):
            return False
        return True

    def _may_follow(self, known: Registration) -> bool:
        if known.incarnation in ("", self._me.incarnation):
            is_this_start = known.starts == self._starts and known.boot in ("", self._me.boot)
            return known.starts < self._starts or is_this_start
        judged = self._judged
        return judged is not None and (judged.incarnation, judged.starts) == (known.incarnation, known.starts)

    def keep_pulse(self) -> None:
        """Have the wanted pulse stand, watch it, and remove any other of ours."""
        wanted = self._wanted
        if self._standing and (wanted is None or wanted.member != self._standing):
            self._remove(self._standing)
            self._standing = ""
        if wanted is None:
            return
        while not self._stands(wanted.member):
            if self._standing:
                self._wanted, self._standing = None, ""
                self._emit(PulseGone(wanted.member))
                return
            if self._name_life(wanted.member):
                path = f"{self._root}/members/{wanted.member}"
                with suppress(NodeExistsError):
                    self._connection.wait(
                        self._connection.client.create_async(path, _encode(wanted.info), ephemeral=True))
        self._standing = wanted.member

    def _stands(self, life: str) -> bool:
        """Whether a pulse of the present session stands; one of another session is removed."""
        path = f"{self._root}/members/{life}"
        stat = self._connection.wait(
            self._connection.client.exists_async(path, watch=self._connection.on_watch))
        if stat is not None and stat.ephemeralOwner != self._session:
            self._remove(life)
            return False
        return stat is not None

    def tell(self) -> None:
        """Say that the pulse stands, once."""
        if self._standing and not self._is_told:
            self._is_told = True
            self._emit(PulseStands(self._standing))

    def drop_pulse(self) -> None:
        """Let none of ours stand."""
        self.set_pulse(None)
        self.keep_pulse()

    def _name_life(self, life: str) -> bool:
        """Have the entry name a life, and remove the pulse of the one it named; False if it must be done anew."""
        known, version = self._entry()
        if known.life != life:
            if known.life:
                self._remove(known.life)
            if not self._swap(attrs.evolve(known, life=life), version):
                return False
        self._named = life
        return True

    def _remove(self, life: str) -> None:
        with suppress(NoNodeError):
            self._connection.wait(self._connection.client.delete_async(f"{self._root}/members/{life}"))


def _encode(info: Member) -> bytes:
    """JSON, so that an operator can read it."""
    return json.dumps({"host": info.host, "port": info.port, "boot": info.boot, "incarnation": info.incarnation},
                      sort_keys=True).encode()
