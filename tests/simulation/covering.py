"""A few seeds that together meet every situation and every fault that the simulator knows.

Most of what many seeds meet, each of them meets. The tests of every day play only the seeds kept here, each for
what it alone of them meets. What a seed plays changes with the code around it, so the set loses a few situations
now and then; when it has lost too many a test says so, and the set is drawn again with ``--rewrite``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from skuld_py.simulation.campaign import Verdict
from skuld_py.simulation.faults import AHEAD, FAULTS
from skuld_py.simulation.probes import REQUIRED

KEPT = Path(__file__).with_name("covering_seeds.txt")
ALL = frozenset({f"probe {name}" for name in REQUIRED} | {f"fault {kind}" for kind in (*FAULTS, AHEAD.kind)})
HEAD = """\
# Seeds that together meet every situation and every fault: the number, then what it alone of them meets.
# Drawn by: scripts/test tests/simulation/test_covering.py --rewrite
"""


def met(verdict: Verdict) -> frozenset[str]:
    """What a run met of all that there is to meet."""
    return frozenset(name for name in ALL if verdict.stats[name])


def choose(found: Mapping[int, frozenset[str]], costs: Mapping[int, int]) -> list[int]:
    """Seeds that meet together what all of them meet, and none that could be spared: always the one that meets
    most that is new for its cost, then those away whose finds the later ones had as well, the dearest first."""
    chosen, missing = list[int](), frozenset[str]().union(*found.values())
    while missing:
        best = max(found, key=lambda seed: (len(found[seed] & missing) / costs[seed], -seed))
        chosen.append(best)
        missing -= found[best]
    for seed in sorted(chosen, key=lambda seed: (-costs[seed], seed)):
        if not alone(seed, chosen, found):
            chosen.remove(seed)
    return sorted(chosen)


def alone(seed: int, chosen: Iterable[int], found: Mapping[int, frozenset[str]]) -> list[str]:
    """What no other one of the chosen meets, sorted."""
    return sorted(found[seed].difference(*(found[other] for other in chosen if other != seed)))


def written(chosen: Iterable[int], found: Mapping[int, frozenset[str]]) -> str:
    """The text of the file."""
    seeds = [*chosen]
    return HEAD + "".join(f"{seed} {'; '.join(alone(seed, seeds, found))}\n" for seed in seeds)


def kept(text: str) -> dict[int, list[str]]:
    """The seeds of a file's text, each with what it is for."""
    lines = [line.partition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {int(number): purposes.split("; ") for number, _, purposes in lines}
