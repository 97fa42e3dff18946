"""Periodic tasks: what a schedule says, when its ticks are, and which task a tick is.

A schedule is a setting (``model.setting``), so all nodes have it. Its *ticks* are moments: those of a cron line in
a time zone, or the multiples of ``every_ms`` since 1970. They follow from the definition alone, and so does the id
of a tick's task: however many nodes enqueue a tick, and however often, there is one task. So two nodes that both
see to a schedule do no harm.

``since_ms`` is when the definition was made: ticks up to then are none of its own. A changed definition therefore
never makes an old tick anew with another content. A client that makes a definition takes its version for that
time. A wrong clock may have raised a version above the present; ``upto`` keeps the time below it.

Cron lines are read by a function handed in (``Almanac``), since time zones are files.

Rejected: counting from ``since_ms`` on, where the same schedule put twice would have two series of ticks; and
writing down the last tick done, which would be a register to be agreed on at each tick, while the task itself says
that the tick is done.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import attrs
from xxhash import xxh3_64_intdigest

from skuld_py.errors import Refused
from skuld_py.model import ids
from skuld_py.model.body import Body, Header
from skuld_py.model.names import NAME
from skuld_py.model.prelude import TIME_MS_MAX

SCHEDULE = "schedule"
PAYLOAD_BYTES_MAX = 32_768
CRON_CHARS_MAX = 255
EVERY_MS_MIN, EVERY_MS_MAX = 100, 366 * 24 * 3_600_000
CATCH_UP_MAX = 100
WINDOW_MS = 1
"""Each tick has a window of its own: one begins at every millisecond."""
_PROBE_MS = 60_000
_FIELDS = ("catch_up", "cron", "every_ms", "header", "payload", "since_ms", "zone")

Almanac = Callable[[str, str, int, int], int | None]
"""(cron line, zone, time, end) -> the first tick after the time, all in milliseconds since 1970; None: there is
none up to the end. What it costs grows with the days between. Raises ``Refused`` when the line or the zone cannot
be read."""


def no_almanac(cron: str, zone: str, after_ms: int, upto_ms: int) -> int | None:
    """For nodes that are given none."""
    raise Refused("bad_cron", "cron: this node has no calendar; use every_s")


@attrs.frozen
class Schedule:
    """A definition. ``header`` and ``payload`` are those of each tick's task; of ``cron`` and ``every_ms`` one is
    given. ``catch_up``: how many missed ticks are made up for besides the newest."""

    header: bytes
    payload: bytes
    since_ms: int
    cron: str = ""
    zone: str = ""
    every_ms: int = 0
    catch_up: int = 0

    @property
    def queue(self) -> str:
        """Where the tasks go."""
        return Header.decode(self.header).queue

    def check(self) -> None:
        """Raises ``Refused``, naming the field, unless all is in its range. The cron line is not read."""
        if bool(self.cron) == bool(self.every_ms):
            raise Refused("bad_schedule", "cron: give either cron or every_s")
        if self.every_ms and (self.zone or not EVERY_MS_MIN <= self.every_ms <= EVERY_MS_MAX):
            raise Refused("bad_schedule", f"every_s: {self.every_ms / 1000:g} is not in {EVERY_MS_MIN / 1000:g}.."
                          f"{EVERY_MS_MAX // 1000}, or a zone is given, which belongs to cron")
        if len(self.cron) > CRON_CHARS_MAX:
            raise Refused("bad_cron", f"cron: {len(self.cron)} characters, more than {CRON_CHARS_MAX}")
        if not 0 <= self.catch_up <= CATCH_UP_MAX:
            raise Refused("bad_schedule", f"catch_up: {self.catch_up} is not in 0..{CATCH_UP_MAX}")
        if not 0 <= self.since_ms <= TIME_MS_MAX:
            raise Refused("bad_schedule", f"since_ms: {self.since_ms} is no time")
        if len(self.payload) > PAYLOAD_BYTES_MAX:
            raise Refused("payload_too_large", f"payload: {len(self.payload)} bytes, a schedule's has at most"
                          f" {PAYLOAD_BYTES_MAX}; store the data elsewhere and send its path")
        _check_header(self.header)

    def upto(self, now_ms: int) -> Schedule:
        """The same definition, made now at the latest."""
        return attrs.evolve(self, since_ms=min(self.since_ms, now_ms))

    def encode(self) -> bytes:
        """The value of its setting; equal schedules are equal bytes."""
        fields = attrs.asdict(self)
        for field in ("header", "payload"):
            fields[field] = base64.b64encode(fields[field]).decode()
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> Schedule:
        """Parse and check; raises ``Refused`` on anything that ``encode`` does not give."""
        try:
            found = json.loads(value)
            if not isinstance(found, dict) or tuple(sorted(found)) != _FIELDS:
                raise ValueError(f"these fields are wanted: {', '.join(_FIELDS)}")
            texts = {name: found[name] for name in ("header", "payload", "cron", "zone")}
            numbers = {name: found[name] for name in ("since_ms", "every_ms", "catch_up")}
            if not (all(type(text) is str for text in texts.values())
                    and all(type(number) is int for number in numbers.values())):
                raise ValueError("texts and whole numbers are wanted")
            header, payload = (base64.b64decode(texts.pop(name), validate=True) for name in ("header", "payload"))
            schedule = cls(header, payload, **numbers, **texts)
        except (ValueError, RecursionError) as problem:
            raise Refused("bad_schedule", f"value: {problem}"[:200]) from None
        schedule.check()
        if schedule.encode() != value:
            raise Refused("bad_schedule", "value: is not in its canonical form")
        return schedule

    # -- tasks ---------------------------------------------------------------------------------

    def task(self, name: str, tick_ms: int) -> tuple[bytes, Body]:
        """Id and body of a tick's task."""
        unique = f"{SCHEDULE}:{name}"
        header = attrs.evolve(Header.decode(self.header), window_ms=WINDOW_MS)
        return (ids.named_id(header.queue, unique, tick_ms, ""),
                Body(header, payload=self.payload, made_ms=tick_ms, unique=unique))


