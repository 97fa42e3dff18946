"""Programs that this package runs on one machine: a Java runtime, ZooKeeper, whole clusters, as child processes.

They make a laptop, a test and a single-box installation whole without anything installed beside the wheel.
A production cluster points at its own ZooKeeper and never imports this room.
"""
