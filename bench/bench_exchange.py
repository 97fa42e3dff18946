"""What it costs to keep replicas equal: an idle exchange, 1 % of differences, and the hash tree on the write path.

Two replicas of one partition in LMDB, one process, every message through the codec; no network and no pauses.
Seconds are of this process's processors, both sides together, so neither the disk nor a neighbour is in them.
The floor is in the same run: the differing records copied into a third store, nothing else. The last lines say
what share of a life (enqueue, grant, complete, a commit each, batches of 500, one replica) goes to the hash
tree: lives with and without it take turns. An eighth of a million tasks is what one of eight partitions has.

    scripts/bench exchange [--tasks N] [--percent P] [--lives N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections import deque
from itertools import count
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.events import Effect, Send
from skuld_py.model.ids import IdMint
from skuld_py.partition.copies.exchange import Exchange, answer_compare, answer_fetch, answer_probe
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.wire.codec import Envelope, decode, encode

HEADER = Header("q").encode()
PLACE = tables.place_of(Header("q"))
PAYLOAD = os.urandom(100)
BATCH = 500
TASKS_PER_S = 2_000
START_MS = 1_700_000_000_000
_turns = count()


@attrs.define
class Line:
    """Runs exchanges between two replicas and counts what goes over the wire, both ways."""

    here: Replica
    there: Replica
    bytes: int = 0
    messages: int = 0

    def run(self) -> Exchange:
        """One pass; both stores commit after each message, as the loop does."""
        exchange = Exchange(self.here, "there", DEFAULT_LIMITS, DEFAULT_TIMING, 1, lambda: next(_turns))
        now_ms = 1
        flying = deque(self._out(exchange.begin(now_ms)))
        while not exchange.is_done:
            while flying:
                flying += self._out(self._arrive(exchange, now_ms, flying.popleft()))
                self.here.store.commit()
                self.there.store.commit()
            if exchange.is_resting:
                flying += self._out(exchange.resume(now_ms))
            elif not exchange.is_done:
                now_ms = exchange.deadline_ms
                flying += self._out(exchange.on_deadline(now_ms))
        return exchange

    def _out(self, effects: list[Effect]) -> list[m.Message]:
        messages: list[m.Message] = []
        for effect in effects:
            assert isinstance(effect, Send)
            frames = encode(Envelope("10.0.0.1:13000", "main", (effect.message,)))
            self.bytes += sum(map(len, frames))
            self.messages += 1
            messages += decode(frames).messages
        return messages

    def _arrive(self, exchange: Exchange, now_ms: int, message: m.Message) -> list[Effect]:
        match message:
            case m.Probe():
                return [Send("here", answer_probe(self.there, message))]
            case m.Compare():
                return [Send("here", answer_compare(self.there, DEFAULT_LIMITS, message))]
            case m.Fetch():
                return [Send("here", answer_fetch(self.there, DEFAULT_LIMITS, message))]
            case m.Repair():
                merge_rows(self.there, now_ms, 1, message.tasks)
            case m.Probed() | m.Compared() | m.Fetched():
                return exchange.on_answer(now_ms, message)
        return []


def fill(made: Replica, tasks: int, skipped: range, nonce: int) -> None:
    """Enqueue ``tasks`` at a steady pace, without those whose number modulo 1,000 is in ``skipped``."""
    mint = IdMint(nonce)
    for first in range(0, tasks, BATCH):
        task_ids = mint.mint(START_MS + first * 1000 // TASKS_PER_S, BATCH, 0)
        task_ids = [task_id for index, task_id in enumerate(task_ids, first) if index % 1_000 not in skipped]
        made.store_tasks(1, HEADER, task_ids, [PAYLOAD] * len(task_ids))
        made.filing.tally.settle()
        made.store.commit()


def replica(directory: Path, name: str) -> Replica:
    """An empty one in a store of its own."""
    return Replica(0, LmdbStore(directory / name), 1_000)


def copy_floor(source: Replica, target: Replica, wanted: range) -> float:
    """Seconds to read the records that differ by number, and to put them into another store."""
    rows = source.store.walk("body", source.prefix, tables.end_of(source.prefix))
    keys = [key for index, (key, _) in enumerate(rows) if index % 1_000 in wanted]
    start = time.process_time()
    for first in range(0, len(keys), 1_000):
        target.store.put_many("body", list(source.store.get_many("body", keys[first : first + 1_000]).items()))
        target.store.commit()
    return time.process_time() - start


def lives(made: Replica, mint: IdMint, first: int, batches: int) -> float:
    """Seconds a task's life takes on one replica, in batches, commits and all."""
    start = time.process_time()
    for number in range(first, first + batches):
        now_ms = START_MS + number
        task_ids, token = mint.mint(now_ms, BATCH, 0), number * BATCH + 1
        made.store_tasks(now_ms, HEADER, task_ids, [PAYLOAD] * BATCH)
        made.filing.tally.settle()
        made.store.commit()
        made.apply_grant(now_ms, Grant(task_ids, [PLACE] * BATCH, token, now_ms, now_ms + 600_000, "me"))
        made.filing.tally.settle()
        made.store.commit()
        made.finish(now_ms, task_ids, range(token, token + BATCH), now_ms)
        made.filing.tally.settle()
        made.store.commit()
    return (time.process_time() - start) / batches / BATCH


