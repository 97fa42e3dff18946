"""What a node knows and merely keeps: settings, the heads of queues, leaders, who waits, which claims are proved."""
