"""What a node's wish about a partition document becomes on its ZooKeeper session, step by step.

A session reads from the server that it is at, which may be behind what others have written. So a read begins with
a ``sync``, which brings that server up to date; requests of a session are carried out in order, so there is no
wait in between. A swap needs none: it goes through the leader of the servers, and names a version.

The real client and the simulated one share this list, so that the rule "a document is read as new as it is"
exists once, and is seen broken in simulations when a test breaks it on purpose.
"""

from __future__ import annotations

from enum import Enum

from skuld_py.model.events import ReadDocument, SwapDocument


class Step(Enum):
    """One request to ZooKeeper."""

    SYNC = "sync"
    GET = "get"
    CREATE = "create"
    SET = "set"


def steps_of(effect: ReadDocument | SwapDocument) -> tuple[Step, ...]:
    """The requests to make, in order; the answer to the last one is the answer."""
    if isinstance(effect, ReadDocument):
        return Step.SYNC, Step.GET
    return (Step.CREATE,) if effect.version < 0 else (Step.SET,)
