"""For users' unit tests: clients with the verbs of the real ones, on a cluster in memory whose clock a test moves.

    def test_reports_are_enqueued():
        with MemoryClient() as client, skuld_py.using(client):
            shop.close_the_day("2026-11-20")
            assert [ran.name for ran in client.run_until_empty("reports")] == ["shop.tasks:report"]

No process, no socket, no thread, no Spark is started. What it does is what a cluster does, since the node
machine is the real one (``single_node``); what it leaves out is everything that several nodes and a network
add: failures, doubt, and the order among partitions, of which there is one. ``MemoryClient`` says what
differs.
"""

from __future__ import annotations

from skuld_py.testing.memory import AsyncMemoryClient, MemoryClient, MemoryCluster
from skuld_py.testing.running import Ran

__all__ = ["AsyncMemoryClient", "MemoryClient", "MemoryCluster", "Ran"]
