"""The coordination log on ZooKeeper: what the membership machine wishes, done; what it is told, read.

Invariants:

* All in the worker's thread (``connection``); every step asks much and waits once, in limited time.
* What ZooKeeper does not answer stays to be done, until it can be answered by exactly one event or the session is
  lost; a later reading takes the place of an earlier one. Only an append is given up, as uncertain: whether to
  repeat it is for the machine to say, which knows its number.
* Watches are reconciled: whose pulse is watched is a set, checked (and armed again by the check) when it gains an
  id, after every reconnection, and with every heartbeat. The watch for the next entry is armed by a look at it,
  and backed by the time limit of the reading.
* A long duty, writing an origin and removing what it replaces, is cut into short steps; whatever else is to be
  done is done between them. Broken off, it begins again: every step may be repeated.

Rejected: a watch on the children of ``log`` (each entry would make each member list them all); a transaction for
the origin (pieces of half a mebibyte do not fit into one).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from skuld_py.cluster.log.entries import ENTRY_BYTES_MAX
from skuld_py.errors import Refused
from skuld_py.model.coordination import (
    Append,
    Appended,
    AppendUncertain,
    CoordinationEvent,
    EntriesRead,
    OriginRead,
    PulseGone,
    PulsesRead,
    ReadEntries,
    ReadOrigin,
    ReadPulses,
    SweepEntries,
    WatchPulses,
    WriteOrigin,
)
from skuld_py.runtime.zookeeper.clusters import UNANSWERED
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.entry_sweep import EntrySweep
from skuld_py.runtime.zookeeper.log_reading import BrokenOrigin, LogReader, entry_path, position_of
from skuld_py.runtime.zookeeper.origin_writing import OriginWriting
from skuld_py.runtime.zookeeper.patience import Patience

Step = Callable[[], None]
LogEffect = WatchPulses | ReadPulses | ReadOrigin | ReadEntries | Append | WriteOrigin | SweepEntries

_RETRY_S = 0.5
_NEVER = float("inf")

_log = logging.getLogger(__name__)


@attrs.define
class _Reading:
    """A reading that is outstanding. ``is_quiet``: nothing was there, and the watch has not fired since.
    ``is_new``: the first look is still to come; a reading that waits mostly waits for what is not there."""

    wish: ReadEntries
    until_s: float
    is_quiet: bool = False
    is_new: bool = True


@attrs.define
class _Appending:
    """An append, given up as uncertain at ``until_s`` while ZooKeeper cannot be asked."""

    wish: Append
    until_s: float


class CoordinationLog:
    """``take`` notes what is wished, ``work`` does what can be done now, ``due_s`` says when more can."""

    def __init__(self, connection: Connection, root: str, emit: Callable[[CoordinationEvent], None]) -> None:
        self._connection = connection
        self._root = root
        self._emit = emit
        self._reader = LogReader(root, lambda: connection.client, connection.wait)
        self._watched: tuple[str, ...] = ()
        self._armed: dict[str, None] = {}
        self._is_origin_wanted = self._are_pulses_wanted = False
        self._reading: _Reading | None = None
        self._appends: deque[_Appending] = deque()
        self._writing: OriginWriting | None = None
        self._sweep: EntrySweep | None = None
        self._retry_s = 0.0
        self._patience: dict[str, Patience] = {}
        """Patience with each step that failed: what cannot be read must not hold up what can be done."""

    def check_origin(self) -> None:
        """``Refused`` when the origin cannot be read, so that a start finds that out at once."""
        try:
            self._reader.origin()
        except BrokenOrigin as problem:
            raise Refused("broken_origin", f"{self._root}/origin in ZooKeeper cannot be read: {problem}; upgrade"
                          " this node, or put back what stood there") from problem

    def take(self, effect: LogEffect) -> None:
        """Note a wish."""
        now_s = time.monotonic()
        match effect:
            case WatchPulses():
                self._watched = effect.members
                self._armed = {member: None for member in effect.members if member in self._armed}
            case ReadPulses():
                self._are_pulses_wanted = True
            case ReadOrigin():
                self._is_origin_wanted = True
            case ReadEntries():
                self._reading = _Reading(effect, now_s + effect.wait_ms / 1000)
            case Append():
                if len(effect.raw) > ENTRY_BYTES_MAX:
                    raise ValueError(f"an entry of {len(effect.raw)} bytes can be read by nobody")
                self._appends.append(_Appending(effect, now_s + self._connection.patience_s))
            case WriteOrigin():
                self._writing = OriginWriting(self._connection, self._root, effect)
            case SweepEntries():
                self._sweep = EntrySweep(self._connection, self._root, effect)

    def look_again(self) -> None:
        """Trust no watch: the connection was broken, or it is time."""
        self._armed.clear()
        self._retry_s = 0.0
        self.expect_entry()

    def expect_entry(self) -> None:
        """The watch on the next entry has fired."""
        if self._reading is not None:
            self._reading.is_quiet = self._reading.is_new = False

    def void(self) -> None:
        """The session is lost: nothing is wished any more, and nothing that is outstanding is answered."""
        self._watched, self._armed = (), {}
        self._is_origin_wanted = self._are_pulses_wanted = False
        self._reading = self._writing = self._sweep = None
        self._appends.clear()

    def due_s(self) -> float:
        """When to call ``work`` again at the latest, if nothing happens; by the monotonic clock."""
        dues = [appending.until_s for appending in self._appends]
        if self._reading is not None:
            dues.append(self._reading.until_s)
        if self._connection.is_connected:
            dues += [max(self._retry_s, self._until_s(step)) for step, has_work in self._steps() if has_work]
        return min(dues, default=_NEVER)

    def _steps(self) -> list[tuple[Step, bool]]:
        """What is done in a pass, in order, and whether there is any of it now."""
        return [(self._append, bool(self._appends)),
                (self._check_pulses, any(member not in self._armed for member in self._watched)),
                (self._read_pulses, self._are_pulses_wanted), (self._read_origin, self._is_origin_wanted),
                (self._read_entries, self._reading is not None and (
                    not self._reading.is_quiet or self._reading.until_s <= time.monotonic())),
                (self._write, self._writing is not None), (self._sweep_on, self._sweep is not None)]

    def _until_s(self, step: Step) -> float:
        held = self._patience.get(step.__name__)
        return held.until_s if held is not None else 0.0

    def work(self) -> None:
        """Do what can be done now."""
        if self._connection.is_connected and time.monotonic() >= self._retry_s:
            for step, has_work in self._steps():
                if has_work and time.monotonic() >= self._until_s(step) and not self._is_done(step):
                    break
        self._give_up(time.monotonic())

    def _is_done(self, step: Callable[[], None]) -> bool:
        """Whether ZooKeeper answered. A step that fails otherwise stops no other one, and is tried again."""
        try:
            step()
        except UNANSWERED as problem:
            _log.info("ZooKeeper did not answer about the coordination log: %r", problem)
            self._retry_s = time.monotonic() + _RETRY_S
            return False
        except (KazooException, BrokenOrigin) as problem:
            pause_s = self._patience.setdefault(step.__name__, Patience()).fail(time.monotonic())
            _log.error("cannot work on the coordination log at %s, trying again in %d s: %s", self._root, pause_s,
                       problem if isinstance(problem, BrokenOrigin) else repr(problem))
        else:
            self._patience.pop(step.__name__, None)
        return True

    def _give_up(self, now_s: float) -> None:
        while self._appends and self._appends[0].until_s <= now_s:
            self._emit(AppendUncertain(self._appends.popleft().wish.seq))
        if self._reading is not None and self._reading.until_s <= now_s:
            self._answer(EntriesRead(self._reading.wish.start, ()))

    # -- one after the other -------------------------------------------------------------------

    def _append(self) -> None:
        while self._appends:
            wish = self._appends.popleft().wish
            answer = self._connection.client.create_async(f"{self._root}/log/entry-", wish.raw, sequence=True)
            try:
                path = self._connection.wait(answer)
            except (KazooException, KazooTimeoutError):
                self._emit(AppendUncertain(wish.seq))
                raise
            self._emit(Appended(wish.seq, position_of(path)))

    def _check_pulses(self) -> None:
        unknown = [member for member in self._watched if member not in self._armed]
        answers = [self._look_for(member) for member in unknown]
        for member, answer in zip(unknown, answers, strict=True):
            if not self._stands(answer) and not self._stands(self._look_for(member, is_synced=True)):
                self._emit(PulseGone(member))
            self._armed[member] = None

    def _look_for(self, member: str, is_synced: bool = False) -> Any:
        """Ask for a pulse, watched if it stands; ``exists`` would leave a watch on what is gone, for ever. An
        entry from a peer may be ahead of our server, which does not know the pulse yet: only a look that
        ``is_synced`` shows that there is none."""
        path = f"{self._root}/members/{member}"
        if is_synced:
            self._connection.client.sync_async(path)  # requests of a session are answered in order
        return self._connection.client.get_async(path, watch=self._connection.on_watch)

    def _stands(self, answer: Any) -> bool:
        try:
            self._connection.wait(answer)
        except NoNodeError:
            return False
        return True

    def _read_pulses(self) -> None:
        if self._are_pulses_wanted:
            names = self._connection.wait(self._connection.client.get_children_async(f"{self._root}/members"))
            self._are_pulses_wanted = False
            self._emit(PulsesRead(tuple(sorted(names))))

    def _read_origin(self) -> None:
        if self._is_origin_wanted:
            origin = OriginRead(*self._reader.origin())
            self._is_origin_wanted = False
            self._emit(origin)

    def _read_entries(self) -> None:
        reading = self._reading
        if reading is None:
            return
        is_over = reading.until_s <= time.monotonic()
        if reading.is_new and reading.wish.is_waiting and not is_over:
            reading.is_quiet = self._arm(reading.wish.start)
        reading.is_new = False
        while self._reading is reading and (is_over or not reading.is_quiet):
            self._look(reading, is_over or not reading.wish.is_waiting)

    def _look(self, reading: _Reading, is_last: bool) -> None:
        """Answer a reading, or have its entry watched for unless it must be answered now."""
        wish = reading.wish
        found, is_end = self._reader.entries(wish.start, wish.limit)
        if found:
            self._answer(EntriesRead(wish.start, tuple(found), is_end))
            return
        first = self._reader.beyond(wish.start) if self._reader.is_behind(wish.start) or not is_end else None
        if first == wish.start:
            return  # it was on its way
        if first is not None:
            found, is_end = self._reader.entries(first, wish.limit) if first > wish.start else ([], False)
            self._answer(EntriesRead(wish.start, tuple(found), is_end, is_missing=True))
        elif is_last:
            self._answer(EntriesRead(wish.start, (), is_end=True))
        else:
            reading.is_quiet = self._arm(wish.start)

    def _arm(self, position: int) -> bool:
        """Watch for an entry that is not there; False when it is there after all."""
        path = entry_path(self._root, position)
        return self._connection.wait(
            self._connection.client.exists_async(path, watch=self._connection.on_entry)) is None

    def _answer(self, event: EntriesRead) -> None:
        self._reading = None
        self._emit(event)

    def _write(self) -> None:
        if self._writing is not None and (written := self._writing.step()) is not None:
            self._writing = None
            self._emit(written)

    def _sweep_on(self) -> None:
        """Take a step of the sweep; one that fails ends it, for the next sweep does what is left."""
        sweep, self._sweep = self._sweep, None
        if sweep is not None and not sweep.step():
            self._sweep = sweep
