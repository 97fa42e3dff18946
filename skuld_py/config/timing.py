"""The durations of a node's machine, and how long it keeps what has ended.

An operator may set those in ``TIMINGS``; ``check_timing`` refuses what does not fit together. The simulator and
the node in memory (``testing``) have others. What the simulator draws fits together by the same rules, but for its
horizons, which are nearer in some runs so that they are met.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs

from skuld_py.errors import Refused


@attrs.frozen
class Timing:
    """Durations of the node machine, in milliseconds."""

    resend_ms: int = 400
    """An unanswered copy or grant is sent again after this, then after twice as long: lost messages cost this, not
    the deadline."""
    behind_ms: int = 500
    """A node whose own timers are overdue for longer takes on nothing new."""
    request_ms: int = 4_000
    """A coordinator gives up here; below the client's default deadline of 5 s."""
    grant_ms: int = 1_500
    """A grant without a majority by then is released."""
    loan_ms: int = 1_000
    """How long a loan lasts, from the question by which its home was confirmed; a new home waits as long, and the
    skew bound, before it lends."""
    dry_ms: int = 1_000
    """A leader that was lent too little asks again after this, if it was not told before that there is more."""
    gossip_ms: int = 500
    silence_ms: int = 3_000
    """A leader not heard of for this long is stood against although its session lives: six gossips."""
    vote_ms: int = 1_000
    """A candidacy that has not won its votes by then starts over."""
    page_ms: int = 4_000
    """A candidate waits this long for the next page of claims, however many pages there are."""
    sync_ms: int = 15_000
    """New members of a cohort must have taken over by then what changed since they had filled."""
    horizon_ms: int = 1_800_000
    """How far ahead of its leases a leader writes the horizon, renewed at half of it: claims survive an outage of
    ZooKeeper of at least that half, less a third of their lease; and an operator's forced epoch waits at most this
    long."""
    heir_delay_ms: int = 150
    """The k-th live voter waits k times this before it stands, so that voters rarely collide."""
    look_due: int = 128
    """Partitions looked at every ``heir_delay_ms`` because something of them changed or came due; others wait for
    the next look, so that what concerns thousands at once does not stop everything else."""
    look_round: int = 64
    """Partitions looked at besides, in turns, whether anything changed or not."""
    round_ms: int = 1_000
    """Least time of one round of looks over all partitions."""
    look_jobs: int = 32
    """Partitions that a node fills or hands off, looked at in each look: the comparisons take longer anyway."""
    look_shifts: int = 8
    """Partitions of one node that change leader or cohort at a time."""
    gossip_partitions: int = 256
    """Partitions that one gossip tells of besides those that changed."""
    gossip_queues: int = 1_000
    """Queues that one gossip names; the wire has room for no more. All nodes have the same number: it tells a
    reader whether there are others."""
    gossip_heads: int = 512
    """Heads of queues looked up for one gossip, over all partitions led; those of the other queues come with the
    next ones. Of a queue with tasks in more partitions the best of this many is told, which orders nodes well
    enough."""
    first_heir_delay_ms: int = 1_000
    """Takes the place of ``heir_delay_ms`` before a partition's first leader: all nodes start together then, and
    the first owners, which are evenly spread, should not lose to nodes that started a moment earlier."""
    steady_ms: int = 5_000
    """A node that has been a member for this long takes back the leaderships that are its by placement."""
    seat_ms: int = 30_000
    """A node that has been a member for this long may take the vote of a node that is able to vote; before that it
    stands in for dead ones only. Nodes that come and go again within it take nothing with them."""
    ending_ms: int = 1_000
    """A node that stops waits for so long for the answers to requests that it has taken on."""
    handover_ms: int = 3_000
    """A node that stops tries for this long to hand over the partitions that it leads."""
    retry_ms: int = 250
    """Least pause between two candidacies; jitter doubles it at most."""
    clock_ms: int = 2_000
    """How often live peers are asked what their clocks show."""
    exchange_ms: int = 20_000
    """Each owned partition is compared with each other owner in turn, one of them this often, besides exchanges
    that have a reason. Two equal copies exchange some 200 bytes."""
    exchange_page_ms: int = 3_000
    """An exchange whose next answer does not come by then ends."""
    confirm_ms: int = 200
    """Between two looks at a difference: writes on their way have mostly arrived by then."""
    exchange_units: int = 10_000
    """Differing units that an exchange notes and repairs before others get their turn: a megabyte."""
    exchanges: int = 4
    """Exchanges that a node runs at once."""
    draft_ms: int = 6 * 3600 * 1000
    """How often each hash tree is drafted anew from the records, to notice one that has gone wrong."""
    draft_rows: int = 500
    """Records read into a draft per step: some milliseconds."""
    draft_pause_ms: int = 10
    """Between two such steps, for everything else: a million tasks are drafted in about a minute."""
    sweep_rows: int = 2_000
    """Lapsed claims returned to the ready index per step."""
    bury_ms: int = 50
    """Between two looks for tasks that have expired; each buries at most ``sweep_rows`` of a partition."""
    watch_ms: int = 50
    """Between two steps of the walk over what blocked tasks wait for."""
    watch_rows: int = 1_000
    """Rows of such a step."""
    rewatch_ms: int = 30_000
    """Least pause between two passes of that walk; after a long pass it is up to ten times as long. A lost word
    delays a dependent until the next pass."""
    gather_ms: int = 100
    """Least pause between two questions about new dependencies, where these are many..."""
    gather_rows: int = 100
    """...which means this many."""
    refuse_unled: int = 0
    """Tasks for a partition that has had no leader for so long are refused; 0: never."""


