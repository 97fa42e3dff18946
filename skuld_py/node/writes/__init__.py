"""Writes that need no leader: tasks, notes, log entries, completions, cancellations; and settings."""
