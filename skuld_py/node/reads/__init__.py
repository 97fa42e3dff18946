"""Reads of what a majority knows of tasks: one by one, listed, counted, or when they end."""
