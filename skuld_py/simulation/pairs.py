"""Which kind of message found its receiver in which state: a finer sieve than probes, and none had to be named.

A pair is a message's kind, how its epoch stands to the one promised, and where its receiver is: the phase of its
candidacy, whether it knows a leader, is a suspect, has read the document, has grants open or cohorts pending.
Seeds go on meeting new pairs long after they have met every probe. So a search that goes on from runs that met a
new pair comes where seeds seldom do.
"""

from __future__ import annotations

from collections import Counter

from skuld_py.model.messages import Message
from skuld_py.partition.vnode import Vnode
from skuld_py.simulation.world.process import Process


class Pairs:
    """Counts them in one run."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()

    def see(self, receiver: Process, message: Message) -> None:
        """A message arrives."""
        partition: int | None = getattr(message, "partition", None)
        if partition is not None and receiver.node is not None:
            vnode = receiver.node.view.vnodes[partition]
            self.counts[type(message).__name__, _stand(message, vnode), *_state(vnode)] += 1

    @property
    def named(self) -> Counter[str]:
        """As text."""
        return Counter({" ".join(filter(None, pair)): count for pair, count in self.counts.items()})


def _stand(message: Message, vnode: Vnode) -> str:
    epoch: int | None = getattr(message, "epoch", getattr(message, "promised", None))
    if epoch is None:
        return ""
    promised = vnode.promise.epoch
    return "below" if epoch < promised else "equal" if epoch == promised else "above"


def _state(vnode: Vnode) -> tuple[str, ...]:
    return (vnode.election.phase.value, "led" if vnode.leader else "", "suspect" if vnode.suspicion else "",
            "" if vnode.has_read else "unread", "granting" if vnode.open_grants else "",
            "pending" if vnode.standing.pending else "")
