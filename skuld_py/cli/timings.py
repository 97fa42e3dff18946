"""``--timing-gossip`` and its likes: the durations of a node that an operator may set, options of ``skuld node``.

Each has its twins as every option has: ``SKULD_NODE_TIMING_GOSSIP``, and ``gossip`` of the table
``[node.timing]``. In the help they have a section of their own, behind the options that everybody needs. What does
not fit together is refused at the start, by both names (``config.check_timing``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from skuld_py.cli.twins import TIMING
from skuld_py.cli.values import DAY_S, Duration

F = TypeVar("F", bound=Callable[..., Any])

_LEAST_S, _MOST_S = 0.001, 60.0
_LEAST = {"seat_ms": 1.0}
"""A seat that is given sooner goes to a node that may only be looking in, and takes a vote with it."""
_MOST = {"draft_ms": 30 * DAY_S, "horizon_ms": DAY_S, "exchange_ms": 3600.0, "rewatch_ms": 3600.0,
         "seat_ms": DAY_S, "steady_ms": DAY_S, "sync_ms": 3600.0,
         "ending_ms": 20.0, "handover_ms": 30.0}
"""A node that stops has ended before those that had it stop, a minute ago, end it."""
_DURATIONS = {
    "resend_ms": ("400ms", "An unanswered copy or grant is sent again after this."),
    "behind_ms": ("500ms", "A node whose own timers are overdue for longer takes on nothing new."),
    "request_ms": ("4s", "A node gives a client's request up; keep it below the clients' own --timeout."),
    "grant_ms": ("1.5s", "A grant without a majority by then is released."),
    "dry_ms": ("1s", "A leader that was lent too little of a limit asks again."),
    "gossip_ms": ("500ms", "Nodes tell each other what they lead."),
    "silence_ms": ("3s", "A leader not heard of for this long is stood against."),
    "vote_ms": ("1s", "A candidacy without its votes by then starts over."),
    "page_ms": ("4s", "A candidate waits this long for the next page of claims."),
    "sync_ms": ("15s", "New voters must have caught up by then."),
    "horizon_ms": ("30m", "How far ahead leases may reach; claims outlive half of it without ZooKeeper."),
    "heir_delay_ms": ("150ms", "The k-th voter waits k times this before it stands."),
    "round_ms": ("1s", "Least time of one round of looks over all partitions."),
    "first_heir_delay_ms": ("1s", "In place of heir-delay before a partition's first leader."),
    "steady_ms": ("5s", "A node up for this long takes back what it leads by placement."),
    "seat_ms": ("30s", "A node up for this long may take the seat of one that can vote."),
    "ending_ms": ("1s", "A node that stops waits this long for what it has taken on."),
    "handover_ms": ("3s", "A node that stops tries for this long to hand over what it leads."),
    "retry_ms": ("250ms", "Least pause between two candidacies."),
    "clock_ms": ("2s", "Nodes ask what the others' clocks show."),
    "exchange_ms": ("20s", "Each copy is compared with another one."),
    "exchange_page_ms": ("3s", "A comparison whose next answer does not come by then ends."),
    "confirm_ms": ("200ms", "Between two looks at a difference."),
    "draft_ms": ("6h", "Each hash tree is drafted anew from the records."),
    "draft_pause_ms": ("10ms", "Between two steps of that."),
    "bury_ms": ("50ms", "Between two looks for tasks that have expired."),
    "watch_ms": ("50ms", "Between two steps of the walk over what blocked tasks wait for."),
    "rewatch_ms": ("30s", "Least pause between two such walks."),
    "gather_ms": ("100ms", "Least pause between two questions about many new dependencies."),
}
"""Of each its default and its words. Written out here, since help must not import what a node does."""


class TimingOption(click.Option):
    """An option with a section of its own in the help."""

    def get_help_record(self, ctx: click.Context) -> None:
        """Not among the others."""
        return

    def row(self, ctx: click.Context) -> tuple[str, str]:
        """Its words."""
        record = super().get_help_record(ctx)
        assert record is not None
        return record


class TimedCommand(click.Command):
    """A verb with such options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The others first."""
        super().format_options(ctx, formatter)
        with formatter.section("Timings, alike on all nodes, for networks and disks that are far from usual"):
            formatter.write_dl([param.row(ctx) for param in self.params if isinstance(param, TimingOption)])


def timing_options(function: F) -> F:
    """An option for each duration; their values come as ``timing_gossip_s`` and so on."""
    for field, (default, words) in reversed(_DURATIONS.items()):
        option = click.option(
            f"--{TIMING}-{word_of(field)}", _name_of(field), cls=TimingOption, metavar="DURATION", default=default,
            type=Duration(_LEAST.get(field, _LEAST_S), _MOST.get(field, _MOST_S)), help=words)
        function = option(function)
    return function


def timings_of(given: dict[str, float]) -> dict[str, int]:
    """The fields of ``Timing``, from the values of such options."""
    return {field: round(given[_name_of(field)] * 1000) for field in _DURATIONS}


def word_of(field: str) -> str:
    """``heir-delay`` for ``heir_delay_ms``."""
    return field.removesuffix("_ms").replace("_", "-")


def _name_of(field: str) -> str:
    return f"{TIMING}_{field.removesuffix('_ms')}_s"
