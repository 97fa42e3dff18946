"""How long the seats of workflows take to decide: 10,000 slots among 1,000 workflows, under each way of sharing.

One decision as a member makes it: the question of a replica made and written, read again, decided, and the answer
written, read and looked at for flaws. In one process, by processor time; the slowest of the runs counts.

    scripts/bench seats [--slots N] [--workflows N]
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from skuld_py.cluster.log.replica import Replica, Slot
from skuld_py.cluster.log.workflows import SPREADINGS, StepRow, Workflow
from skuld_py.cluster.scale.decisions import SEATS, Question, computed, read_result
from skuld_py.cluster.scale.seats import input_of
from skuld_py.model.document import Member
from skuld_py.model.events import Compute
from skuld_py.workflow.scheduling.demand import Sharing

UNITS = 4


def replica_of(sharing: str, spreading: str, slots: int, workflows: int) -> Replica:
    """Nodes of four slots, every second one with a tag that one step of each workflow needs."""
    names = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7070" for number in range(slots // UNITS)]
    members = {f"{name}~a": Member(name, name.partition(":")[0], 7070, "b", "i") for name in names}
    rows = {f"{name}~s": Slot(f"{name}~a", (f"claims-{UNITS}", "workflows", *(["gpu"] if number % 2 else [])))
            for number, name in enumerate(names)}
    steps = (StepRow("read", "input", percentage=20), StepRow("train", "function", tags=("gpu",), percentage=50),
             StepRow("write", "output", percentage=30))
    asked = {f"workflow-{number}": Workflow("d", "p", spreading=spreading, percentage=int(number < 100),
                                            steps=steps) for number in range(workflows)}
    return Replica(members=members, slots=rows, workflows=asked, sharing=sharing)


def decide(replica: Replica) -> tuple[float, int, int]:
    """Seconds; bytes of question and answer."""
    began = time.process_time()
    question = Question(SEATS.name, input_of(replica))
    answer = computed(Compute(SEATS.name, question.hash, question.text))
    result, flaw = read_result(SEATS, question, answer.text)
    took_s = time.process_time() - began
    assert result is not None and not flaw, flaw
    return took_s, len(question.text), len(answer.text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=10_000)
    parser.add_argument("--workflows", type=int, default=1_000)
    options = parser.parse_args()
    table = Table("sharing", "spreading", "s", "question KB", "answer KB")
    for sharing in Sharing:
        for spreading in SPREADINGS:
            replica = replica_of(sharing.value, spreading, options.slots, options.workflows)
            took_s, asked, answered = max(decide(replica) for _ in range(3))
            table.add_row(sharing.value, spreading, f"{took_s:.2f}", f"{asked / 1e3:.0f}", f"{answered / 1e3:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
