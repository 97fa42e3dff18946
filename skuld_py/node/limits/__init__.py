"""Limits of queues, on claims held at once and on claims in a time: the home lends, leaders borrow."""
