"""What a run is like, drawn from its seed: sizes, weather, faults, workload.

Swarm testing: each kind of fault and each habit of the clients is often left out altogether,
because what is always on hides what only shows without it. The cohort size is drawn too; a suite
that always runs three nodes cannot tell ``n // 2`` from ``n // 2 + 1``.

A seed keeps its story when something is added here; else every seed that is kept for what it once showed
would show something else. So the streams below are drawn from as they are, for ever. A new option draws from
a stream of its own, ``stream(seed, its name)``, and joins the others by ``attrs.evolve``. A new kind of fault
is a ``Habit`` at the end of ``faults.APART``: it has a stream that says whether it strikes in this run and
another one for its schedule, and its faults are numbered after all others. Runs that do not draw the new
thing stay the same to the last event; those that do keep all that they had besides.

Source: Groce et al., "Swarm Testing", 2012; TigerBeetle's VOPR.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs

from skuld_py.config import DEFAULT_LIMITS, Limits, Parameters
from skuld_py.config.timing import DEFAULT_TIMING, Retention, Timing
from skuld_py.simulation.faults import (
    AHEAD,
    AHEAD_MS,
    APART,
    CHURN,
    CLOCKS_MIN,
    COPIES,
    DISK,
    NETWORK,
    PROCESS,
    REGISTRY,
    STOP,
    VISIT,
    Habit,
)
from skuld_py.simulation.flow_options import FlowOptions, draw_flows
from skuld_py.simulation.log_options import LogOptions, draw_log
from skuld_py.simulation.world.network import Weather
from skuld_py.simulation.world.scheduler import stream
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

CLAIM_KEY, NEW_CLAIM_KEY = "5c" * 32, "a7" * 32
"""Claims are proved in every run."""
NEW_KEYS = 0.3
"""Share of runs in which the key that proves claims is replaced."""
FORGES = 0.3
"""Share of runs in which a client acts for claims that it does not hold."""
FATES = ("complete", "renew", "abandon", "late", "release")
ENDINGS = ("fail", "snooze")
LATE = 0.4
"""Share of runs with nodes to spare in which these join late: owners change, and data moves."""
LEAVE = 0.3
"""Share of runs with nodes to spare in which operators take nodes out and put them back."""
LOSSES = 0.2
"""Share of runs in which disks are wiped, turned back or damaged."""
FAST = 0.05
"""Share of runs in which one clock is wrong, within the bound, just beyond it, or far."""
TOTAL_LOSS = 0.02
"""Share of runs in which more nodes lose their disks than a majority can make up for; they may stand still."""
NEVER_MS = 24 * 3600 * 1000
"""Longer than any run."""
PAUSES = 0.4
"""Share of runs in which an operator pauses queues and resumes them."""
NAMES = 0.4
"""Share of runs in which some tasks have a unique name."""
KEYS = 0.5
"""Share of runs in which some tasks have an ordering key."""
SCHEDULES = 0.3
"""Share of runs in which tasks are periodic, too."""
COLLECTS = 0.35
"""Share of runs in which what has ended is collected after some seconds."""
ARCHIVES = CAREFUL = 0.4
"""Shares of these in which it must be archived first, and in which one node keeps it for longer."""
HOARDS = 0.1
"""Share of runs in which many claims are held."""
UNIT_BYTES = 30
"""What a unit of an exchange takes of a page at least."""
SPENT = 0.3
"""Share of runs in which a leadership has few tokens."""
NARROW = 0.4
"""Share of runs in which pages hold few bytes."""
ATTENDED = 0.5
"""Share of runs in which workers say that they are there."""
LIMITED = 0.4
"""Share of runs in which an operator limits queues."""
TWINS = ("k120042", "k125921")
"""Ordering keys whose tasks have the same route in the queue that all runs have."""
NEAR = 0.5
"""Share of runs, of those with a registry that mostly answers, whose horizons are nearer than some leases end."""
MANY = 0.5
"""Share of runs in which partitions are looked at, moved and told of as if they were too many for all at once."""
FEW_NAMES = 0.25
"""Share of runs in which a gossip names few queues."""
_REPLICAS = (1, 2, 3, 3, 3, 3, 4, 5, 5, 7)
_PACE_OF_FAULTS_MS = (700, 1_200, 2_500)


@attrs.frozen
class Workload:
    """Habits of the clients: means in milliseconds, and what becomes of a claim."""

    clients: int
    queues: tuple[str, ...]
    enqueue_ms: int
    claim_ms: int
    read_ms: int
    patience_ms: int
    lease_ms: tuple[int, int]
    fates: tuple[str, ...]
    batch_max: int
    is_logging: bool
    pause_ms: int = 0
    """Mean time between pauses of some queue; 0: none."""
    schedule_ms: int = 0
    """The period of schedules; 0: none."""
    forge_ms: int = 0
    """Mean time between two forgeries; 0: none."""
    limit_ms: int = 0
    """Mean time between changes of some queue's limits; 0: none."""
    report_ms: int = 0
    """Mean time between reports of workers; 0: none."""
    flows: FlowOptions | None = None
    """Of workflows; none: there are none."""
    is_hoarding: bool = False
    """Whether a client claims much and holds it for long."""
    max_attempts: tuple[int, ...] = ()
    """Of the retry policies that tasks have; none: the default policy."""
    keys: tuple[str, ...] = ()
    """Ordering keys that some tasks have, if any."""
    names: tuple[str, ...] = ()
    """Unique names that some tasks have, if any."""
    cancel_ms: int = 0
    revive_ms: int = 0
    """Mean time between cancellings and revivals; 0: none."""
    await_ms: int = 0
    """Mean time between waits for ends and logs; 0: none before all is healed."""
    needs: float = 0.0
    """Share of batches whose tasks wait for others."""
    dep_wait_ms: tuple[int, ...] = ()
    """How long those may wait for unknown tasks."""
    delay_ms: int = 0
    """Some tasks are not to be claimed before a time, at most this far ahead; 0: all at once."""
    life_ms: int = 0
    """Some tasks expire within this time; 0: none but far ahead."""
    verb_ms: int = 0
    """Mean time between calls of the library's verbs; 0: none."""
    has_results: bool = False
    """Whether completions have results, and failures errors."""


