"""Cuts between addresses of one machine: packets from one to another are dropped, as if a cable were.

Every node listens at, and dials from, an address of its own (127.0.1.N); it reaches ZooKeeper under one that
nobody else uses (127.0.9.N); clients dial from 127.0.0.1. So an ordered pair of addresses names a direction
between two parties, and one nftables set of pairs is the whole state of the network. The rules live in the
network namespace of the run and die with it; healing empties the set and may be done at any time, twice too.

One direction of TCP is not one direction of messages: a connection whose acknowledgements are dropped stalls
both ways. So a one-way cut first lets what is under way arrive on one side, and within the 3 s of the
heartbeats becomes a cut of that pair; what stays of it is that both are still heard by third parties.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable, Sequence

CLIENTS = "127.0.0.1"
Pair = tuple[str, str]

_TABLE = """
table ip skuld_faults {
  set cuts { type ipv4_addr . ipv4_addr; }
  chain input { type filter hook input priority 0; policy accept; ip saddr . ip daddr @cuts counter drop; }
}
"""


def node_address(number: int) -> str:
    """Where the node of this number, from 1, listens and dials from."""
    return f"127.0.1.{number}"


def registry_address(number: int) -> str:
    """Where the node of this number finds ZooKeeper."""
    return f"127.0.9.{number}"


def both_ways(pairs: Iterable[Pair]) -> list[Pair]:
    """Each pair and its reverse."""
    return [way for one, other in pairs for way in ((one, other), (other, one))]


def between(one: Iterable[int], other: Iterable[int]) -> list[Pair]:
    """All pairs of nodes of two groups, both ways."""
    return both_ways((node_address(first), node_address(second))
                     for first, second in itertools.product(one, other))


def to_registry(numbers: Iterable[int]) -> list[Pair]:
    """These nodes and ZooKeeper, both ways."""
    return both_ways((CLIENTS, registry_address(number)) for number in numbers)


def ring(order: Sequence[int]) -> list[Pair]:
    """What leaves each of five nodes its two neighbours only: five majorities, and no two alike."""
    count = len(order)
    return both_ways((node_address(order[one]), node_address(order[other]))
                     for one, other in itertools.combinations(range(count), 2)
                     if (other - one) % count not in (1, count - 1))


def bridge(left: Sequence[int], middle: int, right: Sequence[int]) -> list[Pair]:
    """What separates two groups except through one node that both reach."""
    return between([number for number in left if number != middle],
                   [number for number in right if number != middle])


class Network:
    """The cuts of the namespace this process is in."""

    def __init__(self) -> None:
        _nft(_TABLE)

    def cut(self, pairs: Sequence[Pair]) -> None:
        """Drop what goes from the first to the second of each, besides what is dropped already."""
        if pairs:
            _nft(f"add element ip skuld_faults cuts {{ {', '.join(f'{one} . {other}' for one, other in pairs)} }}")

    def heal(self) -> None:
        """Let everything through."""
        _nft("flush set ip skuld_faults cuts")

    def dropped(self) -> int:
        """Packets dropped so far: what shows that a cut hit anything."""
        found = re.search(r"counter packets (\d+)", _nft("list table ip skuld_faults"))
        assert found is not None
        return int(found[1])


def _nft(rules: str) -> str:
    done = subprocess.run(["nft", "-f", "-"], input=rules + "\n", text=True, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"nft refused {rules.strip()}: {done.stderr.strip()}")
    return done.stdout
