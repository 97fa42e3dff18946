"""The faults of a campaign of the archive, in an order that chance decides, and what must hold behind each.

First two archivers write to one root by themselves, with clocks that jump, while they, and nodes, are killed; the
disk fills up, becomes read-only and goes away; a node's clock is stepped. A run that nobody disturbs does the
rest. Then Spark writes, to another root, and its JVM is killed with the others. At the end of both nothing that
had ended is left on the nodes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import attrs

from faults.archive.judgement import judged
from faults.archive.stage import ENDS, KEEP_S, ROOMY_KB, Stage

LOADS, WITHIN_S = 2, 1.5
"""Of tasks so many loads end; behind them a kill falls within this time, in which batches are under way."""
JVM_SHARE = 3
"""Each so manieth kill is of a JVM."""
EARLY = 0.3
"""With this chance a JVM is killed while it starts, and else while it writes."""
SCARCE_KB, FILLS_MAX, SOON_S = 24, 20, 15.0
STEPS_MS = (5_000, -5_000)
"""Far more than clocks may differ."""


@attrs.frozen
class Seen:
    """What came of a fault."""

    what: str
    words: str
    violations: tuple[str, ...]

    @property
    def line(self) -> str:
        """All in one line, with the load of the machine."""
        return (f"{self.what:<26} {self.words}  load {os.getloadavg()[0]:4.1f}"
                f"  {'; '.join(self.violations) or 'ok'}")


Fault = tuple[str, Callable[[Stage], list[str]]]


# -- kills -----------------------------------------------------------------------------------------


def _kill_archivers(count: int) -> Callable[[Stage], list[str]]:
    def kill(stage: Stage) -> list[str]:
        for victim in stage.chance.sample(stage.archivers, min(count, len(stage.archivers))):
            victim.kill()
        return []
    return kill


def _kill_node(stage: Stage) -> list[str]:
    index = stage.chance.randrange(len(stage.cluster.addresses))
    stage.cluster.kill_node(index)
    time.sleep(stage.chance.random())
    stage.start_node(index)
    return []


def _kill_jvm(stage: Stage) -> list[str]:
    archiver, = stage.archivers
    if not stage.awaited(lambda: archiver.ensure() or archiver.java() is not None):
        return ["no JVM was started"]
    if stage.chance.random() > EARLY and not stage.awaited(
            lambda: archiver.ensure() or stage.is_writing_by_spark()):
        return ["Spark wrote nothing"]
    time.sleep(stage.chance.uniform(0, WITHIN_S))
    if (java := archiver.java()) is None:
        return ["its JVM was gone before it was killed"]
    java.kill()
    return []


KILLS: Sequence[Fault] = (("kill -9 an archiver", _kill_archivers(1)),
                          ("kill -9 both archivers", _kill_archivers(2)), ("kill -9 a node", _kill_node))
JVM_KILLS: Sequence[Fault] = (("kill -9 the JVM", _kill_jvm), ("kill -9 the JVM", _kill_jvm),
                              ("kill -9 Spark's archiver", _kill_archivers(1)))


# -- disks and clocks ------------------------------------------------------------------------------


def _fill(stage: Stage) -> list[str]:
    """Compaction makes room now and then, so it is filled more than once."""
    found, is_said, fills = list[str](), False, 0
    while not is_said and fills < FILLS_MAX:
        mark, fills = stage.mark(), fills + 1
        stage.disk.holds(stage.disk.used_kb() + SCARCE_KB)
        stage.load()
        is_said = stage.await_said(mark, "No space left on device", within_s=SOON_S)
        found += stage.check()[0]
    stage.disk.holds(ROOMY_KB)
    return found + ["a full disk was not said"] * (not is_said)


def _protect(stage: Stage) -> list[str]:
    """Where somebody writes a disk cannot be made so."""
    for archiver in stage.archivers:
        archiver.end()
    mark = stage.mark()
    stage.disk.may_be_written(False)
    stage.load()
    is_said = stage.await_said(mark, "Read-only file system")
    found, _ = stage.check()
    stage.disk.may_be_written(True)
    return found + ["a disk that may only be read was not said"] * (not is_said)


def _take_away(stage: Stage) -> list[str]:
    mark = stage.mark()
    stage.disk.goes()
    stage.load()
    is_said = stage.await_said(mark, "No such file or directory", "if its disk is not mounted")
    found, _ = stage.check()
    stage.disk.comes_back()
    return found + ["a disk that is gone was not said"] * (not is_said)


def _step_clock(stage: Stage) -> list[str]:
    index, found = stage.chance.randrange(len(stage.cluster.addresses)), list[str]()
    for offset_ms in stage.chance.sample(STEPS_MS, len(STEPS_MS)):
        stage.step(index, offset_ms)
        time.sleep(WITHIN_S)
        found += stage.check()[0]
    stage.step(index, 0)
    return found


FAULTS: Sequence[Fault] = (("the disk is full", _fill), ("the disk is read-only", _protect),
                           ("the disk is gone", _take_away), ("a node's clock is stepped", _step_clock))


# -- the play --------------------------------------------------------------------------------------


def play(stage: Stage, kills: int, tell: Callable[[Seen], None]) -> None:
    """All of it; each fault is told."""
    stage.warm_up()
    of_jvm = kills // JVM_SHARE
    faults = [*_drawn(KILLS, kills - of_jvm), *FAULTS]
    stage.chance.shuffle(faults)
    for fault in faults:
        tell(suffered(stage, fault))
    tell(ended(stage, "a run by itself"))
    stage.begin_by_spark()
    for fault in _drawn(JVM_KILLS, of_jvm):
        tell(suffered(stage, fault))
    tell(ended(stage, "a run of Spark's by itself"))
    tell(said(stage))


def _drawn(kinds: Sequence[Fault], count: int) -> list[Fault]:
    """Of each kind as many, but for one."""
    return [kinds[number % len(kinds)] for number in range(count)]


def suffered(stage: Stage, fault: Fault) -> Seen:
    """A fault while tasks that ended are archived, at a moment of chance."""
    what, suffer = fault
    stage.ensure()
    stage.load(LOADS)
    time.sleep(KEEP_S + stage.chance.uniform(0, WITHIN_S))
    found = suffer(stage)
    stage.ensure()
    violations, words = stage.check()
    return Seen(what, words, (*found, *violations))


def ended(stage: Stage, what: str) -> Seen:
    """A run, once, to which nothing happens: it leaves nothing that had ended."""
    stage.load()
    time.sleep(2 * KEEP_S)
    status, said = stage.once()
    violations, words = stage.check()
    left, counted = stage.client.count(states=ENDS), stage.counted()
    if status or said.get("waiting") or said.get("refused") or left:
        violations.append(f"it ended with {status}, said {said}, and left {left}")
    if counted != len(stage.told):
        violations.append(f"skuld history counts {counted}")
    violations += judged(stage.told, stage.rows(), ())
    if any((stage.disk.kept / "_writing").iterdir()):
        violations.append("it left drafts")
    return Seen(what, words, tuple(violations))


def said(stage: Stage) -> Seen:
    """No archiver ended in a traceback."""
    bad = [log.name for log in stage.logs() if b"Traceback" in log.read_bytes()]
    lines = sum(len(log.read_bytes().splitlines()) for log in stage.logs())
    return Seen("what archivers said", f"{lines:>6} lines", tuple(f"{name} has a traceback" for name in bad))
