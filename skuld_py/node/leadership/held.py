"""What operators hold and wish of the partitions that a node keeps, as their documents said when last read; and
what keeps their leaders from granting.

A document is written by hand, too. Whatever stands there, the rows pass the wire: else a slip would make every
node that keeps the partition answer nobody who asks how the cluster is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import messages as m
from skuld_py.model.bounds import MOMENT_MS_MAX
from skuld_py.model.document import SOLO, Document, Loss
from skuld_py.model.service import bars
from skuld_py.node.knowledge.view import View
from skuld_py.partition.leadership.evaluator import NO_MAJORITY, is_frozen
from skuld_py.partition.vnode import Vnode

UNLED_MS = 10_000
"""Elections are over by then, where one is possible."""
WORDS_CHARS = 500
"""As many as a row has room for."""


def held(view: View, now_ms: int, unaudited: Callable[[int, int], str]) -> tuple[m.HeldRow, ...]:
    """A row for each thing of each partition. ``unaudited``: whom a leader could not be compared with. Of more
    than an answer has room for, those are told first that keep a leader from granting."""
    rows = [m.HeldRow(vnode.partition, what, _sendable(words), min(until_ms, MOMENT_MS_MAX))
            for vnode in view.vnodes if vnode.takes_writes for what, words, until_ms in chain(
                _of(_document(vnode), now_ms), _stayed(view, vnode, now_ms), _unled(vnode, now_ms),
                _audited(unaudited(vnode.partition, now_ms)))]
    if len(rows) > PARTITIONS_MAX:
        rows.sort(key=bars, reverse=True)
    return tuple(rows)[:PARTITIONS_MAX]


def _sendable(words: str) -> str:
    return words[:WORDS_CHARS].encode(errors="replace").decode()


def _document(vnode: Vnode) -> Document:
    return vnode.election.document if vnode.is_leading else vnode.known


def _stayed(view: View, vnode: Vnode, now_ms: int) -> Iterator[tuple[str, str, int]]:
    """The horizon of a partition that is led, where it has not moved on for long. A leader moves it when half of
    its way is left, so with less than a quarter its writes have failed for as long. Once it is over, which the
    time 0 tells, no claim is granted."""
    document = _document(vnode)
    is_known = bool(vnode.leader) and document.leader == vnode.leader and view.is_connected
    if is_known and document.horizon_ms - now_ms < view.timing.horizon_ms // 4:
        yield "horizon", "", document.horizon_ms if now_ms < document.horizon_ms else 0


def _audited(words: str) -> Iterator[tuple[str, str, int]]:
    if words:
        yield "floor", words, 0


def _of(document: Document, now_ms: int) -> Iterator[tuple[str, str, int]]:
    freeze, wish = document.freeze, document.promote
    if freeze is not None and is_frozen(document, now_ms):
        yield "frozen", f"by {freeze.by}" + (f" ({freeze.reason})" if freeze.reason else ""), freeze.until_ms
    for bar in document.barred:
        yield "quarantine", f"{bar.node}, by {bar.by}" + (f" ({bar.reason})" if bar.reason else ""), 0
    if document.mode == SOLO:
        yield "solo", "", 0
    if wish is not None:
        yield "promotion", f"{wish.kind} {wish.target}".rstrip() + f", by {wish.by}", wish.expires_ms
    if document.force is not None and document.force.epoch == document.epoch:
        yield "force", f"{', '.join(document.force.remaining)}; by {document.force.by}", 0
    if document.loss is not None:
        yield "loss", _lost(document.loss), document.loss.until_ms if now_ms < document.loss.until_ms else 0
    if now_ms < document.no_grant_before_ms and document.loss is None:
        yield "barrier", "", document.no_grant_before_ms
    if document.malformed:
        yield "malformed", ", ".join(sorted(document.malformed)), 0


def _unled(vnode: Vnode, now_ms: int) -> Iterator[tuple[str, str, int]]:
    """That it has had no leader for a while, and why this node does not stand."""
    since_ms = vnode.leaderless_since_ms
    is_long = since_ms is not None and now_ms - since_ms >= UNLED_MS
    if is_long and not vnode.leader and vnode.why_unled not in ("", NO_MAJORITY):  # that one is told of anyway
        yield "unled", vnode.why_unled, 0


def _lost(loss: Loss) -> str:
    """What is known of a loss. What nobody who remains has heard of cannot be counted. How much it is stands last,
    and long names before it do not push it out."""
    by = f"by {loss.by}" + (f" ({loss.reason[:100]})" if loss.reason else "")
    counted = "what is lost is not counted yet"
    if loss.counted_ms:
        such = f" ({', '.join(loss.named)})" if loss.named else ""
        tasks = "1 task is" if loss.missing == 1 else f"{loss.missing:,} tasks are"
        counted = f"{tasks} known to be lost{such}" if loss.missing else "no lost task is known"
    who = f"{', '.join(loss.lost)} given up {by}, {', '.join(loss.remaining)} remained"
    room = WORDS_CHARS - len(counted) - 2
    return f"{who if len(who) <= room else who[: room - 1] + '…'}: {counted}"
