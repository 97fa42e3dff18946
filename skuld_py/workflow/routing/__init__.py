"""What becomes of a segment that a step has worked on, and what is called around the work. Pure.

``passage`` is what is told of a piece of work and what comes of it; ``routes`` are the conditions, which say where
values go; ``hooks`` are the lifecycles, which functions are called when, and what becomes of an exception.
"""
