"""Logical clients: they enqueue, claim, work, renew, give up and forget, and write down all of it.

A client asks any node and waits up to its own deadline; an answer after that is not heard. It
repeats an enqueue or a completion whose outcome it does not know, with the same ids, at another
node. A worker stops at the time it sent the request plus the lease, by its own clock: never later,
whatever the answer said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from skuld_py.model import messages as m
from skuld_py.model.body import DEFAULT_RETRY, Header, Retry, encode_times, prelude_of
from skuld_py.model.columns import pack, pack_u64, unpack_u64
from skuld_py.model.history import FAILED, SNOOZED
from skuld_py.model.ids import IdMint, split
from skuld_py.simulation.clocks import Clock
from skuld_py.simulation.history import History, Hold, Operation, Status
from skuld_py.simulation.network import Envelope, Network
from skuld_py.simulation.options import Options
from skuld_py.simulation.scheduler import Scheduler

Then = Callable[[Operation], None]
Make = Callable[[int], m.Message]
REPEATS_MAX = 3
FAR_MS = 24 * 3600 * 1000
"""Tasks with a time expire long after the run: they show that bodies with options travel as others do."""


class Client:
    """One client's line to the cluster."""

    def __init__(self, name: str, scheduler: Scheduler, network: Network, history: History, clock: Clock,
                 random: Random, nodes: Sequence[str], patience_ms: int,
                 is_muted: Callable[[str, int], bool] = lambda name, request: False) -> None:
        self.name = name
        self.scheduler = scheduler
        self.clock = clock
        self.random = random
        self.is_stopped = False
        self.patience_ms = patience_ms
        self._network = network
        self.history = history
        self.nodes = nodes
        self._is_muted = is_muted
        self._requests = 0
        self._then: dict[int, Then] = {}
        network.attach(name, self._receive, is_client=True)

    def ask(self, make: Make, then: Then) -> Operation:
        """Send what ``make`` makes of a request number to some node."""
        self._requests += 1
        request, node = self._requests, self.random.choice(self.nodes)
        message = make(request)
        if self._is_muted(self.name, request):
            return Operation(self.name, request, node, message, self.scheduler.now_ms)
        operation = self.history.invoke(self.scheduler.now_ms, self.name, node, request, message)
        self._then[request] = then
        self._network.send(self.name, node, (message,))
        wait_ms = message.wait_ms if isinstance(message, m.Claim) else 0
        self.scheduler.after(self.patience_ms + wait_ms, self._give_up, operation)
        return operation

    def _receive(self, sender: str, messages: Envelope) -> None:
        for message in messages:
            operation = self.history.find(self.name, getattr(message, "request", -1))
            if operation is not None and operation.node == sender:
                self._finish(operation, message)

    def _give_up(self, operation: Operation) -> None:
        if operation.status is Status.OPEN:
            self._finish(operation, None)

    def _finish(self, operation: Operation, answer: m.Message | None) -> None:
        self.history.finish(self.scheduler.now_ms, operation, answer)
        self._then.pop(operation.request)(operation)

    def wall_ms(self) -> int:
        """What this client's clock shows."""
        return self.clock.read(self.scheduler.now_ms)

    def repeat(self, mean_ms: int, action: Callable[[], None]) -> None:
        """Do something again and again, at random times, until stopped."""
        def once() -> None:
            if not self.is_stopped:
                action()
                self.repeat(mean_ms, action)
        self.scheduler.after(1 + int(self.random.expovariate(1.0) * mean_ms), once)

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: object) -> None:
        """Do something once."""
        self.scheduler.after(delay_ms, action, *arguments)


