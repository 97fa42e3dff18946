"""ZooKeeper: how a cluster lies in it, what one process keeps, reads and writes there, and the coordination
log."""
