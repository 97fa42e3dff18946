"""What stands in for the world: virtual time, links, disks, clocks, ZooKeeper, and processes that die on them."""
