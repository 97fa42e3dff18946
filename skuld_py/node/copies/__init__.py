"""Keeping copies alike: when they are compared, and how data moves when nodes take over or hand off partitions."""
