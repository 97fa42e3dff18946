"""Random lives of tasks, lived in a cluster and in memory at once: every answer and every view is compared.

A life has a queue of its own in both worlds. An act is drawn, is done in both, and must end in the same way; then
``get``, ``list``, ``count``, ``depths`` and ``ends`` must show the same of all tasks, named by their numbers.

What may differ, and why:

* Times, ids, tokens and holders: each world has clocks and names of its own. Claims are known by their order.
  So are tasks, and in that order both must list them.
* The order in which a claim's tasks come, and how many one node has of them: order over partitions is approximate
  and memory has one partition. So all that may be claimed is claimed, and compared as a set.
* When one task's end reaches others: in a cluster that takes messages. So views are given ``SOON_S`` to agree, and
  the next act begins when they do.
* ``facts``: a cluster's copies note each for itself what they were told of dependencies.

Not played are ``status``, ``collectable`` and ``archived``, which tell of nodes, and limits of a queue or a rate:
which of its tasks they leave waiting depends on the order over partitions. Schedules are put and never due, and
nobody waits for ends or follows logs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import attrs

from skuld_py import Client, Retry, SkuldError
from skuld_py.client.claims import Claim, ClaimName
from skuld_py.testing import MemoryClient

SOON_S = 60.0
TASKS_MAX = 12
CLAIMED_MAX = 100
FAR_S = 86_400.0
NEVER = "0 0 29 2 *"
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
        return self.numbered([made])[0]

    def numbered(self, made: Iterable[bytes]) -> list[tuple[int, bool]]:
        """The numbers of tasks, new ones after the others; and which are ones that were there."""
        for task_id in (made := [*made]):
            if task_id not in self.ids:
                self.ids.append(task_id)
        return [(self.number(task_id), bool(getattr(task_id, "is_duplicate", False))) for task_id in made]

    def claim(self, wanted: int) -> list[tuple[int, bytes, dict[str, str], int]]:
        """All that may be claimed, of which there are so many; the next claim's numbers follow the tasks'."""
        found: list[Claim] = []
        until = time.monotonic() + SOON_S
        while len(found) < wanted and time.monotonic() < until:
            found += self.client.claim(self.queue, n=wanted - len(found), lease_s=FAR_S, wait_s=1)
        found += self.client.claim(self.queue, n=CLAIMED_MAX, lease_s=FAR_S)
        found.sort(key=lambda claim: self.number(claim.id))
        self.claims += found
        return [(self.number(claim.id), claim.payload, dict(claim.headers), claim.priority) for claim in found]

    def views(self) -> list[Any]:
        """What all readers are shown."""
        tasks = self.client.get_many(self.ids) if self.ids else []
        listed = [*self.client.list(self.queue, page=5)]
        states = {state: [self.number(task.id) for task in self.client.list(self.queue, states=[state])]
                  for state in ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")}
        counts = {state: self.client.count(self.queue, states=[state]) for state in states}
        ends = self.client.ends(self.ids) if self.ids else []
        return [
            *sorted((self._shown(task) for task in tasks), key=itemgetter("number")),
            [(self.number(task.id), task.payload, task.state) for task in listed],
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
    payload, options["w"] = bytes([draw.randrange(4)]), _owners(draw)
    return lambda world: world.enqueue(payload, due_s, ends_s, deps, **options)


def _owners(draw: Draw) -> int | None:
    """A majority, all of them, or more than there are."""
    return draw.choice((None, None, None, 2, 3, 4))


def _enqueue_many(draw: Draw, tasks: int, claims: int) -> Act:
    payloads = [bytes([draw.randrange(4)]) for _ in range(draw.randint(2, 4))]
    keys = draw.choice((None, [draw.choice(("a", "b", None)) for _ in payloads]))
    return lambda world: world.numbered(world.client.enqueue_many(world.queue, payloads, key=keys, priority=1))


def _enqueue_again(draw: Draw, tasks: int, claims: int) -> Act:
    """A task's id once more, with its content or with another one."""
    number, payload, retry = draw.randrange(tasks), bytes([draw.randrange(4)]), draw.choice(RETRIES)
    return lambda world: world.numbered([world.client.enqueue(
        world.queue, payload, id=world.ids[number], retry=retry)])


def _enqueue_named(draw: Draw, tasks: int, claims: int) -> Act:
    key = draw.choice((None, "a"))
    return lambda world: world.numbered(world.client.enqueue_many(world.queue, [b"x", b"y"], key=key, ids=(
        world.client.new_ids(2, queue=world.queue, key=key))))


