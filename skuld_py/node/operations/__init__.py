"""What features share to ask several nodes: operations, quorums, timers and duties, and what they send."""
