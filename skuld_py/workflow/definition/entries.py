"""The entries of a catalog: what each step of a workflow is, and how it is to be run.

Rejected: a class for each kind. What runs, seats and draws steps asks the same of all of them, and most fields are
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

from skuld_py.workflow.definition.sources import Source
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Flux, Step
from skuld_py.workflow.segments import sources_of

ATTEMPTS = 5
MAX_PENDING = 10_000
ROOT_TIMEOUT_MS = 60_000
FORMATS = ("json", "parquet", "csv", "orc", "text", "avro")


class Kind(Enum):
    """What a step does with segments: makes them, takes and gives them, takes them."""

    INPUT = "input"
    FUNCTION = "function"
    OUTPUT = "output"


@attrs.frozen
class Target:
    """Where an output's values are written: a dataset's path, and one of ``FORMATS``."""

    path: str
    format: str = FORMATS[0]


@attrs.frozen
class Entry:
    """One step. ``function``: the name of a task function, which gets a segment, or a list of at most ``batch``
    when that is not 0; an output needs none. ``parameters`` are given to it by name.

    Of an input: ``source``; ``max_pending`` roots at most are under way; one that is not heard of for
    ``root_timeout_ms`` is looked after. It has ``most`` feeders, each of which draws a strand of it. Of others: an
    attempt that runs for longer than ``timeout_ms`` has failed (0: any time is fine); after ``attempts`` its
    policy says what becomes of it.
    """

    name: str
    kind: Kind
    function: str = ""
    source: Source | None = None
    target: Target | None = None
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    least: int = 1
    most: int = UNBOUNDED
    tags: frozenset[str] = frozenset()
    percentage: int = 0
    flux: Flux = Flux.CONTINUE
    batch: int = 0
    timeout_ms: int = 0
    attempts: int = ATTEMPTS
    max_pending: int = MAX_PENDING
    root_timeout_ms: int = ROOT_TIMEOUT_MS
    doc: str = ""

    @property
    def sources(self) -> list[str]:
        """Of an input its strands."""
        return sources_of(self.name, self.most)

    @property
    def step(self) -> Step:
        """As slots are shared out to it."""
        return Step(self.name, self.least, self.most, self.tags, self.percentage, self.flux)
