"""Checks of arguments before anything is sent; a refusal names the argument and the remedy."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from skuld_py.calls.results import Stored, encode_result
from skuld_py.client.claims import ClaimKey, ClaimName
from skuld_py.config import DEFAULT_LIMITS, LEASE_MS_MAX, PARTITIONS_MAX, REPLICAS_MAX
from skuld_py.errors import Refused
from skuld_py.model import columns, names, proofs
from skuld_py.model import ids as task_ids
from skuld_py.model.body import PRIORITY_MAX, PRIORITY_MIN, Header
from skuld_py.model.bounds import PROOF_BYTES, U32_MAX, U63_MAX
from skuld_py.model.checkpoint import BYTES_MAX
from skuld_py.model.ids import DuplicateId, TaskId
from skuld_py.model.outcomes import FIRST_TOKEN

CLAIM_WANTED = "give a claim, or a ClaimName of its id, token and proof"
_ID, _TOKEN, _PROOF = attrgetter("id"), attrgetter("token"), attrgetter("proof")
_BINARY = {bytes, TaskId, DuplicateId}


def header_of(queue: str, priority: int) -> bytes:
    """The header of a task, as bytes."""
    names.check_name("queue", queue)
    if type(priority) is not int or not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise Refused("bad_priority", f"priority: {priority!r} is not an int of 32 bits, signed")
    return _encoded(queue, priority)


@lru_cache(1_000)
def _encoded(queue: str, priority: int) -> bytes:
    return Header(queue, priority).encode()


def check_payload(payload: object) -> None:
    """A payload is bytes, and not too many."""
    if type(payload) is not bytes:
        raise Refused("bad_payload", f"payload: bytes wanted, not {type(payload).__name__}; encode it first")
    if len(payload) > DEFAULT_LIMITS.payload_bytes:
        raise Refused("payload_too_large", f"payload: {len(payload)} bytes, the limit is"
                      f" {DEFAULT_LIMITS.payload_bytes}; store the data elsewhere and send its path")


def check_payloads(payloads: Sequence[bytes]) -> None:
    """Many payloads are bytes, and not too many; two passes in C when all is well."""
    if set(map(type, payloads)) != {bytes} or max(map(len, payloads)) > DEFAULT_LIMITS.payload_bytes:
        for payload in payloads:
            check_payload(payload)


def as_entry(field: str, value: bytes | str) -> bytes:
    """An error or an entry of a log: bytes, or text in UTF-8; not too many."""
    try:
        entry = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as problem:
        raise Refused("bad_entry", f"{field}: is no text that UTF-8 can encode: {problem}") from None
    if type(entry) is not bytes:
        raise Refused("bad_entry", f"{field}: bytes or text wanted, not {type(value).__name__}; encode it first")
    if len(entry) > DEFAULT_LIMITS.entry_bytes:
        raise Refused("entry_too_large", f"{field}: {len(entry)} bytes, the limit is {DEFAULT_LIMITS.entry_bytes};"
                      " store the data elsewhere and send its path")
    return entry


def as_result(field: str, value: Any) -> bytes:
    """What is stored of a result; see ``calls.results``."""
    try:
        return bytes(encode_result(value))
    except Refused as refusal:
        raise Refused(refusal.code, f"{field}: {refusal.message}") from None


def as_checkpoint(field: str, value: Any) -> Stored:
    """What is stored of a checkpoint, as of a result."""
    try:
        return encode_result(value)
    except Refused as refusal:
        if refusal.code == "result_too_large":
            raise Refused("checkpoint_too_large", f"{field}: takes more than {BYTES_MAX} bytes; write the data to"
                          " a file, and give its path") from None
        raise Refused("bad_checkpoint", f"{field}: is no value that a result may be: {refusal.message}") from None


def as_number(field: str, value: object) -> int:
    """The number of a checkpoint within its claim."""
    if type(value) is not int or not 0 <= value <= U32_MAX:
        raise Refused("bad_number", f"{field}: {value!r} is no whole number from 0 to {U32_MAX}", field=field)
    return value


def as_id(task_id: bytes | str) -> TaskId:
    """An id from its bytes or its text."""
    if isinstance(task_id, str):
        return task_ids.from_text(task_id)
    if not isinstance(task_id, bytes):
        raise Refused("bad_id", f"id: bytes or text wanted, not {type(task_id).__name__}")
    if len(task_id) != task_ids.ID_BYTES:
        raise Refused("bad_id", f"id: {len(task_id)} bytes; a task id has {task_ids.ID_BYTES}")
    return TaskId(task_id)


def as_token(token: object) -> int:
    """A claim's fencing token. Any other would make a node refuse all claims of the request that it travels in."""
    if type(token) is not int or not FIRST_TOKEN <= token <= U63_MAX:
        raise Refused("bad_token", f"token: {token!r} is no claim's; use the one it was granted with")
    return token