class Producer:
    """Enqueues; repeats what it is not sure of; now and then repeats what it is sure of."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._mint = IdMint(client.random.getrandbits(32))
        self._made = 0

    def begin(self) -> None:
        """Learn the id floor, then produce."""
        self._client.ask(m.Greet, self._on_greeted)
        self._client.repeat(self._options.workload.enqueue_ms, self._enqueue)

    def _on_greeted(self, operation: Operation) -> None:
        if isinstance(operation.answer, m.Greeted):
            self._mint.raise_floor(operation.answer.floor_ms)

    def _enqueue(self) -> None:
        random, replicas = self._random, self._options.parameters.replicas
        batches = tuple(self._batch() for _ in range(1 + (random.random() < 0.3)))
        w = random.choice((0, 0, random.randint(self._options.w_min, replicas)))
        self._send(batches, w, REPEATS_MAX)

    def _batch(self) -> m.TaskBatch:
        random, workload = self._random, self._options.workload
        queue, priority = random.choice(workload.queues), random.choice((0, 0, -1, 5))
        count = random.randint(1, workload.batch_max)
        ids = self._mint.mint(self._client.wall_ms(), count, random.getrandbits(32))
        if random.random() < 0.2:
            ids += self._mint.mint(self._client.wall_ms(), 1, random.getrandbits(32))
        self._made += len(ids)
        payloads = [f"{self._client.name} {self._made} {index}".encode() + bytes(random.choice((0, 1, 60)))
                    for index in range(len(ids))]
        headers = (("made", str(self._made)),) if self._made % 3 == 0 else ()
        expires_ms = 0 if self._made % 4 else self._client.wall_ms() + FAR_MS
        header = Header(queue, priority, self._policy(), headers, prelude_of(0, expires_ms)).encode()
        rests = [encode_times(0, expires_ms) + payload for payload in payloads]
        return m.TaskBatch(header, b"".join(ids), pack(rests))

    def _policy(self) -> Retry:
        attempts = self._options.workload.max_attempts
        return Retry(self._random.choice(attempts), 50, 200, 400) if attempts else DEFAULT_RETRY

    def _send(self, batches: tuple[m.TaskBatch, ...], w: int, repeats: int) -> None:
        def then(operation: Operation) -> None:
            self._on_answer(operation, batches, w, repeats)
        self._client.ask(lambda request: m.Enqueue(request, w, batches), then)

    def _on_answer(self, operation: Operation, batches: tuple[m.TaskBatch, ...], w: int,
                   repeats: int) -> None:
        random = self._random
        if self._client.is_stopped or not repeats:
            return
        if operation.status is Status.INFO and random.random() < 0.8:
            self._client.later(random.randint(1, 300), self._send, batches, w, repeats - 1)
        elif operation.is_ok and random.random() < 0.05:
            self._client.later(random.randint(1, 3_000), self._send, batches, w, 0)
        elif self._is_everywhere(operation) and random.random() < 0.1:
            self._client.later(random.randint(1, 3_000), self._send, _forged(batches), 1, 0)

    def _is_everywhere(self, operation: Operation) -> bool:
        """Whether every owner has it for sure, those to come included: they all must refuse other content."""
        answer, options = operation.answer, self._options
        return (isinstance(answer, m.Acked) and answer.copies == options.parameters.replicas
                and not options.has_churn and not options.has_losses)


def _forged(batches: tuple[m.TaskBatch, ...]) -> tuple[m.TaskBatch, ...]:
    """The same ids with other content, which every owner must refuse."""
    return tuple(m.TaskBatch(batch.header, batch.ids, pack([payload + b" forged"
                                                            for payload in batch.payloads.unpack()]))
                 for batch in batches)


class Worker:
    """Claims tasks and does one of many things with them."""

    def __init__(self, client: Client, options: Options, fates: Sequence[str]) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._history = client.history
        self._fates: dict[str, Callable[[Sequence[Hold], int], None]] = {
            "complete": self._complete_in_time, "renew": self._renew_on, "release": self._release,
            "late": self._complete_late, "abandon": lambda holds, lease_ms: None,
            "fail": partial(self._conclude, FAILED), "snooze": partial(self._conclude, SNOOZED)}
        self._likes = tuple(fates)

    def begin(self) -> None:
        """Work."""
        self._client.repeat(self._options.workload.claim_ms, self._claim_some)

    def _claim_some(self) -> None:
        random, workload = self._random, self._options.workload
        self.claim(random.choice(workload.queues), random.randint(1, 1 + workload.batch_max),
                   random.randint(*workload.lease_ms), random.choice((0, 0, 100, 1_000)))

    def claim(self, queue: str, count: int, lease_ms: int, wait_ms: int,
              after: Callable[[], None] = lambda: None) -> None:
        """Ask for tasks."""
        def then(operation: Operation) -> None:
            self._on_claimed(operation, lease_ms)
            after()
        self._client.ask(lambda request: m.Claim(request, queue, count, lease_ms, wait_ms, self._client.name),
                         then)

    def _stop_of(self, sent_ms: int, lease_ms: int) -> int:
        clock = self._client.clock
        return clock.when(clock.read(sent_ms) + lease_ms)

    def _on_claimed(self, operation: Operation, lease_ms: int) -> None:
        if not isinstance(operation.answer, m.Claimed):
            return
        now_ms, stop_ms = self._client.scheduler.now_ms, self._stop_of(operation.invoked_ms, lease_ms)
        holds = [Hold(task_id, batch.first_token + index, f"{self._client.name}#{operation.request}",
                      operation.invoked_ms, now_ms, max(now_ms, stop_ms))
                 for batch in operation.answer.batches for index, task_id in enumerate(split(batch.ids))]
        self._history.holds += holds
        if now_ms >= stop_ms or not holds:
            return
        at = self._random.randint(0, len(holds)) if self._random.random() < 0.3 else 0
        for group in (holds[:at], holds[at:]):
            if group:
                self._fates[self._random.choice(self._likes)](group, lease_ms)

    # -- fates ---------------------------------------------------------------------------------

    def _left_ms(self, holds: Sequence[Hold]) -> int:
        return min(hold.stop_ms for hold in holds) - self._client.scheduler.now_ms

    def _log(self, holds: Sequence[Hold], seq: int) -> None:
        if not self._options.workload.is_logging:
            return
        for hold in holds[:2]:
            entry = pack([f"{hold.token} {seq}".encode(), b"more"][: 1 + seq % 2])
            self._client.ask(lambda request, hold=hold, entry=entry: m.Append(  # type: ignore[misc]
                request, 0, hold.task, hold.token, 2 * seq, entry), lambda operation: None)

    def _complete_in_time(self, holds: Sequence[Hold], lease_ms: int) -> None:
        self._log(holds, 0)
        delay_ms = self._random.randint(0, max(0, self._left_ms(holds) - 1))
        self._client.later(delay_ms // 2, self.complete, holds, REPEATS_MAX)

    def _complete_late(self, holds: Sequence[Hold], lease_ms: int) -> None:
        delay_ms = self._left_ms(holds) + self._random.randint(0, 2 * lease_ms)
        if self._random.random() < 0.5:
            self._client.later(delay_ms, self._send_renewal, holds, lease_ms, lambda operation: None)
        self._client.later(delay_ms, self.complete, holds, REPEATS_MAX)

    def complete(self, holds: Sequence[Hold], repeats: int) -> None:
        """Say that they are done; again when nobody knows."""
        for hold in holds:
            hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
        ids = b"".join(hold.task for hold in holds)
        tokens = pack_u64([hold.token for hold in holds])

        def then(operation: Operation) -> None:
            if operation.status is Status.INFO and repeats:
                self._client.later(self._random.randint(1, 300), self.complete, holds, repeats - 1)
        w = self._random.choice((0, 0, self._options.w_min))
        self._client.ask(lambda request: m.Complete(request, w, 0, ids, tokens), then)

    def _release(self, holds: Sequence[Hold], lease_ms: int) -> None:
        def release() -> None:
            for hold in holds:
                hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            self._send_renewal(holds, 0, lambda operation: None)
        self._client.later(self._random.randint(0, lease_ms), release)

    def _conclude(self, kind: int, holds: Sequence[Hold], lease_ms: int) -> None:
        """Fail or snooze, now and then too late."""
        is_by_policy = bool(self._options.workload.max_attempts) and self._random.random() < 0.7
        delay_ms = -1 if is_by_policy else self._random.randint(0, 500)
        ids, tokens = b"".join(hold.task for hold in holds), pack_u64([hold.token for hold in holds])

        def conclude() -> None:
            for hold in holds:
                hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            self._client.ask(lambda request: m.Conclude(request, kind, delay_ms, ids, tokens),
                             lambda operation: None)
        self._client.later(self._random.randint(0, lease_ms), conclude)

    def _renew_on(self, holds: Sequence[Hold], lease_ms: int) -> None:
        rounds = self._random.randint(1, 4)

        def then(operation: Operation) -> None:
            self._on_renewed(operation, holds, lease_ms)

        def once(left: int) -> None:
            held = [hold for hold in holds if hold.stop_ms > self._client.scheduler.now_ms]
            if held and left:
                self._log(held, rounds - left)
                self._send_renewal(holds, lease_ms, then)
                self._client.later(max(1, lease_ms // 3), once, left - 1)
            elif held:
                self._fates[self._random.choice(("complete", "abandon"))](held, lease_ms)
        self._client.later(lease_ms // 3, once, rounds)

    def _send_renewal(self, holds: Sequence[Hold], lease_ms: int, then: Then) -> None:
        ids = b"".join(hold.task for hold in holds)
        tokens = pack_u64([hold.token for hold in holds])
        self._client.ask(lambda request: m.Renew(request, lease_ms, ids, tokens), then)

    def _on_renewed(self, operation: Operation, holds: Sequence[Hold], lease_ms: int) -> None:
        if not isinstance(operation.answer, m.Renewed):
            return
        now_ms, stop_ms = self._client.scheduler.now_ms, self._stop_of(operation.invoked_ms, lease_ms)
        unknown = unpack_u64(operation.answer.unknown)
        for index, (hold, end_ms) in enumerate(zip(holds, unpack_u64(operation.answer.ends), strict=True)):
            if index in unknown:
                continue
            if not end_ms:
                hold.stop_ms = min(hold.stop_ms, now_ms)
            elif hold.stop_ms > now_ms:
                hold.stop_ms = max(hold.stop_ms, stop_ms)


class Reader:
    """Looks at tasks, counts and pages."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Look around."""
        self._client.repeat(self._options.workload.read_ms, self._look)

    def _look(self) -> None:
        random, queue = self._client.random, self._client.random.choice(("", *self._options.workload.queues))
        known = [hold.task for hold in self._client.history.holds[-50:]]
        makes: list[Make] = [lambda request: m.Count(request, queue), m.Describe,
                             lambda request: m.List(request, queue, b"", random.choice((1, 5, 100)))]
        if known:
            ids = b"".join(dict.fromkeys(random.choice(known) for _ in range(3)))
            makes.append(lambda request: m.Get(request, ids))
        self._client.ask(random.choice(makes), lambda operation: None)


class Meddler:
    """Cancels tasks, and revives what may be dead; both of tasks that somebody has held."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Meddle, as far as the run wants it."""
        workload = self._options.workload
        if workload.cancel_ms:
            self._client.repeat(workload.cancel_ms, self._cancel)
        if workload.revive_ms:
            self._client.repeat(workload.revive_ms, self._revive)

    def _some(self, count: int) -> bytes:
        known = [hold.task for hold in self._client.history.holds[-50:]]
        return b"".join(dict.fromkeys(self._client.random.choice(known) for _ in range(count))) if known else b""

    def _cancel(self) -> None:
        ids, w = self._some(1), self._client.random.choice((0, 0, self._options.w_min))
        if ids:
            self._client.ask(lambda request: m.Cancel(request, w, 0, ids), lambda operation: None)

    def _revive(self) -> None:
        ids = self._some(5)
        if ids:
            self._client.ask(lambda request: m.Revive(request, ids), lambda operation: None)
