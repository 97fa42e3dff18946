"""A node's metrics, as the library's parser reads what the loop published; and the files that use them."""

from __future__ import annotations

import itertools
import json
import re
import urllib.request
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from node.machines import Machines
from skuld_py.cli.node import node_metrics
from skuld_py.errors import KEY_CODES, Refused
from skuld_py.exposition import address_of, exposed
from skuld_py.gateway.journal import Journal
from skuld_py.runtime.histogram import BOUNDS_S, Histogram
from skuld_py.runtime.loop import Counters
from skuld_py.runtime.metrics import PAUSE_S, SHARE, NodeMetrics
from skuld_py.verbs.attention import KINDS
from skuld_py.worker.metrics import Counts, WorkerMetrics

DEPLOY = Path(__file__).resolve().parents[2] / "scripts" / "deploy"


class Transport:
    """As far as metrics look."""

    class connections:
        from skuld_py.runtime.connections import Counters as _Counters
        cut = _Counters(deaf=2)


@pytest.fixture
def followed() -> tuple[NodeMetrics, Machines, list[float]]:
    """The metrics of a node of three, and their clock."""
    machines, now = Machines(partitions=2), [1.0]
    machines.pass_time(3_000)
    metrics = node_metrics()
    metrics._clock = lambda: now[0]
    counters = Counters(malformed=3)
    counters.turns.observe(0.002)
    metrics.follow(machines.nodes[machines.names[0]], counters, Transport())  # type: ignore[arg-type]
    return metrics, machines, now


def text_of(*collectors: object) -> str:
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)  # type: ignore[arg-type]
    ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


def samples(*collectors: object) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(sample.name, tuple(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text_of(*collectors)) for sample in family.samples}


def test_what_the_loop_published_is_what_a_scrape_reads(
        followed: tuple[NodeMetrics, Machines, list[float]]) -> None:
    metrics, machines, _ = followed
    assert samples(metrics)["skuld_partitions_led", ()] == 0
    metrics.look()
    view = machines.nodes[machines.names[0]].view
    led = sum(vnode.is_leading for vnode in view.vnodes)

    found = samples(metrics)
    assert found["skuld_partitions_led", ()] == led
    assert found["skuld_elections_won_total", ()] == view.bulletin.counts.elected == led
    assert found["skuld_connections_cut_total", ("deaf",)] == 2
    assert found["skuld_messages_refused_total", ("malformed",)] == 3
    assert {labels[0] for name, labels in found if name == "skuld_attention"} == set(KINDS)
    assert found["skuld_turn_seconds_count", ()] == 1 and found["skuld_turn_seconds_bucket", ("0.001",)] == 0
    assert found["skuld_turn_seconds_bucket", ("0.0025",)] == 1 == found["skuld_turn_seconds_bucket", ("+Inf",)]


def test_of_partitions_that_others_keep_and_that_seem_well_a_node_counts_nothing() -> None:
    machines = Machines(5, partitions=8)
    machines.pass_time(5_000)
    name = machines.names[0]
    metrics = node_metrics()
    metrics.follow(machines.nodes[name], Counters(), Transport())  # type: ignore[arg-type]
    metrics.look()
    kept = sum(name in document.cohort for _, document in machines.documents.values())

    found = {labels[0]: count for (series, labels), count in samples(metrics).items()
             if series == "skuld_partitions"}
    assert 0 < kept < 8 and found == {"full": kept, "enqueue-only": 0, "unavailable": 0}


def test_a_scrape_reads_no_machine_and_a_look_waits_its_pause(
        followed: tuple[NodeMetrics, Machines, list[float]]) -> None:
    metrics, machines, now = followed
    metrics.look()
    before = samples(metrics)["skuld_partitions_led", ()]
    for vnode in machines.nodes[machines.names[0]].view.vnodes:
        vnode.resign(machines.now_ms, "asked")
    now[0] += PAUSE_S / 2
    metrics.look()
    assert samples(metrics)["skuld_partitions_led", ()] == before
    now[0] += PAUSE_S
    metrics.look()

    assert samples(metrics)["skuld_partitions_led", ()] == 0


def test_a_look_that_took_long_is_followed_by_a_long_pause(
        followed: tuple[NodeMetrics, Machines, list[float]]) -> None:
    metrics, _, now = followed
    spent = iter((10.0, 11.0))
    metrics._spent = lambda: next(spent)
    now[0] = 100.0
    metrics.look()

    assert metrics._next_s == 100.0 + SHARE


def test_a_look_for_which_the_machine_stood_still_is_followed_by_a_short_pause(
        followed: tuple[NodeMetrics, Machines, list[float]]) -> None:
    metrics, _, _ = followed
    moments = itertools.count(100.0, 60.0)
    metrics._clock = lambda: next(moments)
    metrics._spent = lambda: 10.0
    metrics.look()

    assert metrics._next_s == 100.0 + PAUSE_S


def test_a_histogram_counts_each_observation_in_its_class() -> None:
    histogram = Histogram()
    for seconds in (BOUNDS_S[0], BOUNDS_S[1], 99.0):
        histogram.observe(seconds)

    assert [count for _, count in histogram.buckets()][:2] == [1, 2]
    assert histogram.buckets()[-1] == ("+Inf", 3) and histogram.buckets()[-2][1] == 2


@pytest.mark.parametrize(("text", "address"), [
    ("9464", ("127.0.0.1", 9464)), ("10.0.0.1:9464", ("10.0.0.1", 9464)), ("[::1]:1", ("::1", 1))])
def test_a_port_alone_is_on_loopback(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", "x", ":1", "h:70000", "h:-1", "h:"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"metrics: .* write 127\.0\.0\.1:9464"):
        address_of(text)


def test_metrics_are_shown_at_an_address_of_their_own_that_may_be_taken() -> None:
    with exposed("0", WorkerMetrics(Counts(started=4), "q", 2)) as url:
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        with pytest.raises(Refused, match="choose another address"), exposed(url.split("/")[2]):
            pass

    assert 'skuld_worker_tasks_started_total{queue="q"} 4.0' in text and "process_resident_memory_bytes" in text


def test_dashboard_and_alerts_name_only_metrics_that_are_there() -> None:
    families = {family.name for collector in (node_metrics(), Journal(), WorkerMetrics(Counts(), "q", 1))
                for family in text_string_to_metric_families(text_of(collector))}
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {re.sub(r"_(total|bucket|count|sum)$", "", name)
             for expression in asked for name in re.findall(r"\b(?:skuld|process)_\w+", expression)}

    assert len(asked) > 20 and names - families == set()
    codes = {code for expression in asked for listed in re.findall(r'code=~"([\w|]+)"', expression)
             for code in listed.split("|")}
    assert codes == KEY_CODES
    kinds = {kind for expression in asked for kind in re.findall(r'kind="(\w+)"', expression)}
    assert kinds and kinds <= set(KINDS)
    for group in rules["groups"]:
        assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in group["rules"])
