"""Reductions, which make a failure small: faults, habits, requests and the end that are left out of a run.

A reduction is part of a run's name: the same seed with the same reduction is the same run. Faults keep
their numbers, and each draws from a stream of its own, so that leaving one out changes no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from skuld_py.config.scaling import PLAIN
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.network import Weather

Simplify = Callable[[Options], Options]


def _workload(**changes: Any) -> Simplify:
    return lambda options: attrs.evolve(options, workload=attrs.evolve(options.workload, **changes))


def _without_spares(options: Options) -> Options:
    nodes = options.nodes[: options.parameters.replicas]
    return attrs.evolve(options, nodes=nodes, late=tuple(name for name in options.late if name in nodes))


def _calm(options: Options) -> Options:
    weather = Weather(latency_mean_ms=options.weather.latency_mean_ms, tail=0.0)
    return attrs.evolve(options, weather=weather)


def _sure_registry(options: Options) -> Options:
    return attrs.evolve(options, registry=attrs.evolve(options.registry, ambiguity=0.0, failure=0.0, doubt=0.0))


def _one_partition(options: Options) -> Options:
    return attrs.evolve(options, parameters=attrs.evolve(options.parameters, partitions=1))


SIMPLIFICATIONS: Mapping[str, Simplify] = {
    "no-wire": lambda options: attrs.evolve(options, is_on_wire=False),
    "no-core-phase": lambda options: attrs.evolve(options, has_core_phase=False),
    "calm-links": _calm,
    "sure-registry": _sure_registry,
    "plain-log": lambda options: attrs.evolve(options, log=attrs.evolve(options.log, scaling=(PLAIN,))),
    "one-partition": _one_partition,
    "no-spare-nodes": _without_spares,
    "one-client": _workload(clients=1),
    "one-queue": lambda options: _workload(queues=options.workload.queues[:1])(options),
    "single-tasks": _workload(batch_max=1),
    "no-logs": _workload(is_logging=False),
    "no-pauses": _workload(pause_ms=0),
    "no-archive": lambda options: attrs.evolve(
        options, retention=attrs.evolve(options.retention, archives=False)),
    "no-limits": _workload(limit_ms=0),
    "no-workflows": _workload(flows=None),
    "no-reports": _workload(report_ms=0),
    "only-complete": _workload(fates=("complete",)),
    "quick-disks": lambda options: attrs.evolve(options, commit_ms=0.0),
}


@attrs.frozen
class Reduction:
    """``faults`` kept, by number (None: all); ``simpler``: names of simplifications; ``until_ms`` the
    safety phase ends early (0: not); ``muted``: (client, first request, last request) never sent."""

    faults: tuple[int, ...] | None = None
    simpler: tuple[str, ...] = ()
    until_ms: int = 0
    muted: tuple[tuple[str, int, int], ...] = ()

    def simplify(self, options: Options) -> Options:
        """The options of the reduced run."""
        for name in self.simpler:
            options = SIMPLIFICATIONS[name](options)
        return options

    def keep(self, faults: Sequence[Fault], nodes: Sequence[str]) -> list[Fault]:
        """The faults of the reduced run, on nodes that exist in it."""
        return [attrs.evolve(fault, targets=tuple(name for name in fault.targets if name in nodes),
                             links=tuple(link for link in fault.links if {*link} <= {*nodes}))
                for fault in faults
                if (self.faults is None or fault.number in self.faults)
                and not {*nodes}.isdisjoint(fault.targets)]

    def is_muted(self, client: str, request: int) -> bool:
        """Whether a client keeps this request to itself."""
        return any(name == client and first <= request <= last for name, first, last in self.muted)

    def words(self) -> list[str]:
        """The command-line options that ask for it."""
        words = []
        if self.faults is not None:
            words += ["--faults", ",".join(map(str, self.faults)) or "none"]
        if self.simpler:
            words += ["--simpler", ",".join(self.simpler)]
        if self.until_ms:
            words += ["--until", str(self.until_ms)]
        if self.muted:
            words += ["--mute", ",".join(f"{name}:{first}-{last}" for name, first, last in self.muted)]
        return words


WHOLE = Reduction()


def parse_faults(text: str) -> tuple[int, ...]:
    """``3,7`` or ``none``; raises ``ValueError``."""
    return () if text == "none" else tuple(int(part) for part in text.split(","))


def parse_simpler(text: str) -> tuple[str, ...]:
    """Names; raises ``ValueError`` on one that does not exist."""
    names = tuple(text.split(","))
    strange = [name for name in names if name not in SIMPLIFICATIONS]
    if strange:
        raise ValueError(f"no simplification {', '.join(strange)}")
    return names


def parse_muted(text: str) -> tuple[tuple[str, int, int], ...]:
    """``c0:3-17,c1:4-4``; raises ``ValueError``."""
    ranges = []
    for part in text.split(","):
        name, _, span = part.partition(":")
        first, _, last = span.partition("-")
        ranges.append((name, int(first), int(last)))
    return tuple(ranges)


def mute(requests: Sequence[tuple[str, int]]) -> tuple[tuple[str, int, int], ...]:
    """Requests as ranges."""
    ranges: list[tuple[str, int, int]] = []
    for name, number in sorted(requests):
        if ranges and ranges[-1][0] == name and ranges[-1][2] == number - 1:
            ranges[-1] = (name, ranges[-1][1], number)
        else:
            ranges.append((name, number, number))
    return tuple(ranges)
