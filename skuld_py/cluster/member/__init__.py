"""One process's part in the log: it reads, writes, joins, watches its neighbour, and tells its node the news."""
