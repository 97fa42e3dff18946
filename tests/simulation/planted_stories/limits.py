"""Stories that break C19, and one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import NEWER, OTHER, REFUSED, THIRD, TOKEN, UNSURE, Story
from skuld_py.model.history import token_of
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, UNSET
from skuld_py.simulation.checkers import limits
from skuld_py.simulation.notes import What

ONE, TWO = QueueLimits(concurrency=1).encode(), QueueLimits(concurrency=2).encode()
SLOW = QueueLimits(rate=10, window_ms=1_000, burst=2).encode()
NEWEST = token_of(1, 3)
OLDER = TOKEN - 1


def limited(value: bytes = ONE, version: int = 5, at_ms: int = 2, copies: int = 3) -> Story:
    return Story().put(version, value, at_ms, copies, kind=LIMITS)


def both(story: Story, first_ms: int = 10, second_ms: int = 12) -> Story:
    """Two tasks are claimed and held, both until 40 ms."""
    return (story.claim(TOKEN, first_ms).hold(TOKEN, first_ms + 1, 40)
            .claim(NEWER, second_ms, task=OTHER).hold(NEWER, second_ms + 1, 40, OTHER))


def granted(story: Story, *rows: tuple[int, int], queue: str = "q") -> Story:
    """So many at these times, by several nodes."""
    for index, (at_ms, amount) in enumerate(rows):
        story.note(at_ms, f"n{index % 3 + 1}", What.PICKED, worst=b"x", amount=amount, queue=queue)
    return story


CASES: Cases = {
    limits.limits_are_kept: (
        {
            "two at once": (lambda: both(limited()), "2 are held of q, 1 may"),
            "one of them from before": (lambda: both(limited(at_ms=11)), "2 are held of q"),
            "three of two": (
                lambda: both(limited(TWO)).claim(NEWEST, 15, task=THIRD).hold(NEWEST, 16, 20, THIRD),
                "3 are held"),
            "removed by an older change": (
                lambda: both(limited().put(4, UNSET, 6, kind=LIMITS)), "2 are held of q"),
            "raised in vain": (
                lambda: both(limited().put(6, TWO, 6, answer=REFUSED, kind=LIMITS)), "2 are held of q"),
            "raised too late": (lambda: both(limited().put(6, TWO, 14, kind=LIMITS)), "2 are held of q"),
            "completed by another only later": (
                lambda: both(limited()).complete(14, token=OLDER), "2 are held of q"),
            "completed by its holder only": (
                lambda: both(limited()).complete(11, token=TOKEN), "2 are held of q"),
            "more than the burst": (lambda: granted(limited(SLOW), (5, 3)), "3 too many of q"),
            "more than the burst of two": (lambda: granted(limited(SLOW), (5, 2), (6, 1)), "1 too many of q"),
            "more than the rate": (
                lambda: granted(limited(SLOW), (5, 2), (105, 1), (205, 1), (255, 1)), "1 too many of q"),
        },
        lambda: granted(
            both(limited().put(6, TWO, 5, kind=LIMITS)).claim(NEWEST, 45, task=THIRD).hold(NEWEST, 46, 50, THIRD)
            .put(7, ONE, 60, copies=2, kind=LIMITS).put(8, ONE, 70, answer=UNSURE, kind=LIMITS)
            .put(9, SLOW, 99, kind=LIMITS), (100, 2), (200, 1), (300, 1), (600, 2), (601, 9))
        .put(10, SLOW, 601, kind=LIMITS)),
}


def overtaken() -> Story:
    """The first of the two tasks is completed by an earlier holder when the second one is claimed."""
    return both(limited()).complete(11, token=OLDER)


def unlimited() -> Story:
    """Two at once of a queue without limits, and one that is limited on two of three nodes only."""
    return both(limited(copies=2).put(5, ONE, 2, queue="r", kind=LIMITS))
