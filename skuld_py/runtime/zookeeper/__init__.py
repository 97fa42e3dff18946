"""A process in ZooKeeper: its session and its pulse, what it reads and writes there, the coordination log."""
