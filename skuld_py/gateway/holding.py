"""The verbs of a holder: to claim tasks, to hold on to them, to note how far they are, and to end each claim.

A caller may go while its claim waits. That is noticed, the claim is cancelled, and what comes for it all the same
is given back at once instead of lying idle until its lease ends.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress

from skuld_py.client.claims import ClaimName, HeldClaim
from skuld_py.errors import SkuldError
from skuld_py.gateway import requests
from skuld_py.gateway.call import Call
from skuld_py.model.ids import to_text
from skuld_py.model.leases import RATE, holder_deadline
from skuld_py.verbs import documents


async def claim(call: Call, asked: requests.Claim) -> documents.Claimed:
    """Hold tasks, waiting for the first."""
    wait_s = min(asked.wait_s, call.limits.wait_s)
    claiming = asyncio.ensure_future(call.backend.claim(
        asked.queue, n=asked.n, lease_s=asked.lease_s, wait_s=wait_s,
        holder=asked.holder or f"gateway:{call.bearer.name}"[:200]))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((claiming, going), return_when=asyncio.FIRST_COMPLETED)
        if claiming.done():
            found = claiming.result()
        else:  # what comes for it yet, the client gives back
            found = []
        if found and going.done():
            with suppress(SkuldError):  # then they lapse
                await call.backend.release(found)
            found = []
    finally:
        claiming.cancel()
        going.cancel()
    return documents.Claimed(claims=[
        {**documents.granted(held), "valid_s": _floor_ms((held.deadline - call.arrived) * (1 - 2 * RATE))}
        for held in found])


async def renew(call: Call, asked: requests.Renew) -> documents.Renewed:
    """Hold on to one claim."""
    held = HeldClaim(asked.id, asked.token, asked.proof)
    await call.backend.renew(held, asked.lease_s)
    return documents.Renewed(id=to_text(asked.id), token=str(asked.token), is_cancelled=held.is_cancelled,
                           valid_s=_valid_s(asked.lease_s))


async def renew_many(call: Call, asked: requests.RenewMany) -> documents.RenewedMany:
    """Hold on to many."""
    claims = [HeldClaim(claim.id, claim.token, claim.proof) for claim in asked.claims]
    held = await call.backend.renew_many(claims, asked.lease_s)
    rows = [documents.Renewal(id=to_text(claim.id), token=str(claim.token), is_held=is_held,
                            is_cancelled=claim.is_cancelled)
            for claim, is_held in zip(claims, held, strict=True)]
    return documents.RenewedMany(claims=rows, valid_s=_valid_s(asked.lease_s))


async def release(call: Call, asked: requests.Claims) -> documents.Done:
    """Give back."""
    await call.backend.release(_names(asked.claims))
    return documents.Done(count=len(asked.claims))


async def append(call: Call, asked: requests.Append) -> documents.Appended:
    """Add to a log."""
    entries = [entry.content for entry in asked.entries]
    next_seq = await call.backend.append(_name(asked), entries, seq=asked.seq, w=asked.w)
    return documents.Appended(next_seq=next_seq)


async def complete(call: Call, asked: requests.Complete) -> documents.Done:
    """End one task."""
    await call.backend.complete(_name(asked), asked.content, asked.w)
    return documents.Done(count=1)


async def fail(call: Call, asked: requests.Fail) -> documents.Done:
    """End an attempt."""
    await call.backend.fail(_name(asked), asked.error, asked.retry_in_s)
    return documents.Done(count=1)


async def snooze(call: Call, asked: requests.Snooze) -> documents.Done:
    """Put off."""
    await call.backend.snooze(_name(asked), asked.delay_s)
    return documents.Done(count=1)


async def complete_many(call: Call, asked: requests.CompleteMany) -> documents.Done:
    """End many."""
    await call.backend.complete_many(_names(asked.claims), [claim.content for claim in asked.claims], asked.w)
    return documents.Done(count=len(asked.claims))


async def fail_many(call: Call, asked: requests.FailMany) -> documents.FailedMany:
    """End many attempts."""
    failed = await call.backend.fail_many(_names(asked.claims), [claim.error for claim in asked.claims],
                                          asked.retry_in_s)
    return documents.FailedMany(claims=[
        documents.Failure(id=to_text(claim.id), token=str(claim.token), is_failed=is_failed)
        for claim, is_failed in zip(asked.claims, failed, strict=True)])


def _names(claims: Sequence[requests.ClaimName]) -> list[ClaimName]:
    return list(map(_name, claims))


def _name(claim: requests.ClaimName) -> ClaimName:
    return ClaimName(claim.id, claim.token, claim.proof)


def _valid_s(lease_s: float) -> float:
    """How long a renewal holds, from when the caller sent it: it arrived here before the lease was counted.

    The caller's clock is one more whose rate may be wrong, beside the three that the deadline allows for.
    """
    return _floor_ms(holder_deadline(0.0, lease_s) * (1 - 2 * RATE))


def _floor_ms(seconds: float) -> float:
    return max(0.0, math.floor(seconds * 1000) / 1000)
