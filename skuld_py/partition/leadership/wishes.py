"""What an operator's request makes of a partition's document: another document, or why not.

A pure function of the document as it was read, so that the write can be bound to that revision. What is so already
is no reason to refuse; what its leader would take out again is. Of two operators who freeze, the one who holds for
longer is obeyed: who holds for a minute does not let go of what another one holds for good.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import attrs

from skuld_py.model.bounds import MOMENT_MS_MAX
from skuld_py.model.document import (
    LEAD,
    NORMAL,
    REAP,
    REBALANCE,
    REORDER,
    SOLO,
    Bar,
    Document,
    Force,
    Freeze,
    Promotion,
)
from skuld_py.partition.leadership import quorum
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD

FREEZE, UNFREEZE = "freeze", "unfreeze"
FORCE, NOTED = "force", "noted"
QUARANTINE, UNQUARANTINE = "quarantine", "unquarantine"
WITHDRAW = "withdraw"
KINDS = (FREEZE, UNFREEZE, SOLO, NORMAL, LEAD, REORDER, REBALANCE, WITHDRAW, FORCE, NOTED, QUARANTINE,
         UNQUARANTINE, REAP)
OF_NODES = (LEAD, REORDER, QUARANTINE, UNQUARANTINE, REAP)
"""Kinds that name a node."""
WISH_MS = 30_000
"""How long a wish may be obeyed, unless it is said otherwise."""


@attrs.frozen
class Request:
    """``id`` is unique; ``for_ms`` 0: as long as may be; ``epoch`` 0: any."""

    id: str
    kind: str
    target: str = ""
    by: str = ""
    reason: str = ""
    for_ms: int = 0
    epoch: int = 0

    @property
    def cause(self) -> str:
        """For the document."""
        return f"{self.kind} by {self.by}" + (f": {self.reason}" if self.reason else "")


class Impossible(Exception):
    """Why a request cannot be carried out on this partition."""


def steered(request: Request, document: Document, live: Container[str], now_ms: int,
            suspects: Mapping[str, str] | None = None, owners: tuple[str, ...] = ()) -> Document:
    """The document that the request makes of this one; the same when nothing is to be done. ``suspects``: nodes
    whose memory of the partition is not to be trusted, with the reason; ``owners``: of the partition, as it is
    placed, where that is known. Raises ``Impossible``."""
    if not document.epoch:
        raise Impossible("it has had no leader yet")
    if request.epoch and request.epoch != document.epoch:
        raise Impossible(f"its epoch is {document.epoch}, not {request.epoch}")
    if request.kind == FREEZE:
        return _frozen(request, document, now_ms)
    if request.kind == UNFREEZE:
        return attrs.evolve(document, freeze=None, malformed=_without(document, "freeze"))
    if request.kind in (SOLO, NORMAL):
        return attrs.evolve(document, mode=request.kind, malformed=_without(document, "mode"))
    if request.kind == WITHDRAW:
        return attrs.evolve(document, promote=None, malformed=_without(document, "promote"))
    if request.kind == NOTED:
        return attrs.evolve(document, loss=None)
    if request.kind == FORCE:
        return _forced(request, document, live, now_ms, suspects or {})
    if request.kind == QUARANTINE:
        return _barred(request, document, live, now_ms)
    if request.kind == UNQUARANTINE:
        bars = tuple(bar for bar in document.barred if bar.node != request.target)
        return attrs.evolve(document, barred=bars, malformed=_without(document, "barred"))
    if request.kind == REAP:
        return _reaped(request, document, live, now_ms)
    return _wished(request, document, live, now_ms, owners)


def _frozen(request: Request, document: Document, now_ms: int) -> Document:
    until_ms = min(now_ms + request.for_ms, MOMENT_MS_MAX) if request.for_ms else 0
    known = document.freeze
    if known is not None and (not known.until_ms or 0 < until_ms <= known.until_ms):
        return document
    return attrs.evolve(document, malformed=_without(document, "freeze"),
                        freeze=Freeze(request.id, request.by, request.reason, now_ms, until_ms))


def _barred(request: Request, document: Document, live: Container[str], now_ms: int) -> Document:
    target = request.target
    if target in document.outlaws:
        return document
    if target not in (*document.cohort, *document.learners) and target not in live:
        raise Impossible(f"no node {target} is known here; its voters are {', '.join(document.cohort)}")
    others = [name for name in document.cohort
              if name in live and name != target and name not in document.outlaws]
    if target in document.cohort and not others:
        raise Impossible(f"nobody but {target} could lead it")
    bar = Bar(request.id, target, request.by, request.reason, now_ms)
    return attrs.evolve(document, barred=(*document.barred, bar), malformed=_without(document, "barred"))


def _reaped(request: Request, document: Document, live: Container[str], now_ms: int) -> Document:
    """The node is barred as well, or it would get its vote back when it comes back."""
    _check_thawed(document, now_ms)
    _check_not_solo(document)
    target = request.target
    if target in live:
        raise Impossible(f"{target} is alive; stop it for good first, or 'skuld drain' it")
    if target not in document.cohort:
        return document
    there = [name for name in document.cohort if name in live]
    if not quorum.has_majority(document.cohort, there):
        raise Impossible(f"it needs the vote of {target}: only {', '.join(there) or 'nobody'} of"
                         f" {', '.join(document.cohort)} {'are' if len(there) > 1 else 'is'} there")
    expires_ms = min(now_ms + (request.for_ms or WISH_MS), MOMENT_MS_MAX)
    wish = Promotion(request.id, REAP, target, document.epoch, expires_ms, request.by)
    bars = document.barred
    if target not in document.outlaws:
        bars = (*bars, Bar(request.id, target, request.by, request.reason or "reaped", now_ms))
    return attrs.evolve(document, promote=wish, barred=bars, malformed=_without(document, "promote", "barred"))


def _forced(request: Request, document: Document, live: Container[str], now_ms: int,
            suspects: Mapping[str, str]) -> Document:
    """Who remains, by the node that is asked. No voter promises an epoch further ahead of those that the document
    tells of than ``EPOCHS_AHEAD``: these are spent, so the next leader's is above all that the lost have promised.
    """
    _check_thawed(document, now_ms)
    there = tuple(name for name in document.cohort if name in live and name not in suspects)
    if quorum.has_majority(document.cohort, there):
        raise Impossible(f"it has a majority of its voters: {', '.join(there)}; nobody has to be given up")
    if not there:
        raise Impossible(f"none of its voters is there with its data: {', '.join(document.cohort)}; start at least"
                         " one of them on its data")
    force = Force(request.id, document.epoch, there, request.by, request.reason, now_ms)
    known = document.force
    if known is not None and (known.epoch, known.remaining) == (force.epoch, force.remaining):
        return document
    return attrs.evolve(document, force=force, spent=document.told_epoch + EPOCHS_AHEAD,
                        malformed=_without(document, "force"))


def _without(document: Document, *fields: str) -> dict[str, object]:
    """What makes no sense, but for these: it would be written over what is."""
    return {name: value for name, value in document.malformed.items() if name not in fields}


def _check_thawed(document: Document, now_ms: int) -> None:
    freeze = document.freeze
    if freeze is not None and (not freeze.until_ms or now_ms < freeze.until_ms):
        raise Impossible(f"it is frozen by {freeze.by}; 'skuld unfreeze' first")


def _check_not_solo(document: Document) -> None:
    if document.mode == SOLO:
        raise Impossible("it is solo; 'skuld solo --off' first")


def _wished(request: Request, document: Document, live: Container[str], now_ms: int,
            owners: tuple[str, ...]) -> Document:
    _check_thawed(document, now_ms)
    _check_not_solo(document)
    if request.kind != REBALANCE:
        if request.target == document.leader:
            if request.kind == LEAD:
                return document
            raise Impossible(f"{request.target} leads it")
        _check_able(request.target, document, live)
    elif document.promote is None and (document.leader, *document.cohort) == (*owners[:1], *owners):
        return document
    expires_ms = min(now_ms + (request.for_ms or WISH_MS), MOMENT_MS_MAX)
    wish = Promotion(request.id, request.kind, request.target, document.epoch, expires_ms, request.by)
    return attrs.evolve(document, promote=wish, malformed=_without(document, "promote"))


def _check_able(target: str, document: Document, live: Container[str]) -> None:
    if target not in document.cohort:
        raise Impossible(f"{target} has no vote in it; its voters are {', '.join(document.cohort)}")
    if target in (row.node for row in document.quarantine):
        raise Impossible(f"{target} is in quarantine: it has to fill first")
    if target in document.outlaws:
        raise Impossible(f"{target} is in quarantine; 'skuld quarantine {target} --off' first")
    if target not in live:
        raise Impossible(f"{target} is not alive")
