"""Stories that break C20, and one that does not."""

from __future__ import annotations

import attrs

from simulation.planted_stories.cases import Cases
from simulation.story import NODES, Story
from skuld_py.model.body import Body, Header
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import UNSET
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import ticks

BEAT = Schedule(Header("q").encode(), b"beat", 1_000, every_ms=100)
PREFIX = tables.prefix_of(0)


def put(copies: int = 3) -> Story:
    return Story().put(1_000, BEAT.encode(), 5, copies, kind=SCHEDULE, queue="beat")


def tick(story: Story, tick_ms: int, names: tuple[str, ...] = NODES, *, called: str = "beat") -> Story:
    """The task of a tick, made under a name."""
    task_id, body = BEAT.task(called, tick_ms)
    return story.store("body", PREFIX + task_id, body.encode(), names)


def misdated(story: Story) -> Story:
    """A task under a tick's id that says it was made at another time."""
    task_id, body = BEAT.task("beat", 1_150)
    return story.store("body", PREFIX + task_id, body.encode())


def unnamed(story: Story) -> Story:
    """A task as any client's."""
    task_id, body = BEAT.task("beat", 1_100)
    return story.store("body", PREFIX + task_id, Body(attrs.evolve(body.header, window_ms=0, prelude=0),
                                                      payload=b"beat").encode())


def calm(*made: int, removed_ms: int = 3_500, copies: int = 3) -> Story:
    """The schedule was put when all was well, and removed after a while; ticks 1100 to 1400 came meanwhile."""
    story = put(copies).know(led_ms=1, wall_start_ms=900, end_ms=9_000)
    story.put(2_000, UNSET, removed_ms, kind=SCHEDULE, queue="beat")
    for tick_ms in made:
        tick(story, tick_ms)
    return story


def older(*made: int) -> Story:
    """The schedule was put before all was well, by a clock that was an hour ahead; ticks 4100 and 4200 came
    since."""
    tomorrow = attrs.evolve(BEAT, since_ms=3_600_000)
    story = Story().put(3_600_000, tomorrow.encode(), 5, 2, kind=SCHEDULE, queue="beat")
    story.know(led_ms=100, wall_start_ms=900, end_ms=9_000)
    story.put(3_600_001, UNSET, 6_350, kind=SCHEDULE, queue="beat")
    for tick_ms in made:
        tick(story, tick_ms)
    return story


CASES: Cases = {
    ticks.ticks_are_tasks: (
        {
            "two tasks of one tick": (lambda: tick(tick(put(), 1_100), 1_100, called="beat-n1"), "tick 1100 of"),
            "one of them on one node": (
                lambda: tick(tick(put(), 1_100, ("n1",)), 1_100, ("n2",), called="other"), "tick 1100 of"),
            "at another time than a tick": (lambda: misdated(put()), "made for 1150, which is no tick"),
            "before the definition was made": (
                lambda: tick(put().know(wall_start_ms=2_000), 1_000), "made for 1000, which is no tick"),
            "without a name": (lambda: unnamed(put()), "made for 0, which is no tick"),
            "a tick missed in a calm": (lambda: calm(1_100, 1_300, 1_400), "tick 1200 of"),
            "the last one missed": (lambda: calm(1_100, 1_200, 1_300), "tick 1400 of"),
            "all missed": (calm, "tick 1100 of"),
            "silent though the clocks are right": (lambda: older(1_100), "tick 4100 of"),
            "silent again": (lambda: older(1_100, 4_100), "tick 4200 of"),
        },
        lambda: calm(1_100, 1_200, 1_300, 1_400)),
}
