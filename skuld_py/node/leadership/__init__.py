"""Elections and the upkeep of led partitions, the comparison of clocks, gossip, and the cluster's status."""
