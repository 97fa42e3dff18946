"""One node process as one machine, ``Node.step(now_ms, event)``: its doors, its features, and what they share."""
