"""Members that talk with each other beside the log: the options of ``config.Scaling`` under all the harness's
faults.

Messages go over links that lose, repeat and reorder them, whatever the connection to ZooKeeper does; a process
that stands still gets them later, one that is dead never. What was said to a process before its restart may
arrive afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import attrs

from skuld_py.cluster.membership import Effect, Membership
from skuld_py.config import Scaling
from skuld_py.model.events import Received, Send
from skuld_py.simulation.coordination.options import draw
from skuld_py.simulation.coordination.play import Run, Verdict, World
from skuld_py.simulation.coordination.shell import Shell
from skuld_py.simulation.network import Envelope, Network, Weather
from skuld_py.simulation.scheduler import stream

CLUSTER_ID = "c1"
QUICK = Scaling(gather_ms=5, knock_ms=400, knock_again_ms=60, knock_pause_ms=100, found_ms=300, part_ms=200,
                snapshot_ms=500, fanout=3, rounds=4, silence_ms=2_000, gap_ms=150, digest_every=8)
"""Times that fit those of the harness; nothing is on."""
MIXES: dict[str, Scaling] = {
    "direct": attrs.evolve(QUICK, direct_join=True),
    "transfer": attrs.evolve(QUICK, transfer=True),
    "sharing": attrs.evolve(QUICK, sharing=True),
    "all": attrs.evolve(QUICK, direct_join=True, transfer=True, sharing=True),
}


@attrs.define(eq=False)
class TalkingShell(Shell):
    """A shell that also carries messages."""

    network: Network | None = None

    def act(self, effects: list[Effect]) -> None:
        """Carry out what the machine wishes."""
        for effect in effects:
            if isinstance(effect, Send) and self.network is not None:
                self.network.send(self.node, effect.peer, (effect.message,))
        super().act(effects)

    def hear(self, sender: str, messages: Envelope) -> None:
        """What has arrived."""
        for message in messages:
            self.tell(Received(sender, message))


@attrs.define
class Talk:
    """The shells and machines of one run. ``mixed``: some members have the options off."""

    seed: int
    scaling: Scaling
    weather: Weather
    is_mixed: bool = False
    network: Network | None = None

    def shell(self, *arguments: Any, **options: Any) -> Shell:
        """As ``Shell``."""
        shell = TalkingShell(*arguments, **options)
        if self.network is None:
            self.network = Network(shell.scheduler, self.seed, self.weather)
        shell.network = self.network
        self.network.attach(shell.node, shell.hear)
        return shell

    def world(self) -> World:
        """What ``Run`` is made of."""
        return World(membership=self._membership, shell=self.shell)

    def _membership(self, *arguments: Any, **options: Any) -> Membership:
        random = stream(self.seed, f"options of {arguments[0]}")
        scaling = self.scaling
        if self.is_mixed and random.random() < 0.4:
            scaling = QUICK
        return partial(Membership, cluster_id=CLUSTER_ID, scaling=scaling)(*arguments, **options)


def weather_of(random: Random) -> Weather:
    """How the links between members behave."""
    bad = random.choice([0.0, 0.0, 0.05, 0.3, 1.0])
    return Weather(latency_mean_ms=random.choice([1.0, 30.0]), tail=random.choice([0.0, 0.02]), loss=bad,
                   repeat=min(bad, 0.3))


def run(seed: int, mix: str, listener: Callable[[str], None] | None = None) -> Verdict:
    """Play a seed with a mix of options. The log is not driven at the end: who drives it shares nothing, so that
    members would look at it after silences only."""
    random = stream(seed, "talk")
    talking = Talk(seed, MIXES[mix], weather_of(random), is_mixed=random.random() < 0.3)
    options = attrs.evolve(draw(stream(seed, "options")), drives=False)
    course = Run(seed, talking.world(), options, listener)
    course.play()
    verdict = course.verdict()
    if talking.network is not None:
        verdict.stats.update({f"messages {what}": count for what, count in talking.network.counts.items()})
    return verdict
