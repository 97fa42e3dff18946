"""Workflows: steps in an order, the slots that run them, and how a run comes to its end. Pure."""
