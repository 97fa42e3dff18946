"""Whether more nodes bring more: processor time of a task on 3, 5 and 7 real nodes, and 3 to 100 in a model.

The real part: clusters with N=3 on this machine, one client, batches of a few sizes. Each node's processor time
is read before and after (what it takes idle is taken off), so that other work on the machine, and that all nodes
share it, count little. At fixed N the sum over the nodes must stay nearly the same, while the share of each falls
as 1/nodes. No tasks a second are shown: nodes on one machine take them from each other.

The other part: the real node machines in virtual time (``skuld_py.simulation.capacity``), each with a processor
and a disk of its own. What turns, messages, bytes, tasks and commits cost is fitted to the real 3 and 7
nodes; how well that foretells 5 is printed. ``costs`` there says what the model leaves out.

    scripts/bench nodes [--sizes N ...] [--simulated N ...] [--batches N ...] [--tasks N] [--out DIRECTORY]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import attrs
import psutil
from bench_throughput import sync_latency, wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Claim, Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.simulation.capacity.clients import PAYLOAD
from skuld_py.simulation.capacity.costs import Costs, Sample, fitted, total
from skuld_py.simulation.capacity.runs import SIZES, VERBS, Phase, Result, linear, run
from skuld_py.simulation.capacity.world import partitions_of

SUM_MAX = 1.5
"""Nodes together may take so many times what those of the smallest cluster take, for one task."""
IDLE_S, SETTLE_S_MAX = 3.0, 90.0
ROUNDS = 3
"""Each measurement is made so often, and the least counts: what else the machine does only adds to it."""
SAMPLE_ROUNDS = 20
QUICKLY = ("--timing-seat", "1s", "--timing-steady", "1s")
"""Nodes that start together have all their votes and leaderships at once, not after half a minute."""
console = Console(width=None if sys.stdout.isatty() else 140)


@attrs.frozen
class Real:
    """One verb by one size and batch: milliseconds of each node's processor for a task."""

    nodes: int
    batch: int
    verb: str
    each_ms: tuple[float, ...]

    @property
    def task_ms(self) -> float:
        """Over all nodes."""
        return sum(self.each_ms)


# -- real nodes ------------------------------------------------------------------------------------


def spent_s(processes: list[psutil.Process]) -> list[float]:
    """Processor seconds of each, all threads, until now."""
    times = [process.cpu_times() for process in processes]
    return [each.user + each.system for each in times]


