"""Elections and the upkeep of what is led, clocks that must agree for it, gossip, and the cluster's status."""
