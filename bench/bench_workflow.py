"""What a segment of a workflow costs, beside a task of the same function that no workflow has.

A cluster of three nodes and one worker process, as 'skuld worker' starts it, which runs both: tasks of a function,
and segments of a workflow of four steps with that function. Each is enqueued and run to its end, in rounds; a
segment is enqueued by the completion before it, so for a task enqueueing counts, too. The ratio is that within a
round. With --spark the function is batched, as one Spark job.

    scripts/bench workflow [--rounds N] [--tasks N] [--spark]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import from_text, time_of
from skuld_py.worker.registry import encode_call
from skuld_py.worker.workflows.children import Calls, packed
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.segments import root_ids

APP = '''
import hashlib
import skuld_py

def score(value):
    return hashlib.sha256(str(value).encode()).hexdigest()

@skuld_py.task(name="flow.single")
def single(value):
    return score(value)

@skuld_py.task(name="flow.batched", batch=True)
def batched(value):
    return score(value)
'''
STEPS = ("first", "second", "third", "last")
PATIENCE_S = 600.0
PART = 500
WANTED = 2.0
console = Console()


def definition_of(function: str) -> Definition:
    """A line of steps."""
    edges = [["numbers", "first"], *map(list, pairwise(STEPS))]
    catalog: dict[str, object] = {step: {"kind": "function", "function": function} for step in STEPS}
    return read({"id": "cost", "edges": edges,
                 "catalog": {"numbers": {"kind": "input", "function": "flow.numbers"}, **catalog}})


def until_done(client: Client, queue: str, count: int) -> None:
    """Wait until so many tasks of a queue are completed."""
    deadline = time.monotonic() + PATIENCE_S
    while (depth := client.depths().get(queue)) is None or depth.completed < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"{queue} is not through after {PATIENCE_S:.0f} s")
        time.sleep(0.05)


def plain_ms(client: Client, function: str, tasks: int, before: int) -> float:
    """Milliseconds for each task."""
    began = time.monotonic()
    for start in range(0, tasks, PART):
        client.enqueue_many("plain", [encode_call(function, number) for number in range(start, start + PART)])
    until_done(client, "plain", before + tasks)
    return 1000 * (time.monotonic() - began) / tasks


def segment_ms(client: Client, definition: Definition, life: int, tasks: int, before: int) -> float:
    """Milliseconds for each segment."""
    calls, step = Calls(definition.entries["first"], life), definition.queue("first")
    began = time.monotonic()
    for start in range(0, tasks, PART):
        made = root_ids(definition.id, "numbers", before + start, PART, time.time_ns() // 1_000_000)
        client.enqueue_many(step, [calls.payload(packed(start + each), root, "numbers")
                                   for each, root in enumerate(made)], ids=made, **calls.options)
    until_done(client, definition.queue(STEPS[-1]), before + tasks)
    return 1000 * (time.monotonic() - began) / (tasks * len(STEPS))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--spark", action="store_true", help="batched, as Spark jobs")
    options = parser.parse_args()
    function = "flow.batched" if options.spark else "flow.single"
    definition, tasks = definition_of(function), -(-options.tasks // PART) * PART
    ratios: list[float] = []
    table = Table("round", "ms a task", "ms a segment", "ratio", "load", title=f"{function}, one worker")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "flow_app.py").write_text(APP)
        with LocalCluster(place / "cluster") as cluster, Client(cluster.addresses, timeout_s=30) as client:
            wait_until_led(cluster.addresses)
            life = time_of(from_text(client.submit_workflow(definition).plan))
            worker = cluster.start_worker("plain", "flow_app", "--workflows", "--slots", str(len(STEPS) + 1),
                                          working_directory=place)
            plain_ms(client, function, PART, 0)  # to be warm
            segment_ms(client, definition, life, PART, 0)
            for number in range(options.rounds):
                before = PART + number * tasks
                task = plain_ms(client, function, tasks, before)
                segment = segment_ms(client, definition, life, tasks, before)
                ratios.append(segment / task)
                table.add_row(str(number + 1), f"{task:.2f}", f"{segment:.2f}", f"{ratios[-1]:.2f}",
                              f"{os.getloadavg()[0]:.1f}")
            worker.terminate()
            worker.wait()
    console.print(table)
    console.print(f"a segment costs {statistics.median(ratios):.2f} times a task; wanted: at most {WANTED:g}")


if __name__ == "__main__":
    main()
