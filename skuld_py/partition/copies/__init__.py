"""Copies that agree: trees over the records, comparing and mending them, collecting and scrubbing."""
