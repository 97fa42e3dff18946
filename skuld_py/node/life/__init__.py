"""A node's starts: whose data it has, and what must be set right before it says a word."""
