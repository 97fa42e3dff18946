"""Who asks: a line to the cluster, and the parts that clients play on it, one to a file."""
