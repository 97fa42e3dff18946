"""What is to be shared out: the slots there are, and what each workflow asks for.

A slot is what a worker brings: room for one claim, with the tags that say what it can do and the site where it
is. A workflow counts with the steps that may run now; one in which nothing may run asks for nothing.

Source: Onyx's jobs, tasks and virtual peers; there a flux policy says what becomes of a step that keeps state when
its peers change.
"""

from __future__ import annotations

from enum import Enum

import attrs

from skuld_py.errors import Refused

UNBOUNDED = 1 << 30
"""As many slots as there are."""


class Sharing(Enum):
    """How slots are shared among workflows."""

    GREEDY = "greedy"
    """The first in the order of submission takes all that it can use, then the next."""
    BALANCED = "balanced"
    """All have as many, to within one."""
    PERCENTAGE = "percentage"
    """Each has its part in a hundred; what nobody was promised stays idle."""


class Spreading(Enum):
    """How the slots of a workflow are spread over its steps."""

    BALANCED = "balanced"
    PERCENTAGE = "percentage"
    COLOCATED = "colocated"
    """One slot for each step at one site, and so on, group by group."""


class Flux(Enum):
    """What a step wants that already runs, when slots come and go."""

    CONTINUE = "continue"
    """To be given more, or fewer."""
    KILL = "kill"
    """To be left as it is: nobody in, nobody out. That its workflow is killed when one is lost, who applies the
    loss decides."""
    RECOVER = "recover"
    """To keep those it has, and to be filled up to its least."""


@attrs.frozen
class Slot:
    """``site``: where it is; slots of one site are near each other."""

    name: str
    tags: frozenset[str] = frozenset()
    site: str = ""


@attrs.frozen
class Step:
    """A step that may run: how many slots at least and at most, which tags they need, and its part in a hundred
    where its workflow's slots are spread by that."""

    name: str
    least: int = 1
    most: int = UNBOUNDED
    tags: frozenset[str] = frozenset()
    percentage: int = 0
    flux: Flux = Flux.CONTINUE

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= UNBOUNDED:
            raise Refused("bad_slots", f"step {self.name}: slots {self.least} to {self.most}; at least 1 is"
                          " wanted, and no fewer at most than at least", step=self.name)


@attrs.frozen
class Demand:
    """What a workflow asks for: its steps in topological order, and how to spread slots over them."""

    name: str
    steps: tuple[Step, ...]
    spreading: Spreading = Spreading.BALANCED
    percentage: int = 0
