"""Whether claims that clients name were ever granted (``model.proofs``): only the node that is asked looks.

What fails is refused as ``unknown_claim`` before anything is sent anywhere, so nothing of it is stored. What
passed goes to peers without proofs, so that those of the release before understand it.

A cluster made by an earlier release has no key, until an operator draws one. Then proofs are given at once, to
clients that take them, and demanded from ``from_ms`` on; a proof that is wrong is refused at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.fields import PROOF_BYTES
from skuld_py.model.proofs import NO_PROOF, proofs_of

NAMED_MAX = 5
"""Claims that a refusal names."""


class Notary:
    """Gives proofs, and knows its own. ``key``: hex digits; without one nothing is given and nothing demanded."""

    def __init__(self, key: str, from_ms: int) -> None:
        self._key = bytes.fromhex(key)
        self._from_ms = from_ms

    def demands(self, now_ms: int) -> bool:
        """Whether a claim without a proof is unknown."""
        return bool(self._key) and now_ms >= self._from_ms

    def certified(self, batches: Sequence[m.ClaimBatch]) -> tuple[m.ClaimBatch, ...]:
        """What was granted, with proofs."""
        return tuple(map(self._certified, batches)) if self._key else tuple(batches)

    def _certified(self, batch: m.ClaimBatch) -> m.ClaimBatch:
        task_ids = ids.split(batch.ids)
        tokens = columns.pack_u64(range(batch.first_token, batch.first_token + len(task_ids)))
        return attrs.evolve(batch, proofs=proofs_of(self._key, task_ids, columns.split(tokens, 8)))

    def check(self, now_ms: int, task_ids: bytes, tokens: bytes, proofs: bytes) -> None:
        """``Refused`` unless all of these claims were granted, as far as this node is to know."""
        if not self._key or not (proofs or self.demands(now_ms)):
            return
        named, numbers = ids.split(task_ids), columns.split(tokens, 8)
        expected, shown = proofs_of(self._key, named, numbers), proofs or NO_PROOF * len(named)
        if compare_digest(expected, shown):
            return
        excused = b"" if self.demands(now_ms) else NO_PROOF
        unknown = [at for at, (right, proof) in enumerate(zip(
            columns.split(expected, PROOF_BYTES), columns.split(shown, PROOF_BYTES), strict=True))
            if proof not in (right, excused)]
        if unknown:
            listed = ", ".join(f"{ids.to_text(named[at])} {int.from_bytes(numbers[at], 'big')}"
                               for at in unknown[:NAMED_MAX])
            raise Refused("unknown_claim", f"proof: {len(unknown)} of {len(named)} claims were never granted, or"
                          f" come without their proof: {listed}; give id, token and proof as they came with the"
                          " claim")
