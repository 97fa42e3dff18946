"""One node process as one machine: coordinator, replicas, elections. ``Node.step(now_ms, event)``."""
