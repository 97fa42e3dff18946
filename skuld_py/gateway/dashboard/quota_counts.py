"""How many tasks are open beside each quota, counted once for all pages that show it.

That is a count of all queues by all leaders, and a page that is open looks again every few seconds. Where a
majority is missing it takes long, too, and says nothing. So a count is kept for a while, and who looks while one
is under way waits for that one. What the quotas are is read at each look, so a change shows at once; a new one is
counted at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skuld_py.client.steady import steady_s
from skuld_py.verbs import documents as d

if TYPE_CHECKING:
    from skuld_py.gateway.call import Call

KEPT_S = 10.0
"""A count that is older is made again."""


class QuotaCounts:
    """Those of one gateway, whoever looks; asked for by the rights of the verb ``quotas``."""

    def __init__(self, clock: Callable[[], float] = steady_s) -> None:
        self._clock = clock
        self._is_counting = asyncio.Lock()
        self._counted: Mapping[str, int | None] = {}
        self._until_s = 0.0

    async def of(self, call: Call) -> d.Quotas:
        """The quotas as they are, with what was counted some seconds ago at most."""
        quotas = await call.client.quotas()
        async with self._is_counting:
            if self._clock() >= self._until_s or not quotas.keys() <= self._counted.keys():
                found = await call.client.quota_use()
                self._counted = {prefix: use.tasks for prefix, use in found.items()}
                self._until_s = self._clock() + KEPT_S
            counted = self._counted
        return d.Quotas(quotas=[d.Quota(prefix=prefix, open=most, tasks=counted.get(prefix))
                                for prefix, most in quotas.items()])