def _steps(draw: Draw, tasks: int, claims: int) -> Act:
    """Two tasks in a chain or a group, or with one behind them; or one behind others."""
    verb, policy = draw.choice(("chain", "group", "chord", "join")), draw.choice(("wait", "ignore", "fail"))
    deps = draw.sample(range(tasks), min(tasks, draw.randint(0, 2)))

    def act(world: World) -> Any:
        steps, before = [(world.queue, b"x"), (world.queue, b"y")], [world.ids[dep] for dep in deps]
        if verb == "join":
            return world.numbered([world.client.join(before, steps[0], on_dep_failure=policy)])
        given = {"deps": before, "on_dep_failure": policy}
        if verb == "chord":
            made = world.client.chord(steps, steps[0], **given)
            return world.numbered([*made.steps, made.then])
        return world.numbered(getattr(world.client, verb)(steps, **given))
    return act


def _on_claim(do: Callable[[World, Claim, bytes], Any]) -> Callable[[Draw, int, int], Act]:
    """An act on any claim that ever was granted, held or not, by its object or by its name."""
    def make(draw: Draw, tasks: int, claims: int) -> Act:
        number, word = draw.randrange(claims), bytes([draw.randrange(256)])
        return lambda world: do(world, world.claims[number], word)
    return make


def _fail(world: World, claim: Claim, word: bytes) -> None:
    """By the task's policy where that is one of ``RETRIES``: the pause of any other might end before the views are
    compared."""
    task = world.client.get(claim.id)
    is_safe = task is not None and task.retry in RETRIES
    world.client.fail(claim, word, retry_in_s=None if is_safe else FAR_S)


def _on_claims(do: Callable[[World, list[Claim], list[bytes]], Any]) -> Callable[[Draw, int, int], Act]:
    """An act on several claims at once, each of another task: of two that complete one task in one call, which
    stands is not promised."""
    def make(draw: Draw, tasks: int, claims: int) -> Act:
        numbers = draw.sample(range(claims), min(claims, draw.randint(1, 3)))
        words = [bytes([draw.randrange(256)]) for _ in numbers]

        def act(world: World) -> Any:
            chosen = {world.claims[number].id: (world.claims[number], word)
                      for number, word in zip(numbers, words, strict=True)}
            return do(world, [claim for claim, _ in chosen.values()], [word for _, word in chosen.values()])
        return act
    return make


def _forged(draw: Draw, tasks: int, claims: int) -> Act:
    """An act on a claim that was granted otherwise, or never, or on one without its proof."""
    number, kind, verb = draw.randrange(claims), draw.randrange(4), draw.choice(FORGEABLE)

    def act(world: World) -> Any:
        claim = world.claims[number]
        name = (ClaimName(claim.id, claim.token), ClaimName(claim.id, claim.token + 1, claim.proof),
                ClaimName(claim.id, claim.token, bytes(8)), ClaimName(bytes(20), claim.token, claim.proof))[kind]
        return getattr(world.client, verb)(name, *{"snooze": (1,), "update": (b"x",)}.get(verb, ()),
                                           **{"update": {"seq": 0}}.get(verb, {}))
    return act


def _unknown(draw: Draw, tasks: int, claims: int) -> Act:
    verb = draw.choice(("cancel", "retry", "get", "results_of", "log"))
    return lambda world: [*(getattr(world.client, verb)(b"1" * 20) or ())]


def _log(draw: Draw, tasks: int, claims: int) -> Act:
    number = draw.randrange(tasks)

    def act(world: World) -> list[tuple[int, int, bytes]]:
        order = {(claim.id, claim.token): index for index, claim in enumerate(world.claims)}
        task_id = world.ids[number]
        return [(order[task_id, entry.token], entry.seq, entry.data) for entry in world.client.log(task_id)]
    return act


def _update(draw: Draw, tasks: int, claims: int) -> Act:
    number, word, w, seq = draw.randrange(claims), bytes([draw.randrange(256)]), _owners(draw), draw.randrange(4)
    given = draw.choice((None, None, seq))
    return lambda world: world.client.update(world.claims[number], [word] * (1 + seq % 2), seq=given, w=w)


def _schedule(draw: Draw, tasks: int, claims: int) -> Act:
    verb, catch_up = draw.choice(("put", "put", "list", "remove")), draw.randrange(3)

    def act(world: World) -> Any:
        if verb == "put":
            return world.client.put_schedule(world.queue, world.queue, b"x", cron=NEVER, catch_up=catch_up)
        if verb == "remove":
            return world.client.remove_schedule(world.queue)
        return [(each.cron, each.zone, each.every_s, each.catch_up) for each in world.client.schedules()
                if each.name == world.queue]
    return act


