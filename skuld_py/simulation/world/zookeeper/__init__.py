"""The one ZooKeeper of all plays: sessions, documents, nodes' entries, the coordination log, and their faults."""
