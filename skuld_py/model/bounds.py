"""How large numbers are, on the wire and in the store.

Of their own, since a client needs them at its import, when it does not need ``fields`` yet.
"""

from __future__ import annotations

U32_MAX = (1 << 32) - 1
U63_MAX = (1 << 63) - 1
PROOF_BYTES = 8
MOMENT_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""