def _check_header(raw: bytes) -> None:
    try:
        header = Header.decode(raw)
    except ValueError as problem:
        raise Refused("bad_schedule", f"header: {problem}") from None
    if not NAME.fullmatch(header.queue):
        raise Refused("bad_name", "queue: is not a name; use letters, digits, '.', '_' and '-'")
    if header.prelude:
        raise Refused("bad_schedule", "header: times, keys and dependencies have no place in a schedule")


def is_schedule(value: bytes) -> bool:
    """Whether it is one; raises ``Refused`` that says why not."""
    Schedule.decode(value)
    return True


def home_of(name: str, partitions: int) -> int:
    """The partition whose leader sees to a schedule."""
    return xxh3_64_intdigest(f"{SCHEDULE}:{name}".encode()) & (partitions - 1)


# -- ticks ----------------------------------------------------------------------------------------------


def tick_after(schedule: Schedule, almanac: Almanac, after_ms: int, upto_ms: int) -> int | None:
    """The first tick after a time, up to another."""
    if schedule.every_ms:
        tick_ms = (after_ms // schedule.every_ms + 1) * schedule.every_ms
        return tick_ms if tick_ms <= upto_ms else None
    return almanac(schedule.cron, schedule.zone, after_ms, upto_ms)


class Search:
    """Finds the newest ticks of a span of time, one look at a time, though an almanac only looks ahead. Parts of
    the span are looked at from the newest back, each twice as long as the one before; one with ticks is halved."""

    def __init__(self, after_ms: int, upto_ms: int, wanted: int) -> None:
        self.upto_ms = upto_ms
        self._wanted = wanted
        spans: list[tuple[int, int]] = []
        size_ms = _PROBE_MS
        while upto_ms > after_ms:
            spans.append((max(after_ms, upto_ms - size_ms), upto_ms))
            upto_ms, size_ms = upto_ms - size_ms, 2 * size_ms
        self._spans = spans[::-1]

    @property
    def is_over(self) -> bool:
        """Whether all wanted ticks are found, or no part of the span is left."""
        return not self._spans or not self._wanted

    def step(self, first: Callable[[int, int], int | None]) -> int | None:
        """Look once, by ``first``, which gives the first tick after a time and up to another; a found tick, if
        this look ends at one."""
        after_ms, upto_ms = self._spans.pop()
        tick_ms = first(after_ms, upto_ms) if after_ms < upto_ms else upto_ms
        if tick_ms is None:
            return None
        if tick_ms == upto_ms:
            self._wanted -= 1
            return tick_ms
        self._spans.append((tick_ms, tick_ms))
        middle_ms = (tick_ms + upto_ms) // 2
        if middle_ms > tick_ms:
            self._spans.append((tick_ms, middle_ms))
        self._spans.append((middle_ms, upto_ms))
        return None
