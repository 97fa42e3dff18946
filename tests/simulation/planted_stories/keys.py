"""Stories that break C15, and one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import NEWER, TOKEN, Story
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, Retry
from skuld_py.model.history import FAILED, HISTORY_HEAD, encode_claim
from skuld_py.model.ids import IdMint, lane_route
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import keys

OLD, YOUNG, LAST = IdMint(1).mint(1_000, 3, lane_route("q", "k"), is_laned=True)
OTHER = IdMint(1).mint(1_000, 1, lane_route("q", "j"), is_laned=True)[0]
KEYED = Body(Header("q"), key="k", payload=b"x")
DIFFERENT = Body(Header("q"), key="j", payload=b"x")
FRAIL = Body(Header("q", retry=Retry(max_attempts=1)), key="k", payload=b"x")
EVERYWHERE = m.Acked(0, 3)


def lane(*tasks: bytes, body: Body = KEYED, is_fixed: bool = True) -> Story:
    """Tasks of a key, on all nodes from the start."""
    story = Story().know(is_fixed=is_fixed)
    for task in tasks:
        story.enqueue(EVERYWHERE, body.rest, task=task, header=body.header.encode())
    return story


def wide(story: Story, width: int) -> Story:
    return story.put(5, QueueLimits(key_concurrency=width).encode(), kind=LIMITS)


def granted(story: Story, *tasks: bytes, at_ms: int = 10) -> Story:
    for number, task in enumerate(tasks):
        story.claim(TOKEN + number, at_ms + number * 10, task=task, body=KEYED.encode())
    return story


CASES: Cases = {
    keys.lanes_are_in_order: (
        {
            "two at a time": (lambda: lane(OLD, YOUNG).hold(TOKEN, 10, 30, OLD).hold(NEWER, 29, 50, YOUNG),
                              "('q', 'k')"),
            "three where two may be": (
                lambda: wide(lane(OLD, YOUNG, LAST), 2).hold(TOKEN, 10, 30, OLD).hold(NEWER, 10, 30, YOUNG)
                .hold(NEWER + 1, 29, 50, LAST), "while"),
            "under a long one": (
                lambda: lane(OLD, YOUNG, LAST).hold(TOKEN, 10, 90, OLD).hold(NEWER, 30, 40, YOUNG), "while"),
            "by more than a clock was wrong": (
                lambda: lane(OLD, YOUNG).know(skew_excess_ms=5).hold(TOKEN, 10, 36, OLD)
                .hold(NEWER, 30, 50, YOUNG), "while"),
            "the younger first": (lambda: granted(lane(OLD, YOUNG), YOUNG, OLD), f"{YOUNG.hex()} before"),
            "the younger while the older rests": (
                lambda: granted(lane(OLD, YOUNG), OLD, YOUNG), f"{YOUNG.hex()} before ['{OLD.hex()}']"),
            "the older is done too late": (
                lambda: granted(lane(OLD, YOUNG), OLD, YOUNG).complete(60, task=OLD), "before"),
            "the third while two are open": (
                lambda: granted(wide(lane(OLD, YOUNG, LAST), 2), OLD, YOUNG, LAST), f"{LAST.hex()} before"),
        },
        lambda: (
            granted(lane(OLD, YOUNG), OLD)
            .enqueue(EVERYWHERE, task=OTHER, payload=DIFFERENT.rest, header=DIFFERENT.header.encode())
            .complete(15, task=OLD).hold(TOKEN, 11, 16, OLD)
            .claim(NEWER, 20, task=YOUNG, body=KEYED.encode()).hold(NEWER, 21, 30, YOUNG).hold(9, 12, 30, OTHER))),
}
"""A worker may hold the task of one key with that of another, and one of a key after another."""


def tried_in_vain() -> Story:
    """An older task that is dead does not keep the younger back."""
    head = HISTORY_HEAD.pack(0, 0, 0) + encode_claim(TOKEN, 10, 19, b"w", FAILED)
    story = granted(lane(OLD, YOUNG, body=FRAIL), OLD, YOUNG)
    story.store("history", tables.prefix_of(0) + OLD, head)
    return story.hold(TOKEN, 11, 15, OLD).hold(NEWER, 21, 30, YOUNG)


EXCUSED = {
    "the older was cancelled": lambda: granted(lane(OLD, YOUNG), YOUNG).cancel(5, task=OLD),
    "the older died": tried_in_vain,
    "an older claim completed it": lambda: lane(OLD, YOUNG).complete(15, task=OLD).hold(NEWER, 12, 40, OLD)
    .hold(NEWER + 1, 16, 30, YOUNG),
    "the older was not on all nodes": lambda: granted(
        lane(YOUNG).enqueue(m.Acked(0, 2), KEYED.rest, task=OLD, header=KEYED.header.encode()), YOUNG, OLD),
    "owners changed": lambda: granted(lane(OLD, YOUNG, is_fixed=False), YOUNG, OLD),
    "a disk was lost": lambda: granted(lane(OLD, YOUNG).strike("wipe", 5), YOUNG, OLD),
    "the clock of one was wrong by so much": lambda: lane(OLD, YOUNG).know(skew_excess_ms=5)
    .hold(TOKEN, 10, 35, OLD).hold(NEWER, 30, 50, YOUNG),
    "two may be": lambda: granted(wide(lane(OLD, YOUNG), 2), OLD, YOUNG).hold(TOKEN, 10, 30, OLD)
    .hold(NEWER, 20, 50, YOUNG),
}
"""What is no violation."""
