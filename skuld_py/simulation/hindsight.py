"""Probes that only the whole story shows: which claims were held when leaders changed, what became of doubts.

Counted once, at the end of a run, from the history, the registry's writes and the stores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.history import epoch_of
from skuld_py.model.ids import partition_of, split
from skuld_py.model.memory_store import MemoryStore
from skuld_py.simulation.history import History, Hold, Operation, Status
from skuld_py.simulation.probes import KNOWN
from skuld_py.simulation.world.zookeeper.documents import Write

LAST_MOMENT_MS = 10


class Hindsight:
    """Looks back at one run."""

    def __init__(self, history: History, writes: Sequence[Write], stores: Sequence[MemoryStore],
                 partitions: int) -> None:
        self.counts: Counter[str] = Counter()
        self._history = history
        self._stores = stores
        self._partitions = partitions
        self._changes: dict[int, list[Write]] = {}
        for write in writes:
            self._changes.setdefault(write.partition, []).append(write)
        self._holds: dict[bytes, list[Hold]] = {}
        for hold in history.holds:
            self._holds.setdefault(hold.task, []).append(hold)

    def look(self, counts: Mapping[str, int]) -> Counter[str]:
        """All probes; ``counts`` of the models go by the same names."""
        self._look_at_holds()
        self._look_at_renewals()
        self._look_at_completions()
        self._look_at_enqueues()
        for operation in self._history.operations:
            if isinstance(operation.answer, m.Failed):
                self.counts[f"answer: {operation.answer.code}"] += 1
            elif isinstance(operation.answer, m.Claimed):
                assert isinstance(operation.message, m.Claim)
                has_got, wait_ms = bool(operation.answer.batches), operation.message.wait_ms
                self.counts["claim waited and got"] += has_got and operation.answer.waited_ms > 0
                self.counts["claim waited in vain"] += wait_ms > 0 and not has_got
        self.counts.update({name: count for name, count in counts.items() if name in KNOWN})
        return Counter({name: count for name, count in self.counts.items() if name in KNOWN and count})

    def _epoch_at(self, partition: int, time_ms: int) -> int:
        writes = self._changes.get(partition, [])
        index = bisect_right(writes, time_ms, key=lambda write: write.time_ms)
        return writes[index - 1].document.epoch if index else 0

    def _look_at_holds(self) -> None:
        for task, holds in self._holds.items():
            self.counts["task claimed three times"] += len(holds) >= 3
            partition = partition_of(task, self._partitions)
            for hold in holds:
                before, after = (self._epoch_at(partition, time_ms) for time_ms in (hold.start_ms, hold.stop_ms))
                self.counts["leader changes while a claim is held"] += before < after

    def _look_at_renewals(self) -> None:
        for operation in self._history.of(m.Renew, Status.OK):
            message, answer = operation.message, operation.answer
            assert isinstance(message, m.Renew) and isinstance(answer, m.Renewed)
            self.counts["claim given back"] += not message.lease_ms
            rows = zip(split(message.ids), unpack_u64(message.tokens), unpack_u64(answer.ends), strict=True)
            for task, token, end_ms in rows if message.lease_ms else ():
                self.counts["renewal of a lost claim"] += not end_ms
                leading = self._epoch_at(partition_of(task, self._partitions), operation.invoked_ms)
                self.counts["renewal by a later epoch's leader"] += bool(end_ms) and leading > epoch_of(token)

    def _look_at_completions(self) -> None:
        done: Counter[bytes] = Counter()
        for operation in self._history.of(m.Renew):
            self.counts["renewal at the last moment"] += any(
                0 <= hold.stop_ms - operation.invoked_ms < LAST_MOMENT_MS for hold, _ in self._held(operation))
        for operation in self._history.of(m.Complete, Status.OK):
            for hold, newest in self._held(operation):
                done[hold.task] += 1
                self.counts["completion of a lapsed claim"] += hold.stop_ms < operation.invoked_ms
                self.counts["completion by an outdated claim"] += newest > hold.token
        self.counts["task completed twice"] += sum(count > 1 for count in done.values())

    def _held(self, operation: Operation) -> Iterator[tuple[Hold, int]]:
        """The holds that a renewal or completion names, each with the newest token known by then."""
        message = operation.message
        assert isinstance(message, m.Renew | m.Complete)
        for task, token in zip(split(message.ids), unpack_u64(message.tokens), strict=True):
            holds = self._holds.get(task, ())
            newest = max((hold.token for hold in holds if hold.start_ms < operation.invoked_ms), default=0)
            yield from ((hold, newest) for hold in holds if hold.token == token)

    def _look_at_enqueues(self) -> None:
        acked: Counter[bytes] = Counter()
        for operation in self._history.of(m.Enqueue):
            assert isinstance(operation.message, m.Enqueue)
            ids = operation.message.batches[0].ids
            if operation.status is Status.OK:
                acked[ids] += 1
            elif operation.status is Status.INFO:
                is_stored = self._is_stored(ids[:20])
                self.counts["enqueue in doubt was stored"] += is_stored
                self.counts["enqueue in doubt was lost"] += not is_stored
        self.counts["enqueue acknowledged twice"] += sum(count > 1 for count in acked.values())

    def _is_stored(self, task: bytes) -> bool:
        key = partition_of(task, self._partitions).to_bytes(2, "big") + task
        return any(store.committed("body", key) is not None for store in self._stores)
