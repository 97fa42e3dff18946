"""Workflows at a node: what clients have written of them into the coordination log, read, and follow there.

``requests`` take what clients ask for; ``rows`` say the log's values in messages; ``reaping`` cancels what
workflows that have ended leave behind.
"""
