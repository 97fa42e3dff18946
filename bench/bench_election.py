"""What an election costs while many claims are held: kill -9 of the node that leads most, and holders who renew.

Claims are made through the public client, and renewed by it in batches, round after round. The leader is killed
when all are held. Printed is the time until each of its partitions grants again, which is the session's timeout
and the election; the rounds of renewals before, during and after; and how many claims were lost, which must be 0.

    scripts/bench election [--claims N] [--partitions N] [--lease-s N] [--session-ms N]
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench_failover import Load, led_by
from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client, SkuldError
from skuld_py.client.claims import Claim
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import partition_of

BATCH = 1_000
PATIENCE_S = 120.0
"""An election that takes longer has failed."""
ROUNDS = 2
"""Rounds of renewals that must go through: the one that the kill falls into, and another one."""
console = Console()


class Holders:
    """Renew all claims round after round. ``rounds``: when each began and how long it took; ``lost``: claims that
    were not renewed in time, or that somebody else has."""

    def __init__(self, addresses: Sequence[str], claims: Sequence[Claim], lease_s: float) -> None:
        self.rounds: list[tuple[float, float]] = []
        self.unknown = 0
        self._addresses = addresses
        self._lease_s = lease_s
        self._begun = time.monotonic()
        self._renewed = dict.fromkeys((claim.id for claim in claims), self._begun)
        self._claims = claims
        self._fates: Counter[str] = Counter()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._renew)

    def __enter__(self) -> Holders:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def lost(self) -> int:
        """How many claims are gone."""
        late = sum(1 for at in self._renewed.values() if time.monotonic() - at > self._lease_s)
        return self._fates["fenced"] + late

    def await_renewals(self, count: int) -> None:
        """Until so many claims have been renewed."""
        start = time.monotonic()
        while sum(at > self._begun for at in self._renewed.values()) < count:
            if time.monotonic() - start > PATIENCE_S:
                raise SystemExit(f"renewals stand still before the kill: {self.unknown:,} not answered")
            time.sleep(0.05)

    def await_rounds(self, count: int) -> None:
        """Until so many rounds more have gone through."""
        wanted, start = len(self.rounds) + count, time.monotonic()
        while len(self.rounds) < wanted:
            if time.monotonic() - start > PATIENCE_S * count:
                raise SystemExit(f"renewals stand still: {len(self.rounds)} rounds, {self.unknown:,} not answered")
            time.sleep(0.05)

    def _renew(self) -> None:
        with Client(list(self._addresses), timeout_s=5) as client:
            while not self._is_over.is_set():
                start = time.monotonic()
                for at in range(0, len(self._claims), BATCH):
                    if not self._renew_batch(client, self._claims[at : at + BATCH]):
                        return
                self.rounds.append((start, time.monotonic() - start))

    def _renew_batch(self, client: Client, open_claims: Sequence[Claim]) -> bool:
        """Until each is answered for; False when the bench is over."""
        while open_claims and not self._is_over.is_set():
            sent = time.monotonic()
            try:
                verdicts = client.renew_many(open_claims, lease_s=self._lease_s)
            except SkuldError:
                verdicts = [None] * len(open_claims)
            for claim, is_held in zip(open_claims, verdicts, strict=True):
                if is_held:
                    self._renewed[claim.id] = sent
                elif is_held is False:
                    self._fates["fenced"] += 1
            open_claims = [claim for claim, is_held in zip(open_claims, verdicts, strict=True) if is_held is None]
            self.unknown += len(open_claims)
        return not self._is_over.is_set()


def hold(client: Client, count: int, lease_s: float) -> list[Claim]:
    """Enqueue and claim so many tasks."""
    held: list[Claim] = []
    for at in range(0, count, BATCH):
        client.enqueue_many("held", [b"x"] * min(BATCH, count - at))
    while len(held) < count:
        held += client.claim("held", n=min(BATCH, count - len(held)), lease_s=lease_s, wait_s=5)
    return held


def settled_leaders(client: Client) -> dict[int, str]:
    """Partition -> its leader, once that has been so for longer than a leader waits before it hands back."""
    known, since = dict[int, str](), time.monotonic()
    while time.monotonic() - since < 1.5 * DEFAULT_TIMING.steady_ms / 1000:
        found = {row.partition: row.leader for row in client.status().partitions}
        if found != known:
            known, since = found, time.monotonic()
        time.sleep(0.2)
    return known


def await_grants(load: Load, led: dict[int, int], since: float) -> dict[int, float]:
    """Seconds until each partition grants again."""
    while True:
        gaps = {partition: load.gap(partition, epoch, since) for partition, epoch in led.items()}
        known = {partition: gap for partition, gap in gaps.items() if gap is not None}
        if len(known) == len(led):
            return known
        if time.monotonic() - since > PATIENCE_S:
            silent = [partition for partition in led if partition not in known]
            raise SystemExit(f"partitions {silent} grant nothing {PATIENCE_S:.0f} s after the kill")
        time.sleep(0.05)


def main() -> None:
    """Hold, kill, measure, print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--claims", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--lease-s", type=float, default=300)
    parser.add_argument("--session-ms", type=int, default=4_000)
    options = parser.parse_args()
    table = Table("step", "measured")
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=3, partitions=options.partitions, replicas=3,
                         session_ms=options.session_ms) as cluster:
        wait_until_led(cluster.addresses)
        with Client(cluster.addresses, timeout_s=60) as client:
            start = time.monotonic()
            claims = hold(client, options.claims, options.lease_s)
            table.add_row(f"enqueue and claim {len(claims):,}", f"{time.monotonic() - start:.1f} s")
            leaders = Counter(settled_leaders(client).values())
        victim = cluster.addresses.index(max(leaders, key=lambda leader: (leaders[leader], leader)))
        living = [address for at, address in enumerate(cluster.addresses) if at != victim]
        with Holders(living, claims, options.lease_s) as holders, Load(living, options.partitions) as load:
            holders.await_renewals(BATCH)
            with Client(living, timeout_s=20) as client:
                led = led_by(client, cluster.addresses[victim])
            concerned = sum(partition_of(claim.id, options.partitions) in led for claim in claims)
            since = time.monotonic()
            cluster.kill_node(victim)
            gaps = await_grants(load, led, since)
            holders.await_rounds(ROUNDS)
        table.add_row("partitions that the killed node led, of all", f"{len(led)} of {options.partitions}")
        table.add_row("claims held in them", f"{concerned:,}")
        table.add_row("until each of them grants again", f"{max(gaps.values()):.2f} s")
        table.add_row("of which a session's timeout", f"{options.session_ms / 1000:.2f} s")
        table.add_row("a round of renewals of all claims", ", ".join(
            f"{took:.1f} s{'' if begun + took < since else ' (kill)' if begun < since else ''}"
            for begun, took in holders.rounds))
        table.add_row("renewals not answered, and sent again", f"{holders.unknown:,}")
        table.add_row("claims lost", f"{holders.lost:,}")
    console.print(table)
    if holders.lost:
        raise SystemExit(f"{holders.lost} claims were lost over the election")


if __name__ == "__main__":
    main()
