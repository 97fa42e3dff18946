"""Tasks that are enqueued by the calendar, by the leader of their schedule's home."""
