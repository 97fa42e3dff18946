"""What a task may be enqueued with besides its payload: when, until when, how often, and with which headers.

``task_options`` gives a verb the options, and hands it all that was given as one mapping: the keyword arguments of
the client's ``enqueue``. What was left out is left out there, too, so that the defaults have one owner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from skuld_py.cli.values import DAY_S, HEADER, MOMENT, Duration

Verb = Callable[..., None]
BACKOFF = Duration(most_s=45 * DAY_S)

_OPTIONS = (
    click.option("--not-before", type=MOMENT, metavar="WHEN", default=None, show_default="at once",
                 help="When it may be claimed: from now, as 10m, or a time, as 2026-12-01T08:00+01:00."),
    click.option("--expires", type=MOMENT, metavar="WHEN", default=None, show_default="never",
                 help="Nobody is to claim it any more then. With --id, give times, which are the same again."),
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
    click.option("--header", "headers", type=HEADER, multiple=True, metavar="KEY=VALUE",
                 help="Told to who claims it, besides the payload; may be given several times."),
)
_RETRY = ("max_attempts", "backoff_s", "factor", "max_backoff_s", "jitter")


def task_options(verb: Verb) -> Verb:
    """The options; ``verb`` is given what they say as ``conditions``."""

    @wraps(verb)
    def conditioned(**given: Any) -> None:
        own = {name: given.pop(name) for name in ("not_before", "expires", "headers", *_RETRY)}
        verb(conditions=_conditions(own), **given)

    for option in reversed(_OPTIONS):
        option(conditioned)
    return conditioned


def _conditions(own: dict[str, Any]) -> dict[str, Any]:
    from skuld_py.client.options import Retry

    made = {name: own[name] for name in ("not_before", "expires") if own[name] is not None}
    policy = {name: own[name] for name in _RETRY if own[name] is not None}
    if policy:
        made["retry"] = Retry(**policy)
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
