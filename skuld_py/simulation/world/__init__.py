"""Models of the world around a node: virtual time, links, disks, clocks, ZooKeeper, and processes that die."""
