"""A cluster of real processes tells what happens to it: by its metrics, and by the log of a node."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from skuld_py.client.client import Client
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from system.conftest import claim_all

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LINES_MAX = 20
SHOWN = re.compile(r"http://127\.0\.0\.1:\d+/metrics")


def scrape(url: str) -> dict[str, float]:
    """Samples by name and labels, as the library's own parser reads them."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


def until(look: Callable[[], bool], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not look():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.2)


def test_a_scrape_shows_the_election_after_a_kill_and_the_log_tells_the_story(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(tmp_path / "cluster", nodes=3, partitions=8, replicas=3, skew_ms=200,
                      what_is_missing=what_is_missing, node_options=("--metrics", "0")) as cluster:
        found = [SHOWN.search(cluster.node_log(index).read_text()) for index in range(3)]
        urls = [each[0] for each in found if each is not None]
        assert len(urls) == 3
        with Client(cluster.addresses, timeout_s=30) as client:
            client.enqueue_many("observed", [b"x"] * 8)
            claim_all(client, "observed", 3)
        until(lambda: sum(scrape(url).get('skuld_queue_tasks{"queue": "observed", "state": "waiting"}', 0)
                          for url in urls) == 5)
        assert sum(scrape(url)["skuld_claims_granted_total{}"] for url in urls) == 3
        assert any(scrape(url).get('skuld_queue_oldest_waiting_seconds{"queue": "observed"}', 0) > 0
                   for url in urls)
        before = [scrape(url) for url in urls]
        victim = max(range(3), key=lambda index: before[index]["skuld_partitions_led{}"])
        led = before[victim]["skuld_partitions_led{}"]
        left = [index for index in range(3) if index != victim]
        os.kill(cluster.node_process_id(victim), signal.SIGKILL)
        until(lambda: sum(scrape(urls[index])["skuld_partitions_led{}"] for index in left) == 8)
        after = {index: scrape(urls[index]) for index in left}
        won = {index: after[index]["skuld_elections_won_total{}"] - before[index]["skuld_elections_won_total{}"]
               for index in left}
        assert sum(won.values()) >= led > 0
        until(lambda: all(scrape(urls[index])['skuld_attention{"kind": "nodes_down"}'] == 1 for index in left))
        assert all(after[index]["skuld_turn_seconds_count{}"] > 0 and
                   after[index]["process_resident_memory_bytes{}"] > 0 for index in left)
        log = cluster.node_log(max(left, key=lambda index: won[index])).read_text()

    lines = [line for line in log.splitlines() if " INFO " in line or " WARNING " in line or " ERROR " in line]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))
    name = cluster.addresses[victim]
    assert len(lines) <= LINES_MAX
    assert any("takes requests: skuld " in line for line in lines)
    gone = next(number for number, line in enumerate(lines) if f"node {name} has left, or is down" in line)
    assert any(f": {name} was not heard" in line and "elected leader of" in line for line in lines[gone:])
