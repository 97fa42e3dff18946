"""Clients that enqueue: they repeat, with the same ids and at another node, what they do not know the outcome of.

Now and then they also repeat what they know, or send other content under the same ids, which every
owner must refuse. Batches draw their queue, size, priority and options by chance.
"""

from __future__ import annotations

import attrs

from skuld_py.model import messages as m
from skuld_py.model.body import DEFAULT_RETRY, Body, Header, Retry
from skuld_py.model.columns import pack
from skuld_py.model.ids import IdMint, lane_route, named_id
from skuld_py.model.prelude import Prelude
from skuld_py.simulation.clients.client import REPEATS_MAX, Client
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.options import Options

POLICIES = (1, 1, 2, 3)
"""What becomes of a task when one that it needs fails: it waits on, it dies, it takes it as done."""
RECENT = 20
"""Tasks of before that others may need."""
KEPT = 0.5
"""How often an id that was promised is the next one enqueued, if any is."""
SOME = 0.4
FAR_MS = 24 * 3600 * 1000
"""Tasks with a time expire long after the run: they show that bodies with options travel as others do."""
KEYED = 0.3
"""Share of batches whose tasks have keys, or unique names, where any have."""
NAME_WINDOW_MS = 2_000


class Producer:
    """Enqueues; repeats what it is not sure of; now and then repeats what it is sure of."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        nonce = client.random.getrandbits(32)
        self._mint, self._mint_of_later = IdMint(nonce), IdMint(nonce ^ 1)
        self._made = 0
        self._recent: list[bytes] = []
        self._promised: list[bytes] = []
        """Ids that tasks wait for and that are not enqueued; some never are."""

    def begin(self) -> None:
        """Learn the id floor, then produce."""
        self._client.ask(m.Greet, self._on_greeted)
        self._client.repeat(self._options.workload.enqueue_ms, self._enqueue)

    def _on_greeted(self, operation: Operation) -> None:
        if isinstance(operation.answer, m.Greeted):
            self._mint.raise_floor(operation.answer.floor_ms)
            self._mint_of_later.raise_floor(operation.answer.floor_ms)

    def _enqueue(self) -> None:
        random, replicas = self._random, self._options.parameters.replicas
        batches = tuple(self._batch() for _ in range(1 + (random.random() < 0.3)))
        w = random.choice((0, 0, random.randint(self._options.w_min, replicas)))
        self._send(batches, w, REPEATS_MAX)

    def _batch(self) -> m.TaskBatch:
        random, workload = self._random, self._options.workload
        queue, priority = random.choice(workload.queues), random.choice((0, 0, -1, 5))
        count = random.randint(1, workload.batch_max)
        if workload.names and random.random() < KEYED:
            return self._named(queue, priority)
        if workload.keys and random.random() < KEYED:
            return self._keyed(queue, priority, count)
        ids = self._mint.mint(self._client.wall_ms(), count, random.getrandbits(32))
        deps = self._deps()
        if random.random() < 0.2:
            ids += self._mint.mint(self._client.wall_ms(), 1, random.getrandbits(32))
        self._made += len(ids)
        payloads = [f"{self._client.name} {self._made} {index}".encode() + bytes(random.choice((0, 1, 60)))
                    for index in range(len(ids))]
        headers = (("made", str(self._made)),) if self._made % 3 == 0 else ()
        prelude = attrs.evolve(self._prelude(), deps=deps)
        policy, wait_ms = (random.choice(POLICIES), random.choice(workload.dep_wait_ms)) if deps else (0, 0)
        header = Header(queue, priority, self._policy(), headers, prelude.flags, policy=policy,
                        dep_wait_ms=wait_ms)
        rests = [prelude.encode() + payload for payload in payloads]
        if workload.needs and not deps and self._promised and random.random() < KEPT:
            ids[-1] = self._promised.pop(0)
        self._recent = [*self._recent, *ids][-RECENT:]
        return m.TaskBatch(header.encode(), b"".join(ids), pack(rests))

    def _deps(self) -> tuple[bytes, ...]:
        """Mostly tasks of before; now and then one that is enqueued later, or never. Those of later need nothing,
        so that no tasks wait in a circle."""
        random, now_ms = self._random, self._client.wall_ms()
        if not self._options.workload.needs or random.random() >= self._options.workload.needs:
            return ()
        found = [random.choice(self._recent) for _ in range(random.randint(1, 4)) if self._recent]
        if random.random() < 0.2 or not found:
            promised = self._mint_of_later.mint(now_ms, 1, random.getrandbits(32))
            self._promised += promised
            found += promised
        return tuple(sorted({*found}))

    def _prelude(self) -> Prelude:
        """One prelude for the batch: some for later, some with an end, near or far."""
        random, workload, now_ms = self._random, self._options.workload, self._client.wall_ms()
        not_before_ms = expires_ms = 0
        if workload.delay_ms and random.random() < SOME:
            not_before_ms = now_ms + random.randint(1, workload.delay_ms)
        if workload.life_ms and random.random() < SOME:
            expires_ms = max(now_ms, not_before_ms) + random.randint(1, workload.life_ms)
        elif self._made % 4 == 0:
            expires_ms = now_ms + FAR_MS
        return Prelude(not_before_ms, expires_ms)

    def _named(self, queue: str, priority: int) -> m.TaskBatch:
        """A task of few names, each time with another content, which many ask for in one window."""
        random, workload = self._random, self._options.workload
        made_ms, name = self._client.wall_ms(), random.choice(workload.names)
        key = random.choice(workload.keys) if workload.keys and random.random() < KEYED else ""
        self._made += 1
        payload = f"{self._client.name} {self._made}".encode()
        header = Header(queue, priority, self._policy(), window_ms=NAME_WINDOW_MS)
        body = Body(header, payload=payload, made_ms=made_ms, unique=name, key=key)
        task_id = named_id(queue, name, made_ms // NAME_WINDOW_MS * NAME_WINDOW_MS, key)
        return m.TaskBatch(body.header.encode(), task_id, pack([body.rest]))

    def _keyed(self, queue: str, priority: int, count: int) -> m.TaskBatch:
        """Tasks of few keys, each with an id of its key's lane."""
        keys = [self._random.choice(self._options.workload.keys) for _ in range(count)]
        now_ms = self._client.wall_ms()
        ids = [self._mint.mint(now_ms, 1, lane_route(queue, key), is_laned=True)[0] for key in keys]
        self._made += count
        header = Header(queue, priority, self._policy())
        bodies = [Body(header, key=key, payload=f"{self._client.name} {self._made} {index}".encode())
                  for index, key in enumerate(keys)]
        return m.TaskBatch(bodies[0].header.encode(), b"".join(ids), pack([body.rest for body in bodies]))

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
            keep_ms = self._options.retention.keep_ms
            self._client.later(random.randint(1, 3_000) + keep_ms, self._send, batches, w, 0)
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
