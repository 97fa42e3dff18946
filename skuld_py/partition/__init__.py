"""One partition on one node: its data, its elections, how copies are compared. No clock, socket or thread."""
