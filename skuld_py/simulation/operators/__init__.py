"""Operators in the simulated world: they hold, wish, slip, lose disks and documents, and put a cluster back.

A run is one of the usual ones, with its faults and its work, and with operators beside them; what they do to the
documents is judged revision by revision (``rules``).
"""
