"""What an operator's request makes of a partition's document: another document, or why not.

A pure function of the document as it was read, so that the write can be bound to that revision. What is so already
is no reason to refuse; what its leader would take out again is.
"""

from __future__ import annotations

from collections.abc import Container

import attrs

from skuld_py.model.document import LEAD, NORMAL, REBALANCE, REORDER, SOLO, Document, Freeze, Promotion

FREEZE, UNFREEZE = "freeze", "unfreeze"
KINDS = (FREEZE, UNFREEZE, SOLO, NORMAL, LEAD, REORDER, REBALANCE)
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


def steered(request: Request, document: Document, live: Container[str], now_ms: int) -> Document:
    """The document that the request makes of this one; the same when nothing is to be done. Raises
    ``Impossible``."""
    if not document.epoch:
        raise Impossible("it has had no leader yet")
    if request.epoch and request.epoch != document.epoch:
        raise Impossible(f"its epoch is {document.epoch}, not {request.epoch}")
    if request.kind == FREEZE:
        until_ms = now_ms + request.for_ms if request.for_ms else 0
        return attrs.evolve(document, freeze=Freeze(request.id, request.by, request.reason, now_ms, until_ms))
    if request.kind == UNFREEZE:
        return attrs.evolve(document, freeze=None, malformed=_without(document, "freeze"))
    if request.kind in (SOLO, NORMAL):
        return attrs.evolve(document, mode=request.kind, malformed=_without(document, "mode"))
    return _wished(request, document, live, now_ms)


def _without(document: Document, field: str) -> dict[str, object]:
    return {name: value for name, value in document.malformed.items() if name != field}


def _wished(request: Request, document: Document, live: Container[str], now_ms: int) -> Document:
    freeze = document.freeze
    if freeze is not None and (not freeze.until_ms or now_ms < freeze.until_ms):
        raise Impossible(f"it is frozen by {freeze.by}; 'skuld unfreeze' first")
    if document.mode == SOLO:
        raise Impossible("it is solo; 'skuld solo --off' first")
    if request.kind != REBALANCE:
        if request.target == document.leader:
            if request.kind == LEAD:
                return document
            raise Impossible(f"{request.target} leads it")
        _check_able(request.target, document, live)
    expires_ms = now_ms + (request.for_ms or WISH_MS)
    wish = Promotion(request.id, request.kind, request.target, document.epoch, expires_ms, request.by)
    return attrs.evolve(document, promote=wish, malformed=_without(document, "promote"))


def _check_able(target: str, document: Document, live: Container[str]) -> None:
    if target not in document.cohort:
        raise Impossible(f"{target} has no vote in it; its voters are {', '.join(document.cohort)}")
    if target in (row.node for row in document.quarantine):
        raise Impossible(f"{target} is in quarantine: it has to fill first")
    if target not in live:
        raise Impossible(f"{target} is not alive")
