"""How many tasks of a queue are claimed at once, and how often: its home lends, the other leaders borrow."""
