"""The nemesis: carries a schedule of faults out, and ends it.

A fault that finds its victim in no state to suffer it (a pause of a dead node) does nothing and is not
counted. Every decision goes into the trace with the number of its fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import attrs

from skuld_py.model.document import NOBODY, Document, Seat
from skuld_py.model.memory_store import Snapshot
from skuld_py.model.messages import ClaimPage, Vote
from skuld_py.model.setting import SETTING_PREFIX
from skuld_py.node.life.identity import IDENTITY_KEY
from skuld_py.partition.data.tables import promise_key, suspect_key
from skuld_py.simulation.atlas import Atlas
from skuld_py.simulation.departures import Departures
from skuld_py.simulation.faults import AHEAD, AHEAD_MS, STOP, VISIT, Fault
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.network import Network, Weather
from skuld_py.simulation.world.process import CrashPoint, Process
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.zookeeper.documents import SCRIBBLES
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import Connection

RESTART_SPREAD_MS = 500
REBOOT_MS = (20, 400)
"""After a process has ended itself, until its supervisor has started it again."""
AFTER_ELECTION_MS = (0, 60)
FLAP_MS = (20, 600)
SLOW_MS = (10, 200)
LAG_MS = (20, 2_000)
REPLAYED = (1, 40)
LOOK_MS = 100
DEPOSE_MS = 1_500
"""How often leaders are deposed until a node is told of a vote of its own."""
CORRUPTED = (1, 1, 2, 10)
VOTER_RECORDS = 5
"""This many of its newest histories turn unreadable when a voter is damaged."""
_CRASH_POINTS = {"crash before commit": CrashPoint.BEFORE_COMMIT,
                 "crash after commit": CrashPoint.AFTER_COMMIT}
_PARTITIONS = ("halves", "isolate", "one way", "bridge", "ring")


class Victim(Protocol):
    """What a nemesis may lay hands on."""

    seed: int
    scheduler: Scheduler
    network: Network
    registry: Registry
    processes: dict[str, Process]
    options: Options
    atlas: Atlas
    on_support: list[Callable[[Process, Vote | ClaimPage], None]]

    def restart(self, name: str) -> None:
        """Start a node that is down."""

    def pause(self, name: str) -> None:
        """Stop a node's process."""

    def resume(self, name: str) -> None:
        """Let it go on."""

    def step_clock(self, name: str, label: str) -> None:
        """Set a node's clock anew, as far off as is allowed."""

    def set_ahead(self, name: str, ahead_ms: int) -> None:
        """Set a node's clock ahead of all others, or right again."""

    def cut_registry(self, name: str) -> None:
        """Part a node from the registry."""

    def mend_registry(self, name: str) -> None:
        """Join them again."""

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""


