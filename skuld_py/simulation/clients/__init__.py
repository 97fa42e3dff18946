"""Simulated clients: the line to the cluster, the library over it, and a file for each part that a client
plays."""
