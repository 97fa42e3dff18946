"""Playing the log: one entry makes one replica of another. Pure and total, whatever stands in the entry.

An entry that cannot be read, that may not be applied, or whose command fails changes nothing but ``failed``, where
all see it: all members skip it alike, and it stops none. The reason kept is short and printable, whatever stands
in the entry. An entry that comes a second time, or from a writer that has left, changes nothing and leaves no
trace.

One thing cannot be skipped: rules that this program does not know. ``UnknownRules`` is raised then, and the member
must leave.

Rejected: to let a failing entry raise, as in Onyx: it fails at all members, reboots them, and fails again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import attrs

from skuld_py.cluster.log.canonical import UNKNOWN_FIELD
from skuld_py.cluster.log.commands import COMMANDS, Command, Inapplicable, Reaction, SetRules
from skuld_py.cluster.log.entries import UNKNOWN_COMMAND, Entry, decode
from skuld_py.cluster.log.replica import FAILED_MAX, Failure, Replica, Written
from skuld_py.config import RULES
from skuld_py.errors import Malformed, Refused

REASON_CHARS_MAX = 250


class Outcome(Enum):
    """What became of an entry."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REPEATED = "repeated"
    LATE = "late"
    REFUSED = "refused"
    FAILED = "failed"


class UnknownRules(Refused):
    """The log goes on by rules that this program cannot play."""

    def __init__(self, position: int, rules: int) -> None:
        super().__init__("unknown_rules", f"entry {position} of the coordination log sets rules {rules}; this"
                         f" program knows rules up to {RULES}: upgrade it", position=position, rules=rules)


@attrs.frozen
class Played:
    """An entry, and what it made. ``entry`` is None when it cannot be read."""

    position: int
    entry: Entry | None
    replica: Replica
    outcome: Outcome
    reason: str = ""
    reactions: tuple[Reaction, ...] = ()
    diff: Mapping[str, str] = attrs.field(factory=dict)


Player = Callable[[Replica, int, bytes], Played]
"""Plays an entry, as ``play`` does."""


def play(replica: Replica, position: int, raw: bytes,
         commands: Mapping[str, type[Command]] = COMMANDS) -> Played:
    """Play the entry at ``position``, which is above the replica's version."""
    here = attrs.evolve(replica, version=position)
    try:
        entry = decode(raw, commands)
    except Malformed as problem:
        return failed(here, position, None, Outcome.FAILED, problem.message)
    admitted = admit(here, position, entry)
    return admitted if isinstance(admitted, Played) else perform(admitted, position, entry)


def admit(here: Replica, position: int, entry: Entry) -> Replica | Played:
    """The replica in which the entry is its writer's newest; or what became of it when it does not count. A
    command of later rules counts as one that cannot be read, and so does one with a field of later rules: releases
    that do not know them play it alike."""
    if entry.command.since > here.rules:
        return failed(here, position, None, Outcome.FAILED, f"entry.do: {UNKNOWN_COMMAND}")
    if newer := entry.command.newer_than(here.rules):
        problem = Malformed(f"{type(entry.command).__name__}.{newer}", UNKNOWN_FIELD)
        return failed(here, position, None, Outcome.FAILED, problem.message)
    if entry.writer in here.left:
        return Played(position, entry, here, Outcome.LATE)
    last = here.writers.get(entry.writer)
    if last is not None and entry.seq <= last.seq:
        return Played(position, entry, here, Outcome.REPEATED)
    if isinstance(entry.command, SetRules) and entry.command.rules > RULES:
        raise UnknownRules(position, entry.command.rules)
    return attrs.evolve(here, writers={**here.writers, entry.writer: Written(entry.seq, position)})


def perform(noted: Replica, position: int, entry: Entry) -> Played:
    """What the command of an entry makes of the replica that ``admit`` gave."""
    try:
        made = entry.command.apply(noted, position)
        reactions, diff = entry.command.reactions(noted, made), entry.command.diff(noted, made)
    except Inapplicable as problem:
        return failed(noted, position, entry, Outcome.REFUSED, str(problem))
    except (MemoryError, RecursionError):
        raise  # this member's trouble, not the entry's
    except Exception as problem:
        return failed(noted, position, entry, Outcome.FAILED, type(problem).__name__)
    outcome = Outcome.UNCHANGED if made is noted else Outcome.APPLIED
    return Played(position, entry, made, outcome, "", reactions, diff)


def failed(here: Replica, position: int, entry: Entry | None, outcome: Outcome, reason: str) -> Played:
    """An entry that changes nothing but the list of failures."""
    reason = "".join(each if " " <= each <= "~" else "?" for each in reason[:REASON_CHARS_MAX])
    failures = (*here.failed, Failure(position, reason))[-FAILED_MAX:]
    return Played(position, entry, attrs.evolve(here, failed=failures), outcome, reason)
