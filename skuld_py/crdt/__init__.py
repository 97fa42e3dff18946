"""The lattices that replicated values are built from; see ``lattice``."""

from skuld_py.crdt.lattice import Lattice, LatticeMap, Max, Min, join

__all__ = ["Lattice", "LatticeMap", "Max", "Min", "join"]
