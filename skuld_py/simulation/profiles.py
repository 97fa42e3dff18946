"""Profiles of runs: a rule that rests on rare coincidences needs runs in which these are common.

A wipe, then a move, while claims are held: of usual runs few have all three, and most of their time goes to other
things. A *profile* changes the options of every so many seeds, by the seed's number alone, so that a campaign of
any length has its share and a short one too. Numbers are chosen such that no kept seed is of a profile.

Rejected: more of everything in all runs. What is always on hides what only shows without it.
"""

from __future__ import annotations

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.config.scaling import PLAIN
from skuld_py.simulation.faults import AHEAD, APART
from skuld_py.simulation.options import TWINS, Options, Workload
from skuld_py.simulation.world.scheduler import stream
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

EVERY = 11
AMNESIA, CRAMPED = 7, 8
"""Of each eleven seeds the eighth, and the ninth."""
SELDOM, DOUBTFUL = 22, 13
"""Of each twenty-two seeds the fourteenth."""
VISITED = 6
"""And the seventh."""
PROFILES = {"amnesia": (EVERY, AMNESIA), "cramped": (EVERY, CRAMPED), "doubtful": (SELDOM, DOUBTFUL),
            "visited": (SELDOM, VISITED)}
"""By profile: one seed in this many has it, and which of them."""
MESSAGE_BYTES = 5_000
"""The largest message where messages are small: what is cut into pages stays below it, what is not does not."""
FAULTS = ("wipe", "wipe", "leave", "isolate", "isolate", "flap", "expire", "new leader crash")
DOUBTFUL_FAULTS = ("expire", "expire", "expire", "new leader crash", "registry freeze", "registry cut", "isolate",
                   "flap", "one way", "crash")
CLOCK_FAULTS = ("reset", "replay")
"""The faults of runs with wrong clocks. No node may be cut off there: one that hears no other grants by its own
clock."""
VISITED_FAULTS = ("flap", "one way", "clog", "reset", "slow")
"""The faults of runs with visitors: the others stay members, for a visitor may well stand in for a dead one."""
VISITED_SEAT_MS = 4_000
"""Longer than any visit."""
CRAMPED_FAULTS = ("isolate", "isolate", "expire", "crash", "new leader crash", "voter damaged", "voter damaged")


def apply_profile(seed: int, drawn: Options) -> Options:
    """The options of a seed, in the profile that its number has, if it has one."""
    change = {"amnesia": forgetful, "cramped": cramped, "doubtful": doubtful,
              "visited": visited}.get(profile_of(seed))
    return change(seed, drawn) if change is not None else drawn


def profile_of(seed: int) -> str:
    """The one that a seed's number has, if any."""
    return next((name for name, (every, place) in PROFILES.items() if seed % every == place), "")


def seeds_of(profile: str, first: int, count: int) -> range:
    """``count`` seeds of a profile, from a number on; all seeds, when no profile is named."""
    if not profile:
        return range(first, first + count)
    every, place = PROFILES[profile]
    first += (place - first) % every
    return range(first, first + count * every, every)


def forgetful(seed: int, drawn: Options) -> Options:
    """Amnesia and new members: disks are wiped and owners change all the time, over a few tasks that are claimed
    again and again. Little is enqueued, and there is nothing that costs time besides."""
    random = stream(seed, "amnesia")
    replicas = random.choice((3, 3, 3, 5))
    nodes = tuple(f"n{number}" for number in range(1, replicas + random.randint(2, 3)))
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=random.choice((2, 4)), replicas=replicas),
        nodes=nodes, late=nodes[replicas:] if random.random() < 0.5 else (),
        timing=attrs.evolve(drawn.timing, exchange_ms=random.choice((1_000, 3_000)), exchanges=4,
                            exchange_units=10_000, exchange_page_ms=500, sweep_rows=2_000),
        limits=attrs.evolve(drawn.limits, page_rows=random.choice((2, 1_000))),
        weather=attrs.evolve(drawn.weather, loss=random.choice((0.0, 0.02)), latency_mean_ms=1.0),
        registry=RegistryOptions(session_ms=800, watch_ms=20),
        workload=Workload(
            clients=2, queues=("q0",), enqueue_ms=1_500, claim_ms=300, read_ms=4_000, patience_ms=600,
            lease_ms=(400, 3_000), fates=("release", "renew", "abandon", "abandon", "complete"), batch_max=2,
            is_logging=False),
        faults=FAULTS, apart=APART[:2], fault_every_ms=random.choice((300, 600)), is_total_loss=False,
        fast="", fast_ms=0, retention=attrs.evolve(drawn.retention, keep_ms=0, archives=False))


