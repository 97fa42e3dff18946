"""Proofs that claims were granted: a keyed hash of a task's id and a claim's token, 8 bytes of it.

A holder gets the proof with its claim, and shows it whenever it acts for the claim. Every node has the key, so the
node that is asked can tell alone and at once whether the claim was granted: a completion needs no leader, and no
copy that knows the claim. No reader of a task is shown a proof, no message has the key, and nothing of it
is stored.

The token alone remains the fencing token: 63 bits, larger is newer.

The key can be replaced while nodes run. All of them know the new one before any gives proofs by it
(``NOTICE_MS``); and what the former one proves counts until the last lease that it was renewed for has ended.

The hash is BLAKE2b of key, id and token. These have fixed sizes, and BLAKE2b cannot be lengthened, so the key may
stand in front: that is one block, where its keyed mode takes two. A guess is right once in 2^64. All 64 bytes are
made and every eighth eight kept, for that takes two thirds of the time of asking for eight.

Rejected: a wider token with the proof inside (databases that fence by tokens keep 64 bits); to look for the claim
in a majority of copies (a round trip, and no ``w=1``); a hash per grant (a holder of many could not end a few).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from operator import add

import attrs

from skuld_py.config import LEASE_MS_MAX, FormerKey, Parameters
from skuld_py.errors import Refused
from skuld_py.model.bounds import PROOF_BYTES

_HASH_BYTES = blake2b().digest_size
NO_PROOF = bytes(PROOF_BYTES)
"""Stands for a claim without a proof, among claims that have one."""
NOTICE_MS = 120_000
"""So long a new key is known before proofs are given by it. A node that is told nothing any more has lost its
session by then, and knows it: a session lasts a minute at most."""
FORMER_MAX = 8
"""Former keys that count at once."""


def proofs_of(key: bytes, task_ids: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A column of proofs; tokens as 8 bytes each."""
    rows = map(add, map(key.__add__, task_ids), tokens)
    hashes = memoryview(b"".join([blake2b(row).digest() for row in rows])).cast("Q")
    return hashes[:: _HASH_BYTES // PROOF_BYTES].tobytes()


def from_text(text: str) -> bytes:
    """A proof as people and JSON have it: 16 hex digits, or nothing; ``Refused`` when it is neither."""
    try:
        proof = bytes.fromhex(text)
    except ValueError:
        proof = b"?"
    if len(proof) not in (0, PROOF_BYTES) or 2 * len(proof) != len(text):
        raise Refused("bad_proof", f"proof: is not the {2 * PROOF_BYTES} hex digits that came with the claim")
    return proof


def with_new_key(known: Parameters, key: str, now_ms: int, grace_ms: int, *, notice_ms: int = NOTICE_MS,
                 is_leaked: bool = False) -> Parameters:
    """The parameters with this key in place of the one by which claims were proved. That one's claims are renewed
    for ``grace_ms`` more; if it ``is_leaked`` they count no more, once the new one is used."""
    if not known.claim_key:
        raise Refused("no_claim_key", f"cluster {known.cluster} has no key to prove claims with yet; give it one"
                      f" ('skuld cluster rules {known.cluster} --raise')", cluster=known.cluster)
    if now_ms < known.claim_from_ms:
        raise Refused("key_not_in_use", f"the newest key of cluster {known.cluster} is not used before"
                      f" {(known.claim_from_ms - now_ms) // 1000 + 1} s from now; try again then",
                      cluster=known.cluster)
    counting = tuple(each for each in known.former_keys if now_ms < each.until_ms)
    if len(counting) >= FORMER_MAX and not is_leaked:
        raise Refused("too_many_keys", f"{FORMER_MAX} former keys of cluster {known.cluster} count still; wait"
                      " until one of them does not, or let all of them end (--leaked)", cluster=known.cluster)
    from_ms = now_ms + notice_ms + (2 * known.skew_ms if notice_ms else 0)
    last_ms = from_ms + grace_ms
    former = (FormerKey(known.claim_key, last_ms, last_ms + LEASE_MS_MAX + known.skew_ms), *counting)
    if is_leaked:
        former = (FormerKey(known.claim_key, from_ms, from_ms),)
    return attrs.evolve(known, claim_key=key, claim_from_ms=from_ms, former_keys=former)


def with_first_own_key(known: Parameters, key: str, now_ms: int, grace_ms: int) -> Parameters:
    """The same for a cluster none of whose nodes runs, and whose parameters anyone could write until now: no key
    that they name counts for longer than the one that is replaced, and none that is not used yet hinders."""
    bounded = attrs.evolve(
        known, claim_from_ms=min(known.claim_from_ms, now_ms), former_keys=known.former_keys[:FORMER_MAX - 1],
        proofs_from_ms=min(known.proofs_from_ms, now_ms + LEASE_MS_MAX + known.skew_ms))
    made = with_new_key(bounded, key, now_ms, grace_ms, notice_ms=0)
    last = made.former_keys[0]
    return attrs.evolve(made, former_keys=tuple(
        FormerKey(each.key, min(each.renewed_until_ms, last.renewed_until_ms), min(each.until_ms, last.until_ms))
        for each in made.former_keys))
