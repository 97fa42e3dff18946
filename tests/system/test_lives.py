"""The client in memory tells what a cluster tells: the same random lives in both. ``scripts/lives`` runs 2,000."""

from __future__ import annotations

import contextlib
import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from skuld_py import Fenced
from skuld_py.client.claims import Claim
from skuld_py.embedded.local import LocalCluster
from skuld_py.testing import MemoryClient
from system.lives import ACTS, Difference, drawn, in_memory, live, live_both

LIVES = int(os.environ.get("SKULD_TEST_LIVES", "16"))
FIRST = int(os.environ.get("SKULD_TEST_FIRST_LIFE", "0"))
ACTS_OF_ONE = 18
LIVES_OF_A_CLUSTER = 200
"""Each life has a queue of its own, and every view of the depths shows them all."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + LIVES, LIVES_OF_A_CLUSTER))
def test_every_answer_and_every_view_is_the_same_in_memory_and_in_a_cluster(
        first: int, cluster: LocalCluster) -> None:
    seeds = range(first, min(first + LIVES_OF_A_CLUSTER, FIRST + LIVES))
    with ThreadPoolExecutor(8) as pool:
        lives = [pool.submit(live, seed, cluster.addresses, ACTS_OF_ONE) for seed in seeds]
    told = [acts for each in lives for acts in each.result()]

    assert len(told) == len(seeds) * ACTS_OF_ONE
    assert {*told} == {*ACTS} or len(seeds) < LIVES_OF_A_CLUSTER, "some act was never drawn"


def test_every_act_is_drawn() -> None:
    draws = [drawn(random.Random(seed), tasks=3, claims=2)[0] for seed in range(2_000)]
    assert {*draws} == {*ACTS}
    assert {drawn(random.Random(seed), tasks=0, claims=0)[0] for seed in range(500)} == {
        name for name, (_, *needed) in ACTS.items() if not {"tasks", "claims"} & {*needed}}


class Forgetful(MemoryClient):
    """Completes without the result."""

    def complete(self, claim: Claim, result: bytes | str = b"", *, w: int | None = None) -> int:  # type: ignore
        return super().complete(claim)


class Hasty(MemoryClient):
    """Never fences."""

    def renew(self, claim: Claim, *, lease_s: float = 60) -> None:  # type: ignore
        with contextlib.suppress(Fenced):
            super().renew(claim, lease_s=lease_s)


@pytest.mark.parametrize(("liar", "words"), [(Forgetful, "views differ"), (Hasty, "renew gave None")])
def test_a_world_that_tells_otherwise_is_found_out(liar: type[MemoryClient], words: str) -> None:
    with pytest.raises(Difference, match=words):
        for seed in range(40):
            with liar() as one, MemoryClient() as other:
                live_both(seed, in_memory(seed, one), in_memory(seed, other), ACTS_OF_ONE, soon_s=0)
