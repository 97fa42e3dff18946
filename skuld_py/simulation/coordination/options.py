"""What a seed decides about a run before it begins: how many members, how patient, over what connections."""

from __future__ import annotations

from random import Random

import attrs

from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config import RULES
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.simulation.world.network import Weather
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

MEMBERS_MAX = 12


@attrs.frozen
class Options:
    """Times in milliseconds."""

    members: int
    settings: LogSettings
    registry: RegistryOptions = RegistryOptions()
    """How bad connections to ZooKeeper are while faults strike."""
    weather: Weather = Weather()
    """How bad those between members are, then."""
    spread_ms: int = 0
    """Over which the members start."""
    faults: int = 0
    faults_ms: int = 0
    """How long faults go on."""
    flows: int = 0
    """How often somebody writes about workflows meanwhile."""
    rounds: int = 1
    """How often faults and quiet follow each other."""
    drives: bool = False
    """Whether at the end the log is made to grow, to see that it is collected."""
    scaling: tuple[Scaling, ...] = (PLAIN,)
    """What each member has switched on beside the plain log."""
    is_damaged: bool = False
    """Whether a replica is damaged on purpose in each storm."""
    rules: int = RULES
    """Those that the log begins by."""

    @property
    def calm(self) -> RegistryOptions:
        """How connections to ZooKeeper are when all is to come to rest."""
        each = self.registry
        return RegistryOptions(session_ms=each.session_ms, leg_ms=each.leg_ms, watch_ms=each.watch_ms)

    def summary(self) -> str:
        """In a line."""
        each = self.settings
        on = sum(each != PLAIN for each in self.scaling)
        return (f"{self.members} members, {on} with options, {self.faults} faults in {self.rounds} x"
                f" {self.faults_ms} ms, batch {each.batch}, log {each.length_max}+{each.grace},"
                f" rules {self.rules}")


def draw(random: Random) -> Options:
    """The options of a seed."""
    length_max = random.choice([8, 15, 30, 60, 1_000])
    settings = LogSettings(
        batch=random.choice([1, 3, 256]), wait_ms=random.choice([500, 5_000, 15_000]),
        back_off_ms=random.choice([50, 500]), length_max=length_max, grace=random.choice([0, 4, 20]),
        takeover_ms=random.choice([1_000, 10_000]), forget_ms=random.choice([None, 4_000, 60_000]))
    bad = 0.0 if random.random() < 0.2 else random.choice([0.02, 0.1, 0.3])
    leg_ms = random.choice([3, 20, 75])
    registry = RegistryOptions(
        session_ms=random.choice([1_500, 4_000]), leg_ms=leg_ms, watch_ms=leg_ms, doubt=bad, skipped=0.005,
        doubled=bad / 2, late_ms=random.choice([50, 3_000]), slow=random.choice([0.0, bad / 2]),
        slow_ms=random.choice([300, 3_000]), lagging=random.choice([0.0, 0.3, 1.0]) if bad else 0.0,
        lag_ms=random.choice([50, 1_000, 3_000]))
    weather = Weather(latency_mean_ms=float(leg_ms), loss=bad, repeat=bad / 2)
    members = random.randint(1, MEMBERS_MAX) if random.random() < 0.5 else random.randint(1, 4)
    return Options(
        members, settings, registry, weather, spread_ms=random.choice([0, 100, 3_000]),
        faults=random.randint(0, 20), faults_ms=random.choice([1_000, 4_000, 10_000]),
        rounds=random.choice([1, 1, 2]), drives=length_max < 60 and random.random() < 0.5,
        scaling=_scaling(random, members), rules=random.choice([1, RULES, RULES]), flows=random.choice([0, 5, 15]))


def _scaling(random: Random, members: int) -> tuple[Scaling, ...]:
    """Plain in most runs; else the same for all, or a mix."""
    if random.random() < 0.6:
        return (PLAIN,) * members
    every = _drawn(random)
    is_mixed = random.random() < 0.3
    return tuple(_drawn(random) if is_mixed else every for _ in range(members))


def _drawn(random: Random) -> Scaling:
    return Scaling(direct_join=random.random() < 0.6, transfer=random.random() < 0.6,
                   sharing=random.random() < 0.6, silence_ms=2_000)
