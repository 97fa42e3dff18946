"""How the members of a run keep the coordination log, drawn from its seed: patience, lengths, options.

The times fit runs of twenty seconds: the log is collected within a run, duties are taken over, and what should
have shown is looked at again before clients give up.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs

from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config.scaling import PLAIN, Scaling

QUICK = Scaling(gather_ms=5, knock_ms=400, knock_again_ms=60, knock_pause_ms=100, found_ms=300, part_ms=200,
                snapshot_ms=500, fanout=3, rounds=4, silence_ms=2_000, gap_ms=150, digest_every=8)
"""Options of scale with times that fit; nothing is on."""
SCALED = 0.4
"""Share of runs in which members do something beside the log."""
FRESH = 0.5
"""Share of runs, of those whose owners change, that begin with an empty log: all nodes join for the first time."""
FORGETS_MS = 2_500
"""In half of these, a node that is down for this long is forgotten."""


@attrs.frozen
class LogOptions:
    """``scaling``: of each node, in turn."""

    settings: LogSettings = attrs.field(factory=LogSettings)
    scaling: tuple[Scaling, ...] = (PLAIN,)
    is_fresh: bool = False

    @property
    def has_churn(self) -> bool:
        """Whether it alone changes the owners of partitions within a run."""
        return self.is_fresh or self.settings.forget_ms == FORGETS_MS

    def summary(self) -> str:
        """In a few words; nothing for the plainest."""
        on = sum(each not in (PLAIN, QUICK) for each in self.scaling)
        return (f" log={self.settings.length_max}+{self.settings.grace}" * (self.settings.length_max < 1_000)
                + f" scaled={on}" * (on > 0) + " fresh" * self.is_fresh)


def draw_log(random: Random, nodes: Sequence[str], has_churn: bool, replicas: int) -> LogOptions:
    """The options of a seed. No node is forgotten where the owners must stay, or where its copy would be the
    last."""
    settings = LogSettings(
        batch=random.choice((1, 3, 256)), wait_ms=random.choice((1_000, 5_000, 15_000)),
        back_off_ms=random.choice((20, 100)), repeat_ms=random.choice((500, 2_000)),
        length_max=random.choice((6, 15, 40, 1_000)), grace=random.choice((0, 4, 20)),
        takeover_ms=random.choice((300, 1_500)),
        forget_ms=random.choice((None, FORGETS_MS)) if has_churn and replicas > 1 else None)
    is_fresh = has_churn and random.random() < FRESH
    every, is_mixed = _draw_scaling(random, nodes), random.random() < 0.3
    scaling = tuple(_draw_scaling(random, nodes) if is_mixed else every for _ in nodes)
    scaling = scaling if random.random() < SCALED else (PLAIN,)
    return LogOptions(attrs.evolve(settings, return_ms=random.choice((500, 60_000))), scaling, is_fresh)


def _draw_scaling(random: Random, nodes: Sequence[str]) -> Scaling:
    return attrs.evolve(
        QUICK, direct_join=random.random() < 0.5, transfer=random.random() < 0.5, sharing=random.random() < 0.5,
        versions=random.random() < 0.3, schedulers=tuple(nodes[:2]) if random.random() < 0.3 else ())
