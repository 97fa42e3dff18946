"""Direct join: a joiner asks any member it knows, and that one stitches in all that ask at once, behind itself.

One entry, ``join-direct``, in place of three phases for each. The log stays the only truth: a joiner is in when it
reads that it is, whatever it was answered. So each message may be lost, repeated or late, and every question may
be asked again, of the same member or another: the entry passes over joiners that are known already.

A joiner that dies on the way needs no watch of its own. Until the entry stands no member knows of it. From then on
the first of the row is in the ring behind its greeter, which watches it as soon as it has applied its own entry,
and each of the row is watched by the one before it. A watch on a pulse that is gone says so at once, so the dead
of the row are reported, first to last, as the ring closes over each (``watched``). The same holds when the greeter
dies: its own watcher takes over the member that it watched.

The greeter's entry names the member that it watched when it wrote it. If that has changed when the entry is played
it does nothing, and the greeter writes another one for the joiners that still wait. A joiner that has not asked
again for a while has gone elsewhere, or its node was started again: an entry that names such a one does not leave
any more.

Rejected: a watch on joiners before the entry stands (it would save one ``leave`` for a joiner that dies within
these milliseconds, and cost two changes of watches for each entry); an answer that makes one a member (it could
be lost).
Source: "Join Direct" of Onyx's proposals for scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.cluster.log.commands import JoinDirect, Joining
from skuld_py.cluster.log.lives import is_newer
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.cluster.scale.chance import Draw
from skuld_py.config.scaling import Scaling
from skuld_py.errors import Malformed
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import JoinMe, NotNow, Welcomed

NEIGHBOURS = 4
DOUBLINGS = 4
"""How often the pause between two questions doubles, at most."""


@attrs.frozen
class _Waiting:
    joining: Joining
    expires_ms: int

    def is_over(self, now_ms: int, replica: Replica) -> bool:
        """Whether it has asked another member meanwhile, or is gone."""
        joiner = self.joining.id
        return (self.expires_ms <= now_ms or replica.is_known(joiner) or joiner in replica.left
                or _is_former(joiner, self.joining.member.name, replica))


def _is_former(joiner: str, node: str, replica: Replica) -> bool:
    """Whether a newer life of the same node is in."""
    return is_newer(replica.nodes.get(node, Place()).member, joiner)


class Greeter:
    """A member's side, for one life ``me``. At most one of its entries is on the way."""

    def __init__(self, me: str, cluster_id: str, scaling: Scaling) -> None:
        self._me = me
        self._cluster_id = cluster_id
        self._scaling = scaling
        self._waiting: dict[str, _Waiting] = {}
        """Joiners not in an entry yet, by id, in the order of asking."""
        self._written: dict[str, _Waiting] = {}
        """Those of the entry that is on the way."""
        self._due_ms: int | None = None

    def on_join_me(self, now_ms: int, peer: str, message: JoinMe, replica: Replica) -> list[Send]:
        """A joiner asks; the answer comes at once if nothing has to be written."""
        if message.cluster_id != self._cluster_id or message.name != peer:
            return []
        joiner = message.joiner
        if joiner in replica.members:
            return [Send(peer, Welcomed(self._cluster_id, joiner, replica.version))]
        refusal = self._refusal(message, replica)
        if refusal:
            return [Send(peer, NotNow(self._cluster_id, joiner, refusal))]
        try:
            joining = Joining(joiner, message.member)
        except Malformed:
            return []  # no process of this version would write that
        asked = _Waiting(joining, now_ms + self._scaling.knock_ms)
        (self._written if joiner in self._written else self._waiting)[joiner] = asked
        if self._due_ms is None and not self._written:
            self._due_ms = now_ms + self._scaling.gather_ms
        return []

    def _refusal(self, message: JoinMe, replica: Replica) -> str:
        joiner = message.joiner
        if self._me not in replica.members:
            return "no-member"
        if joiner in replica.left or _is_former(joiner, message.name, replica):
            return "left"
        if replica.is_known(joiner):
            return "joining"
        is_new = joiner not in self._waiting and joiner not in self._written
        return "busy" if is_new and len(self._waiting) >= self._scaling.greet_waiting else ""

    def propose(self, now_ms: int, replica: Replica) -> JoinDirect | None:
        """What to append, if it is time; the caller says when it was played: ``on_played``."""
        if self._due_ms is None or now_ms < self._due_ms:
            return None
        self._due_ms = None
        for joiner, waiting in list(self._waiting.items()):
            if waiting.is_over(now_ms, replica):
                del self._waiting[joiner]
            elif len(self._written) < self._scaling.greet_joiners:
                self._written[joiner] = self._waiting.pop(joiner)
        if not self._written or self._me not in replica.members:
            return None
        return JoinDirect(self._me, replica.ring.after(self._me),
                          tuple(waiting.joining for waiting in self._written.values()))

    def is_wanted(self, now_ms: int, replica: Replica) -> bool:
        """Whether all joiners that the entry names still wait."""
        return not any(waiting.is_over(now_ms, replica) for waiting in self._written.values())

    def on_played(self, now_ms: int, replica: Replica) -> list[Send]:
        """The entry was played, passed over by a jump to an origin behind it, or did not leave. Joiners that are
        not in wait on, before those that asked later."""
        welcomed, left_out = [], {}
        for joiner, waiting in self._written.items():
            if joiner in replica.members:
                welcomed.append(Send(waiting.joining.member.name,
                                     Welcomed(self._cluster_id, joiner, replica.version)))
            else:
                left_out[joiner] = waiting
        self._waiting = {**left_out, **self._waiting}
        self._written.clear()
        self._due_ms = now_ms if self._waiting else None
        return welcomed

    def deadline(self) -> int | None:
        """When to call ``propose``."""
        return self._due_ms


