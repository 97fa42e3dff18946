"""Whether claims that clients name were ever granted (``model.proofs``): only the node that is asked looks.

What fails is refused as ``unknown_claim`` before anything is sent anywhere, so nothing of it is stored. What
passed goes to peers without proofs, so that those of the release before understand it.

A cluster made by an earlier release has no key, until an operator draws one. Then proofs are given at once, to
clients that take them, and demanded from ``proofs_from_ms`` on; a proof that is wrong is refused at any time.

A key that takes the place of another is known for a while before proofs are given by it. A node that cannot have
heard of it, for it is cut off, does not say of a proof that it is wrong: the client asks another one
(``is_current``). What a former key proves is renewed for a while, and counts until the last of these leases ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from hmac import compare_digest
from itertools import accumulate, pairwise
from typing import Protocol

import attrs

from skuld_py.config import FormerKey
from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.bounds import PROOF_BYTES
from skuld_py.model.proofs import NO_PROOF, proofs_of

GIVEN_LEAST, GIVEN_MAX = 8, 1_000
"""The last ``GIVEN_MAX`` answers with at least ``GIVEN_LEAST`` claims are known again: by one hash for an answer,
not one for each claim."""
NAMED_MAX = 5
"""Claims that a refusal names."""


class Keys(Protocol):
    """The keys that a cluster has proved claims by, as its parameters say, and news of them."""

    @property
    def claim_key(self) -> str:
        """The newest, as hex digits; without one no proof is given or demanded."""

    @property
    def claim_from_ms(self) -> int:
        """From when on proofs are given by it."""

    @property
    def proofs_from_ms(self) -> int:
        """From when on they are demanded."""

    @property
    def former_keys(self) -> tuple[FormerKey, ...]:
        """Those before, the newest first."""


class Notary:
    """Gives proofs, and knows its own."""

    def __init__(self, keys: Keys) -> None:
        self._newest = bytes.fromhex(keys.claim_key)
        self._from_ms = keys.claim_from_ms
        self.former = keys.former_keys
        """The keys before the newest."""
        self._demands_from_ms = keys.proofs_from_ms
        self._given: dict[bytes, bytes] = {}
        """Hashes of the last answers with proofs, one for each whole answer, and by which key they were given."""

    def demands(self, now_ms: int) -> bool:
        """Whether a claim without a proof is unknown."""
        return bool(self._newest) and now_ms >= self._demands_from_ms

    def _counting(self, now_ms: int) -> list[bytes]:
        """The keys whose proofs count."""
        return [self._newest, *(bytes.fromhex(each.key) for each in self.former if now_ms < each.until_ms)]

    def certified(self, now_ms: int, batches: Sequence[m.ClaimBatch]) -> tuple[m.ClaimBatch, ...]:
        """The granted claims, with proofs: by the newest key that all nodes know."""
        if not self._newest or not batches:
            return tuple(batches)
        is_known = now_ms >= self._from_ms or not self.former
        key = self._newest if is_known else bytes.fromhex(self.former[0].key)
        task_ids = b"".join([batch.ids for batch in batches])
        sizes = [len(batch.ids) // ids.ID_BYTES for batch in batches]
        tokens = b"".join([columns.pack_u64(range(batch.first_token, batch.first_token + size))
                           for batch, size in zip(batches, sizes, strict=True)])
        proofs = proofs_of(key, columns.split(task_ids, ids.ID_BYTES), columns.split(tokens, 8))
        self._note_given(key, task_ids, tokens, proofs)
        ends = [PROOF_BYTES * end for end in accumulate(sizes, initial=0)]
        return tuple(attrs.evolve(batch, proofs=proofs[start:end])
                     for batch, (start, end) in zip(batches, pairwise(ends), strict=True))

    def _note_given(self, key: bytes, *claims: bytes) -> None:
        """Note an answer: mostly its claims are completed together, in their order, and at the node that
        answered."""
        if len(claims[-1]) >= GIVEN_LEAST * PROOF_BYTES:
            self._given[_hash_of(claims)] = key
            if len(self._given) > GIVEN_MAX:
                del self._given[next(iter(self._given))]

    def check(self, now_ms: int, task_ids: bytes, tokens: bytes, proofs: bytes, is_current: bool = True,
              over: Sequence[int] = ()) -> None:
        """``Refused`` unless all of these claims were granted, as far as this node is to know; but for those
        ``over``, by index, which are known to have been. ``is_current``: it would have been told of a newer
        key."""
        if not self._newest or not (proofs or self.demands(now_ms)):
            return
        keys = self._counting(now_ms)
        if self._given and self._given.get(_hash_of((task_ids, tokens, proofs))) in keys:
            return
        claims = _Claims(task_ids, tokens, proofs)
        unproved = claims.unproved(keys)
        if not unproved:
            return
        shown, excused = claims.shown, b"" if self.demands(now_ms) else NO_PROOF
        unknown = [at for at in unproved if shown[at] != excused and at not in over]
        if unknown and not is_current and all(shown[at] != NO_PROOF for at in unknown):
            raise Refused("unavailable", "proof: this node is cut off from ZooKeeper, and may not know the newest"
                          " key that claims are proved by; ask another node")
        if unknown:
            raise Refused("unknown_claim", f"proof: {len(unknown)} of {len(claims)} claims were never granted, or"
                          f" come without their proof: {claims.listed(unknown[:NAMED_MAX])}; give id, token and"
                          " proof as they came with the claim")

    def renewed_no_more(self, now_ms: int, task_ids: bytes, tokens: bytes, proofs: bytes) -> list[int]:
        """Which of these claims, by index, were proved by a key that is over for renewals. They are lost, and no
        others with them."""
        over = [bytes.fromhex(each.key) for each in self.former if now_ms >= each.renewed_until_ms]
        if not over or not proofs:
            return []
        claims = _Claims(task_ids, tokens, proofs)
        left = claims.unproved([self._newest])
        still = claims.unproved(over) if left else []
        return [at for at in left if at not in still]


class _Claims:
    """Claims as a request names them, each with what is shown for it."""

    def __init__(self, task_ids: bytes, tokens: bytes, proofs: bytes) -> None:
        self._ids, self._tokens = ids.split(task_ids), columns.split(tokens, 8)
        self._proofs = proofs or NO_PROOF * len(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def shown(self) -> list[bytes]:
        """The proof of each."""
        return columns.split(self._proofs, PROOF_BYTES)

    def unproved(self, keys: Iterable[bytes]) -> list[int]:
        """Those, by index, that are proved by none of these keys. Mostly the first one proves all."""
        left, named, numbers = [*range(len(self._ids))], self._ids, self._tokens
        for key in keys:
            expected = proofs_of(key, named, numbers)
            if named is self._ids and compare_digest(expected, self._proofs):
                return []
            shown = self.shown
            left = [at for at, right in zip(left, columns.split(expected, PROOF_BYTES), strict=True)
                    if shown[at] != right]
            named, numbers = [self._ids[at] for at in left], [self._tokens[at] for at in left]
        return left

    def listed(self, indexes: Iterable[int]) -> str:
        """Some of them, for people."""
        return ", ".join(f"{ids.to_text(self._ids[at])} {int.from_bytes(self._tokens[at], 'big')}"
                         for at in indexes)


def _hash_of(claims: Sequence[bytes]) -> bytes:
    """Of ids, tokens and proofs; the size of the ids tells where each begins."""
    return blake2b(b"".join((len(claims[0]).to_bytes(8, "big"), *claims)), digest_size=16).digest()
