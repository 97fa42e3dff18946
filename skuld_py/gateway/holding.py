"""How a claim waits over HTTP.

A caller may hang up while its claim waits. Then the claim is cancelled, and tasks that come for it all the same
are given back at once instead of lying idle until their leases end.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from skuld_py.client.claims import Claims
from skuld_py.errors import SkuldError
from skuld_py.gateway.call import Call
from skuld_py.model.leases import RATE
from skuld_py.verbs import documents, withholding
from skuld_py.verbs.holding import floor_ms


async def claim(call: Call, queue: str, n: int, lease_s: float, wait_s: float, holder: str | None
                ) -> documents.Claimed:
    """Hold tasks, waiting for the first."""
    claiming = asyncio.ensure_future(_claim(call, holder or f"gateway:{call.bearer.name}"[:200], queue, n, lease_s,
                                            min(wait_s, call.limits.wait_s)))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((claiming, going), return_when=asyncio.FIRST_COMPLETED)
        if claiming.done():
            found = claiming.result()
        else:  # what comes for it yet, the client gives back
            found = Claims()
        if found and going.done():
            with suppress(SkuldError):  # then they lapse
                await call.client.release(*found)
            found = Claims()
    finally:
        claiming.cancel()
        going.cancel()
    return cast(documents.Claimed, {"claims": [
        {**documents.granted(held), "valid_s": floor_ms((held.deadline - call.arrived) * (1 - 2 * RATE))}
        for held in found], **withholding.withheld_of(found)})


async def _claim(call: Call, holder: str, queue: str, n: int, lease_s: float, wait_s: float) -> Claims:
    """The holder is read before anything is awaited, so that no other claim can change it."""
    call.client.holder = holder
    return await call.client.claim(queue, n=n, lease_s=lease_s, wait_s=wait_s)
