"""One partition: its data, its elections, its claims. Pure: no clock, no socket, no thread."""
