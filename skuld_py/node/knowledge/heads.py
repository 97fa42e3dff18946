"""At which node a claim is tried first: the one with the best task, by what gossip says of the heads of queues.

Every partition has its own part of a queue, and no node knows all of them. A node knows the best head of each
other node, as of its last gossip, moved on by the claims that it has seen granted there since. A node prefers
itself unless another is better by more than that can be wrong: a higher priority, or a task older by more than
``slack_ms``. So the order over all partitions is kept nearly, and most claims stay where they were asked for.

A hint, never a promise: a node that is said to have nothing is asked last, not never.

Rejected: asking all leaders for their heads at each claim (a round trip before every grant), and always going to
the best head (of three nodes with equal backlogs two thirds of all claims would travel, for milliseconds of age).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skuld_py.model import messages as m
from skuld_py.model.body import PRIORITY_MAX, Body, header_of
from skuld_py.model.ids import ID_BYTES, time_of
from skuld_py.model.messages.elections import HEAD_BYTES
from skuld_py.model.prelude import NAMED

PRIORITY_BYTES = HEAD_BYTES - ID_BYTES
UNKNOWN = b"\xff" * HEAD_BYTES
"""Sorts behind every head."""


class Router:
    """At which nodes the best tasks of queues are said to be, by their heads (``HEAD_BYTES``). One gossip names
    at most ``queues_max`` queues."""

    def __init__(self, me: str, slack_ms: int, queues_max: int) -> None:
        self._me = me
        self._queues_max = queues_max
        self._slack_ms = slack_ms
        self._heads: dict[str, dict[str, bytes]] = {}
        """Queue -> node -> head."""
        self._listed: dict[str, tuple[str, ...]] = {}
        self.changed: dict[str, None] = {}
        """Queues for which the nodes said to have tasks have changed; emptied by the reader."""

    # -- what is said --------------------------------------------------------------------------

    def note(self, node: str, queues: Sequence[str], heads: bytes) -> None:
        """A node has tasks in these queues. If they are fewer than one gossip names, it has none in others.
        ``heads`` are those of the first queues."""
        listed = self._listed.get(node, ())
        if len(queues) < self._queues_max:
            named = dict.fromkeys(queues)
            for queue in listed:
                if queue not in named:
                    self.forget(node, queue)
            listed = ()
        self._listed[node] = tuple(dict.fromkeys((*listed, *queues)))
        for index, queue in enumerate(queues):
            head = heads[index * HEAD_BYTES : (index + 1) * HEAD_BYTES]
            nodes = self._heads.setdefault(queue, {})
            if node not in nodes:
                self._note_change(node, queue)
            nodes[node] = head or nodes.get(node, UNKNOWN)

    def drop(self, node: str) -> None:
        """Forget all that a node said."""
        for queue in self._listed.pop(node, ()):
            self.forget(node, queue)

    def forget(self, node: str, queue: str) -> None:
        """The node had nothing in this queue after all."""
        nodes = self._heads.get(queue, {})
        if nodes.pop(node, None) is not None:
            self._note_change(node, queue)
        if not nodes:
            self._heads.pop(queue, None)

    def _note_change(self, node: str, queue: str) -> None:
        if node != self._me:
            self.changed[queue] = None

    def note_granted(self, node: str, queue: str, batches: Sequence[m.ClaimBatch]) -> None:
        """A node granted these tasks, best first: what it has left is not better than the last of them."""
        nodes = self._heads.get(queue, {})
        if node in nodes and nodes[node] != UNKNOWN:
            nodes[node] = max([nodes[node], *(_last_of(batch) for batch in batches if batch.ids)])

    # -- where to ask --------------------------------------------------------------------------

    def is_listed(self, node: str, queue: str) -> bool:
        """Whether a node is said to have tasks in a queue."""
        return node in self._heads.get(queue, {})

    def hinted(self, queue: str, live: Collection[str]) -> list[str]:
        """Live peers said to have tasks in a queue, the best head first."""
        nodes = self._heads.get(queue)
        if not nodes:
            return []
        return sorted((name for name in nodes if name != self._me and name in live),
                      key=lambda name: (nodes[name], name))

    def order(self, queue: str, peers: Sequence[str]) -> list[str]:
        """These peers, the best first, with this node behind those whose heads are surely better."""
        nodes = self._heads.get(queue, {})
        own = nodes.get(self._me)
        better = 0
        while own is not None and better < len(peers) and self._is_surely_better(nodes.get(peers[better]), own):
            better += 1
        return [*peers[:better], self._me, *peers[better:]]

    def route(self, queue: str, leaders: Sequence[str]) -> list[str]:
        """This node and the leaders, in the order in which a claim is tried at them."""
        hinted = self.hinted(queue, leaders) if leaders else []
        return self.order(queue, hinted + [name for name in leaders if name not in hinted])

    def _is_surely_better(self, head: bytes | None, own: bytes) -> bool:
        if head is None or head == UNKNOWN:
            return False
        if head[:PRIORITY_BYTES] != own[:PRIORITY_BYTES]:
            return head < own
        return time_of(head[PRIORITY_BYTES:]) + self._slack_ms < time_of(own[PRIORITY_BYTES:])


def head_of(priority: int, task_id: bytes, made_ms: int = 0) -> bytes:
    """A task's head. Heads sort as claims take their tasks. ``made_ms``: when a task with a unique name was asked
    for; 0 of others."""
    age = made_ms.to_bytes(8, "big") if made_ms else b""
    return ((PRIORITY_MAX - priority).to_bytes(PRIORITY_BYTES, "big") + age + task_id)[:HEAD_BYTES]


def _last_of(batch: m.ClaimBatch) -> bytes:
    """The head of the last task of a batch."""
    size = int.from_bytes(batch.bodies.lengths[-4:], "big")
    body = batch.bodies.data[len(batch.bodies.data) - size :]
    header = header_of(body)
    return head_of(header.priority, batch.ids[-ID_BYTES:], _made_ms(body) if header.prelude & NAMED else 0)


def _made_ms(body: bytes) -> int:
    """When the task of a body was asked for; 0 if it does not parse, since nothing has checked it on its way."""
    try:
        return Body.decode(body).made_ms
    except ValueError:
        return 0
