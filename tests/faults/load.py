"""Work while faults happen: producers, workers, hot tasks that many fight for, and readers.

Everything is written down by the recorder. A worker's belief that it holds a task ends when its claim's own
deadline says so, or earlier when it completes, gives back, or is told that it lost. What a client is not told
it does not assume: an enqueue in doubt is tried again under the same ids, or left in doubt.

The pace is bounded, not as fast as it goes: faults need time to be seen through, and a store of some thousand
tasks is read and compared in a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

import attrs

from faults.recorder import RecordedClient, Recorder
from skuld_py.client.client import Claim
from skuld_py.errors import Fenced, Refused, SkuldError, Uncertain
from skuld_py.simulation.history import Hold

QUEUES = ("work", "urgent")
HOT = "hot"
PATIENCE_S = 5.0
HOT_TASKS = 3
_PAUSE_S = 0.05
_DRAINED_AT_ONCE = 200


@attrs.define(eq=False)
class Held:
    """A claim and what its holder believes of it."""

    claim: Claim
    hold: Hold

    def believe_until(self, stop_ms: int) -> None:
        """It ends then, or did before."""
        self.hold.stop_ms = min(self.hold.stop_ms, stop_ms)


def claim_held(recorder: Recorder, client: RecordedClient, queue: str, count: int, lease_s: float,
               wait_s: float) -> list[Held]:
    """Claim tasks, and write down that they are believed to be held."""
    asked_ms = recorder.now_ms()
    claims = client.claim(queue, n=count, lease_s=lease_s, wait_s=wait_s)
    now_ms = recorder.now_ms()
    held = [Held(claim, Hold(claim.id, claim.token, client.holder, asked_ms, now_ms,
                             max(now_ms, recorder.now_ms(claim.deadline)))) for claim in claims]
    for each in held:
        recorder.hold(each.hold)
    return held


class Load:
    """The clients of a run, each a thread. ``seed`` decides what they choose, not when."""

    def __init__(self, recorder: Recorder, addresses: list[str], seed: int) -> None:
        self.errors: list[BaseException] = []
        self._recorder = recorder
        self._addresses = addresses
        self._seed = seed
        self._is_over = threading.Event()
        self._is_drained = threading.Event()
        self._producers: list[threading.Thread] = []
        self._others: list[threading.Thread] = []

    def start(self, producers: int = 2, workers: int = 3, fighters: int = 3) -> None:
        """Begin; the first task of each queue is there when this returns."""
        with self._recorder.client(self._addresses, "starter", PATIENCE_S) as client:
            for _ in range(HOT_TASKS):
                client.enqueue(HOT, b"hot", w=None)
        for number in range(producers):
            self._producers.append(self._thread(f"producer-{number}", self._produce))
        for number in range(fighters):
            self._producers.append(self._thread(f"fighter-{number}", self._fight))
        self._others.append(self._thread("reader", self._read))
        for number in range(workers):
            self._others.append(self._thread(f"worker-{number}", self._work))
        for thread in (*self._producers, *self._others):
            thread.start()

    def wind_down(self) -> None:
        """No new tasks, and from now on every claim is completed."""
        self._is_over.set()
        for thread in self._producers:
            thread.join()

    def end(self) -> None:
        """Everybody goes home."""
        self._is_over.set()
        self._is_drained.set()
        for thread in (*self._producers, *self._others):
            if thread.ident is not None:
                thread.join()

    def _thread(self, name: str, do: Callable[[RecordedClient, Random], None]) -> threading.Thread:
        def run() -> None:
            try:
                with self._recorder.client(self._addresses, name, PATIENCE_S) as client:
                    do(client, Random(f"{self._seed} {name}"))
            except BaseException as problem:
                self.errors.append(problem)
        return threading.Thread(target=run, name=name, daemon=True)

    # -- producers -----------------------------------------------------------------------------

    def _produce(self, client: RecordedClient, random: Random) -> None:
        while not self._is_over.wait(random.expovariate(1.0) * _PAUSE_S):
            try:
                ids = client.new_ids(random.choice((1, 1, 3, 10)))
            except SkuldError:
                continue
            queue, priority = random.choice(QUEUES), random.choice((0, 0, 0, -1, 5))
            payloads = [b"%s of %s" % (task_id, client.holder.encode()) for task_id in ids]
            for _ in range(random.choice((1, 2, 3))):
                try:
                    client.enqueue_many(queue, payloads, priority=priority, ids=ids)
                    break
                except Uncertain:
                    continue
                except Refused:
                    self._is_over.wait(_PAUSE_S)
                    break

    # -- workers -------------------------------------------------------------------------------

    def _work(self, client: RecordedClient, random: Random) -> None:
        fates = (self._complete, self._complete, self._complete, self._renew, self._release, self._abandon)
        while not self._is_drained.is_set():
            is_over = self._is_over.is_set()
            queue = random.choice((*QUEUES, HOT) if is_over else QUEUES)
            count, wait_s = (_DRAINED_AT_ONCE, 0.05) if is_over else (random.choice((1, 5, 20)), 0.3)
            held = self._claim(client, queue, count, random.uniform(0.5, 3.0), wait_s)
            if held:
                (self._complete if is_over else random.choice(fates))(client, random, held)

    def _fight(self, client: RecordedClient, random: Random) -> None:
        """Hold what others want too, with short leases, and never finish it."""
        while not self._is_over.is_set():
            held = self._claim(client, HOT, 1, random.uniform(0.4, 1.5), 1.0)
            if held:
                random.choice((self._renew, self._release, self._abandon))(client, random, held)

    def _claim(self, client: RecordedClient, queue: str, count: int, lease_s: float, wait_s: float) -> list[Held]:
        try:
            return claim_held(self._recorder, client, queue, count, lease_s, wait_s)
        except SkuldError:
            self._is_drained.wait(_PAUSE_S)
            return []

    def _complete(self, client: RecordedClient, random: Random, held: list[Held]) -> None:
        if random.random() < 0.3:
            self._log(client, held[0])
        for _ in range(3):
            for each in held:
                each.believe_until(self._recorder.now_ms())
            try:
                client.complete_many([each.claim for each in held])
                return
            except SkuldError:
                self._is_drained.wait(_PAUSE_S)

    def _renew(self, client: RecordedClient, random: Random, held: list[Held]) -> None:
        for _ in range(random.randint(1, 4)):
            self._is_over.wait(max(0.0, min(each.claim.remaining_s for each in held)) * random.uniform(0.2, 0.6))
            self._log(client, held[0])
            held = self._renewed(client, random.uniform(0.5, 2.0), held)
            if not held:
                return
        random.choice((self._complete if held[0].claim.queue != HOT else self._release,
                       self._release, self._abandon))(client, random, held)

    def _renewed(self, client: RecordedClient, lease_s: float, held: list[Held]) -> list[Held]:
        """Who is still believed to be held afterwards."""
        try:
            are_held = client.renew_many([each.claim for each in held], lease_s=lease_s)
        except SkuldError:
            return [each for each in held if each.claim.remaining_s > 0]
        now_ms, kept = self._recorder.now_ms(), []
        for each, is_held in zip(held, are_held, strict=True):
            if not is_held:
                each.believe_until(now_ms)
            elif each.hold.stop_ms > now_ms:
                each.hold.stop_ms = max(each.hold.stop_ms, self._recorder.now_ms(each.claim.deadline))
                kept.append(each)
        return kept

    def _release(self, client: RecordedClient, random: Random, held: list[Held]) -> None:
        self._is_over.wait(random.uniform(0, 0.3))
        for each in held:
            each.believe_until(self._recorder.now_ms())
        try:
            client.release(*(each.claim for each in held))
        except SkuldError:
            self._is_drained.wait(_PAUSE_S)

    def _abandon(self, client: RecordedClient, random: Random, held: list[Held]) -> None:
        """Forget them: their leases run out."""

    def _log(self, client: RecordedClient, each: Held) -> None:
        claim = each.claim
        entries = [b"%d of %d" % (claim.next_seq + index, claim.token) for index in range(2)]
        try:
            client.update(claim, entries)
        except Uncertain:
            claim.next_seq += len(entries)
        except Fenced:
            each.believe_until(self._recorder.now_ms())
        except Refused:
            self._is_drained.wait(_PAUSE_S)

    # -- readers -------------------------------------------------------------------------------

    def _read(self, client: RecordedClient, random: Random) -> None:
        while not self._is_drained.wait(0.2):
            known = [hold.task for hold in self._recorder.history.holds[-50:]]
            try:
                if known:
                    client.get_many(list(dict.fromkeys(random.choice(known) for _ in range(3))))
                client.depths()
            except SkuldError:
                continue
