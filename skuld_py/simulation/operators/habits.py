"""What a run with operators is like, drawn from its seed: a usual run made small, and what operators do in it.

The rest of the seed is drawn as ever; then all is left out that rests on more than claims, leaders and documents,
so that a second of it shows more of these. Where disks are lost for good the work is plain: what nobody has any
more is left out of what must be kept, and each habit of a task would need its own account of that.
"""

from __future__ import annotations

import attrs

from skuld_py.config.timing import Retention
from skuld_py.simulation.faults import Habit
from skuld_py.simulation.log_options import FORGETS_MS
from skuld_py.simulation.options import Options, draw_options
from skuld_py.simulation.world.scheduler import stream

LOSES, RESTORES, DELETES = 0.3, 0.25, 0.3
"""Shares of runs in which a majority of a cohort is lost for good, in which ZooKeeper's data are, and in which one
document is."""
ECLIPSES, RESIZES = 0.2, 0.3
"""Shares of runs with leaders in the dark, and in which the number of copies changes."""
LOSES_BOTH = 0.5
"""Share of runs in which a majority is lost, in which ZooKeeper's data are lost as well, soon after."""
SELDOM_MS = 700
IN_THE_DARK = ("pause", "one way", "registry lag")
"""Where leaders are kept in the dark little else happens, or they would lose their sessions, or be held, long
before another one is elected."""
CHURNS = 0.4
"""Share of runs, of the others, in which nodes are taken out and forgotten."""
FAULTS = ("crash", "crash before commit", "crash after commit", "pause", "new leader crash", "halves", "isolate",
          "isolate", "one way", "flap", "registry cut", "registry freeze", "registry quorum", "registry lag",
          "registry lag", "expire", "expire")
HORIZONS_MS, AMBIGUITY_MAX = (1_500, 3_000), 0.2
"""Horizons are near, so that what waits for one waits for no longer than a run; no leader keeps one that is near
where half of its writes are in doubt."""
STOPS = Habit("stop", 1.0, 3_000)


@attrs.frozen
class Plan:
    """What operators do. ``every_ms``: mean time between two of their acts; the rest: when, 0 for never; of
    ``restores_after_ms``, how long after a partition's voters were given up."""

    every_ms: int
    loses_ms: int = 0
    restores_ms: int = 0
    deletes_every_ms: int = 0
    eclipses_every_ms: int = 0
    resizes_every_ms: int = 0
    restores_after_ms: int = 0


def draw(seed: int, seconds: int) -> tuple[Options, Plan]:
    """The options of a seed, and the plan."""
    random, drawn = stream(seed, "operators"), draw_options(seed)
    last_ms = max(1, seconds * 1_000 - 2_000)
    loses = random.random() < LOSES
    plan = Plan(random.choice((120, 300, 700)), random.randint(last_ms // 2, last_ms) if loses else 0,
                random.randint(last_ms // 3, last_ms) if random.random() < RESTORES else 0,
                random.choice((1_500, 4_000)) if random.random() < DELETES else 0)
    if loses:
        plan = attrs.evolve(plan, restores_ms=0, deletes_every_ms=0)
    later = stream(seed, "operators later")
    is_dark = not loses and later.random() < ECLIPSES
    if is_dark:
        plan = Plan(max(plan.every_ms, SELDOM_MS), eclipses_every_ms=later.choice((500, 1_500)))
    elif not loses and later.random() < RESIZES:
        plan = attrs.evolve(plan, resizes_every_ms=later.choice((1_500, 4_000)))
    last = stream(seed, "operators last")
    if loses and last.random() < LOSES_BOTH:
        plan = attrs.evolve(plan, restores_after_ms=last.randint(1, 2_000))
    replicas = random.choice((3, 3, 3, 2, 4, 5))
    replicas = max(replicas, 3) if is_dark else replicas
    spare = random.choice((0, 0, 1, 2))
    nodes = tuple(f"n{number}" for number in range(1, replicas + spare + 1))
    churns = spare > 0 and not loses and not is_dark and not plan.restores_ms and random.random() < CHURNS
    faults = tuple(kind for kind in dict.fromkeys(FAULTS) if random.random() < 0.45) + ("leave",) * churns
    faults = tuple(kind for kind in faults if kind in IN_THE_DARK) if is_dark else faults
    log = attrs.evolve(drawn.log, is_fresh=False, settings=attrs.evolve(
        drawn.log.settings, forget_ms=FORGETS_MS if churns else None))
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=random.choice((1, 2)), replicas=replicas),
        nodes=nodes, late=(), log=log, faults=faults + ("wipe",) * loses,
        fault_every_ms=random.choice((500, 1_200)),
        apart=(STOPS,) if churns else (), fast="", fast_ms=0, is_total_loss=False, has_core_phase=False,
        retention=Retention(), new_key_ms=0, visitors=(), timing=attrs.evolve(
            drawn.timing, exchange_ms=1_000, exchanges=4, exchange_units=10_000, exchange_page_ms=500,
            sweep_rows=2_000, seat_ms=random.choice((0, 500)), horizon_ms=random.choice(HORIZONS_MS)),
        registry=attrs.evolve(drawn.registry, ambiguity=min(drawn.registry.ambiguity, AMBIGUITY_MAX)),
        limits=attrs.evolve(drawn.limits, page_bytes=1_000),
        weather=attrs.evolve(drawn.weather, loss=random.choice((0.0, 0.0, 0.02, 0.1)), capacity=0,
                             latency_mean_ms=random.choice((0.5, 2.0))),
        workload=attrs.evolve(
            drawn.workload, clients=2, queues=("q0",), enqueue_ms=1_500, claim_ms=random.choice((250, 500)),
            read_ms=4_000, keys=(), names=(), needs=0.0, schedule_ms=0, forge_ms=0, verb_ms=0, limit_ms=0,
            report_ms=0, flows=None, is_hoarding=False, max_attempts=(), cancel_ms=0, revive_ms=0, await_ms=0,
            pause_ms=0, delay_ms=0, life_ms=0)), plan
