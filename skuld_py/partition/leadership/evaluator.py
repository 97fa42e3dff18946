"""What a node should do about a partition: a pure, total function of what it knows, one step at a time.

The order is fixed: is my role that of the document's epoch? is it frozen? is there upkeep? an operator's wish? has
placement moved? A later question is not looked at while an earlier one has an answer, so no wish is obeyed by a
deposed leader, and no node stands because of a document that its writer was about to mend. A leader without tokens
takes a new epoch whatever an operator holds, since it can grant no more: leader and cohort stay. Last comes the
balance: a leader gives way to the first of its cohort. Before that, candidacies that led to nothing are ended: a
node that stood, or voted, for a cohort counts on that cohort until a newer epoch has a leader, so the leader takes
a new epoch.

A dead leader's successor keeps the cohort; only a living leader changes it, once the new members
have filled. So a change of members and a loss of the leader never happen in one step.

A seat is a vote in a cohort. No cohort has fewer able voters (alive, staying, trusted) than the one before it: a
dead owner does not keep a seat that an able voter would have to leave for it. And a node that has not been up for
a while gets the seat of a voter that is not able, never that of one that is: nodes that come for a moment and go
again, with their disks, would else take majorities with them.

Where owners are fewer than voters, since the cluster is to keep fewer copies, voters go one at a time, each after
those who stay were compared. A majority of some voters and one of these less one share a node, so what only a
majority had is met once more; and is then brought to all before the next one goes.

Where a majority of the voters is lost for good, an operator says who remains (``Force``). These obey only while
they see no majority that could vote, all of them together, the epoch is the one that was spoken of, and nothing
was frozen since. A leader may be among them: it hears voters that have lost their memory, and they record nothing
that it grants.

A leader that is about to stop yields to the others of its cohort in turn, before anything else that it would do
with its leadership; and so does one in quarantine. Frozen, leader and cohort stay; solo, the cohort alone does, so
these two yield then, too.

Source: Manatee's state machine evaluation, whose three kinds of lost commits came from looking at
wishes before roles, and from writing documents that were not derived from the one read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from skuld_py.model.document import (
    LEAD,
    REAP,
    REBALANCE,
    REORDER,
    SOLO,
    Document,
    Loss,
    Member,
    Promotion,
    Quarantine,
)
from skuld_py.partition.leadership import quorum

Names = tuple[str, ...]
NO_MAJORITY = "a majority of the voters is not alive"
HELD = "held by an operator"


@attrs.frozen
class Facts:
    """What this node knows. ``epoch`` is the one it leads, 0 if none; ``remembered`` the newest it knows to
    have had a leader. ``filled`` are nodes that have taken the data over, ``suspects`` those that fill again,
    with the reason; ``steady`` those that have been there for a while; ``strays`` those that count on a cohort
    of which nothing came. ``fresh`` are nodes that have not been up for long enough to have a seat, ``leavers``
    those that are about to stop; ``is_leaving``: so is this one. ``horizon_ms`` is what the leases asked for need.
    ``is_spent``: the epoch led has no tokens left. ``is_gathered``: since the operator's wish, or in this epoch
    where owners are fewer, this leader was compared with all voters that are there. ``missing``: how many tasks
    are known and lost, and the first of them, where that was counted. ``was_there``: there is no document, and
    there was one."""

    me: Member
    live: Mapping[str, Member]
    owners: Names = ()
    epoch: int = 0
    remembered: int = 0
    is_suspect: bool = False
    is_overdue: bool = False
    filled: Collection[str] = ()
    suspects: Mapping[str, str] = attrs.field(factory=dict)
    steady: Collection[str] = ()
    strays: Collection[str] = ()
    fresh: Collection[str] = ()
    leavers: Collection[str] = ()
    is_leaving: bool = False
    horizon_ms: int = 0
    is_spent: bool = False
    missing: tuple[int, Names] | None = None
    is_gathered: bool = False
    was_there: bool = False


@attrs.frozen
class Rest:
    """Do nothing, for this reason."""

    reason: str = ""


@attrs.frozen
class Resign:
    """Lead no more."""

    reason: str


@attrs.frozen
class Write:
    """Swap the document for this one."""

    document: Document


@attrs.frozen
class Stand:
    """Be a candidate for a leadership over this cohort. ``is_forced``: by the votes of all of it, and of nobody
    else."""

    cohort: Names
    is_forced: bool = False


@attrs.frozen
class Yield:
    """Ask one of ``targets``, the first if it is able, to stand for a leadership over this cohort."""

    targets: Names
    cohort: Names


Action = Rest | Resign | Write | Stand | Yield


def evaluate(facts: Facts, document: Document, now_ms: int) -> Action:
    """The one thing to do next."""
    return _lead(facts, document, now_ms) if facts.epoch else _succeed(facts, document, now_ms)


def is_frozen(document: Document, now_ms: int) -> bool:
    """Whether an operator holds leader and cohort where they are."""
    freeze = document.freeze
    return freeze is not None and (not freeze.until_ms or now_ms < freeze.until_ms)


def by_wish(document: Document, voters: Sequence[str]) -> list[str]:
    """Voters in the order of succession: an operator may have wished for one of them, and none has led since."""
    wish = document.promote
    is_open = wish is not None and wish.epoch == document.epoch
    return sorted(voters, key=lambda name: not (is_open and wish is not None and name == wish.target))


def next_change_ms(document: Document, now_ms: int) -> int:
    """When time alone changes what an operator holds or wishes."""
    freeze, wish = document.freeze, document.promote
    ends = (freeze.until_ms if freeze else 0, wish.expires_ms if wish else 0, document.no_grant_before_ms)
    return min((end_ms for end_ms in ends if end_ms > now_ms), default=1 << 62)


# -- who does not lead -----------------------------------------------------------------------------


def _succeed(facts: Facts, document: Document, now_ms: int) -> Action:
    if facts.is_suspect:
        return Rest("its memory of this partition is not to be trusted until it has filled again")
    if not document.epoch:
        return _found(facts)
    leader = facts.live.get(document.leader)
    is_led = (leader is not None and leader.boot == document.boot and leader.name != facts.me.name
              and not facts.is_overdue)
    if is_led:
        return Rest(f"{document.leader} leads")
    if facts.me.name not in document.cohort:
        return Rest("it has no vote")
    if is_frozen(document, now_ms):
        if document.leader != facts.me.name:
            return Rest("frozen: nobody but the recorded leader may stand")  # nor may it be kept from that
    elif remaining := those_who_remain(facts, document):
        return Stand(remaining, is_forced=True)
    elif facts.me.name in document.outlaws and _lawful(facts, document):
        return Rest("an operator has put this node into quarantine")
    if not quorum.has_majority(document.cohort, facts.live):
        return Rest(NO_MAJORITY)
    return Stand(document.cohort)


def those_who_remain(facts: Facts, document: Document) -> Names:
    """The voters that an operator says are left of this epoch, if it looks so from here too; else none."""
    force, trusted = document.force, able(facts)
    if force is None or force.epoch != document.epoch or facts.me.name not in force.remaining:
        return ()
    if quorum.has_majority(document.cohort, trusted):
        return ()
    return force.remaining if all(name in trusted and name in document.cohort for name in force.remaining) else ()


def _lawful(facts: Facts, document: Document) -> list[str]:
    """The voters that could lead and that an operator trusts. Without any, one of the others must lead, and gives
    way as soon as there is one."""
    return [name for name in document.cohort if name not in document.outlaws and name in able(facts)]


def _found(facts: Facts) -> Action:
    if facts.remembered or facts.was_there:
        had = (f"epoch {facts.remembered} had a leader" if facts.remembered else
               "its history shows that there was one")
        return Rest(f"its document is gone from ZooKeeper, and {had}, so nothing may begin anew; stop all nodes,"
                    " then 'skuld cluster destroy' and 'skuld cluster restore'")
    if facts.me.name not in facts.owners:
        return Rest("it is not placed here")
    return Stand(facts.owners)


# -- who leads ---------------------------------------------------------------------------------------


def _lead(facts: Facts, document: Document, now_ms: int) -> Action:
    if document.epoch > facts.epoch:
        return Resign(f"epoch {document.epoch} has begun")
    if (document.epoch, document.leader, document.boot) != (facts.epoch, facts.me.name, facts.me.boot):
        return Resign("the document names another leader")
    if not is_frozen(document, now_ms) and (remaining := those_who_remain(facts, document)):
        return Stand(remaining, is_forced=True)
    kept = _upkeep(facts, document, now_ms)
    if kept != document:
        return Write(kept)
    if facts.is_spent:
        return Stand(document.cohort)
    if is_frozen(document, now_ms):
        return Rest(HELD)
    if facts.is_leaving:
        return _hand_over(facts, document)
    if facts.me.name in document.outlaws:
        given = _hand_over(facts, document)
        if isinstance(given, Yield):
            return given
    if document.mode == SOLO:
        return Rest(HELD)
    if document.promote is not None:
        return _obey(facts, document, document.promote)
    return _move(facts, document)


def _obey(facts: Facts, document: Document, wish: Promotion) -> Action:
    """Do what an operator wishes, which is valid: each wish is an election, and is gone with it."""
    me, others = facts.me.name, [name for name in document.cohort if name != wish.target]
    if not quorum.has_majority(document.cohort, facts.live):
        return Rest(NO_MAJORITY)
    if wish.kind == REAP:
        return Stand(tuple(others)) if facts.is_gathered else Rest("those who stay are compared first")
    if wish.kind == LEAD:
        return Yield((wish.target,), (wish.target, *others))
    if wish.kind == REORDER:
        return Stand((me, wish.target, *(name for name in others if name != me)))
    first = facts.owners[0]
    return Stand(facts.owners) if first == me else Yield((first,), facts.owners)


def _upkeep(facts: Facts, document: Document, now_ms: int) -> Document:
    """The document with what the leader keeps in it up to date."""
    kept = attrs.evolve(document, horizon_ms=max(document.horizon_ms, facts.horizon_ms))
    if is_frozen(document, now_ms):
        return kept
    learners = tuple(name for name in facts.owners if name not in document.cohort)
    wish = document.promote
    if wish is not None and why_invalid(facts, document, wish, now_ms):
        wish = None
    return attrs.evolve(kept, learners=learners, promote=wish, force=None, malformed={},
                        loss=_counted(facts, document, now_ms),
                        quarantine=_quarantine(facts, document, now_ms))


def _counted(facts: Facts, document: Document, now_ms: int) -> Loss | None:
    loss = document.loss
    if loss is None or loss.counted_ms or facts.missing is None:
        return loss
    missing, named = facts.missing
    return attrs.evolve(loss, counted_ms=now_ms, missing=missing, named=named)


def why_invalid(facts: Facts, document: Document, wish: Promotion, now_ms: int) -> str:
    """Why an operator's wish cannot be obeyed, or nothing; its leader takes it out of the document."""
    if wish.epoch != document.epoch:
        return f"it is of epoch {wish.epoch}"
    if now_ms >= wish.expires_ms:
        return "its time is over"
    if wish.kind == REBALANCE:
        return why_balanced(facts, document)
    if wish.kind not in (LEAD, REORDER, REAP):
        return f"{wish.kind!r} is no wish"
    if wish.target not in document.cohort:
        return f"{wish.target} has no vote"
    if wish.kind == REAP:
        return f"{wish.target} is alive" if wish.target in facts.live else ""
    if wish.target in document.outlaws:
        return f"{wish.target} is in quarantine"
    if wish.target == facts.me.name:
        return f"{wish.target} leads"
    if wish.target not in able(facts):
        return f"{wish.target} is not able to lead"
    if wish.kind == REORDER and document.cohort[:2] == (facts.me.name, wish.target):
        return f"{wish.target} is the first to succeed"
    return ""


