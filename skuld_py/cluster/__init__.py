"""The coordination plane, pure: who lives, in one order for all; which nodes keep which partitions."""
