"""What a node knows and merely keeps: settings, the heads of queues, leaders, word left by waiters, proofs."""
