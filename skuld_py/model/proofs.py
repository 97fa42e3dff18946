"""Proofs that claims were granted: a keyed hash of a task's id and a claim's token, 8 bytes of it.

A holder gets the proof with its claim, and shows it whenever it acts for the claim. Every node has the key, so the
node that is asked can tell alone and at once whether the claim was granted: a completion needs no leader, and no
copy that knows the claim. No reader of a task is shown a proof, no message has the key, and nothing of it
is stored.

The token alone remains the fencing token: 63 bits, larger is newer.

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

from skuld_py.errors import Refused
from skuld_py.model.fields import PROOF_BYTES

_HASH_BYTES = blake2b().digest_size
NO_PROOF = bytes(PROOF_BYTES)
"""Stands for a claim without a proof, among claims that have one."""


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
