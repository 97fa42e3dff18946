"""The coordination log under faults drawn from a seed: members, their shells, and a ZooKeeper, in virtual time.

Nothing of the data plane is here. A run ends in quiet, and what must hold then, and at every position of the log,
is checked by ``verdict``.
"""
