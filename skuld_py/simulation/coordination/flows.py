"""Workflows in a run: somebody writes of them, in any order, and each entry may come again, or late.

What is written mostly means something: the next step of a workflow that lives. The rest is what a cluster never
should write: another definition under the same id, seals before their time, words about what has ended.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import attrs

from skuld_py.cluster.log.commands import (
    Command,
    ExhaustInput,
    KillWorkflow,
    SealOutput,
    SubmitWorkflow,
)
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, State, StepRow, Workflow
from skuld_py.model.ids import to_text
from skuld_py.simulation.coordination.stage import Stage

NAMES = ("census", "daily", "weekly")
STEPS = (StepRow("left", "input"), StepRow("right", "input", most=2), StepRow("join", "function"),
         StepRow("table", "output"), StepRow("report", "output"))
LIVES = (1_000, 2_000, 3_000)
NONE = Workflow("", "", State.KILLED.value)
WRITERS = 3
LATE_MS_MAX = 8_000
BURST = 4


def about_workflows(random: Random, replica: Replica) -> Command:
    """A command about a workflow that this replica knows, or about none."""
    living = [name for name, each in replica.workflows.items() if each.is_live]
    name = random.choice(living if living and random.random() < 0.85 else NAMES)
    known = replica.workflows.get(name, NONE)
    step = random.choice(STEPS).name
    if not known.is_live and random.random() < 0.7:
        plan = to_text(random.choice(LIVES).to_bytes(8, "big") + bytes(12))
        return SubmitWorkflow(name, 16 * random.choice("aaab"), plan, STEPS[:random.choice((4, 5))])
    drawn, life = random.random(), known.life if random.random() < 0.8 else random.choice((0, *LIVES))
    if drawn < 0.05:
        return KillWorkflow(name, "as it was drawn", life=life)
    if drawn < 0.6:
        return ExhaustInput(name, random.choice(known.open_inputs or (step,)), random.randrange(2), life=life)
    return SealOutput(name, random.choice(known.open_outputs or (step,)), life=life)


@attrs.define
class Flows:
    """Writes of workflows as several writers; ``stats`` counts what came again."""

    random: Random
    stage: Stage
    stats: Counter[str]
    _seqs: Counter[str] = attrs.field(factory=Counter)

    def write(self) -> None:
        """A few entries, one behind the other."""
        for _ in range(self.random.randint(1, BURST)):
            if self.random.random() < 0.3:
                self._through_a_member()
                continue
            is_late, is_again = self.random.random() < 0.2, self.random.random() < 0.2
            delay_ms = self.random.randint(1, LATE_MS_MAX) if is_late else 0
            # A writer writes one after the other: what is late is somebody's only entry.
            writer = f"late{self._seqs.total()}" if is_late else f"flows{self.random.randrange(WRITERS)}"
            command = about_workflows(self.random, self.stage.registry.replica)
            raw = Entry(writer, self._seqs[writer], command).encode()
            self._seqs[writer] += 1
            self.stage.scheduler.after(delay_ms, self.stage.registry.put_entry, raw)
            if is_again:
                delay_ms += self.random.randint(1, LATE_MS_MAX)
                self.stage.scheduler.after(delay_ms, self.stage.registry.put_entry, raw)
            self.stats["entry about a workflow again"] += is_again
            self.stats["entry about a workflow late"] += is_late

    def _through_a_member(self) -> None:
        """A client has a member write; the command may get lost with the member's life."""
        live, replica = self.stage.live, self.stage.registry.replica
        if not live or replica.rules < WORKFLOWS_SINCE:
            return
        process, now_ms = self.random.choice(live), self.stage.scheduler.now_ms
        if process.membership is not None:
            command = about_workflows(self.random, replica)
            self.stage.act(process, process.membership.write(process.clock.read(now_ms), [command]))
            self.stats["command for a member to write"] += 1