class Knocking:
    """A joiner's side, for one life: it asks one member after the other, ever more slowly, then gives up.

    ``is_given_up``: the three phases remain. ``welcome``: which member said that it is in, and as of which
    position.
    """

    def __init__(self, cluster_id: str, question: JoinMe, scaling: Scaling, draw: Draw, now_ms: int) -> None:
        self.is_given_up = False
        self.welcome: tuple[str, int] | None = None
        self._cluster_id = cluster_id
        self._question = question
        self._scaling = scaling
        self._draw = draw
        self._asked = ""
        """The member whose answer is awaited; empty between two questions."""
        self._last = ""
        self._failures = 0
        self._next_ms: int | None = now_ms
        self._until_ms = now_ms
        """Until when the answer is awaited."""
        self._again_ms = 0
        """When to ask it again: the first message to a process not spoken with yet is mostly lost."""

    def knock(self, now_ms: int, members: Sequence[str]) -> list[Send]:
        """Ask a member, if it is time. ``members`` are names of nodes; without any it counts as no answer."""
        if self._next_ms is None or now_ms < self._next_ms:
            return []
        if not self._asked and members:
            self._asked = self._last = self._choose(members)
            self._until_ms, self._again_ms = now_ms + self._scaling.knock_ms, self._scaling.knock_again_ms
        if not self._asked or now_ms >= self._until_ms:
            self._fail(now_ms)
            return []
        self._next_ms = min(now_ms + self._again_ms, self._until_ms)
        self._again_ms *= 2
        return [Send(self._asked, self._question)]

    def _choose(self, members: Sequence[str]) -> str:
        """Any member but this node and the one asked last; that one if there is no other. No walk over all."""
        at = self._draw(len(members) - 1)
        for step in range(min(NEIGHBOURS, len(members))):
            name = members[(at + step) % len(members)]
            if name not in (self._last, self._question.name):
                return name
        return self._last

    def _fail(self, now_ms: int) -> None:
        self._asked = ""
        self._failures += 1
        if self._failures >= self._scaling.knocks:
            self.is_given_up, self._next_ms = True, None
        else:
            pause_ms = self._scaling.knock_pause_ms << min(self._failures - 1, DOUBLINGS)
            self._next_ms = now_ms + 1 + self._draw(pause_ms)

    def on_welcomed(self, peer: str, message: Welcomed) -> None:
        """A member says that we are in; the log will show."""
        if self._is_ours(message) and self.welcome is None:
            self.welcome = (peer, message.version)
            self._next_ms = None

    def on_not_now(self, now_ms: int, peer: str, message: NotNow) -> None:
        """The member asked refuses: ask another."""
        if self._is_ours(message) and peer == self._asked and self._next_ms is not None:
            self._fail(now_ms)

    def _is_ours(self, message: Welcomed | NotNow) -> bool:
        return message.cluster_id == self._cluster_id and message.joiner == self._question.joiner

    def deadline(self) -> int | None:
        """When to call ``knock``."""
        return self._next_ms
