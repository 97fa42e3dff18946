"""Programs this package runs for you on one machine: a Java runtime, ZooKeeper, child processes tied to us.

They make a laptop, a test and a single-box installation whole without anything installed beside the wheel.
A production cluster points at its own ZooKeeper and never imports this room.
"""
