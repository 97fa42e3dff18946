"""One process's part in the coordination log: it reads, writes, joins, watches its neighbour."""
