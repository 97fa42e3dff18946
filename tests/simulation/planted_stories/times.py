"""Stories that break C21, and one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import TASK, Story
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.history import RELEASED
from skuld_py.model.prelude import Prelude
from skuld_py.simulation.checkers import times


def body(not_before_ms: int = 0, expires_ms: int = 0) -> bytes:
    """A task that is to be claimed between the two."""
    prelude = Prelude(not_before_ms, expires_ms)
    return Body(Header("q", prelude=prelude.flags), not_before_ms, expires_ms, b"payload").encode()


def rested() -> Story:
    """It fails at 20 ms and is to rest until 40 ms, but is claimed at 30."""
    return Story().claim(5, 10, body=body()).conclude(5, 40, 20).claim(6, 30, body=body())


def revived(story: Story, at_ms: int) -> Story:
    return story.tell(lambda request: m.Revive(request, TASK), m.Revived(0, bytes([m.Revival.REVIVED])), at_ms)


CASES: Cases = {
    times.claims_come_in_time: (
        {
            "before its time": (lambda: Story().claim(5, 10, body=body(12)), "is due at 12 ms, told at 11 ms"),
            "earlier than the clocks are off": (
                lambda: Story().know(skew_ms=4, skew_excess_ms=2).claim(5, 10, body=body(18)), "is due at 18 ms"),
            "before its time, in wall time": (
                lambda: Story().know(wall_start_ms=1_000).claim(5, 10, body=body(1_012)), "told at 1011 ms"),
            "when it has expired": (lambda: Story().claim(5, 10, body=body(0, 10)), "expired at 10 ms"),
            "later than the clocks are off": (
                lambda: Story().know(skew_ms=4, skew_excess_ms=2).claim(5, 16, body=body(0, 10)), "for at 16 ms"),
            "while it rests": (rested, "is due at 40 ms, told at 31 ms"),
            "while it rests after the failure before the last": (
                lambda: Story().claim(5, 10, body=body()).conclude(5, 90, 20).claim(6, 30, 95, body=body())
                .conclude(6, 60, 40).claim(7, 70, body=body()), "is due at 90 ms, told at 71 ms"),
        },
        lambda: Story().know(skew_ms=4).claim(5, 10, body=body(15, 20)).conclude(5, 40, 20)
        .claim(6, 40, body=body(15, 45)).conclude(6, 42, 42, kind=RELEASED).claim(7, 48, body=body(15, 45))),
}
