"""Expensive decisions as values: a question with a hash, an answer with a hash, and what an answer must look like.

A decision is a pure function of a small part of the replica. Its kind names the function *and its version*, for
two programs that decide otherwise under one name would part the cluster. Question and answer have one text each
(``canonical``), so all that hold the same part of the replica ask under the same hash, at whatever position.

The placement is told by numbers in the list of nodes that the question names: a tenth of the bytes of names, and
an unknown owner cannot be said.

Rejected: the position as part of what is asked (a node that is taken out and put back would be decided anew; the
position says how new a question is, no more); code or names of functions in a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import attrs

from skuld_py.cluster.log.canonical import from_text, to_text
from skuld_py.cluster.placement import Placement, place, share_bounds
from skuld_py.cluster.scale import seats
from skuld_py.config import PARTITIONS_MAX, REPLICAS_MAX
from skuld_py.errors import Malformed
from skuld_py.model.events import Compute, Computed
from skuld_py.model.messages.decisions import HASH_BYTES

NODES_MAX = 1 << 15
TEXT_BYTES_MAX = 8 << 20
"""Of a question or an answer: 32,768 nodes with the longest names."""

Lists = tuple[tuple[int, ...], ...]


def hash_of(*texts: str) -> bytes:
    """16 bytes over texts; it finds what is garbled or crossed, not what is wrong (``decider``)."""
    return blake2b("\n".join(texts).encode(), digest_size=HASH_BYTES).digest()


@attrs.frozen
class Kind:
    """A decision that can be asked for. ``flaw`` says cheaply why a result cannot be right, or ``""``."""

    name: str
    input: Any
    result: Any
    decide: Callable[[Any], Any]
    flaw: Callable[[Any, Any], str]


@attrs.frozen
class Question:
    """What is to be decided. ``text`` is the canonical one of ``input``, ``hash`` is over kind and text."""

    kind: str
    input: Any = attrs.field(eq=False, repr=False)
    text: str = attrs.field(repr=False, default=attrs.Factory(lambda self: to_text(self.input), takes_self=True))
    hash: bytes = attrs.field(
        default=attrs.Factory(lambda self: hash_of(self.kind, self.text), takes_self=True), eq=False)


# -- what a member's machine is told and says ----------------------------------------------------


@attrs.frozen
class Wanted:
    """Event: a question stands as of a position of the log."""

    position: int
    question: Question


@attrs.frozen
class Unwanted:
    """Event: the answer is not waited for any more."""

    hash: bytes


@attrs.frozen
class Decision:
    """Effect: the answer. ``is_own``: computed here. ``result`` is None when the function fails on this input."""

    position: int
    question: Question
    result: Any
    is_own: bool


# -- placement -----------------------------------------------------------------------------------


@attrs.frozen
class PlacementInput:
    """The placed nodes, sorted, each once; and what the cluster is."""

    nodes: tuple[str, ...]
    partitions: int
    replicas: int

    def __attrs_post_init__(self) -> None:
        if len(self.nodes) > NODES_MAX or any(one >= next_one for one, next_one in pairwise(self.nodes)):
            raise Malformed("PlacementInput.nodes", f"are more than {NODES_MAX}, or not sorted, or not distinct")
        if not 1 <= self.partitions <= PARTITIONS_MAX or not 1 <= self.replicas <= REPLICAS_MAX:
            raise Malformed("PlacementInput", "partitions or replicas are out of range")


def ask_placement(nodes: Sequence[str], partitions: int, replicas: int) -> Question:
    """The question which nodes own what, when these are placed."""
    return _asked(tuple(sorted(nodes)), partitions, replicas)


@lru_cache(maxsize=8)
def _asked(nodes: tuple[str, ...], partitions: int, replicas: int) -> Question:
    """The question, cached: most entries that write nodes leave the placed ones as they are, and its text takes
    milliseconds for thousands."""
    return Question(PLACEMENT.name, PlacementInput(nodes, partitions, replicas))


def placement_of(question: Question, result: Lists) -> Placement:
    """The owners of each partition, by name."""
    nodes = question.input.nodes
    return tuple(tuple(nodes[index] for index in owners) for owners in result)


def _place(asked: PlacementInput) -> Lists:
    index = {name: at for at, name in enumerate(asked.nodes)}
    placed = place(asked.nodes, asked.partitions, asked.replicas)
    return tuple(tuple(index[name] for name in owners) for owners in placed)


def _flaw(asked: PlacementInput, result: Lists) -> str:
    count = len(asked.nodes)
    each = asked.replicas if count >= asked.replicas else 0
    if len(result) != asked.partitions:
        return f"has {len(result)} lists for {asked.partitions} partitions"
    if any(len(owners) != each or len(dict.fromkeys(owners)) != each for owners in result):
        return f"has a list without {each} distinct owners"
    held = Counter(owner for owners in result for owner in owners)
    if any(not 0 <= owner < count for owner in held):
        return "names a node that does not exist"
    least, most = share_bounds(asked.partitions * each, count) if each else (0, 0)
    if any(not least <= held[owner] <= most for owner in range(count)):
        return f"has a share that is not in {least}..{most}"
    return ""


PLACEMENT = Kind("placement-1", PlacementInput, Lists, _place, _flaw)
SEATS = Kind("allocation-1", seats.SeatsInput, seats.SeatsResult, seats.decide, seats.flaw)
KINDS: Mapping[str, Kind] = {each.name: each for each in (PLACEMENT, SEATS)}


# -- deciding ------------------------------------------------------------------------------------


def computed(asked: Compute, kinds: Mapping[str, Kind] = KINDS) -> Computed:
    """Decide. Total: a function that fails gives no text."""
    kind = kinds[asked.kind]
    try:
        return Computed(asked.hash, to_text(kind.decide(from_text(kind.input, asked.text))))
    except MemoryError:
        raise  # this process's trouble, not the question's
    except Exception:
        return Computed(asked.hash, "")


def read_result(kind: Kind, question: Question, text: str) -> tuple[Any, str]:
    """The result of a text, and its flaw, which is empty when there is none to be seen."""
    try:
        result = from_text(kind.result, text)
    except Malformed as problem:
        return None, problem.message
    return result, kind.flaw(question.input, result)
