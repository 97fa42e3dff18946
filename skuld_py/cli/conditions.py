"""What a task may be enqueued with besides its payload: when, how often, after what, and under which name.

``task_options`` gives a verb the options, and hands it all that was given as one mapping: the keyword arguments of
the client's ``enqueue``. What was left out is left out there, too, so that the defaults have one owner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from skuld_py.cli.values import DAY_S, HEADER, MOMENT, TASK_ID, Duration

Verb = Callable[..., Any]
BACKOFF = Duration(most_s=45 * DAY_S)

_TIMES = (
    click.option("--not-before", type=MOMENT, metavar="WHEN", default=None, show_default="at once",
                 help="When it may be claimed: from now, as 10m, or a time, as 2026-12-01T08:00+01:00."),
    click.option("--expires", type=MOMENT, metavar="WHEN", default=None, show_default="never",
                 help="Nobody is to claim it any more then. With --id, give times, which are the same again."),
)
_ATTEMPTS = (
    click.option("--max-attempts", type=click.IntRange(1, 1_000), default=None, show_default="25",
                 help="How often it is claimed before it is dead, when each attempt fails or lapses."),
    click.option("--backoff", "backoff_s", type=BACKOFF, metavar="DURATION", default=None, show_default="1s",
                 help="How long it rests after its first failure."),
    click.option("--factor", type=click.FloatRange(1, 655.35), default=None, show_default="2",
                 help="How many times as long after each further failure."),
    click.option("--max-backoff", "max_backoff_s", type=BACKOFF, metavar="DURATION", default=None,
                 show_default="1h", help="How long at most."),
    click.option("--jitter", type=click.FloatRange(0, 1), default=None, show_default="0.1",
                 help="Which part of it more or less, at random."),
)
_OTHERS = (
    click.option("--key", metavar="KEY", default=None, show_default="none",
                 help="Tasks of one key are worked on one after another, the oldest first."),
    click.option("--unique", metavar="NAME", default=None, show_default="none",
                 help="Of each name there is one task in a window; the second gets the id of the first."),
    click.option("--unique-window", "unique_window_s", type=Duration(most_s=6 * DAY_S), metavar="DURATION",
                 default=None, show_default="1h", help="How long a window is; windows follow the clock."),
    click.option("--dep", "deps", type=TASK_ID, multiple=True, metavar="ID",
                 help="A task that must end before this one is claimed; may be given several times."),
    click.option("--on-dep-failure", type=click.Choice(["wait", "fail", "ignore"]), default=None,
                 show_default="wait", help="What becomes of it when such a task is dead or cancelled."),
    click.option("--dep-wait", "dep_wait_s", type=Duration(most_s=3_650 * DAY_S), metavar="DURATION", default=None,
                 show_default="24h", help="How long it waits for such a task that nobody knows."),
)
_HEADERS = (
    click.option("--header", "headers", type=HEADER, multiple=True, metavar="KEY=VALUE",
                 help="Told to who claims it, besides the payload; may be given several times."),
)
_SINGLE = ("not_before", "expires", "key", "unique", "unique_window_s", "on_dep_failure", "dep_wait_s")
_RETRY = ("max_attempts", "backoff_s", "factor", "max_backoff_s", "jitter")


def task_options(verb: Verb) -> Verb:
    """The options; ``verb`` is given what they say as ``conditions``."""
    return _with(_TIMES + _ATTEMPTS + _OTHERS + _HEADERS, (*_SINGLE, "deps", "headers", *_RETRY), verb)


def periodic_options(verb: Verb) -> Verb:
    """Those that tasks which come again and again may have, too."""
    return _with(_ATTEMPTS + _HEADERS, ("headers", *_RETRY), verb)


def _with(options: tuple[Callable[[Verb], Verb], ...], names: tuple[str, ...], verb: Verb) -> Verb:
    @wraps(verb)
    def conditioned(*fixed: Any, **given: Any) -> Any:
        own = {name: given.pop(name) for name in names}
        return verb(*fixed, conditions=_conditions(own), **given)

    for option in reversed(options):
        option(conditioned)
    return conditioned


def _conditions(own: dict[str, Any]) -> dict[str, Any]:
    from skuld_py.client.options import Retry

    made = {name: own[name] for name in _SINGLE if own.get(name) is not None}
    policy = {name: own[name] for name in _RETRY if own[name] is not None}
    if policy:
        made["retry"] = Retry(**policy)
    if own.get("deps"):
        made["deps"] = list(own["deps"])
    if own["headers"]:
        made["headers"] = _headers(own["headers"])
    return made


def _headers(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise click.UsageError(f"--header {twice}=... is given twice; keep one of them.")
    return made