class Nemesis:
    """Carries a schedule out. ``counts``: how often each kind took effect; ``struck``: the faults that did."""

    def __init__(self, victim: Victim, faults: Sequence[Fault], calm: Weather) -> None:
        self.counts: Counter[str] = Counter()
        self.faults = faults
        self.struck: list[Fault] = []
        self._victim = victim
        self._calm = calm
        self._is_over = False
        self._is_ahead = False
        """Whether a node was set ahead last, and not right again."""
        departures = Departures(victim, self._at_stop)
        self._starts: dict[str, Callable[[Fault], bool]] = {
            "crash": self._crash, "blackout": self._crash, "disk full": self._fill_disk,
            "new leader crash": self._crash_new_leader, "clock step": self._step_clock,
            AHEAD.kind: self._set_ahead,
            "pause": self._pause, "long pause": self._pause, "flap": self._flap, "clog": self._clog,
            "storm": self._storm, "reset": self._reset, "replay": self._replay, "slow": self._slow,
            "registry cut": self._cut_registry, "registry freeze": self._freeze,
            "registry quorum": self._lose_quorum, "registry move": self._move, "registry lag": self._lag,
            "registry choke": self._choke, "registry scribble": self._scribble, "expire": self._expire,
            "wipe": self._wipe, "roll back": self._roll_back, "corrupt": self._corrupt,
            "old copy": self._put_back, "voter damaged": self._damage_voter,
            "leave": departures.leave, "hold up": self._hold_up, STOP.kind: departures.stop,
            VISIT: departures.visit,
            **dict.fromkeys(_CRASH_POINTS, self._arm_crash), **dict.fromkeys(_PARTITIONS, self._part),
        }

    def begin(self) -> None:
        """Plan all of it."""
        for fault in self.faults:
            self._victim.scheduler.at(fault.start_ms, self.strike, fault)

    def strike(self, fault: Fault) -> None:
        """Begin a fault, unless all is over."""
        if self._is_over:
            return
        self._victim.note("nemesis", fault.kind, "+".join(fault.targets),
                          f"#{fault.number} until {fault.stop_ms}")
        if self._starts[fault.kind](fault):
            self._note_strike(fault)

    def _note_strike(self, fault: Fault) -> None:
        self.counts[fault.kind] += 1
        self.struck.append(fault)

    def _at_stop(self, fault: Fault, action: Callable[..., None], *arguments: object) -> None:
        self._later(fault.stop_ms, action, *arguments)

    def _later(self, at_ms: int, action: Callable[..., None], *arguments: object) -> None:
        self._victim.scheduler.at(at_ms, self._unless_over, action, arguments)

    def _unless_over(self, action: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if not self._is_over:
            action(*arguments)

    def _process(self, fault: Fault) -> Process:
        return self._victim.processes[fault.targets[0]]

    def _draw(self, fault: Fault, span: tuple[int, int]) -> int:
        return stream(self._victim.seed, f"fault {fault.number}").randint(*span)

    # -- processes -----------------------------------------------------------------------------

    def _crash(self, fault: Fault) -> bool:
        random = stream(self._victim.seed, f"fault {fault.number}")
        for name in fault.targets:
            self._victim.processes[name].crash()
            spread_ms = random.randint(0, RESTART_SPREAD_MS) if len(fault.targets) > 1 else 0
            self._later(fault.stop_ms + spread_ms, self._victim.restart, name)
        return True

    def _arm_crash(self, fault: Fault) -> bool:
        process = self._process(fault)
        if process.is_up:
            process.crash_point = _CRASH_POINTS[fault.kind]
            self._restart_after_crash(process, fault.stop_ms - fault.start_ms)
        return process.is_up

    def _restart_after_crash(self, process: Process, downtime_ms: int) -> None:
        process.on_crash = lambda: self._later(
            self._victim.scheduler.now_ms + downtime_ms, self._victim.restart, process.name)

    def _crash_new_leader(self, fault: Fault) -> bool:
        """The next leader elected dies in the moments after."""
        written, delay_ms = self._victim.registry.on_written, self._draw(fault, AFTER_ELECTION_MS)

        def then(now_ms: int, partition: int, before: Document | None, document: Document) -> None:
            process = self._victim.processes.get(document.leader)
            if process is None:  # of a cluster just restored
                return
            written.remove(then)
            self._later(now_ms + delay_ms, process.crash)
            self._later(now_ms + delay_ms + fault.stop_ms - fault.start_ms, self._victim.restart, process.name)
        written.append(then)
        return True

    def _fill_disk(self, fault: Fault) -> bool:
        """Every commit fails, and with it the process; a restart meets the same."""
        process = self._process(fault)
        process.is_disk_full = True
        downtime_ms = self._draw(fault, REBOOT_MS)
        process.supervise = lambda: self._later(
            self._victim.scheduler.now_ms + downtime_ms, self._victim.restart, process.name)
        self._at_stop(fault, self._free_disk, process)
        return True

    def _free_disk(self, process: Process) -> None:
        process.is_disk_full = False
        if not process.is_up:
            process.supervise()
        process.supervise = lambda: None

    def _pause(self, fault: Fault) -> bool:
        is_up = self._process(fault).is_up
        self._victim.pause(fault.targets[0])
        self._at_stop(fault, self._victim.resume, fault.targets[0])
        return is_up

    def _step_clock(self, fault: Fault) -> bool:
        """A node reads the wall clock at its start alone, so a step shows with the next one."""
        self._victim.step_clock(fault.targets[0], f"clock {fault.targets[0]} after fault {fault.number}")
        return self._crash(fault)

    def _set_ahead(self, fault: Fault) -> bool:
        """A node starts anew with a clock that is far ahead, and once more when that is right again."""
        ahead_ms = AHEAD_MS[self._draw(fault, (0, len(AHEAD_MS) - 1))]
        if self._is_ahead:
            return False
        self._start_by(fault, ahead_ms)
        self._at_stop(fault, self._start_by, fault, 0)
        return True

    def _start_by(self, fault: Fault, ahead_ms: int) -> None:
        self._is_ahead = bool(ahead_ms)
        process = self._process(fault)
        process.crash()
        self._victim.set_ahead(process.name, ahead_ms)
        back_ms = self._victim.scheduler.now_ms + self._draw(fault, REBOOT_MS)
        self._later(back_ms, self._victim.restart, process.name)

    # -- disks ---------------------------------------------------------------------------------

    def _wipe(self, fault: Fault) -> bool:
        """A node dies and comes back with an empty disk."""
        process = self._process(fault)
        if not self.may_hurt(process):
            return False
        process.crash()
        process.store.wipe()
        self._at_stop(fault, self._victim.restart, process.name)
        return True

    def _roll_back(self, fault: Fault) -> bool:
        """A node dies and comes back; then it dies again and comes back with what it had before the first
        death. That its directory is old can be told only once the start in between is registered. Counted when
        it happens."""
        process = self._process(fault)
        if not process.is_up:
            return False
        snapshot, starts = process.store.snapshot(), process.starts
        process.crash()
        self._later(fault.start_ms + self._draw(fault, REBOOT_MS), self._victim.restart, process.name)

        def turn_back() -> None:
            registered = self._victim.registry.registration(process.name)
            if registered is None or registered.starts <= starts or not self.may_hurt(process):
                return
            process.crash()
            process.store.restore(snapshot)
            self._victim.note("nemesis", "turn back", process.name)
            self._note_strike(attrs.evolve(fault, start_ms=self._victim.scheduler.now_ms))
            self._later(self._victim.scheduler.now_ms + self._draw(fault, REBOOT_MS), self._victim.restart,
                        process.name)
        self._at_stop(fault, turn_back)
        return False

    def _put_back(self, fault: Fault) -> bool:
        """A node dies and comes back with what it had earlier in the same start. Only where each partition has
        since elected a leader with its vote, for only that can tell the node. So the present leaders lose their
        sessions, and those after them, for a deposed leader has no vote until it is a member again. So do the
        leaders at its start, and it hears nothing from the registry for a while. Counted when it happens."""
        process = self._process(fault)
        if not process.is_up or self._victim.options.has_churn:
            return False
        copy, starts = process.store.snapshot(), process.starts

        def put_back() -> None:
            if process.starts != starts:
                return
            told, now_ms = self.told_of(process, copy), self._victim.scheduler.now_ms
            if not told or not self.may_hurt(process):
                if (now_ms - fault.start_ms) % DEPOSE_MS < LOOK_MS:
                    self._depose()
                if now_ms < fault.stop_ms:
                    self._later(now_ms + LOOK_MS, put_back)
                return
            process.crash()
            process.store.restore(copy)
            self._victim.atlas.note_old_copy(process.name, told)
            self._victim.note("nemesis", "put back", process.name)
            self._note_strike(attrs.evolve(fault, start_ms=now_ms))
            blind_ms = self._draw(fault, LAG_MS)
            self._victim.cut_registry(process.name)
            self._later(now_ms + self._draw(fault, REBOOT_MS), self._victim.restart, process.name)
            self._later(now_ms + blind_ms, self._victim.mend_registry, process.name)
            self._depose()
        self._depose()
        self._later(fault.start_ms + LOOK_MS, put_back)
        return False

    def _depose(self) -> None:
        for _, document in list(self._victim.registry.documents.values()):
            leader = self._victim.processes[document.leader].connection
            if leader is not None:
                self._victim.registry.expire(leader)

    def told_of(self, process: Process, copy: Snapshot) -> list[int]:
        """The partitions in which the node votes, if of each the document holds a vote against the copy, and no
        setting has changed; else none."""
        meta, now = copy["meta"], process.store.snapshot()["meta"]
        if any(meta.get(key) != value for key, value in now.items() if key.startswith(SETTING_PREFIX)):
            return []
        identity, told = meta[IDENTITY_KEY][8:].decode(), list[int]()
        for partition in range(self._victim.options.parameters.partitions):
            document = self._victim.registry.documents.get(partition, (-1, NOBODY))[1]
            promised = int.from_bytes(meta.get(promise_key(partition), b"")[:8], "big")
            is_known = Seat(process.name, identity) in document.seats and (
                document.promises.get(process.name, 0) > promised or suspect_key(partition) in meta)
            is_stranger = document.epoch and process.name not in document.cohort and promised == 0
            if not (is_known or is_stranger):
                return []
            told += [partition] * is_known
        return told

    def _corrupt(self, fault: Fault) -> bool:
        """Committed records turn unreadable under a node, up or down; a read of one finds out."""
        process = self._process(fault)
        random, keys = stream(self._victim.seed, f"fault {fault.number}"), process.store.records()
        if not keys or not self.may_hurt(process):
            return False
        for table, key in random.sample(keys, min(len(keys), random.choice(CORRUPTED))):
            process.store.damage(table, key)
            self._victim.note("nemesis", "damage", process.name, f"{table} {key.hex()}")
        return True

    def _damage_voter(self, fault: Fault) -> bool:
        """The next node that votes, or hands its claims on, finds right after that it cannot read them, and is a
        suspect when the candidate asks for more. Counted when it happens."""
        support, kind = self._victim.on_support, (Vote, ClaimPage)[self._draw(fault, (0, 1))]

        def then(process: Process, message: Vote | ClaimPage) -> None:
            prefix = message.partition.to_bytes(2, "big")
            keys = [key for table, key in process.store.records() if table == "history" and key.startswith(prefix)]
            if self._is_over or type(message) is not kind or not keys or not self.may_hurt(process):
                return
            support.remove(then)
            for key in keys[-VOTER_RECORDS:]:
                process.store.damage("history", key)
                self._victim.note("nemesis", "damage", process.name, f"history {key.hex()}")
            self._later(self._victim.scheduler.now_ms, process.verify)
            self._note_strike(attrs.evolve(fault, start_ms=self._victim.scheduler.now_ms))
        support.append(then)
        self._at_stop(fault, lambda: support.remove(then) if then in support else None)
        return False

    def may_hurt(self, process: Process) -> bool:
        """Whether a node may lose what it has; it counts as hurt then."""
        may = self._victim.atlas.may_hurt(process.name)
        if may:
            self._victim.atlas.note_hurt(process.name)
        return may

    # -- links ---------------------------------------------------------------------------------

    def _part(self, fault: Fault) -> bool:
        self._victim.network.cut(fault.links)
        self._at_stop(fault, self._victim.network.mend, fault.links)
        return bool(fault.links)

    def _flap(self, fault: Fault) -> bool:
        """The same links break and come back, over and over."""
        random, at_ms = stream(self._victim.seed, f"fault {fault.number}"), fault.start_ms
        while at_ms < fault.stop_ms:
            mend_ms = at_ms + random.randint(*FLAP_MS)
            self._later(at_ms, self._victim.network.cut, fault.links)
            self._later(mend_ms, self._victim.network.mend, fault.links)
            at_ms = mend_ms + random.randint(*FLAP_MS)
        return bool(fault.links)

    def _clog(self, fault: Fault) -> bool:
        for link in fault.links:
            self._victim.network.clog(link, fault.stop_ms)
        return bool(fault.links)

    def _storm(self, fault: Fault) -> bool:
        self._victim.network.weather = attrs.evolve(self._calm, loss=0.4, repeat=0.3)
        self._at_stop(fault, self._calm_down)
        return True

    def _calm_down(self) -> None:
        self._victim.network.weather = self._calm

    def _reset(self, fault: Fault) -> bool:
        for one, other in fault.links:
            self._victim.network.reset(one, other)
        return bool(fault.links)

    def _replay(self, fault: Fault) -> bool:
        random = stream(self._victim.seed, f"fault {fault.number}")
        self._victim.network.replay(random, fault.targets[0], random.randint(*REPLAYED))
        return True

    def _slow(self, fault: Fault) -> bool:
        self._victim.network.slow(fault.targets[0], self._draw(fault, SLOW_MS))
        self._at_stop(fault, self._victim.network.slow, fault.targets[0], 0)
        return True

    def _hold_up(self, fault: Fault) -> bool:
        lateness = self._victim.network.lateness
        lateness.begin(fault.targets[0])
        self._at_stop(fault, lateness.end, fault.targets[0])
        return True

    # -- the registry --------------------------------------------------------------------------

    def _cut_registry(self, fault: Fault) -> bool:
        self._victim.cut_registry(fault.targets[0])
        self._at_stop(fault, self._victim.mend_registry, fault.targets[0])
        return True

    def _freeze(self, fault: Fault) -> bool:
        registry = self._victim.registry
        if registry.is_frozen:
            return False
        registry.freeze()
        self._at_stop(fault, registry.thaw)
        return True

    def _lose_quorum(self, fault: Fault) -> bool:
        """Now, or under the next swap."""
        registry, duration_ms = self._victim.registry, fault.stop_ms - fault.start_ms

        def lose() -> None:
            if registry.is_quorate:
                registry.lose_quorum()
                self._later(self._victim.scheduler.now_ms + duration_ms, registry.regain_quorum)
        if self._draw(fault, (0, 1)):
            registry.before_swap = lose
        else:
            lose()
        return True

    def _to_connection(self, fault: Fault, action: Callable[[Connection], None]) -> bool:
        connection = self._process(fault).connection
        if connection is not None:
            action(connection)
        return connection is not None

    def _move(self, fault: Fault) -> bool:
        return self._to_connection(fault, self._victim.registry.move)

    def _lag(self, fault: Fault) -> bool:
        lag_ms = self._draw(fault, LAG_MS)
        self._at_stop(fault, self._victim.registry.lag, fault.targets[0], 0)
        self._victim.registry.lag(fault.targets[0], lag_ms)
        return True

    def _choke(self, fault: Fault) -> bool:
        return self._to_connection(fault, self._victim.registry.choke)

    def _scribble(self, fault: Fault) -> bool:
        """An operator breaks a document, and puts it right."""
        registry, partitions = self._victim.registry, self._victim.options.parameters.partitions
        number = self._draw(fault, (0, partitions * len(SCRIBBLES) - 1))
        has_struck = registry.scribble(number % partitions, SCRIBBLES[number // partitions])
        if has_struck:
            self._at_stop(fault, registry.correct, number % partitions)
        return has_struck

    def _expire(self, fault: Fault) -> bool:
        return self._to_connection(fault, self._victim.registry.expire)

    # -- healing -------------------------------------------------------------------------------

    def end(self, names: Iterable[str] | None = None) -> None:
        """Heal links, registry and nodes (all of them, or those named): up, running, heard by all."""
        self._is_over = True
        victim = self._victim
        victim.registry.before_swap = None
        healed = list(victim.processes if names is None else names)
        victim.note("nemesis", "heal", "+".join(healed))
        victim.network.mend_all()
        for name in victim.processes:
            victim.mend_registry(name)
        victim.network.weather = attrs.evolve(self._calm, loss=0.0, repeat=0.0, tail=0.0, capacity=0)
        victim.registry.heal()
        for name in healed:
            process = victim.processes[name]
            process.crash_point, process.is_disk_full = None, False
            process.supervise = lambda: None
            if process.is_paused:
                victim.resume(name)
            if process.is_stopping:
                process.crash()
            victim.restart(name)
            process.verify()
