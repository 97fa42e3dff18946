"""What operators do with partitions: hold them where they are, and say who shall lead.

Each is about one partition, or about all of them. ``Overseen`` tells of how many it made something else, and where
it cannot be, and why; of a single partition that is refused. Where nobody can tell whether it was done, the call
is uncertain: so it is where ZooKeeper did not answer in time, and where the answer to an earlier request was lost
and what is refused now may be refused because it was done then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Answered, Work, as_part, ask, verb
from skuld_py.client.node_names import node_name
from skuld_py.errors import Refused, Uncertain
from skuld_py.model import messages as m

APPLIED = "applied"
REASON_CHARS = 250
WITHIN_MS_MAX = 3_600_000
FREEZE_MS_MAX = 3_650 * 86_400_000


@attrs.frozen
class Frozen:
    """``by`` whom a partition is held, and until when, by the nodes' clocks; 0 until somebody lets it go."""

    by: str
    until_ms: int


@attrs.frozen
class Overseen:
    """``changed``: of how many partitions something was changed; ``refused``: partition -> why it cannot be.
    ``frozen``: partitions that a node in quarantine leads on, until ``unfreeze`` or the end of what holds them; a
    cluster of rules before 5 does not tell."""

    changed: int
    refused: Mapping[int, str]
    frozen: Mapping[int, Frozen] = attrs.field(factory=dict)


@attrs.frozen
class Revision:
    """A revision of a partition's document. ``writer``: the node that wrote it; ``cause``: why, and by whose wish;
    ``at_ms``: by ZooKeeper's clock; ``version``: its number in ZooKeeper, which begins anew at 0 when a deleted
    document is put back; ``write_id``: of the attempt that wrote it."""

    partition: int
    version: int
    epoch: int
    leader: str
    voters: tuple[str, ...]
    writer: str
    cause: str
    write_id: str
    at_ms: int


SHOWN = 8
"""Partitions that are named one by one."""
MOST_OF_ALL = 5
"""Revisions of each partition that are told, of all partitions."""


