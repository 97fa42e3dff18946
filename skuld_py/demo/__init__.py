"""The demonstration: a census of Java archives that finds jar hell, on a cluster that loses a node meanwhile.

``census`` is an application as a user would write one; ``demo`` runs it on a cluster of real processes;
``screen`` is what one sees of it.
"""
