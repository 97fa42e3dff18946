"""A worker's metrics: what its loop has counted, read as it stands by the scrape's thread."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from skuld_py.worker.counts import Counts


class WorkerMetrics:
    """Collects for one worker of a queue."""

    def __init__(self, counts: Counts, queue: str, slots: int) -> None:
        self._counts = counts
        self._queue = queue
        self._slots = slots

    def collect(self) -> Iterable[Metric]:
        """All series."""
        counts = self._counts
        for family, value in (
                (CounterMetricFamily("skuld_worker_tasks_started", "Tasks started.", labels=["queue"]),
                 counts.started),
                (CounterMetricFamily("skuld_worker_claims_lost", "Claims lost while the task ran.",
                                     labels=["queue"]), counts.lost),
                (CounterMetricFamily("skuld_worker_task_seconds", "Time that tasks ran.", labels=["queue"]),
                 counts.seconds),
                (GaugeMetricFamily("skuld_worker_tasks_running", "Tasks that run.", labels=["queue"]),
                 counts.running),
                (GaugeMetricFamily("skuld_worker_slots", "Tasks that may run at once.", labels=["queue"]),
                 self._slots)):
            family.add_metric([self._queue], float(value))
            yield family
        for name, words, label, counted in (
                ("skuld_worker_tasks_ended", "Tasks ended, by how.", "how", counts.ended),
                ("skuld_worker_claims_refused", "Requests for tasks that failed.", "code", counts.refused)):
            by = CounterMetricFamily(name, words, labels=["queue", label])
            for what, count in dict(counted).items():
                by.add_metric([self._queue, what], float(count))
            yield by
