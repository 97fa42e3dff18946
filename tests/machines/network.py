"""Cuts at the switch: packets from one machine to another are dropped there, as if a cable were.

An ordered pair of addresses names a direction between two machines, and one nftables set of pairs is the whole
state of the network. The rules live in the switch's namespace and die with it; healing empties the set and may be
done at any time, twice too.

One direction of TCP is not one direction of messages: a connection whose acknowledgements are dropped stalls
both ways. So a one-way cut first lets what is under way arrive on one side, and within the 3 s of the
heartbeats becomes a cut of that pair; what stays of it is that both are still heard by third parties.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable, Sequence

from machines.machine import entered, switch_of

Pair = tuple[str, str]

_TABLE = """
table bridge skuld {
  set cuts { type ipv4_addr . ipv4_addr; }
  chain forward { type filter hook forward priority 0; policy accept; ip saddr . ip daddr @cuts counter drop; }
}
"""


def both_ways(pairs: Iterable[Pair]) -> list[Pair]:
    """Each pair and its reverse."""
    return [way for one, other in pairs for way in ((one, other), (other, one))]


def between(one: Iterable[str], other: Iterable[str]) -> list[Pair]:
    """All pairs of hosts of two groups, both ways."""
    return both_ways(itertools.product(one, other))


def ring(order: Sequence[str]) -> list[Pair]:
    """What leaves each of five hosts its two neighbours only: five majorities, and no two alike."""
    count = len(order)
    return both_ways((order[one], order[other]) for one, other in itertools.combinations(range(count), 2)
                     if (other - one) % count not in (1, count - 1))


class Network:
    """The cuts of a site, by its label."""

    def __init__(self, site: str) -> None:
        self._switch = switch_of(site)
        self._nft(_TABLE)

    def cut(self, pairs: Sequence[Pair]) -> None:
        """Drop what goes from the first to the second of each, besides what is dropped already."""
        if pairs:
            words = ", ".join(f"{one} . {other}" for one, other in pairs)
            self._nft(f"add element bridge skuld cuts {{ {words} }}")

    def heal(self) -> None:
        """Let everything through."""
        self._nft("flush set bridge skuld cuts")

    def dropped(self) -> int:
        """Packets dropped so far: what shows that a cut hit anything."""
        found = re.search(r"counter packets (\d+)", self._nft("list table bridge skuld"))
        assert found is not None
        return int(found[1])

    def _nft(self, rules: str) -> str:
        done = subprocess.run([*entered(self._switch), "nft", "-f", "-"], input=rules + "\n", text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"nft refused {rules.strip()}: {done.stderr.strip()}")
        return done.stdout
