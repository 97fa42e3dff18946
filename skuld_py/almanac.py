"""Cron lines and time zones: when a line's next tick is.

The line is that of Debian's cron: five fields, minute, hour, day of the month, month, day of the week, with names,
lists, ranges and steps; besides ``L`` and ``#`` as ``cronsim`` has them. The zone is a name of the time zone
database, UTC when none is given. Where clocks are set forward, a fixed time that does not exist ticks right after
the gap; where they are set back, a fixed time ticks once, and ``*`` ticks in both hours.

Zones are read from the ``tzdata`` package and never from the system, so that nodes with equal packages agree.
Since it reads files, it is no part of the machines, which are handed ``next_tick``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from skuld_py.errors import Refused

CRON_CHARS_MAX = 255
TIME_MS_MAX = 250_246_540_800_000
"""The year 9900; later there is no room for looking ahead."""
_NO_END = 1 << 62
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*)*", re.ASCII)
_FORM = ("five fields are wanted, minute hour day-of-month month day-of-week, as in '30 6 * * 1-5' for half past"
         " six on working days")
_SECOND, _SPAN = timedelta(seconds=1), timedelta(days=7)
"""Clocks keep a setting for longer than a span."""
_LEAP = timedelta(days=2)
"""Clocks are set forward or back by less."""
_AHEAD = timedelta(days=50 * 366)
_BEHIND_MAX = 200
"""Ticks skipped because they are not later than asked: those of an hour that clocks show twice."""


def next_tick(cron: str, zone: str, after_ms: int, upto_ms: int = _NO_END) -> int | None:
    """The first tick after a time, in milliseconds since 1970; None when there is none up to another time, or
    within fifty years. What it costs grows with the days looked at.

    Raises ``Refused``: ``bad_cron`` naming what is wrong with the line, ``bad_zone``.
    """
    place = zone_of(zone)
    after = datetime.fromtimestamp(min(after_ms, TIME_MS_MAX) // 1000, UTC)
    upto = min(datetime.fromtimestamp(min(upto_ms, TIME_MS_MAX) // 1000, UTC), after + _AHEAD)
    fields = cron.split()
    is_fixed = len(fields) == 5 and not (fields[0].startswith("*") or fields[1].startswith("*"))
    tick = _fixed(cron, after, upto, place) if is_fixed else _flowing(cron, after, upto, place)
    found_ms = None if tick is None or after_ms > TIME_MS_MAX else round(tick.timestamp()) * 1000
    return None if found_ms is None or found_ms > upto_ms else found_ms


def _fixed(cron: str, after: datetime, upto: datetime, place: tzinfo) -> datetime | None:
    """Times of the day: each once, as Debian's cron has it."""
    ticks = islice(_ticks(cron, after.astimezone(place), upto), _BEHIND_MAX)
    return next((tick for tick in ticks if tick.timestamp() > after.timestamp()), None)


def _flowing(cron: str, after: datetime, upto: datetime, place: tzinfo) -> datetime | None:
    """Every moment at which clocks show what the line says, searched for from one setting of the clocks to the
    next. Stretches in which they cannot show it are left out."""
    while True:
        offset = _offset(after, place)
        tick = next((tick - offset for tick in _ticks(cron, after + offset, upto)), None)
        end = upto if tick is None else min(tick, upto)
        near = min(end, after + _LEAP)
        change = _change(after, near, place)
        if change is None and near == end:
            return tick
        if change is None:
            after = max(near, end - _LEAP)
        elif _matches(cron, change + _offset(change, place)):
            return change
        else:
            after = change


def _matches(cron: str, shown: datetime) -> bool:
    return next(_ticks(cron, shown - _SECOND, shown), None) == shown


def _change(after: datetime, until: datetime, place: tzinfo) -> datetime | None:
    """The first moment up to ``until`` at which clocks go otherwise than at ``after``."""
    offset, low = _offset(after, place), after
    while low < until:
        high = min(until, low + _SPAN)
        if _offset(high, place) != offset:
            while high - low > _SECOND:
                middle = low + (high - low) // _SECOND // 2 * _SECOND
                low, high = (middle, high) if _offset(middle, place) == offset else (low, middle)
            return high
        low = high
    return None


def _offset(time: datetime, place: tzinfo) -> timedelta:
    return time.astimezone(place).utcoffset() or timedelta()


class _Ticks(CronSim):
    """What clocks show when a line is due, from a time on and not long after another."""

    def __init__(self, cron: str, after: datetime, upto: datetime) -> None:
        self._last = (upto + _LEAP).date()
        super().__init__(cron, after)

    def advance_month(self) -> None:
        """Called for each month that is looked through."""
        super().advance_month()
        if self.dt.date() > self._last:
            raise StopIteration


def _ticks(cron: str, after: datetime, upto: datetime) -> CronSim:
    if len(cron) > CRON_CHARS_MAX or len(cron.split()) != 5:
        raise Refused("bad_cron", f"cron: {cron[:64]!r} has {len(cron.split())} fields; {_FORM}")
    try:
        return _Ticks(cron, after, upto)
    except CronSimError as problem:
        field = str(problem).removeprefix("Bad ")
        raise Refused("bad_cron", f"cron: {cron!r}: its {field} cannot be read; {_FORM}") from None
    except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError):
        raise Refused("bad_cron", f"cron: {cron!r} cannot be read; {_FORM}") from None


@lru_cache(1_000)
def zone_of(zone: str) -> tzinfo:
    """A zone by its name; raises ``Refused``, ``bad_zone``."""
    if zone in ("", "UTC"):
        return UTC
    if len(zone) <= CRON_CHARS_MAX and _ZONE.fullmatch(zone):
        source = resources.files("tzdata").joinpath("zoneinfo", *zone.split("/"))
        if source.is_file():
            with source.open("rb") as file:
                try:
                    return ZoneInfo.from_file(file, key=zone)
                except ValueError:
                    pass  # another of the package's files, such as a list
    raise Refused("bad_zone", f"zone: {zone[:64]!r} is no time zone; use a name such as 'Europe/Berlin', or 'UTC'")