def digest_share(directory: Path, rounds: int) -> tuple[float, float]:
    """Microseconds of a life without the tree, and the ratio of one with it; medians of many short turns."""
    with_tree, without = replica(directory, "with"), replica(directory, "without")
    without.tree.toggle = lambda *_: None  # type: ignore[method-assign]
    mint, taken = IdMint(3), {with_tree: list[float](), without: list[float]()}
    for number in range(rounds):
        for made in (with_tree, without) if number % 2 else (without, with_tree):
            taken[made].append(lives(made, mint, 4 * number, 4))
    bare = statistics.median(taken[without])
    return bare * 1e6, statistics.median(taken[with_tree]) / bare


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, default=125_000, help="in the partition")
    parser.add_argument("--percent", type=int, default=1, help="of them on one side only, spread over all")
    parser.add_argument("--lives", type=int, default=40, help="turns of 4 batches for the write path, 0: skip")
    options = parser.parse_args()
    title = f"{options.tasks:,} tasks, 100-byte payloads, {options.percent} % differ"
    table = Table("measure", "value", title=title)
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name:
        directory = Path(name)
        here, there, bare = (replica(directory, each) for each in ("here", "there", "bare"))
        skipped = range(10 * options.percent)
        fill(there, options.tasks, range(0), 1)
        fill(here, options.tasks, skipped, 1)
        line = Line(here, there)
        start = time.process_time()
        exchange = line.run()
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        floor = copy_floor(there, bare, skipped)
        progress = exchange.progress
        assert here.tree.root == there.tree.root
        table.add_row("rows repaired", f"{progress.fetched_rows + progress.given_rows:,}")
        table.add_row("pages, messages", f"{progress.pages:,}, {line.messages:,}")
        table.add_row("bytes, both ways", f"{line.bytes:,}")
        table.add_row("of them rows", f"{progress.fetched_bytes + progress.given_bytes:,}")
        table.add_row("seconds, both sides", f"{seconds:.2f}")
        table.add_row("times the floor (copying the rows)", f"{seconds / floor:.1f}")
        idle = Line(here, there)
        assert idle.run().is_clean
        table.add_row("idle exchange, bytes both ways", f"{idle.bytes:,}")
        late = fill_late(there, options.tasks)
        recent = Line(here, there)
        start = time.process_time()
        recent.run()
        table.add_row(f"the newest {late:,} missing: bytes, seconds",
                      f"{recent.bytes:,}, {time.process_time() - start:.2f}")
        again = Replica(0, here.store, 1_000)
        start = time.process_time()
        while again.tree.is_drafting:
            again.tree.advance(DEFAULT_TIMING.draft_rows)
            here.store.commit()
        table.add_row("seconds to draft the tree", f"{time.process_time() - start:.2f}")
        if options.lives:
            micros, ratio = digest_share(directory, options.lives)
            table.add_row("life on one replica, without digests", f"{micros:.1f} us")
            table.add_row("with digests, ratio", f"{ratio:.2f}")
        table.add_row("largest memory until equal, both sides, MB", f"{memory / 1000:.0f}")
    Console().print(table)


def fill_late(made: Replica, tasks: int) -> int:
    """What a node misses that is away for a while: one percent more, newer than all."""
    mint, late = IdMint(2), tasks // 100 // BATCH * BATCH or BATCH
    for first in range(0, late, BATCH):
        task_ids = mint.mint(START_MS + (tasks + first) * 1000 // TASKS_PER_S, BATCH, 0)
        made.store_tasks(1, HEADER, task_ids, [PAYLOAD] * BATCH)
        made.store.commit()
    return late


if __name__ == "__main__":
    main()