DEFAULT_TIMING = Timing()
TIMINGS = tuple(field.name for field in attrs.fields(Timing)
                if field.name.endswith("_ms") and field.name != "loan_ms")
"""What an operator may set. Not how long loans last: a new home waits as long as the one before lent, which holds
only where all nodes say the same, and nothing sees to that."""


class _Order(NamedTuple):
    """One duration is so many times another one at least."""

    long: str
    times: int
    short: str
    why: str


_ORDERS = (
    _Order("silence_ms", 2, "gossip_ms", "a leader is stood against when nothing was heard of it for so long, and"
           " one gossip may be lost"),
    _Order("silence_ms", 1, "vote_ms", "a voter must not stand against a candidate that is still being elected"),
    _Order("silence_ms", 1, "heir_delay_ms", "the first heir is to stand before the silence is twice as long"),
    _Order("first_heir_delay_ms", 1, "heir_delay_ms", "before its first leader a partition waits longer, not"
           " shorter"),
    _Order("request_ms", 1, "grant_ms", "a claim that is given up before its grant is leaves a lease that nobody"
           " holds"),
    _Order("request_ms", 1, "resend_ms", "what is lost is sent again before the request is given up"),
    _Order("request_ms", 1, "behind_ms", "a node that is late takes on nothing that it cannot answer in time"),
    _Order("grant_ms", 1, "resend_ms", "what is lost is sent again before the grant is released"),
    _Order("sync_ms", 1, "exchange_page_ms", "new voters catch up by comparisons, whose answers may take so long"),
    _Order("clock_ms", 1, "resend_ms", "a round of questions for clocks must not begin before one is sent again"),
    _Order("exchange_page_ms", 1, "confirm_ms", "an exchange ends when its next answer does not come, and each"
           " looks at a difference twice before it answers"),
    _Order("rewatch_ms", 1, "watch_ms", "the pause after a walk is longer than that between its steps"),
    _Order("draft_ms", 1, "draft_pause_ms", "a draft of a hash tree has many steps"),
)


def check_timing(timing: Timing, skew_ms: int) -> None:
    """``Refused`` when two durations do not fit together, or one does not fit the cluster: names both, and the
    remedy."""
    for long, times, short, why in _ORDERS:
        most, least = getattr(timing, long), times * getattr(timing, short)
        if most < least:
            of = f"{'' if times == 1 else f'{times} times '}{_said(short)}: {getattr(timing, short)} ms"
            raise Refused("bad_timing", f"timing-{_said(long)}: {most} ms is less than {of}; {why}: raise"
                          f" {_said(long)} to {least} ms or more, or lower {_said(short)}", field=long)
    if timing.horizon_ms < 4 * skew_ms:
        raise Refused("bad_timing", f"timing-horizon: {timing.horizon_ms} ms is less than 4 times the skew of the"
                      f" cluster: {skew_ms} ms; it is renewed when half is left, of which two nodes' clocks may"
                      f" each take the skew: raise horizon to {4 * skew_ms} ms or more", field="horizon_ms")


def _said(field: str) -> str:
    """A duration as an operator calls it."""
    return field.removesuffix("_ms").replace("_", "-")


@attrs.frozen
class Retention:
    """How long tasks that have ended are kept."""

    keep_ms: int = 0
    """What ended longer ago is deleted, once every replica knows that; 0: everything is kept."""
    slice_ms: int = attrs.field(default=attrs.Factory(
        lambda self: min(600_000, max(1_000, self.keep_ms // 10)), takes_self=True))
    """Least time between two rises of a partition's watermarks: each costs two comparisons with every replica. A
    tenth of what is kept, but at most ten minutes."""
    page_tasks: int = 1_000
    """Tasks that are deleted at a time, some MiB at most: a leader's loop stands for about 10 ms."""
    archives: bool = False
    """Delete only what an archiver has confirmed."""
    pages_ahead: int = 8
    """Pages of a partition that are on offer to an archiver at a time."""
