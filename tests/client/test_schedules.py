"""Schedules that are put again, as programs do that put them at every start."""

from __future__ import annotations

from skuld_py.client.scheduling import Schedule
from skuld_py.testing import MemoryClient

NOW = 1_900_000_000.0


def only(client: MemoryClient) -> Schedule:
    found, = client.schedules()
    return found


def test_putting_what_is_there_changes_nothing_and_loses_no_tick() -> None:
    """One in an hour, put every 50 minutes: counted from its last putting, ticks before that would be nobody's."""
    with MemoryClient(now=NOW) as client:
        client.put_schedule("beat", "q", b"x", every_s=3_600)
        first = only(client)
        for _ in range(12):
            client.advance(3_000)
            client.put_schedule("beat", "q", b"x", every_s=3_600)
            assert only(client) == first
        assert client.count("q") == 10


def test_another_definition_has_the_ticks_from_then_on() -> None:
    with MemoryClient(now=NOW) as client:
        client.put_schedule("beat", "q", b"x", every_s=3_600)
        first = only(client)
        client.advance(10)
        client.put_schedule("beat", "q", b"y", every_s=3_600)
        assert only(client).since_ms >= first.since_ms + 10_000


def test_a_schedule_that_was_removed_has_the_ticks_from_its_next_putting_on() -> None:
    with MemoryClient(now=NOW) as client:
        client.put_schedule("beat", "q", b"x", every_s=3_600)
        first = only(client)
        client.remove_schedule("beat")
        client.advance(10)
        client.put_schedule("beat", "q", b"x", every_s=3_600)
        assert only(client).since_ms >= first.since_ms + 10_000