def _limit(draw: Draw, tasks: int, claims: int) -> Act:
    verb, width = draw.choice(("set", "set", "list", "remove")), draw.randint(1, 3)

    def act(world: World) -> Any:
        if verb == "set":
            return world.client.set_limits(world.queue, key_concurrency=width)
        return world.client.remove_limits(world.queue) if verb == "remove" else world.client.limits(world.queue)
    return act


def _pause(draw: Draw, tasks: int, claims: int) -> Act:
    verb = draw.choice(("pause", "resume", "resume", "paused"))
    return lambda world: (world.queue in world.client.paused() if verb == "paused"
                          else getattr(world.client, verb)(world.queue))


def _on_task(do: Callable[[World, bytes], Any]) -> Callable[[Draw, int, int], Act]:
    def make(draw: Draw, tasks: int, claims: int) -> Act:
        number = draw.randrange(tasks)
        return lambda world: do(world, world.ids[number])
    return make


def _result_of(world: World, task_id: bytes) -> Any:
    return world.client.results([task_id])


ACTS: dict[str, tuple[Any, ...]] = {
    "enqueue": (12, "room"), "claim": (10,), "complete": (6, "claims"), "fail": (4, "claims"),
    "release": (3, "claims"), "snooze": (2, "claims"), "renew": (2, "claims"), "update": (4, "claims"),
    "cancel": (2, "tasks"), "retry": (4, "tasks"), "results": (1, "tasks"), "results_of": (2, "tasks"),
    "enqueue_many": (2, "room"), "enqueue_again": (2, "tasks"), "enqueue_named": (1, "room"), "steps": (2, "room"),
    "complete_many": (1, "claims"), "fail_many": (1, "claims"), "renew_many": (2, "claims"),
    "cancel_many": (1, "tasks"), "retry_many": (1, "tasks"), "forged": (2, "claims"), "unknown": (1,),
    "log": (2, "tasks"), "schedule": (1,), "limit": (1,), "pause": (1,),
}
"""How often each is drawn, and what it needs."""
MAKERS: dict[str, Callable[[Draw, int, int], Act]] = {
    "enqueue": _enqueue,
    "complete": _on_claim(lambda world, claim, word: world.client.complete(claim, word) > 0),
    "fail": _on_claim(_fail),
    "release": _on_claim(lambda world, claim, word: world.client.release(claim)),
    "snooze": _on_claim(lambda world, claim, word: world.client.snooze(claim, FAR_S)),
    "renew": _on_claim(lambda world, claim, word: world.client.renew(claim, lease_s=FAR_S)),
    "update": _update,
    "complete_many": _on_claims(lambda world, claims, words: world.client.complete_many(claims, words, w=3) > 0),
    "fail_many": _on_claims(lambda world, claims, words: world.client.fail_many(claims, words, retry_in_s=0)),
    "renew_many": _on_claims(lambda world, claims, words: world.client.renew_many(claims, lease_s=FAR_S)),
    "enqueue_many": _enqueue_many, "enqueue_again": _enqueue_again, "enqueue_named": _enqueue_named,
    "steps": _steps, "forged": _forged, "unknown": _unknown, "log": _log, "schedule": _schedule, "limit": _limit,
    "pause": _pause,
    "cancel_many": _on_task(lambda world, task_id: world.client.cancel(task_id, world.ids[0], w=2)),
    "retry_many": _on_task(lambda world, task_id: world.client.retry(task_id, world.ids[0])),
    "results_of": _on_task(lambda world, task_id: world.client.results_of(task_id)),
    "cancel": _on_task(lambda world, task_id: world.client.cancel(task_id)),
    "retry": _on_task(lambda world, task_id: world.client.retry(task_id)),
    "results": _on_task(_result_of),
    "claim": lambda draw, tasks, claims: lambda world: world.claim(0),
}
FORGEABLE = ("complete", "fail", "renew", "release", "snooze", "update")


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
        real = World(client, f"life-{seed}", time.time)
        return live_both(seed, real, in_memory(seed, memory), acts)


def in_memory(seed: int, memory: MemoryClient) -> World:
    """A life's world in memory."""
    return World(memory, f"life-{seed}", lambda: memory.cluster.wall_ms() / 1_000)


def live_both(seed: int, real: World, model: World, acts: int, soon_s: float = SOON_S) -> list[str]:
    """One life in two worlds; gives its acts. Raises ``Difference``."""
    draw, told = Draw(seed), list[str]()
    for _ in range(acts):
        name, act = drawn(draw, len(model.ids), len(model.claims))
        model.client.advance(0.001)  # of two completions of one moment that of the older claim would stand
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