def as_fence(fence: object) -> int:
    """The fence of a seat, or 0 for none."""
    if type(fence) is not int or not 0 <= fence <= U63_MAX:
        raise Refused("bad_fence", f"fence: {fence!r} is no seat's; use the one that the worker was told")
    return fence


def as_proof(proof: object) -> bytes:
    """A claim's proof, or none."""
    if isinstance(proof, str):
        return proofs.from_text(proof)
    if type(proof) is not bytes or len(proof) not in (0, PROOF_BYTES):
        raise Refused("bad_proof", "proof: is not what came with the claim; give claim.proof, or its text")
    return proof


def as_claim(claim: ClaimKey) -> ClaimKey:
    """The name of a claim: the claim itself, if its id and its proof are bytes."""
    try:
        task_id, token, proof = claim.id, as_token(claim.token), claim.proof
    except AttributeError as problem:
        raise Refused("bad_claim", f"claim: {problem}; {CLAIM_WANTED}") from None
    known, shown = as_id(task_id), as_proof(proof)
    return claim if type(task_id) in _BINARY and shown is proof else ClaimName(known, token, shown)


def names_of(claims: Sequence[ClaimKey]) -> tuple[bytes, bytes, bytes]:
    """Ids, tokens and proofs of claims, as columns; at the cost of a few passes in C when all is well. Without any
    proof the column of proofs is empty."""
    try:
        named, tokens, shown = list(map(_ID, claims)), list(map(_TOKEN, claims)), list(map(_PROOF, claims))
    except AttributeError as problem:
        raise Refused("bad_claim", f"claim: {problem}; {CLAIM_WANTED}") from None
    with contextlib.suppress(TypeError, struct.error):
        fences = columns.pack_u64(tokens)
        if ({*map(len, named)} == {task_ids.ID_BYTES} and {*map(len, shown)} == {PROOF_BYTES}
                and fences[::8].isascii() and b"\0" not in fences[3::8]):  # 63 bits, and of some epoch
            return b"".join(named), fences, b"".join(shown)
    known, fences = b"".join(map(as_id, named)), columns.pack_u64([as_token(token) for token in tokens])
    seen = list(map(as_proof, shown))
    return known, fences, b"".join([proof or proofs.NO_PROOF for proof in seen] if any(seen) else [])


def as_w(w: object) -> int | None:
    """``w``, how many owners must have stored it; None for a majority."""
    if w is not None and (type(w) is not int or not 0 <= w <= REPLICAS_MAX):
        raise Refused("bad_w", f"w: {w!r} is no number of owners, 1 to {REPLICAS_MAX}; leave it out for most")
    return w


def as_flag(field: str, value: object) -> bool:
    """True or False, and nothing that only counts as such."""
    if type(value) is not bool:
        raise Refused("bad_option", f"{field}: True or False wanted, not {value!r:.80}", field=field)
    return value


def as_place(partition: object) -> int:
    """Of a number of a partition or None what a listing says."""
    if partition is None:
        return 0
    if type(partition) is not int or not 0 <= partition < PARTITIONS_MAX:
        raise Refused("bad_partition", f"partition: {str(partition)[:40]} is no number of a partition")
    return partition + 1


def as_seq(field: str, value: object) -> int:
    """A number of facts."""
    if type(value) is not int or not 0 <= value <= U63_MAX:
        raise Refused("bad_seq", f"{field}: {value!r} is not the seq of a task that was read, nor 0")
    return value


def as_ms(field: str, seconds: float, *, least: int, most: int = LEASE_MS_MAX) -> int:
    """Seconds as whole milliseconds, ``least`` to ``most``."""
    milliseconds = scaled(seconds, 1000)
    if milliseconds is None:
        raise Refused("bad_duration", f"{field}: {seconds!r} is no number of seconds")
    if not least <= milliseconds <= most:
        raise Refused("bad_duration", f"{field}: {seconds!r} s is not between {least / 1000} s and"
                      f" {most // 3_600_000} h")
    return milliseconds


def scaled(value: object, scale: int) -> int | None:
    """A number in finer units, rounded; None if it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return round(value * scale) if math.isfinite(value) else None
    except OverflowError:
        return None


def chunks(payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Cut into requests within the limits of tasks and bytes."""
    if len(payloads) <= DEFAULT_LIMITS.batch_tasks and sum(map(len, payloads)) <= DEFAULT_LIMITS.batch_bytes:
        yield from [payloads] if payloads else []
        return
    part: list[bytes] = []
    size = 0
    for payload in payloads:
        if part and (len(part) == DEFAULT_LIMITS.batch_tasks
                     or size + len(payload) > DEFAULT_LIMITS.batch_bytes):
            yield part
            part, size = [], 0
        part.append(payload)
        size += len(payload)
    if part:
        yield part
