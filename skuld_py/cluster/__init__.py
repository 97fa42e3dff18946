"""The coordination plane, pure: the log that says which members live, and the placement of partitions on nodes."""
