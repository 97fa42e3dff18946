"""What a node machine is told, and what it wishes: all inputs and outputs on one page.

The shell's duty, in this order: step every event of a batch; let messages without a promise leave;
commit the store; let everything else leave; carry out the registry's effects. The registry's
verdicts come back as events.
"""

from __future__ import annotations

from enum import Enum

import attrs

from skuld_py.config import FormerKey
from skuld_py.model.document import Document, Member
from skuld_py.model.messages import Claimed, Message
from skuld_py.model.revision import Revision
from skuld_py.model.seats import Seats


class Session(Enum):
    """What the registry knows of our session. Suspended: make no new promise. Lost: start over."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Outcome(Enum):
    """How a test-and-set ended. Uncertain: read again and look for your write id."""

    WON = "won"
    LOST = "lost"
    UNCERTAIN = "uncertain"


# -- events --------------------------------------------------------------------------------------


@attrs.frozen
class Received:
    """A peer's message."""

    peer: str
    message: Message


@attrs.frozen
class Asked:
    """A client's message; ``client`` is the handle to answer with."""

    client: bytes
    message: Message


@attrs.frozen
class Withheld:
    """A client's claim was granted, and its answer stays here: by now its key may not claim that any more."""

    answer: Claimed


@attrs.frozen
class Ticked:
    """The deadline passed."""


@attrs.frozen
class Settled:
    """The batch has no more events: do what is done once a turn."""


@attrs.frozen
class SessionChanged:
    """The registry session changed."""

    session: Session


@attrs.frozen
class KeyTold:
    """The keys by which nodes prove claims, and from when on they demand proofs (``config.Parameters``)."""

    claim_key: str = attrs.field(repr=False)
    proofs_from_ms: int
    claim_from_ms: int = 0
    former_keys: tuple[FormerKey, ...] = ()


@attrs.frozen
class MembersChanged:
    """The live nodes, by name order."""

    members: tuple[Member, ...]


@attrs.frozen
class NodesChanged:
    """The registered nodes, which own partitions whether live or not; and those that are taken out, which own none
    any more but still have data to hand on. ``placement``, when given, is that of these nodes
    (``cluster.placement``), so that the node need not compute it. ``replicas``: how many nodes own each partition,
    0 for as many as the cluster was created with."""

    nodes: tuple[str, ...]
    leaving: tuple[str, ...] = ()
    placement: tuple[tuple[str, ...], ...] | None = attrs.field(default=None, repr=False)
    replicas: int = 0


@attrs.frozen
class RulesChanged:
    """The rules that the cluster goes by: all its members know them."""

    rules: int


@attrs.frozen
class SeatsChanged:
    """Which slots serve which steps of workflows."""

    seats: Seats


@attrs.frozen
class DocumentRead:
    """A fresh (synced) read of a partition document; ``version`` -1 when there is none. ``was_there``: there is
    none, and its history shows that there was one."""

    partition: int
    version: int
    document: Document
    was_there: bool = False


@attrs.frozen
class DocumentChanged:
    """A partition document is not as it was last read; a read arms the watch that told, and any other one."""

    partition: int


@attrs.frozen
class ReadFailed:
    """The registry did not answer a read."""

    partition: int


@attrs.frozen
class DocumentSwapped:
    """Outcome of a test-and-set; ``version`` is the new revision when it was won."""

    partition: int
    write_id: str
    outcome: Outcome
    version: int = -1


@attrs.frozen
class RevisionsRead:
    """The newest revisions of a partition's document, newest first, ``most`` at most; None: the registry did not
    answer."""

    partition: int
    most: int
    revisions: tuple[Revision, ...] | None


@attrs.frozen
class SchedulersChanged:
    """The processes that make expensive decisions for others, by name."""

    names: tuple[str, ...]


@attrs.frozen
class Computed:
    """What ``Compute`` came to: the text of the result; empty if the function failed, as it would everywhere."""

    hash: bytes
    text: str = attrs.field(repr=False)


Event = (Received | Asked | Withheld | Ticked | Settled | SessionChanged | KeyTold | MembersChanged | NodesChanged
         | RulesChanged | SeatsChanged | DocumentRead | DocumentChanged | ReadFailed | DocumentSwapped
         | RevisionsRead | Computed)


# -- effects -------------------------------------------------------------------------------------


@attrs.frozen
class Send:
    """Send a message to a peer, by name; loss is allowed and expected."""

    peer: str
    message: Message


@attrs.frozen
class Answer:
    """Send a message to a client."""

    client: bytes
    message: Message


@attrs.frozen
class ReadDocument:
    """Sync, then read."""

    partition: int


@attrs.frozen
class SwapDocument:
    """Set the document if its version is still this one (-1: create it). ``is_founding``: and only if the
    partition never had one."""

    partition: int
    version: int
    document: Document
    is_founding: bool = False


@attrs.frozen
class ReadRevisions:
    """Read the newest revisions of a partition's document, at most so many."""

    partition: int
    most: int


@attrs.frozen
class Compute:
    """Run ``cluster.scale.decisions.computed`` beside the loop, and give back what it returns as an event."""

    kind: str
    hash: bytes
    text: str = attrs.field(repr=False)


Effect = Send | Answer | ReadDocument | SwapDocument | ReadRevisions | Compute
