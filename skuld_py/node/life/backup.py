"""A copy of a store is marked as one: it bears an identity of its own, and says whose it was and from when.

So a node that is started on a copy never takes it for its disk: where ZooKeeper has an entry of the node, the
incarnation is another one, and every partition is suspect from the first start on (``identity``). It neither votes
nor counts as a copy before it has filled. Only ``skuld cluster restore`` makes a copy's identity the registered
one, for then there is nothing newer to fill from; a second start on the same copy shows too few starts.

Rejected: to tell a copy by the manifest beside it (who moves ``data.mdb`` alone would have the old disk back); to
leave the identity as it was (a copy of the newest start shows the right incarnation and the right count).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.model.store import Store
from skuld_py.node.life.identity import COPY_KEY, IDENTITY_KEY, Identity, load_identity, record_of


@attrs.frozen
class Copied:
    """Whose disk was copied, and when by the clock of who copied: ``taken_ms`` since 1970."""

    taken_ms: int
    incarnation: str
    starts: int


def mark_copy(store: Store, fresh: str, taken_ms: int) -> Copied:
    """Stage that a store is a copy, with a random ``fresh`` incarnation; ``Refused`` when no node has served from
    what was copied."""
    known = load_identity(store)
    if known is None:
        raise Refused("no_data", "from: no node has served from this data directory yet; there is nothing to copy")
    copied = load_copied(store) or Copied(taken_ms, known.incarnation, known.starts)
    store.put_many("meta", [(COPY_KEY, json.dumps(attrs.asdict(copied), sort_keys=True).encode()),
                            (IDENTITY_KEY, record_of(Identity(fresh, 1)))])
    return copied


def load_copied(store: Store) -> Copied | None:
    """What a copy says of itself; None of a disk on which a node has run."""
    raw = store.get("meta", COPY_KEY)
    if raw is None:
        return None
    try:
        fields: Mapping[str, Any] = json.loads(raw)
        return Copied(int(fields["taken_ms"]), str(fields["incarnation"]), int(fields["starts"]))
    except (ValueError, TypeError, KeyError):
        return Copied(0, "", 0)
