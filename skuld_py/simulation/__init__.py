"""A cluster in one thread of virtual time: the same node code, with everything around it modelled.

A run is a function of its seed. Faults, workload and schedule are drawn from it, so a failure is a
number that anyone can replay, and a bug found once stays found (``tests/simulation/seeds.txt``).
"""
