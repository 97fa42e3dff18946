"""What a node knows and merely keeps: settings, the heads of queues, leaders, who waits, proofs it has seen."""