def measured(nodes: int, batches: list[int], tasks: int) -> list[Real]:
    """Every verb, with every batch size, on a cluster of this size."""
    with (tempfile.TemporaryDirectory(prefix="skuld-bench-") as place,
          LocalCluster(Path(place), nodes=nodes, partitions=partitions_of(nodes), replicas=3,
                       node_options=QUICKLY) as cluster):
        wait_until_led(cluster.addresses)
        wait_until_settled(cluster.addresses, nodes)
        processes = [psutil.Process(cluster.node_process_id(index)) for index in range(nodes)]
        with Client(cluster.addresses, timeout_s=60) as client:
            client.enqueue_many("warm", [PAYLOAD] * 200)
            client.complete_many([claim for claims in _claimed(client, "warm", 200, 200) for claim in claims])
            before = spent_s(processes)
            time.sleep(IDLE_S)
            idle = [(now - was) / IDLE_S for now, was in zip(spent_s(processes), before, strict=True)]
            found: list[Real] = []
            for batch in batches:
                count = max(batch, min(tasks, 60 * batch) // batch * batch)
                rounds = [_verbs(client, processes, idle, batch, count) for _ in range(ROUNDS)]
                found += [min(same, key=lambda real: real.task_ms) for same in zip(*rounds, strict=True)]
            return found


def wait_until_settled(addresses: list[str], nodes: int) -> None:
    """Return once each partition is led and kept by whom it is placed on, and nothing moves; or say that it is
    not so."""
    end = time.monotonic() + SETTLE_S_MAX
    with Client(addresses, timeout_s=30) as client:
        while True:
            status = client.status()
            if len(status.nodes) == nodes and not status.moves and all(
                    sorted(row.cohort) == sorted(row.owners) for row in status.partitions):
                if all(row.leader == row.owners[0] for row in status.partitions):
                    return
                client.rebalance()  # what was elected before the last node came may have had another first owner
            if time.monotonic() > end:
                console.print(f"{nodes} nodes have not settled within {SETTLE_S_MAX:.0f} s: they do more")
                return
            time.sleep(0.5)


def _verbs(client: Client, processes: list[psutil.Process], idle: list[float], batch: int, count: int
           ) -> list[Real]:
    queue, held, found = f"work-{batch}", list[list[Claim]](), []
    for verb in VERBS:
        before, began = spent_s(processes), time.monotonic()
        if verb == "enqueue":
            for _ in range(0, count, batch):
                client.enqueue_many(queue, [PAYLOAD] * batch)
        elif verb == "claim":
            held = _claimed(client, queue, batch, count)
        else:
            for claims in held:
                client.complete_many(claims)
        took_s = time.monotonic() - began
        spent = [now - was - rest * took_s
                 for now, was, rest in zip(spent_s(processes), before, idle, strict=True)]
        found.append(Real(len(processes), batch, verb, tuple(max(0.0, 1_000 * each / count) for each in spent)))
    return found


def _claimed(client: Client, queue: str, batch: int, count: int) -> list[list[Claim]]:
    """All of a queue's tasks, in answers of a batch at most."""
    held, left = [], count
    while left:
        claims = client.claim(queue, n=batch, lease_s=600, wait_s=5)
        if not claims:
            raise SystemExit(f"{left} of {count} tasks cannot be claimed: {claims.withheld or 'none waits'}")
        held.append([*claims])
        left -= len(claims)
    return held


def a_table(title: str, *columns: str) -> Table:
    """A table whose columns with a ``>`` behind their names are of numbers."""
    made = Table(title=title, title_justify="left")
    for column in columns:
        made.add_column(column.removesuffix(">"), justify="right" if column.endswith(">") else "left")
    return made


def show_real(found: list[Real]) -> list[tuple[str, bool]]:
    """The table, and whether the sum stays and the share falls."""
    table = a_table("processor time of one task on real nodes, N=3", "batch>", "verb", "nodes>", "µs of all>",
                    "µs of each>", "busiest / even part>")
    verdicts = []
    first = {(each.batch, each.verb): each for each in reversed(found)}
    for each in sorted(found, key=lambda row: (row.batch, VERBS.index(row.verb), row.nodes)):
        share = max(each.each_ms) * each.nodes / (each.task_ms or 1.0)
        table.add_row(str(each.batch), each.verb, str(each.nodes), f"{1_000 * each.task_ms:.1f}",
                      f"{1_000 * each.task_ms / each.nodes:.1f}", f"{share:.2f}")
        base = first[each.batch, each.verb]
        if each.nodes > base.nodes and each.batch > 1:
            part = each.task_ms / base.task_ms
            verdicts.append((f"{each.verb} in batches of {each.batch}: {each.nodes} nodes together take"
                             f" {part:.2f} of what {base.nodes} take; wanted: at most {SUM_MAX}",
                             part <= SUM_MAX))
    console.print(table)
    return verdicts


# -- the model -------------------------------------------------------------------------------------


def counted(nodes: int, batch: int, costs: Costs) -> dict[str, Phase]:
    """The same work in the model, with one client, as the real nodes had."""
    result = run(nodes, costs, batch=batch, clients=1, batches=max(2, SAMPLE_ROUNDS // nodes))
    return {phase.verb: phase for phase in result.phases}


def calibrated(found: list[Real], costs: Costs) -> Costs:
    """The costs, fitted to all sizes but those in between; printed with what they say of all."""
    sizes = sorted({each.nodes for each in found})
    ends = sizes[0], sizes[-1]
    phases = {(nodes, batch): counted(nodes, batch, costs)
              for nodes, batch in dict.fromkeys((each.nodes, each.batch) for each in found)}

    def of(real: Real) -> Phase:
        return phases[real.nodes, real.batch][real.verb]
    made = fitted([Sample(total(of(real).counts), real.task_ms * of(real).tasks)
                   for real in found if real.nodes in ends], costs)
    console.print(f"fitted to {' and '.join(map(str, dict.fromkeys(ends)))} nodes: a turn"
                  f" {1_000 * made.turn_ms:.0f} µs, a message {1_000 * made.message_ms:.0f} µs, a kilobyte"
                  f" {1e6 * made.byte_ms:.1f} µs, a task in a message {1_000 * made.row_ms:.2f} µs, a commit"
                  f" {1_000 * made.commit_ms:.0f} µs of the processor; and {made.disk_ms:.2f} ms of the disk, as"
                  " measured", highlight=False)
    table = a_table("processor time of one task over all nodes: what the model says", "batch>", "verb", "nodes>",
                    "real µs>", "model µs>", "model / real>")
    for real in found:
        says_ms = total(of(real).counts).busy_ms(made) / of(real).tasks
        table.add_row(str(real.batch), real.verb, str(real.nodes), f"{1_000 * real.task_ms:.1f}",
                      f"{1_000 * says_ms:.1f}", f"{says_ms / (real.task_ms or 1.0):.2f}")
    console.print(table)
    return made


def show_simulated(results: list[Result], batch: int) -> None:
    """The table of the model."""
    table = a_table(f"simulated: N=3, batches of {batch}, payloads of {len(PAYLOAD)} bytes", "verb", "nodes>",
                    "partitions>", "tasks/s>", "of each node>", "messages a task>", "µs of all>", "µs of each>",
                    "busiest / even part>")
    for at, verb in enumerate(VERBS):
        for result in results:
            phase = result.phases[at]
            table.add_row(verb, str(result.nodes), str(result.partitions), f"{phase.rate:,.0f}",
                          f"{phase.rate / phase.nodes:,.0f}", f"{phase.messages:.2f}",
                          f"{1_000 * phase.task_ms:.1f}", f"{1_000 * phase.task_ms / phase.nodes:.2f}",
                          f"{phase.share:.2f}")
        table.add_section()
    console.print(table)
    for result in results:
        console.print(f"of {result.nodes}, each takes and sends {result.idle_messages:,.0f} messages a second idle"
                      f" ({result.idle_ms / 1_000:.2%} of its processor), and {result.first_messages:,.0f} when a"
                      " queue gets its first tasks", highlight=False)
    widest = max(phase.rate for result in results for phase in result.phases)
    for at, verb in enumerate(VERBS):
        for result in results:
            rate = result.phases[at].rate
            console.print(f"  {verb:>8} {result.nodes:>4} {'█' * max(1, round(60 * rate / widest))} {rate:,.0f}",
                          highlight=False)


def main() -> int:
    """Measure, fit, simulate, show; the exit code says whether it is linear."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[3, 5, 7],
                        help="real clusters; none: the model only")
    parser.add_argument("--simulated", type=int, nargs="*", default=[*SIZES], help="sizes in the model")
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100, 500], help="batch sizes")
    parser.add_argument("--tasks", type=int, default=10_000, help="tasks of each measurement, at most")
    parser.add_argument("--batch", type=int, default=50, help="batch size in the model")
    parser.add_argument("--out", type=Path, default=None, help="where to put nodes.svg")
    asked = parser.parse_args()
    costs, verdicts = Costs(), list[tuple[str, bool]]()
    if asked.sizes:
        found = [each for nodes in asked.sizes for each in measured(nodes, asked.batches, asked.tasks)]
        verdicts += show_real(found)
        with tempfile.TemporaryDirectory(prefix="skuld-bench-") as place:
            costs = attrs.evolve(costs, disk_ms=sync_latency(Path(place)))
        costs = calibrated(found, costs)
    results = list[Result]()
    for nodes in asked.simulated:
        results.append(run(nodes, costs, batch=asked.batch))
        rates = ", ".join(f"{phase.verb} {phase.rate:,.0f}/s" for phase in results[-1].phases)
        console.print(f"simulated {nodes} nodes: {rates}", style="dim", highlight=False)
    if results:
        show_simulated(results, asked.batch)
        verdicts += linear(results)
    if asked.out is not None and results:
        from skuld_py.simulation.capacity.plots import draw

        asked.out.mkdir(parents=True, exist_ok=True)
        console.print(f"written: {draw(results, asked.out / 'nodes.svg')}", highlight=False)
    for sentence, is_met in verdicts:
        console.print(f"{'[green]met' if is_met else '[red]missed'}[/]: {sentence}", highlight=False)
    return int(not all(is_met for _, is_met in verdicts))


if __name__ == "__main__":
    sys.exit(main())
