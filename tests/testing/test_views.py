"""One state, one answer: whatever happens to tasks, ``get``, ``list`` and the counts tell the same of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skuld_py import Refused, Retry
from skuld_py.client.asking import Answered, Ask
from skuld_py.client.claims import Claim
from skuld_py.client.reading import STATES
from skuld_py.model.columns import Column
from skuld_py.model.messages import Got
from skuld_py.testing import MemoryClient

NOW = 1_900_000_000.0
SKEW_S = 2.0
STEPS = ("enqueue", "claim", "complete", "fail", "snooze", "release", "cancel", "retry", "advance", "widen")


def views(client: MemoryClient, ids: list[Any]) -> dict[str, Any]:
    """State -> tasks, as each of the views tells."""
    listed = Counter(task.state for task in client.list("q"))
    return {
        "get": Counter(client.get(task_id).state for task_id in ids),
        "list": listed,
        "list by states": Counter({state: len(list(client.list("q", states=[state]))) for state in STATES}),
        "list of all": Counter(task.state for task in client.list("q", states=STATES)),
        "count": Counter({state: client.count("q", states=[state]) for state in STATES}),
        "depths": Counter({state: number for depth in client.depths().values()
                           for state, number in attrs.asdict(depth).items()}),
    }


def assert_one_answer(client: MemoryClient, ids: list[Any]) -> Counter[str]:
    told = views(client, ids)
    assert {name: +counts for name, counts in told.items()} == dict.fromkeys(told, +told["get"])
    return told["get"]


def test_tasks_behind_others_of_their_key_are_blocked_in_every_view() -> None:
    with MemoryClient(now=NOW) as client:
        ids = [client.enqueue("q", b"x", key="k") for _ in range(5)]
        assert assert_one_answer(client, ids) == {"waiting": 1, "blocked": 4}
        claim, = client.claim("q", n=5)
        assert assert_one_answer(client, ids) == {"claimed": 1, "blocked": 4}
        client.snooze(claim, 60)
        assert assert_one_answer(client, ids) == {"scheduled": 1, "blocked": 4}
        client.set_limits("q", key_concurrency=2)
        client.advance(61)
        assert assert_one_answer(client, ids) == {"waiting": 2, "blocked": 3}


def test_a_blocked_task_says_for_whom_it_waits() -> None:
    with MemoryClient(now=NOW) as client:
        done, needed = client.enqueue("other", b"1"), client.enqueue("other", b"2")
        first, second = client.enqueue("q", b"1", key="k"), client.enqueue("q", b"2", key="k")
        needy = client.enqueue("q", b"3", key="k", deps=[done, needed])
        client.complete(client.claim("other")[0])

        def told() -> dict[Any, Any]:
            listed = {task.id: task.blocked_by for task in client.list("q")}
            assert listed == {task_id: client.get(task_id).blocked_by for task_id in (first, second, needy)}
            return listed
        assert told() == {first: (), second: (first,), needy: (needed, first)}
        claim, = client.claim("q")
        assert told() == {first: (), second: (first,), needy: (needed, first)}
        client.snooze(claim, 60)
        assert told() == {first: (), second: (first,), needy: (needed, first)}
        client.cancel(first)
        assert told() == {first: (), second: (), needy: (needed, second)}
        client.complete(client.claim("q")[0])
        assert told() == {first: (), second: (), needy: (needed,)}


def test_of_a_wide_key_all_whose_turn_it_is_are_named_ten_at_most() -> None:
    with MemoryClient(now=NOW) as client:
        client.set_limits("q", key_concurrency=11)
        ids = [client.enqueue("q", b"x", key="k") for _ in range(12)]

        assert client.get(ids[-1]).blocked_by == tuple(ids[:10])
        assert len(client.claim("q", n=20)) == 11
        assert client.get(ids[-1]).blocked_by == tuple(ids[:10])


def test_a_claim_is_held_until_the_skew_bound_is_over_in_every_view() -> None:
    with MemoryClient(now=NOW) as client:
        ids = [client.enqueue("q", b"x")]
        client.claim("q", lease_s=10)
        client.advance(10.5)
        assert assert_one_answer(client, ids) == {"claimed": 1} and client.claim("q") == []
        client.advance(SKEW_S)
        assert assert_one_answer(client, ids) == {"waiting": 1} and len(client.claim("q")) == 1


def test_where_a_node_of_an_earlier_release_says_nothing_the_client_tells_what_it_knows() -> None:
    with MemoryClient(now=NOW) as client:
        ids = [client.enqueue("q", b"x", key="k") for _ in range(2)]
        ask = client.cluster.ask

        def ask_an_old_one(question: Ask, timeout_s: float) -> Answered[Any]:
            answered = ask(question, timeout_s)
            if isinstance(answered.message, Got):
                answered = attrs.evolve(answered, message=attrs.evolve(answered.message, asides=Column()))
            return answered

        client.cluster.ask = ask_an_old_one  # type: ignore[method-assign]
        client.complete(client.claim("q")[0])
        assert [client.get(task_id).state for task_id in ids] == ["completed", "waiting"]


class Life:
    """A queue to which things happen, chosen by numbers."""

    def __init__(self) -> None:
        self.client = MemoryClient(now=NOW)
        self.ids: list[Any] = []
        self.claims: list[Claim] = []

    def step(self, name: str, a: int, b: int) -> None:
        """One thing happens; what is refused did not."""
        act: Callable[[int, int], None] = getattr(self, name)
        with suppress(Refused):
            act(a, b)

    def enqueue(self, a: int, b: int) -> None:
        now = self.client.cluster.steady_s()
        some = {"key": f"k{a % 3}"} if a & 4 else {}
        deps = self.ids[-1 - b % 3:][:1 + b % 2] if b & 4 and a & 8 else []
        times = {"not_before": now + b % 20} if a & 16 else {"expires": now + 1 + b % 40} if a & 32 else {}
        policy = ("wait", "fail", "ignore")[a % 3]
        self.ids.append(self.client.enqueue(
            "q", b"x", **some, **times, deps=deps, on_dep_failure=policy, priority=b % 2,
            retry=Retry(max_attempts=1 + a % 3, backoff_s=1 + b % 5)))

    def claim(self, a: int, b: int) -> None:
        self.claims += self.client.claim("q", n=1 + a % 4, lease_s=1 + b % 30)

    def _held(self, a: int) -> list[Claim]:
        return [self.claims[a % len(self.claims)]] if self.claims else []

    def complete(self, a: int, b: int) -> None:
        for claim in self._held(a):
            self.client.complete(claim)

    def fail(self, a: int, b: int) -> None:
        for claim in self._held(a):
            self.client.fail(claim, "why")

    def snooze(self, a: int, b: int) -> None:
        for claim in self._held(a):
            self.client.snooze(claim, 1 + b % 20)

    def release(self, a: int, b: int) -> None:
        for claim in self._held(a):
            self.client.release(claim)

    def cancel(self, a: int, b: int) -> None:
        if self.ids:
            self.client.cancel(self.ids[a % len(self.ids)])

    def retry(self, a: int, b: int) -> None:
        if self.ids:
            self.client.retry(self.ids[a % len(self.ids)])

    def widen(self, a: int, b: int) -> None:
        self.client.set_limits("q", key_concurrency=1 + a % 3)

    def advance(self, a: int, b: int) -> None:
        self.client.advance(a % 40 + b / 64)


def test_a_task_that_is_released_after_its_end_is_dead_at_once_in_every_view() -> None:
    with MemoryClient(now=NOW) as client:
        ids = [client.enqueue("q", b"x", expires=NOW + 1)]
        claim, = client.claim("q", lease_s=20)
        client.advance(2)
        client.release(claim)
        assert client.count("q", states=["waiting"]) == 0, "the first view that looks"
        assert assert_one_answer(client, ids) == {"dead": 1}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 63), st.integers(0, 63)), max_size=40))
def test_every_view_tells_the_same_whatever_happens(steps: list[tuple[str, int, int]]) -> None:
    life = Life()
    for step in steps:
        life.step(*step)
        assert_one_answer(life.client, life.ids)
