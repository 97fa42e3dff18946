"""The lattices that replicated values are built from; see ``lattice``."""

from skuld_py.crdt.lattice import Flag, Lattice, LatticeMap, Max, Min, join

__all__ = ["Flag", "Lattice", "LatticeMap", "Max", "Min", "join"]