def cramped(seed: int, drawn: Options) -> Options:
    """Messages are small, and many claims are held in one partition while leaders change and voters are damaged.
    Requests and what is read at once are few, as they are beside a message of the usual size. Links are slow: a
    voter is back before the candidate's next question. Members tell each other nothing of the log: such messages
    have sizes of their own."""
    random = stream(seed, "cramped")
    nodes = tuple(f"n{number}" for number in range(1, 4))
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=1, replicas=3), nodes=nodes, late=(),
        log=attrs.evolve(drawn.log, scaling=(PLAIN,)),
        limits=attrs.evolve(DEFAULT_LIMITS, message_bytes=MESSAGE_BYTES, page_rows=1_000, batch_tasks=5,
                            page_bytes=random.choice((60, 300, 1_000))),
        weather=attrs.evolve(drawn.weather, loss=random.choice((0.0, 0.02)), latency_mean_ms=10.0),
        registry=RegistryOptions(session_ms=800, leg_ms=1, watch_ms=5),
        workload=Workload(
            clients=2, queues=("q0",), enqueue_ms=600, claim_ms=200, read_ms=4_000, patience_ms=600,
            lease_ms=(1_000, 8_000), fates=("renew", "renew", "abandon", "snooze"), batch_max=5, is_logging=False),
        faults=CRAMPED_FAULTS, apart=(), fault_every_ms=random.choice((400, 800)), is_total_loss=False,
        fast="", fast_ms=0, retention=attrs.evolve(drawn.retention, keep_ms=0, archives=False))


def doubtful(seed: int, drawn: Options) -> Options:
    """Answers are lost and leaders deposed while few tasks go through many hands, whose owners use the library.
    Clocks of callers are wrong for moments, and those of nodes in runs that lose few messages. No disk is lost."""
    random = stream(seed, "doubtful")
    nodes = tuple(f"n{number}" for number in range(1, 4))
    schedule_ms = random.choice((0, 900))
    faults, loss = (CLOCK_FAULTS, 0.02) if schedule_ms else (DOUBTFUL_FAULTS, random.choice((0.1, 0.25)))
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=random.choice((1, 2)), replicas=3,
                                       skew_ms=random.choice((100, 1_000))),
        nodes=nodes, late=(),
        timing=attrs.evolve(drawn.timing, resend_ms=50, request_ms=random.choice((400, 800)), grant_ms=300,
                            exchange_ms=1_000, exchanges=4, exchange_units=10_000, exchange_page_ms=500,
                            sweep_rows=2_000),
        limits=DEFAULT_LIMITS,
        weather=attrs.evolve(drawn.weather, loss=loss, latency_mean_ms=2.0, capacity=0),
        registry=RegistryOptions(session_ms=800, watch_ms=20, ambiguity=0.1),
        workload=Workload(
            clients=1, queues=("q0",), enqueue_ms=2_000, claim_ms=200, read_ms=250, patience_ms=2_500,
            lease_ms=(300, 2_000), fates=("late", "abandon", "fail", "complete"), batch_max=2, is_logging=False,
            schedule_ms=schedule_ms, max_attempts=(1, 2, 25), keys=TWINS[:1], names=("daily", "weekly"),
            verb_ms=random.choice((150, 400)), has_results=True),
        faults=faults, apart=(AHEAD,) if schedule_ms else (), fault_every_ms=random.choice((400, 800)),
        has_core_phase=False, is_total_loss=False, fast="", fast_ms=0,
        retention=attrs.evolve(drawn.retention, keep_ms=0, archives=False))


def visited(seed: int, drawn: Options) -> Options:
    """Nodes join for moments, end cleanly and lose their disks, some at the same time. They stay for less long
    than a node must to have a seat, so at the end the others must do without them."""
    random = stream(seed, "visited")
    nodes, visitors = ("n1", "n2", "n3"), tuple(f"n{number}" for number in range(4, 4 + random.randint(2, 3)))
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=random.choice((2, 4)), replicas=3),
        nodes=(*nodes, *visitors), late=visitors, visitors=visitors,
        log=attrs.evolve(drawn.log, is_fresh=random.random() < 0.5, scaling=(PLAIN,), settings=attrs.evolve(
            drawn.log.settings, forget_ms=random.choice((None, 60_000)), return_ms=random.choice((500, 60_000)))),
        timing=attrs.evolve(drawn.timing, seat_ms=VISITED_SEAT_MS, exchange_ms=1_000, exchanges=4,
                            exchange_units=10_000, exchange_page_ms=500, confirm_ms=5, sweep_rows=2_000,
                            look_due=128),
        limits=DEFAULT_LIMITS,
        weather=attrs.evolve(drawn.weather, loss=0.0, latency_mean_ms=1.0, capacity=0),
        registry=RegistryOptions(session_ms=3_000, watch_ms=20),
        workload=Workload(
            clients=2, queues=("q0",), enqueue_ms=1_000, claim_ms=300, read_ms=2_000, patience_ms=1_500,
            lease_ms=(400, 3_000), fates=("release", "renew", "complete", "complete"), batch_max=2,
            is_logging=False),
        faults=VISITED_FAULTS, apart=(), fault_every_ms=random.choice((1_000, 2_000)), has_core_phase=True,
        is_total_loss=False, fast="", fast_ms=0,
        retention=attrs.evolve(drawn.retention, keep_ms=0, archives=False))
