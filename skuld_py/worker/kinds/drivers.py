"""Which drivers earlier claims of a task may have left, and what the next claim does about them: two never run.

A claim writes down whom it is about to start, its *intent*, before it does: machine, processes, and where the
guardian listens. The next claim reads what all earlier ones wrote. A driver has ended when a claim says so. Else:

* On this machine, in this space of process ids, by this user, it is looked for. If its guardian lives the driver
  is *adopted*. If the guardian is gone, all that is left of the claim is killed. Then another may start.
* Elsewhere it cannot be looked for. Its guardian has ended it ``adopt_s`` after its claim's last deadline
  (``guard``); a claim that lapsed has passed that deadline, one that ended otherwise may have ``lease_s`` to it.
  So another starts when that time has passed on this machine's steady clock since this claim was granted.
* A log whose beginning is cut, and that tells of no driver, may have told of one: it counts as elsewhere.

Invariant: total. Entries come from any worker's log; what is no intent is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from skuld_py.worker.kinds.machine import Machine, Process

STARTED, ENDED = "driver", "driver_ended"
WAIT_S_MAX = 7 * 24 * 3600.0


@attrs.frozen
class Intent:
    """A driver that may have been started. ``claim``: that of its processes."""

    claim: str
    machine: Machine
    guardian: Process
    driver: Process
    socket: str
    lease_s: float
    adopt_s: float

    def entry(self) -> dict[str, Any]:
        """For the log."""
        return {STARTED: attrs.asdict(self)}


@attrs.frozen
class Past:
    """An earlier claim: its log, whether that is cut, and whether its lease lapsed."""

    entries: Sequence[Mapping[str, Any]]
    is_cut: bool
    has_lapsed: bool


@attrs.frozen
class Plan:
    """Adopt this one, or else kill these, wait for so long, and start another."""

    adopt: Intent | None = None
    kill: tuple[Intent, ...] = ()
    wait_s: float = 0.0
    where: str = ""


def intent_of(entry: Mapping[str, Any]) -> Intent | None:
    """The intent that an entry of a log is; None for another."""
    told = entry.get(STARTED)
    if not isinstance(told, dict):
        return None
    try:
        machine, guardian, driver = told["machine"], told["guardian"], told["driver"]
        made = Intent(str(told["claim"]),
                      Machine(str(machine["host"]), str(machine["boot"]), str(machine["space"])),
                      _process(guardian), _process(driver), str(told["socket"]), _seconds(told["lease_s"]),
                      _seconds(told["adopt_s"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return made


def plan(task: str, earlier: Sequence[Past], here: Machine, is_alive: Callable[[Process], bool], lease_s: float,
         adopt_s: float) -> Plan:
    """What to do before a driver may run; ``earlier`` are the task's claims, oldest first. The lengths are this
    worker's, for what a cut log does not tell."""
    adopt: Intent | None = None
    kill: list[Intent] = []
    wait_s, where = 0.0, ""
    for past, intent in _open(task, earlier):
        if intent is not None and (intent.machine.boot, intent.machine.space) == (here.boot, here.space):
            if adopt is None and is_alive(intent.guardian):
                adopt = intent
            elif adopt is None or intent.claim != adopt.claim:
                kill.append(intent)
            continue
        lease, adoption = (lease_s, adopt_s) if intent is None else (intent.lease_s, intent.adopt_s)
        needed_s = adoption + (0.0 if past.has_lapsed else lease)
        if needed_s > wait_s:
            wait_s, where = needed_s, "an unknown machine" if intent is None else intent.machine.host
    if adopt is not None and not wait_s and not kill:
        return Plan(adopt)
    return Plan(None, (*([adopt] if adopt is not None else []), *kill), wait_s, where)


def _open(task: str, earlier: Sequence[Past]) -> list[tuple[Past, Intent | None]]:
    """The task's drivers of which nobody says that they ended, the newest first; of each only the newest word."""
    found: list[tuple[Past, Intent | None]] = []
    known: set[str] = set()
    for past in reversed(earlier):
        told = False
        for entry in reversed(past.entries):
            if isinstance(entry.get(ENDED), str):
                known.add(entry[ENDED])
                told = True
            intent = intent_of(entry)
            if intent is not None and intent.claim.startswith(f"{task}:"):
                told = True
                if intent.claim not in known:
                    known.add(intent.claim)
                    found.append((past, intent))
        if past.is_cut and not told:
            found.append((past, None))
    return found


def _process(told: Any) -> Process:
    made = Process(int(told["id"]), int(told["start"]))
    if made.id <= 1:
        raise ValueError("no process of a claim's")
    return made


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds <= WAIT_S_MAX:
        raise ValueError("out of range")
    return seconds