def why_balanced(facts: Facts, document: Document) -> str:
    """Why there is nothing to rebalance, or nothing."""
    if not facts.owners or sorted(facts.owners) != sorted(document.cohort):
        return "its voters are not its owners yet"
    if document.cohort == facts.owners and facts.me.name == facts.owners[0]:
        return "it is led by the first of its owners"
    is_able = facts.owners[0] in able(facts) and facts.owners[0] not in document.outlaws
    return "" if is_able else f"{facts.owners[0]} is not able to lead"


def _quarantine(facts: Facts, document: Document, now_ms: int) -> tuple[Quarantine, ...]:
    """The quarantine: nodes known to fill again; and nodes in it that are silent, since they may be filling."""
    rows = {row.node: row for row in document.quarantine
            if row.node not in facts.live and row.node in document.cohort}
    for node, reason in facts.suspects.items():
        known = next((row for row in document.quarantine if row.node == node), None)
        member = facts.live.get(node)
        rows[node] = known or Quarantine(node, member.incarnation if member else "", reason, now_ms)
    return tuple(row for _, row in sorted(rows.items()))


def able(facts: Facts) -> list[str]:
    """The live nodes that stay, and whose memory of the partition is not in doubt."""
    return [name for name in facts.live if name not in facts.leavers and name not in facts.suspects]


