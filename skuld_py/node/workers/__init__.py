"""The workers that report to a node: who they are, for people, and their slots, for the coordination log.

``requests`` serve workers and those who ask for them, ``muster`` asks all nodes, ``capacity`` decides when the sum
of slots is written. What is known stands in ``knowledge.attendance``.
"""
