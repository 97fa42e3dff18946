"""Who leads a partition, what clocks say about that, and what nodes tell each other of it unasked."""
