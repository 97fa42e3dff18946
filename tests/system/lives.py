"""Random lives of tasks, lived in a cluster and in memory at once: every answer and every view is compared.

A life has a queue of its own in both worlds. An act is drawn, is done in both, and must end in the same way; then
``get``, ``list``, ``count``, ``depths`` and ``ends`` must show the same of all tasks, named by their numbers.

What may differ, and why:

* Times, ids, tokens and holders: each world has clocks and names of its own. Claims are known by their order.
* The order in which a claim's tasks come, and how many one node has of them: order over partitions is approximate
  and memory has one partition. So all that may be claimed is claimed, and compared as a set.
* When one task's end reaches others: in a cluster that takes messages. So views are given ``SOON_S`` to agree, and
  the next act begins when they do.
* ``facts``: a cluster's copies note each for itself what they were told of dependencies.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import attrs

from skuld_py import Client, Retry, SkuldError
from skuld_py.client.claims import Claim
from skuld_py.testing import MemoryClient

SOON_S = 20.0
TASKS_MAX = 12
FAR_S = 86_400.0
RETRIES = Retry(3, backoff_s=3_600), Retry(3, backoff_s=0), Retry(1, backoff_s=3_600)
"""After a failure a task rests for longer than a life takes, or not at all, or dies."""
Draw = random.Random
Act = Callable[["World"], Any]
SHOWN = ("queue", "priority", "payload", "retry", "headers", "result", "error", "state", "death", "is_completed")
"""What of a task must be the very same."""


@attrs.define(eq=False)
class World:
    """One of the two: its client, and what has been made and claimed there, in the order of both."""

    client: Any
    queue: str
    now: Callable[[], float]
    ids: list[bytes] = attrs.field(factory=list)
    claims: list[Claim] = attrs.field(factory=list)

    def number(self, task_id: bytes) -> int:
        """A task's number in both worlds."""
        return self.ids.index(task_id)

    def enqueue(self, payload: bytes, due_s: float | None, ends_s: float | None, deps: list[int],
                **options: Any) -> tuple[int, bool]:
        """The number of the task, and whether it is one that was there."""
        made = self.client.enqueue(self.queue, payload, not_before=None if due_s is None else self.now() + due_s,
                                   expires=None if ends_s is None else self.now() + ends_s,
                                   deps=[self.ids[dep] for dep in deps] or None, **options)
        if made not in self.ids:
            self.ids.append(made)
        return self.number(made), bool(getattr(made, "is_duplicate", False))

    def claim(self, wanted: int) -> list[tuple[int, bytes, dict[str, str], int]]:
        """All that may be claimed, of which there are so many; the next claim's numbers follow the tasks'."""
        found: list[Claim] = []
        until = time.monotonic() + SOON_S
        while len(found) < wanted and time.monotonic() < until:
            found += self.client.claim(self.queue, n=wanted - len(found), lease_s=FAR_S, wait_s=1)
        found += self.client.claim(self.queue, n=TASKS_MAX, lease_s=FAR_S)
        found.sort(key=lambda claim: self.number(claim.id))
        self.claims += found
        return [(self.number(claim.id), claim.payload, dict(claim.headers), claim.priority) for claim in found]

    def views(self) -> list[Any]:
        """What all readers are shown."""
        tasks = self.client.get_many(self.ids) if self.ids else []
        listed = [*self.client.list(self.queue)]
        states = {state: sorted(self.number(task.id) for task in self.client.list(self.queue, states=[state]))
                  for state in ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")}
        counts = {state: self.client.count(self.queue, states=[state]) for state in states}
        ends = self.client.ends(self.ids) if self.ids else []
        return [
            *sorted((self._shown(task) for task in tasks), key=itemgetter("number")),
            sorted((self.number(task.id), task.payload, task.state) for task in listed),
            states, counts, self.client.depths().get(self.queue),
            *((self.number(end.id), end.state, end.result, end.error) for end in ends),
        ]

    def _shown(self, task: Any) -> dict[str, Any]:
        return {**{name: getattr(task, name) for name in SHOWN},
                "number": self.number(task.id), "deps": sorted(map(self.number, task.deps)),
                "is_cancelled": task.cancelled_ms is not None, "is_due": task.due_ms <= self.now() * 1_000,
                "claims": [(claim.outcome, claim.is_released, claim.log, claim.error) for claim in task.claims]}


def drawn(draw: Draw, tasks: int, claims: int) -> tuple[str, Act]:
    """An act, and what it is called. ``tasks`` have been made and ``claims`` granted."""
    names = [name for name, (weight, *needed) in ACTS.items() for _ in range(weight)
             if ("tasks" not in needed or tasks) and ("claims" not in needed or claims)
             and ("room" not in needed or tasks < TASKS_MAX)]
    name = draw.choice(names)
    return name, MAKERS[name](draw, tasks, claims)


def _enqueue(draw: Draw, tasks: int, claims: int) -> Act:
    options: dict[str, Any] = {"retry": draw.choice(RETRIES), "priority": draw.choice((0, 0, -5, 7)),
                               "headers": draw.choice((None, {"trace": "7"}))}
    kind = draw.choice(("plain", "keyed", "unique", "deps", "deps", "due", "expires"))
    deps: list[int] = []
    if kind == "keyed":
        options["key"] = draw.choice("ab")
    elif kind == "unique":
        options["unique"] = draw.choice("xy")
        options["unique_window_s"] = FAR_S
    elif kind == "deps" and tasks:
        deps = draw.sample(range(tasks), draw.randint(1, min(3, tasks)))
        options["on_dep_failure"] = draw.choice(("wait", "ignore", "fail"))
    due_s, ends_s = FAR_S if kind == "due" else None, FAR_S if kind == "expires" else None
    payload = bytes([draw.randrange(4)])
    return lambda world: world.enqueue(payload, due_s, ends_s, deps, **options)


def _on_claim(do: Callable[[World, Claim, bytes], Any]) -> Callable[[Draw, int, int], Act]:
    """An act on any claim that ever was granted, held or not, by its object or by its name."""
    def make(draw: Draw, tasks: int, claims: int) -> Act:
        number, word = draw.randrange(claims), bytes([draw.randrange(256)])
        return lambda world: do(world, world.claims[number], word)
    return make


def _on_task(do: Callable[[World, bytes], Any]) -> Callable[[Draw, int, int], Act]:
    def make(draw: Draw, tasks: int, claims: int) -> Act:
        number = draw.randrange(tasks)
        return lambda world: do(world, world.ids[number])
    return make


def _result_of(world: World, task_id: bytes) -> Any:
    return world.client.results([task_id])


ACTS: dict[str, tuple[Any, ...]] = {
    "enqueue": (6, "room"), "claim": (5,), "complete": (4, "claims"), "fail": (3, "claims"),
    "release": (2, "claims"), "snooze": (1, "claims"), "renew": (1, "claims"), "update": (2, "claims"),
    "cancel": (1, "tasks"), "retry": (2, "tasks"), "results": (1, "tasks"),
}
"""How often each is drawn, and what it needs."""
MAKERS: dict[str, Callable[[Draw, int, int], Act]] = {
    "enqueue": _enqueue,
    "complete": _on_claim(lambda world, claim, word: world.client.complete(claim, word)),
    "fail": _on_claim(lambda world, claim, word: world.client.fail(claim, word)),
    "release": _on_claim(lambda world, claim, word: world.client.release(claim)),
    "snooze": _on_claim(lambda world, claim, word: world.client.snooze(claim, FAR_S)),
    "renew": _on_claim(lambda world, claim, word: world.client.renew(claim, lease_s=FAR_S)),
    "update": _on_claim(lambda world, claim, word: world.client.update(claim, word)),
    "cancel": _on_task(lambda world, task_id: world.client.cancel(task_id)),
    "retry": _on_task(lambda world, task_id: world.client.retry(task_id)),
    "results": _on_task(_result_of),
    "claim": lambda draw, tasks, claims: lambda world: world.claim(0),
}


def outcome(act: Act, world: World) -> Any:
    """What came of it: the answer, or what kind of error."""
    try:
        return act(world)
    except SkuldError as error:
        return type(error).__name__, error.code


class Difference(AssertionError):
    """The two worlds told different things."""


def live(seed: int, nodes: list[str], acts: int) -> list[str]:
    """One life; gives its acts. Raises ``Difference``."""
    with Client(nodes, timeout_s=30) as client, MemoryClient() as memory:
        return live_both(seed, World(client, f"life-{seed}", time.time), in_memory(seed, memory), acts)


def in_memory(seed: int, memory: MemoryClient) -> World:
    """A life's world in memory."""
    return World(memory, f"life-{seed}", lambda: memory.cluster.wall_ms() / 1_000)


def live_both(seed: int, real: World, model: World, acts: int, soon_s: float = SOON_S) -> list[str]:
    """One life in two worlds; gives its acts. Raises ``Difference``."""
    draw, told = Draw(seed), list[str]()
    for _ in range(acts):
        name, act = drawn(draw, len(model.ids), len(model.claims))
        expected = outcome(act, model)
        if name == "claim":
            act = _claiming(len(expected))
        told.append(name)
        found = outcome(act, real)
        if found != expected:
            raise Difference(f"life {seed}, {told}: {name} gave {found}; in memory {expected}")
        _compare_views(seed, told, real, model, soon_s)
    return told


def _claiming(wanted: int) -> Act:
    return lambda world: world.claim(wanted)


def _compare_views(seed: int, told: list[str], real: World, model: World, soon_s: float) -> None:
    until = time.monotonic() + soon_s
    while (found := real.views()) != (expected := model.views()):
        if time.monotonic() > until:
            pairs = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
            raise Difference("\n".join([f"life {seed}, {told}: views differ, here and in memory:",
                                        *(f"{one}\n{other}" for one, other in pairs)]))
        time.sleep(0.02)
