"""A world so small that every single deviation from one schedule can be tried.

Rare orders of few events escape seeds: three coincidences of ten thousand must come together. Here nothing is left
to chance. One schedule is fixed (three or four nodes, one partition, six tasks, links of a millisecond, ties in
their order, clocks as far apart as allowed), the machines and all that watches them are the real ones, and at each
*decision point* the run may be told to deviate in a named way. A *script* is the numbers of its deviations.

Rejected: priorities instead of delays (PCT), which found no more than seeds do; snapshots by ``fork``, slower than
to play a run again from its start; and to leave out schedules that lead to a state known already, which would save
a sixth of them.
"""
