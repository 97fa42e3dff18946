"""The log and what every member makes of it alike: entries, the replica that they change, its text."""
