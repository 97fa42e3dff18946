"""One ZooKeeper for all plays: sessions, documents, nodes' entries, and the coordination log, under the same faults."""