class Operating:
    """The verbs about partitions, of a client with a name."""

    holder: str

    @verb
    def freeze(self, partition: int | None = None, *, reason: str = "", for_s: float = 0.0) -> Work[Overseen]:
        """Hold leader, voters and learners of a partition, or of all, where they are; claims and all that is done
        with tasks go on. For ``for_s`` seconds, 0: until ``unfreeze``. While it lasts, nobody but the present
        leader may lead: if it dies, its partition waits for it."""
        for_ms = checking.as_ms("for_s", for_s, least=0, most=FREEZE_MS_MAX)
        return (yield from self._steer("freeze", partition, reason=reason, for_ms=for_ms))

    @verb
    def unfreeze(self, partition: int | None = None, *, reason: str = "") -> Work[Overseen]:
        """Let go of what ``freeze`` holds."""
        return (yield from self._steer("unfreeze", partition, reason=reason))

    @verb
    def promote(self, node: str, partition: int | None = None, *, epoch: int = 0, within_s: float = 30.0,
                reason: str = "") -> Work[Overseen]:
        """Have a node lead: the leader grants nothing more, then has it elected. Only while ``epoch`` is the
        newest (0: the present one), and within ``within_s`` seconds; then it is forgotten. ``status`` says who
        leads."""
        return (yield from self._wish("lead", partition, node, reason, within_s, epoch))

    @verb
    def reorder(self, node: str, partition: int | None = None, *, epoch: int = 0, within_s: float = 30.0,
                reason: str = "") -> Work[Overseen]:
        """Have a node be the first to succeed the leader, should that die."""
        return (yield from self._wish("reorder", partition, node, reason, within_s, epoch))

    @verb
    def rebalance(self, partition: int | None = None, *, within_s: float = 30.0, reason: str = ""
                  ) -> Work[Overseen]:
        """Have the first of the owners lead again: undoes what ``promote`` and ``reorder`` have made uneven."""
        within_ms = checking.as_ms("within_s", within_s, least=100, most=WITHIN_MS_MAX)
        return (yield from self._steer("rebalance", partition, reason=reason, for_ms=within_ms))

    @verb
    def withdraw(self, partition: int | None = None, *, reason: str = "") -> Work[Overseen]:
        """Take back what ``promote``, ``reorder``, ``rebalance`` or ``reap`` has wished, where it was not obeyed
        yet. Who was to be reaped stays in quarantine."""
        return (yield from self._steer("withdraw", partition, reason=reason))

    @verb
    def solo(self, partition: int | None = None, *, off: bool = False, reason: str = "") -> Work[Overseen]:
        """Let the voters of a partition stay as they are, however many nodes come; ``off``: let them grow."""
        kind = "normal" if checking.as_flag("off", off) else "solo"
        return (yield from self._steer(kind, partition, reason=reason))

    @verb
    def quarantine(self, node: str, partition: int | None = None, *, off: bool = False, reason: str = ""
                   ) -> Work[Overseen]:
        """Let a node lead nothing and get no new vote, as its disk is not to be trusted, say; ``off``: trust it
        again. It keeps the votes that it has. What is frozen it leads on: see ``frozen`` of the answer."""
        node = node_name("node", node)
        kind = "unquarantine" if checking.as_flag("off", off) else "quarantine"
        return (yield from self._steer(kind, partition, node, reason))

    @verb
    def reap(self, node: str, partition: int | None = None, *, within_s: float = 30.0, reason: str = ""
             ) -> Work[Overseen]:
        """Take a node that is down out of the voters for good, once those who stay were compared; it is in
        quarantine then. A partition that has no majority without it stays as it is."""
        return (yield from self._wish("reap", partition, node, reason, within_s, 0))

    @verb
    def drain(self, node: str, *, undo: bool = False) -> Work[bool]:
        """Take a node, alive or dead, out of the cluster: nothing is placed on it any more, and while it runs it
        hands on what it has; ``undo``: place it again. Gives whether it was not so before. It goes on by itself:
        ``status`` says that the node ``is_leaving``, and what it leads and owns still; once that is nothing, and
        no partition has its vote, it may be stopped. Refused as ``unknown_node``, and as ``too_few_nodes`` where
        too few would be left to keep all copies."""
        asked = m.Retire(0, node_name("node", node), checking.as_flag("undo", undo))
        return (yield from ask(m.Decreed, asked)).message.outcome == APPLIED

    @verb
    def force_epoch(self, partition: int | None = None, *, noted: bool = False, reason: str = ""
                    ) -> Work[Overseen]:
        """Give the voters up that are not there with their data, where no majority of them is: those who remain
        elect a leader without them, and it grants nothing before all that the lost may have granted is over. What
        only the lost had acknowledged is gone. A partition that has its majority stays as it is. ``noted``: ends
        the line of ``status`` that tells of it."""
        kind = "noted" if checking.as_flag("noted", noted) else "force"
        return (yield from self._steer(kind, partition, reason=reason))

    @verb
    def partition_history(self, partition: int | None = None, *, most: int | None = None) -> Work[list[Revision]]:
        """The revisions of a partition's document, or of all, the newest first; ``most`` of each, by default all
        that are kept of one partition and 5 of each of all."""
        first, count = max(0, checking.as_place(partition) - 1), int(partition is not None)
        most = checking.as_number("most", most if most is not None else 0 if count else MOST_OF_ALL)
        found: list[Revision] = []
        while True:
            told = (yield from ask(m.Recalled, m.Recall(0, first, count, most))).message
            found += [Revision(**attrs.asdict(row)) for row in told.rows]
            first = told.next
            if not first:
                # As told where the time is the same: versions begin anew with a document that is put back.
                return sorted(found, key=lambda each: (-each.at_ms, each.partition))

    def _wish(self, kind: str, partition: int | None, node: str, reason: str, within_s: float, epoch: int
              ) -> Work[Overseen]:
        node = node_name("node", node)
        within_ms = checking.as_ms("within_s", within_s, least=100, most=WITHIN_MS_MAX)
        epoch = checking.as_number("epoch", epoch)
        return (yield from self._steer(kind, partition, node, reason, within_ms, epoch))

    def _steer(self, kind: str, partition: int | None, node: str = "", reason: str = "", for_ms: int = 0,
               epoch: int = 0) -> Work[Overseen]:
        _check_reason(reason)
        first, count = max(0, checking.as_place(partition) - 1), int(partition is not None)
        changed, refused, frozen = 0, dict[int, str](), dict[int, Frozen]()
        uncertain = list[int]()
        doubted, pages = _not_refused if kind == "force" or epoch else None, 0
        while True:
            asked = m.Steer(0, kind, first, count, node, self.holder, reason, for_ms, epoch)
            told = (yield from as_part(pages, _steered(asked, doubted))).message
            changed, pages = changed + told.changed, pages + 1
            refused.update((row.partition, row.reason) for row in told.refused)
            uncertain += [row.partition for row in told.refused if row.is_uncertain]
            frozen.update((row.partition, Frozen(row.by, row.until_ms)) for row in told.frozen)
            first = told.next
            if not first:
                break
        if uncertain:
            raise _unknown(uncertain, refused, changed)
        if partition in refused:
            raise Refused("conflict", f"partition: {partition} stays as it is: {refused[partition]}",
                          partition=partition)
        return Overseen(changed, refused, frozen)


def _steered(asked: m.Steer, doubted: Callable[[m.Message], m.Message] | None) -> Work[Answered[m.Steered]]:
    """Ask; a node of an earlier release says only which kinds it knows, so what helps is said here."""
    try:
        return (yield from ask(m.Steered, asked, doubted=doubted))
    except Refused as refusal:
        if refusal.code != "malformed" or not refusal.message.startswith("kind: "):
            raise
        raise Refused(refusal.code, f"{refusal.message}. The node that was asked is of an earlier release: upgrade"
                      " the nodes, or name one of this release with --nodes", **refusal.facts) from refusal


def _not_refused(answer: m.Message) -> m.Message:
    """The answer to a request that was sent before: what has done away with a majority, or with its own epoch, is
    refused now."""
    if not isinstance(answer, m.Steered):
        return answer
    return attrs.evolve(answer, refused=tuple(attrs.evolve(row, is_uncertain=True) for row in answer.refused))


def _unknown(uncertain: list[int], refused: Mapping[int, str], changed: int) -> Uncertain:
    named = "; ".join(f"{each}: {refused[each]}" for each in uncertain[:SHOWN])
    more = f"; and {len(uncertain) - SHOWN} more" if len(uncertain) > SHOWN else ""
    return Uncertain("uncertain", f"partition: it may have been done or not in {named}{more}. In {changed} others"
                     " it was done; look with 'skuld status', and ask again", partition=uncertain[0])


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str) or len(reason) > REASON_CHARS or not _is_encodable(reason):
        raise Refused("bad_text", f"reason: {str(reason)[:40]!r} is no text of at most {REASON_CHARS} characters",
                      field="reason")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
