"""A workflow's graph as people see it: as text for a terminal, as SVG for everything else. Pure.

``words`` is what is said of steps and conditions; ``rails`` the text. ``layers`` puts steps in columns and lines
between them, and ``svg`` draws that.
"""
