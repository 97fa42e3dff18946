"""What a node knows and starts nothing with: settings, heads of queues, leaders, proofs, peers' missing copies."""
