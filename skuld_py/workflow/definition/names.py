"""What workflows and steps may be called, and how large a definition may be.

A segment waits in the queue ``wf.ID.STEP``. So a step has no dot in its name, and with an id of the longest the
queue's name still fits. The words that are queues of a workflow itself, or that stand for several steps, are no
steps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from skuld_py.model.names import QUEUES_OF_WORKFLOWS, queues_of

ID_CHARS_MAX, STEP_CHARS_MAX = 100, 64
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
STEP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
QUEUES = QUEUES_OF_WORKFLOWS

ALL, NONE = "all", "none"
FEED, PLAN, ACKS, SEAL = "feed", "plan", "acks", "seal"
"""Queues that each workflow has for itself."""
FEEDS, SEALS = "_feeds-", "_seals-"
"""Begin those of the feeders of one input, and of what seals one leaf, where they are not for all."""
RESERVED_STEPS = frozenset({ALL, NONE, FEED, PLAN, ACKS, SEAL})
OWN = "skuld:"
"""Functions whose names begin with this are Skuld's own."""

TEXT_BYTES_MAX = 256 << 10
STEPS_MAX = 256
EDGES_MAX = 4_096
CONDITIONS_MAX = 1_024
LIFECYCLES_MAX = 256
TAGS_MAX = 32
STRANDS_MAX = 64
"""Feeders of an input."""
GLOBS_MAX = 100
DEPTH_MAX = 32
"""Of parameters and metadata, and of predicates within predicates."""
FUNCTION_CHARS_MAX = 200
WORDS_CHARS_MAX = 1_000
"""Of a path, a pattern, an address, a key."""


def queue_of(workflow: str, step: str) -> str:
    """The queue in which a step's segments wait; also of a workflow's own ones."""
    return f"{queues_of(workflow)}{step}"


def step_of(queue: str) -> tuple[str, str] | None:
    """The workflow and the step of a queue; None when it is no workflow's."""
    workflow, _, step = queue.removeprefix(QUEUES).rpartition(".")
    return (workflow, step) if queue.startswith(QUEUES) and workflow and step else None


def is_own(step: str) -> bool:
    """Whether this, in the place of a step, names a queue that a workflow has for itself. No step begins with
    ``_``."""
    return step in RESERVED_STEPS or step.startswith("_")


def is_feeder(queue: str) -> bool:
    """Whether the tasks of a queue feed a workflow from its inputs."""
    named = step_of(queue)
    return named is not None and (named[1] == FEED or named[1].startswith(FEEDS))


def is_sealer(queue: str) -> bool:
    """Whether the tasks of a queue seal a workflow's leaves."""
    named = step_of(queue)
    return named is not None and (named[1] == SEAL or named[1].startswith(SEALS))


def are_alike(tags: Iterable[Collection[str]]) -> bool:
    """Whether steps with these tags are worked on by the same workers."""
    return len({frozenset(each) for each in tags}) < 2
