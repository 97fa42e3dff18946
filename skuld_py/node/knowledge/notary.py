"""Whether claims that clients name were ever granted (``model.proofs``): only the node that is asked looks.

What fails is refused as ``unknown_claim`` before anything is sent anywhere, so nothing of it is stored. What
passed goes to peers without proofs, so that those of the release before understand it.

A cluster made by an earlier release has no key, until an operator draws one. Then proofs are given at once, to
clients that take them, and demanded from ``from_ms`` on; a proof that is wrong is refused at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from hmac import compare_digest
from itertools import accumulate, pairwise

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.fields import PROOF_BYTES
from skuld_py.model.proofs import NO_PROOF, proofs_of

GIVEN_LEAST, GIVEN_MAX = 8, 1_000
"""The last ``GIVEN_MAX`` answers with at least ``GIVEN_LEAST`` claims are known again: by one hash for an answer,
not one for each claim."""
NAMED_MAX = 5
"""Claims that a refusal names."""


class Notary:
    """Gives proofs, and knows its own. ``key``: hex digits; without one no proof is given or demanded."""

    def __init__(self, key: str, from_ms: int) -> None:
        self._key = bytes.fromhex(key)
        self._from_ms = from_ms
        self._given: dict[bytes, None] = {}
        """Hashes of the last answers with proofs, one for each whole answer."""

    def demands(self, now_ms: int) -> bool:
        """Whether a claim without a proof is unknown."""
        return bool(self._key) and now_ms >= self._from_ms

    def certified(self, batches: Sequence[m.ClaimBatch]) -> tuple[m.ClaimBatch, ...]:
        """The granted claims, with proofs."""
        if not self._key or not batches:
            return tuple(batches)
        task_ids = b"".join([batch.ids for batch in batches])
        sizes = [len(batch.ids) // ids.ID_BYTES for batch in batches]
        tokens = b"".join([columns.pack_u64(range(batch.first_token, batch.first_token + size))
                           for batch, size in zip(batches, sizes, strict=True)])
        proofs = proofs_of(self._key, columns.split(task_ids, ids.ID_BYTES), columns.split(tokens, 8))
        self._note_given(task_ids, tokens, proofs)
        ends = [PROOF_BYTES * end for end in accumulate(sizes, initial=0)]
        return tuple(attrs.evolve(batch, proofs=proofs[start:end])
                     for batch, (start, end) in zip(batches, pairwise(ends), strict=True))

    def _note_given(self, *claims: bytes) -> None:
        """Note an answer: mostly its claims are completed together, in their order, and at the node that
        answered."""
        if len(claims[-1]) >= GIVEN_LEAST * PROOF_BYTES:
            self._given[_hash_of(claims)] = None
            if len(self._given) > GIVEN_MAX:
                del self._given[next(iter(self._given))]

    def check(self, now_ms: int, task_ids: bytes, tokens: bytes, proofs: bytes) -> None:
        """``Refused`` unless all of these claims were granted, as far as this node is to know."""
        if not self._key or not (proofs or self.demands(now_ms)):
            return
        if self._given and _hash_of((task_ids, tokens, proofs)) in self._given:
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


def _hash_of(claims: Sequence[bytes]) -> bytes:
    """Of ids, tokens and proofs; the size of the ids tells where each begins."""
    return blake2b(b"".join((len(claims[0]).to_bytes(8, "big"), *claims)), digest_size=16).digest()
