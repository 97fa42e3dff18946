"""One node process as one machine: its door, its features, and what they share. ``Node.step(now_ms, event)``."""
