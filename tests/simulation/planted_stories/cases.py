"""The form of a table of stories."""

from __future__ import annotations

from collections.abc import Callable

from simulation.story import Story
from skuld_py.simulation.checkers import Checker

Build = Callable[[], Story]
Cases = dict[Checker, tuple[dict[str, tuple[Build, str]], Build]]
"""Checker -> (name -> (a story that breaks its rule, what the evidence must name)), a story that keeps it."""
