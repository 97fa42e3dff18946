"""Cron lines: the ticks of each against a calendar walked minute by minute, and lines that are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from cronsim import CronSim

from skuld_py.almanac import TIME_MS_MAX, next_tick, zone_of
from skuld_py.errors import Refused

ZONES = ("", "UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata")
LINES = ("*/15 * * * *", "5 * * * *", "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "*/20 0 * * *", "0 6 * * 1-5",
         "0 12 1 * *", "0 0 29 2 *", "30 23 * 3,11 0")
CHANGES = (datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 4, 5, tzinfo=UTC),
           datetime(2026, 9, 6, tzinfo=UTC), datetime(2026, 10, 4, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC))
"""Days around which clocks are set in some of the zones."""


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def shown(tick_ms: int, zone: str) -> str:
    return f"{datetime.fromtimestamp(tick_ms / 1000, zone_of(zone)):%m-%d %H:%M%z}"


def series(cron: str, zone: str, start_ms: int, stop_ms: int) -> list[int]:
    found: list[int] = []
    while (tick := next_tick(cron, zone, found[-1] if found else start_ms)) is not None and tick <= stop_ms:
        found.append(tick)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", LINES)
def test_from_wherever_one_looks_the_ticks_are_the_same(cron: str, zone: str) -> None:
    """The first tick after each moment is the first of the series after it; so the newest can be searched for."""
    for day in CHANGES:
        start, stop = ms(day - timedelta(hours=30)), ms(day + timedelta(hours=54))
        ticks = series(cron, zone, start, stop)
        for moment in range(start, stop - 3_600_000 * 24, 17 * 60_000):
            expected = next((tick for tick in ticks if tick > moment), None)
            found = next_tick(cron, zone, moment)
            assert found == expected or (expected is None and found is not None and found > stop), (
                cron, zone, shown(moment, zone or "UTC"))


@pytest.mark.parametrize("zone", (*ZONES, "Pacific/Apia"))
@pytest.mark.parametrize("cron", (*LINES, "* * 29 2 */7", "* 2 28-31 3,10 *"))
def test_a_tick_is_told_up_to_an_end_and_none_beyond(cron: str, zone: str) -> None:
    for day in (*CHANGES, datetime(2011, 12, 30, tzinfo=UTC)):
        for hours in range(-30, 30, 7):
            moment = ms(day + timedelta(hours=hours))
            tick = next_tick(cron, zone, moment)
            assert tick is not None
            assert next_tick(cron, zone, moment, tick) == tick
            assert next_tick(cron, zone, moment, tick - 1) is None, (cron, zone, shown(moment, zone or "UTC"))


@pytest.mark.parametrize("zone", ["", "Europe/Berlin"])
@pytest.mark.parametrize("cron", ["* * 29 2 */7", "* * */31 * 1#5", "0 0 */31 * 1#5", "30 2 29 2 */7"])
def test_what_a_look_costs_grows_with_the_days_looked_at_however_rare_the_ticks_are(
        cron: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    days = 0

    def match_day(self: CronSim, day: date) -> bool:
        nonlocal days
        days += 1
        return matches(self, day)
    matches = CronSim.match_day
    monkeypatch.setattr(CronSim, "match_day", match_day)
    for moment in (ms(change - timedelta(days=10)) for change in CHANGES):
        days = 0
        assert next_tick(cron, zone, moment, moment + 31 * 86_400_000) is None
        assert days <= 4 * 62


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("cron", "is_tick"), [
    ("*/15 * * * *", lambda time: time.minute % 15 == 0), ("5 * * * *", lambda time: time.minute == 5),
    ("*/20 0 * * *", lambda time: time.minute % 20 == 0 and time.hour == 0),
    ("30 */2 * * 0", lambda time: time.minute == 30 and time.hour % 2 == 0 and time.weekday() == 6)])
def test_a_line_with_a_star_ticks_whenever_clocks_show_it(
        cron: str, is_tick: Callable[[datetime], bool], zone: str) -> None:
    place = zone_of(zone)
    for day in CHANGES:
        start, stop = ms(day - timedelta(hours=20)), ms(day + timedelta(hours=44))
        walked = [moment for moment in range(start + 60_000, stop + 1, 60_000)
                  if is_tick(datetime.fromtimestamp(moment / 1000, place))]
        assert series(cron, zone, start, stop) == walked, zone


@pytest.mark.parametrize(("cron", "zone", "wanted"), [
    ("30 2 * * *", "Europe/Berlin", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
    ("0 0 * * *", "UTC", ["03-29 00:00+0000", "03-30 00:00+0000"]),
])
def test_what_falls_into_the_gap_when_clocks_are_set_ticks_behind_it(
        cron: str, zone: str, wanted: list[str]) -> None:
    day = datetime(2026, 3, 28, 0, 30, tzinfo=UTC)
    stop = day + timedelta(days=2, hours=6)

    assert [shown(tick, zone) for tick in series(cron, zone, ms(day), ms(stop))] == wanted


def test_a_fixed_time_that_clocks_show_twice_ticks_once_and_a_star_in_both_hours() -> None:
    start, stop = ms(datetime(2026, 10, 24, 23, tzinfo=UTC)), ms(datetime(2026, 10, 25, 3, tzinfo=UTC))

    assert [shown(tick, "Europe/Berlin") for tick in series("30 2 * * *", "Europe/Berlin", start, stop)] == [
        "10-25 02:30+0200"]
    assert len(series("30 * * * *", "Europe/Berlin", start, stop)) == 4


@pytest.mark.parametrize(("cron", "field"), [
    ("61 * * * *", "minute"), ("* 24 * * *", "hour"), ("* * 32 * *", "day-of-month"), ("* * * 13 *", "month"),
    ("* * * * 8", "day-of-week"), ("0 0 30 2 *", "day-of-month"), ("* * * *", "4 fields"), ("", "0 fields"),
    ("* * * * * *", "6 fields"), ("1#2/3 * * * *", "minute"), ("*/0 * * * *", "minute"), ("a * * * *", "minute"),
    (", * * * *", "minute"), ("5-1 * * * *", "minute"), ("@daily", "1 fields"), ("9" * 240 + " * * * *", "minute"),
    ("* * LW/2,L * *", ""), ("* * * * ²", "day-of-week"),
])
def test_a_line_that_cannot_be_read_is_refused_with_the_field_and_the_remedy(cron: str, field: str) -> None:
    if not field:
        assert next_tick(cron, "", 0) is not None
        return
    with pytest.raises(Refused, match=field) as refused:
        next_tick(cron, "", 0)
    assert refused.value.code == "bad_cron" and refused.value.message.startswith("cron: ")
    assert "30 6 * * 1-5" in refused.value.message


@pytest.mark.parametrize("zone", ["Europe", "Berlin", "../tzdata", "Europe/../UTC", "/etc/localtime", "zone.tab",
                                  "Europe/Berlin/x", "x" * 300, "Europe\\Berlin", "tzdata.zi", " UTC"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(Refused, match="Europe/Berlin") as refused:
        next_tick("* * * * *", zone, 0)
    assert refused.value.code == "bad_zone"


def test_there_is_an_end_of_time() -> None:
    assert next_tick("* * * * *", "Pacific/Kiritimati", TIME_MS_MAX - 1) is not None
    assert next_tick("* * * * *", "Pacific/Kiritimati", TIME_MS_MAX + 1) is None
    assert next_tick("* * * * *", "", 253_402_300_799_999) is None