@attrs.frozen
class Options:
    """Everything drawn."""

    parameters: Parameters
    nodes: tuple[str, ...]
    late: tuple[str, ...]
    """Nodes that join only while the run goes on: owners change, and data moves."""
    timing: Timing
    limits: Limits
    weather: Weather
    registry: RegistryOptions
    workload: Workload
    faults: tuple[str, ...]
    fault_every_ms: int
    commit_ms: float
    is_on_wire: bool
    """Whether each message passes through the codec."""
    has_core_phase: bool
    """Whether a core must do alone for a while before all is healed."""
    is_total_loss: bool
    """Whether disks are destroyed beyond what any majority can bear: then only what is told must be true."""
    fast: str
    """The node whose clock is ahead of all others by ``fast_ms``, which all show the true time; or none."""
    fast_ms: int
    retention: Retention = Retention()
    apart: tuple[Habit, ...] = ()
    """Kinds of faults that are drawn from streams of their own."""
    log: LogOptions = attrs.field(factory=LogOptions)
    new_key_ms: int = 0
    """When the key that proves claims is replaced; 0: never."""
    grace_ms: int = 0
    """How long claims of the one before are renewed."""
    visitors: tuple[str, ...] = ()
    """Nodes that join for moments only, and lose their disks each time."""
    careful: str = ""
    """The node that is to keep what has ended for longer than the others; or none."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of faults that may strike."""
        return (*self.faults, *(habit.kind for habit in self.apart), *[VISIT] * bool(self.visitors))

    @property
    def has_losses(self) -> bool:
        """Whether disks may lose what was committed."""
        return not {*self.kinds}.isdisjoint((*DISK, *COPIES, VISIT))

    @property
    def has_churn(self) -> bool:
        """Whether the owners of partitions may change."""
        return bool(self.late) or self.log.has_churn or not {*self.kinds}.isdisjoint(CHURN)

    @property
    def liveness_ms(self) -> int:
        """How long a healed cluster may take to be as if nothing had been: longer where a node that fills or hands
        off an old copy, compares a few units at a time, one partition after the other, or one keeps for longer."""
        units = min(self.timing.exchange_units, self.limits.page_bytes // UNIT_BYTES)
        healed_ms = 90_000 if self.timing.exchanges * units < 10 else 40_000
        return healed_ms + self.retention.keep_ms * bool(self.careful)

    @property
    def w_min(self) -> int:
        """The fewest copies that a client may ask for: where disks are lost, such as meet every majority."""
        majority = self.parameters.replicas // 2 + 1
        return self.parameters.replicas - majority + 1 if self.has_losses else 1

    @property
    def skew_excess_ms(self) -> int:
        """By how much two clocks may differ beyond the bound."""
        return max(0, self.fast_ms - self.parameters.skew_ms, max(AHEAD_MS) if AHEAD in self.apart else 0)

    def summary(self) -> str:
        """One line for people."""
        size = self.parameters
        return (f"nodes={len(self.nodes)} late={len(self.late)} replicas={size.replicas}"
                f" partitions={size.partitions}"
                f" skew={size.skew_ms} clients={self.workload.clients} loss={self.weather.loss:.2f}"
                f" repeat={self.weather.repeat:.2f} session={self.registry.session_ms}"
                f" faults={'+'.join(self.kinds).replace(' ', '-') or 'none'}"
                f" wire={'yes' if self.is_on_wire else 'no'}"
                + (" total loss" if self.is_total_loss else "")
                + (f" pauses={self.workload.pause_ms}" if self.workload.pause_ms else "")
                + (f" keys={len(self.workload.keys)}" if self.workload.keys else "")
                + (f" schedules={self.workload.schedule_ms}" if self.workload.schedule_ms else "")
                + (f" key={self.new_key_ms}+{self.grace_ms}" if self.new_key_ms else "")
                + (f" verbs={self.workload.verb_ms}" if self.workload.verb_ms else "")
                + (f" forges={self.workload.forge_ms}" if self.workload.forge_ms else "")
                + (f" fast={self.fast}+{self.fast_ms}" if self.fast else "")
                + (" many" if self.timing.look_round == 0 else "")
                + (f" horizon={self.timing.horizon_ms}" if self.timing.horizon_ms < NEVER_MS // 100 else "")
                + (f" flows={self.workload.flows.every_ms}" if self.workload.flows else "")
                + (" hoard" if self.workload.is_hoarding else "")
                + (f" keep={self.retention.keep_ms} {self.careful}".rstrip() if self.retention.keep_ms else "")
                + (" archive" if self.retention.archives else "") + self.log.summary())


def draw_options(seed: int) -> Options:
    """The options of a seed."""
    random = stream(seed, "options")
    replicas = random.choice(_REPLICAS)
    spare = random.choice((0, 0, 1, 2)) if replicas < max(_REPLICAS) else 0
    nodes = tuple(f"n{number}" for number in range(1, replicas + spare + 1))
    late = nodes[replicas:] if random.random() < LATE else ()
    parameters = Parameters("sim", "sim-1", random.choice((1, 2, 4)), replicas,
                            random.choice((20, 100, 400, 1_000)), claim_key=CLAIM_KEY)
    kinds = _draw_kinds(random)
    needs = stream(seed, "needs")
    is_total_loss = random.random() < TOTAL_LOSS
    timing = _draw_gathering(stream(seed, "gathering"), _draw_walk(needs, _draw_timing(random)))
    timing = _draw_page_wait(stream(seed, "page wait"), timing)
    timing = _draw_names_told(stream(seed, "names told"), _draw_looks(stream(seed, "looks"), timing))
    drawn = _draw_ahead(stream(seed, AHEAD.kind), _draw_horizon(stream(seed, "horizon"), Options(
        parameters, nodes, late, timing, _draw_pages(
            stream(seed, "pages"), _draw_tokens(stream(seed, "tokens"), _draw_limits(random)),
            _draw_hoard(stream(seed, "hoards"))),
        _draw_weather(random),
        RegistryOptions(session_ms=random.choice((800, 1_500, 3_000)), leg_ms=random.choice((1, 2, 5)),
                        watch_ms=random.choice((5, 20, 200)), ambiguity=random.choice((0.0, 0.1, 0.5)),
                        failure=random.choice((0.0, 0.05))),
        attrs.evolve(_draw_needs(needs, _draw_times(stream(seed, "times"), _draw_outcomes(
            stream(seed, "outcomes"), _draw_workload(random)))),
                     pause_ms=_draw_pause(stream(seed, "pauses")), keys=_draw_keys(stream(seed, "keys")),
                     await_ms=stream(seed, "awaits").choice((0, 700)),
                     names=_draw_names(stream(seed, "names")),
                     limit_ms=_draw_limit(stream(seed, "limits")),
                     report_ms=_draw_report(stream(seed, "reports")),
                     is_hoarding=_draw_hoard(stream(seed, "hoards")),
                     schedule_ms=_draw_schedule(stream(seed, "schedules")),
                     forge_ms=_draw_forging(stream(seed, "forgeries"))),
        kinds + DISK if is_total_loss else kinds,
        random.choice(_PACE_OF_FAULTS_MS), random.choice((0.3, 1.0, 4.0)), random.random() < 0.1,
        random.random() < 0.6, is_total_loss, *_draw_fast(random, nodes, parameters.skew_ms),
        _draw_retention(stream(seed, "retention"), stream(seed, "archive")), _draw_apart(seed, kinds))))
    drawn = attrs.evolve(drawn, workload=attrs.evolve(drawn.workload, flows=draw_flows(stream(seed, "workflows"))),
                         careful=_draw_careful(stream(seed, "careful"), drawn))
    return _draw_new_key(stream(seed, "new key"), _draw_stays(
        stream(seed, STOP.kind), _draw_log(stream(seed, "log"), drawn)))


def _draw_new_key(random: Random, options: Options) -> Options:
    """All nodes that run are told of it before it is used: early enough for that."""
    made_ms, grace_ms = random.randint(500, 3_000), random.choice((0, 4_000, NEVER_MS))
    return attrs.evolve(options, new_key_ms=made_ms, grace_ms=grace_ms) if random.random() < NEW_KEYS else options


def _draw_stays(random: Random, options: Options) -> Options:
    """How long a node must have been up to have a seat, and may take to hand over; and whether nodes end
    cleanly."""
    timing = attrs.evolve(options.timing, seat_ms=random.choice((0, 500, 3_000)),
                          handover_ms=random.choice((200, 3_000)))
    is_stopped = options.kinds and random.random() < STOP.share
    return attrs.evolve(options, timing=timing, apart=(*options.apart, STOP) if is_stopped else options.apart)


def _draw_log(random: Random, options: Options) -> Options:
    registry = attrs.evolve(options.registry, doubt=random.choice((0.0, 0.02, 0.1)))
    return attrs.evolve(options, registry=registry, log=draw_log(
        random, options.nodes, options.has_churn, options.parameters.replicas))


def _draw_apart(seed: int, kinds: Sequence[str]) -> tuple[Habit, ...]:
    """A run without any fault stays without."""
    return tuple(habit for habit in APART if stream(seed, habit.kind).random() < habit.share) if kinds else ()


def _draw_ahead(random: Random, options: Options) -> Options:
    """Where there are schedules, a node may be ahead for a while, if others can tell that it is."""
    is_unfit = (options.retention.keep_ms or options.is_total_loss or options.fast
                or options.parameters.replicas < CLOCKS_MIN)
    if random.random() >= AHEAD.share or is_unfit or not options.workload.schedule_ms:
        return options
    return attrs.evolve(options, apart=(*options.apart, AHEAD))


def _draw_retention(random: Random, archive: Random) -> Retention:
    retention = Retention(random.randint(3_000, 8_000), random.choice((300, 1_000)), random.choice((10, 200)),
                          archive.random() < ARCHIVES)
    return retention if random.random() < COLLECTS else Retention()


def _draw_careful(random: Random, drawn: Options) -> str:
    return random.choice(drawn.nodes) if drawn.retention.keep_ms and random.random() < CAREFUL else ""


def _draw_names(random: Random) -> tuple[str, ...]:
    return ("daily", "weekly") if random.random() < NAMES else ()


def _draw_keys(random: Random) -> tuple[str, ...]:
    return TWINS[: random.randint(1, 2)] if random.random() < KEYS else ()


def _draw_pause(random: Random) -> int:
    return random.choice((600, 2_000)) if random.random() < PAUSES else 0


def _draw_forging(random: Random) -> int:
    return random.choice((200, 1_000)) if random.random() < FORGES else 0


def _draw_schedule(random: Random) -> int:
    return random.choice((500, 900)) if random.random() < SCHEDULES else 0


def _draw_limit(random: Random) -> int:
    return random.choice((1_500, 4_000)) if random.random() < LIMITED else 0


def _draw_report(random: Random) -> int:
    return random.choice((100, 300)) if random.random() < ATTENDED else 0


def _draw_fast(random: Random, nodes: Sequence[str], skew_ms: int) -> tuple[str, int]:
    name, ahead_ms = random.choice(nodes), random.choice((skew_ms - 1, skew_ms + 1, 10 * skew_ms))
    return (name, ahead_ms) if random.random() < FAST else ("", 0)


def _draw_kinds(random: Random) -> tuple[str, ...]:
    kinds = tuple(fault for fault in PROCESS + NETWORK + REGISTRY if random.random() < 0.35)
    losses = tuple(fault for fault in DISK if random.random() < 0.7)
    if random.random() < LOSSES:
        kinds += losses
    if random.random() < LEAVE:
        kinds += CHURN
    return kinds if random.random() < 0.95 else ()


def _draw_timing(random: Random) -> Timing:
    return attrs.evolve(
        DEFAULT_TIMING, resend_ms=random.choice((50, 150, 300)), request_ms=random.choice((800, 1_500)),
        grant_ms=random.choice((300, 600)), gossip_ms=random.choice((500, 900)), silence_ms=2_000,
        vote_ms=random.choice((200, 500)), heir_delay_ms=random.choice((150, 300)),
        retry_ms=random.choice((60, 150)), exchange_ms=random.choice((1_000, 3_000, 6_000)),
        exchange_page_ms=random.choice((500, 1_500)), exchanges=random.choice((1, 4)),
        confirm_ms=random.choice((5, 100)), exchange_units=random.choice((3, 10_000)),
        draft_ms=random.choice((2_000, 60_000)), draft_rows=random.choice((3, 500)),
        sweep_rows=random.choice((2, 2_000)))


def _draw_limits(random: Random) -> Limits:
    return attrs.evolve(DEFAULT_LIMITS, page_rows=random.choice((3, 20, 1_000)))


def _draw_hoard(random: Random) -> bool:
    return random.random() < HOARDS


def hoarding(options: Options) -> Options:
    """The habits of a client that claims much and holds it for long: many live claims, in many pages."""
    return attrs.evolve(options, workload=attrs.evolve(
        options.workload, enqueue_ms=600, claim_ms=500, batch_max=6, lease_ms=(3_000, 8_000), keys=(), names=(),
        needs=0.0, delay_ms=0, life_ms=0))


def _draw_tokens(random: Random, limits: Limits) -> Limits:
    """In some runs a leadership is spent after few claims."""
    return attrs.evolve(limits, tokens=random.randint(3, 30)) if random.random() < SPENT else limits


def _draw_pages(random: Random, limits: Limits, is_hoarding: bool) -> Limits:
    """In some runs a page holds few bytes: what replicas say at once is cut by bytes and not by rows. Where many
    claims are held, each is a page of its own."""
    if is_hoarding:
        return attrs.evolve(limits, page_bytes=60)
    return attrs.evolve(limits, page_bytes=random.choice((300, 1_000))) if random.random() < NARROW else limits


def _draw_page_wait(random: Random, timing: Timing) -> Timing:
    """In some runs a candidate waits for a page of claims no longer than that takes, or somewhat longer."""
    return attrs.evolve(timing, page_ms=random.choice((60, 200, 4_000)))


def _draw_weather(random: Random) -> Weather:
    return Weather(latency_mean_ms=random.choice((0.5, 2.0, 10.0)), tail=random.choice((0.0, 0.002, 0.01)),
                   loss=random.choice((0.0, 0.0, 0.02, 0.1, 0.25)),
                   repeat=random.choice((0.0, 0.0, 0.05, 0.2)), capacity=random.choice((0, 0, 0, 4, 20)))


def _draw_workload(random: Random) -> Workload:
    shortest_ms = random.choice((100, 400))
    fates = tuple(fate for fate in FATES if random.random() < 0.6)
    return Workload(
        clients=random.choice((1, 1, 2, 3)), queues=("q0", "q1", "q2")[: random.randint(1, 3)],
        enqueue_ms=random.choice((500, 1_000, 2_000)), claim_ms=random.choice((400, 800, 1_600)),
        read_ms=random.choice((1_000, 4_000)), patience_ms=random.choice((600, 2_500)),
        lease_ms=(shortest_ms, shortest_ms * random.choice((2, 8))), fates=fates or ("complete",),
        batch_max=random.choice((1, 2, 5)), is_logging=random.random() < 0.5)


def _draw_times(random: Random, workload: Workload) -> Workload:
    """Tasks for later, tasks that expire under the hands of workers, and what is said at the end of a claim."""
    return attrs.evolve(workload, delay_ms=random.choice((0, 0, 500, 3_000)),
                        life_ms=random.choice((0, 0, 1_000, 4_000)), has_results=random.random() < 0.4)


def _draw_outcomes(random: Random, workload: Workload) -> Workload:
    """Other ends than completion, in some runs. Drawn apart, so that the rest of a seed stays what it was."""
    fates = tuple(fate for fate in ENDINGS if random.random() < 0.3)
    return attrs.evolve(
        workload, fates=workload.fates + fates, max_attempts=random.choice(((), (), (1, 2, 25), (3,))),
        cancel_ms=random.choice((0, 0, 1_000)), revive_ms=random.choice((0, 0, 500)))


def _draw_needs(random: Random, workload: Workload) -> Workload:
    """Tasks that wait for others, in half of the runs."""
    return attrs.evolve(workload, needs=random.choice((0.0, 0.0, 0.3, 0.6)),
                        dep_wait_ms=random.choice(((300, 2_000), (2_000, NEVER_MS))))


def _draw_walk(random: Random, timing: Timing) -> Timing:
    return attrs.evolve(timing, watch_ms=random.choice((10, 50)), watch_rows=random.choice((2, 1_000)),
                        rewatch_ms=random.choice((200, 2_000)))


def _draw_horizon(random: Random, options: Options) -> Options:
    """Horizons nearer than some leases, in some runs. The nearest is written anew at each look of a leader; so not
    where half of the writes are in doubt, which no leader survives for long, nor where a node looks at one
    partition at a time, and would do nothing else."""
    near_ms = random.choice((600, 1_500))
    if random.random() >= NEAR or options.registry.ambiguity > 0.1 or options.timing.look_due == 1:
        return options
    return attrs.evolve(options, timing=attrs.evolve(options.timing, horizon_ms=near_ms))


def _draw_looks(random: Random, timing: Timing) -> Timing:
    """In some runs, as with thousands of partitions: a node looks at what changed or is due, one at a time, and
    never at all; few move at a time; and gossip speaks of one partition and of what changed."""
    if random.random() >= MANY:
        return timing
    return attrs.evolve(timing, look_round=random.choice((0, 0, 64)), look_due=random.choice((1, 128)),
                        look_shifts=random.choice((1, 16)), gossip_partitions=random.choice((1, 256)))


def _draw_names_told(random: Random, timing: Timing) -> Timing:
    """In some runs, as with thousands of queues: one gossip names some of them, and looks few of them up."""
    if random.random() >= FEW_NAMES:
        return timing
    return attrs.evolve(timing, gossip_queues=random.choice((1, 2)), gossip_heads=random.choice((1, 512)))


def _draw_gathering(random: Random, timing: Timing) -> Timing:
    """In half of the runs each dependency counts as many."""
    return attrs.evolve(timing, gather_ms=random.choice((100, 1_000)), gather_rows=random.choice((1, 100)))
