"""The verbs of periodic tasks: put a schedule, list them, remove one.

    client.put_schedule("nightly", "reports", b"all", cron="30 2 * * *", zone="Europe/Berlin")
    client.put_schedule("beat", "health", every_s=10)

The cluster enqueues a task at each tick, one task, however many nodes enqueue it; no process of the caller's has
to run. A schedule is a setting, so it is changed as ``pausing`` says. Putting the same one again changes nothing,
so a program may put its schedules whenever it starts.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.client import checking, options
from skuld_py.client.asking import Answered, Work, ask, verb
from skuld_py.client.options import Retry
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model import names, schedule
from skuld_py.model.body import Header
from skuld_py.model.schedule import SCHEDULE
from skuld_py.model.setting import UNSET

UTC = "UTC"


@attrs.frozen
class Schedule:
    """A periodic task: ``payload`` goes to ``queue`` at each tick of ``cron`` in ``zone``, or every ``every_s``
    seconds, counted from 1970. ``since_ms``: milliseconds since 1970, ticks later than that are its own."""

    name: str
    queue: str
    payload: bytes
    cron: str | None
    zone: str
    every_s: float | None
    priority: int
    catch_up: int
    since_ms: int
    headers: Mapping[str, str]


class Scheduling:
    """Needs a name to sign changes with."""

    holder: str

    @verb
    def put_schedule(self, name: str, queue: str, payload: bytes = b"", *, cron: str | None = None,
                     every_s: float | None = None, zone: str = UTC, priority: int = 0, catch_up: int = 0,
                     retry: Retry | None = None, headers: Mapping[str, str] | None = None) -> Work[list[str]]:
        """Have a task enqueued at each tick from now on: of ``cron``, five fields as in crontab(5), in a time
        ``zone``; or every ``every_s`` seconds. What the schedule of this name was is replaced.

        Ticks missed while the cluster could not enqueue are made up for by the newest alone, and by ``catch_up``
        more, at most 100, all of the last 31 days. Gives the registered nodes that have not confirmed it. Raises
        ``Refused``: ``bad_cron``, ``bad_zone``, ``bad_schedule``, and what ``enqueue`` raises.
        """
        names.check_name("name", name)
        header = options.header_of(queue, priority, retry, headers)
        checking.check_payload(payload)
        wanted = schedule.Schedule(header, payload, 0, _text("cron", cron), _zone(zone), _every_ms(every_s),
                                   _count(catch_up))
        wanted.check()
        got = (yield from _read(name)).message
        known = next((_decoded(row) for row in got.rows if row.value != UNSET), None)
        is_known = known is not None and attrs.evolve(known, since_ms=0) == wanted
        since_ms = known.since_ms if known is not None and is_known else got.version
        return (yield from self._put_schedule(name, got.version, attrs.evolve(wanted, since_ms=since_ms).encode()))

    @verb
    def schedules(self) -> Work[list[Schedule]]:
        """All schedules, in the order of their names."""
        found: list[Schedule] = []
        after, is_over = b"", False
        while not is_over:
            got = (yield from ask(m.GotSettings, m.GetSettings(0, SCHEDULE, "", after))).message
            found += [_view(row.name, made) for row in got.rows if (made := _decoded(row)) is not None]
            after, is_over = got.upto, not got.upto
        return found

    @verb
    def remove_schedule(self, name: str) -> Work[list[str]]:
        """Have no more tasks enqueued by a schedule; those that are there stay. Gives the registered nodes that
        have not confirmed it. Raises ``Refused``, ``no_such_schedule``, when there is none."""
        names.check_name("name", name)
        got = (yield from _read(name)).message
        if all(row.value == UNSET for row in got.rows):
            raise Refused("no_such_schedule", f"name: there is no schedule {name!r}; list those there are")
        return (yield from self._put_schedule(name, got.version, UNSET))

    def _put_schedule(self, name: str, version: int, value: bytes) -> Work[list[str]]:
        put = yield from ask(m.SettingPut, m.PutSetting(0, SCHEDULE, name, version, self.holder, value))
        return [*put.message.missing]


def _read(name: str) -> Work[Answered[m.GotSettings]]:
    return (yield from ask(m.GotSettings, m.GetSettings(0, SCHEDULE, name, b"")))


def _decoded(row: m.SettingRow) -> schedule.Schedule | None:
    try:
        return schedule.Schedule.decode(row.value) if row.value != UNSET else None
    except Refused:
        return None  # of a later version of this program


def _view(name: str, made: schedule.Schedule) -> Schedule:
    header = Header.decode(made.header)
    return Schedule(name, header.queue, made.payload, made.cron or None, made.zone or UTC,
                    made.every_ms / 1000 if made.every_ms else None, header.priority, made.catch_up, made.since_ms,
                    dict(header.headers))


def _text(field: str, given: object) -> str:
    if given is not None and (not isinstance(given, str) or not given):
        raise Refused(f"bad_{field}", f"{field}: {given!r} is no text")
    return given or ""


def _zone(given: object) -> str:
    zone = _text("zone", given)
    return "" if zone == UTC else zone


def _every_ms(given: object) -> int:
    if given is None:
        return 0
    every_ms = checking.scaled(given, 1_000)
    if every_ms is None or every_ms <= 0:
        raise Refused("bad_schedule", f"every_s: {str(given)[:40]} is no number of seconds above 0")
    return every_ms


def _count(given: object) -> int:
    if type(given) is not int:
        raise Refused("bad_schedule", f"catch_up: {given!r} is no whole number")
    return given
