"""What any owner of a task takes: tasks, notes, log entries, completions, cancellations; and settings."""