def _hand_over(facts: Facts, document: Document) -> Action:
    heirs = [name for name in document.cohort
             if name in able(facts) and name != facts.me.name and name not in document.outlaws]
    if not heirs or not quorum.has_majority(document.cohort, facts.live):
        return Rest("no other node can lead")
    return Yield(tuple(sorted(heirs, key=lambda name: name in facts.fresh)), document.cohort)


def _part(facts: Facts, document: Document) -> Action:
    """Go on with one voter less: one that is not able, or else the last that is no owner."""
    trusted, me = able(facts), facts.me.name
    strangers = [name for name in document.cohort if name not in facts.owners]
    parting = min(reversed(strangers), key=lambda name: (name in trusted, name == me))
    cohort = tuple(name for name in document.cohort if name != parting)
    if not (quorum.has_majority(document.cohort, facts.live) and quorum.has_majority(cohort, trusted)):
        return Rest(NO_MAJORITY)
    if not facts.is_gathered:
        return Rest("those who stay are compared first")
    if me in cohort:
        return Stand(cohort)
    heirs = [name for name in cohort if name in trusted and name not in document.outlaws]
    return Yield(tuple(heirs), cohort) if heirs else Rest("no other node can lead")


def _move(facts: Facts, document: Document) -> Action:
    if 0 < len(facts.owners) < len(document.cohort):
        return _part(facts, document)
    filled = [name for name in facts.filled if name not in document.outlaws]
    cohort = next_cohort(document.cohort, facts.owners, filled, able(facts), facts.fresh)
    if sorted(cohort) == sorted(document.cohort):
        return Stand(document.cohort) if facts.strays else _hand_back(facts, document)
    if not (quorum.has_majority(document.cohort, facts.live) and quorum.has_majority(cohort, able(facts))):
        return Rest(NO_MAJORITY)
    if facts.me.name in cohort:
        return Stand(cohort)
    heirs = [name for name in cohort if name in able(facts) and name not in document.outlaws]
    if not heirs:
        return Rest("no other node can lead")
    return Yield(tuple(sorted(heirs, key=lambda name: name not in document.cohort)), cohort)


def _hand_back(facts: Facts, document: Document) -> Action:
    """The first of the cohort leads when it can: placement makes the firsts even, failures make them uneven."""
    first = document.cohort[0]
    if first != facts.me.name and first in facts.steady and first in able(facts) and first not in document.outlaws:
        return Yield((first,), document.cohort)
    return Rest()


def next_cohort(cohort: Names, owners: Names, filled: Collection[str], able: Collection[str],
                fresh: Collection[str] = ()) -> Names:
    """The voters to go over to, as many as there are owners: owners that vote or have filled, then other present
    voters, then owners that have filled and are fresh; and voters that are not able last of all."""
    if not owners:
        return cohort
    filled = [name for name in owners if name in filled and name in able and name not in cohort]
    ready = [name for name in owners
             if (name in filled and name not in fresh) or (name in cohort and name in able)]
    staying = [name for name in cohort if name in able and name not in owners]
    absent = sorted((name for name in cohort if name not in able), key=lambda name: name not in owners)
    chosen = dict.fromkeys((*ready, *staying, *filled, *absent))
    seated = [*chosen][: len(owners)]
    return (*(name for name in owners if name in seated), *(name for name in seated if name not in owners))
