"""Stories that break C18, and one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import NODES, Story
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.columns import pack_u64
from skuld_py.model.ids import named_id
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import keys

WINDOW_MS = 1_000
TASK = named_id("q", "n", 5_000, "")
STRAY = TASK[:8] + bytes(12)
NEW, KNOWN = m.Acked(0, 2), m.Acked(0, 2, pack_u64([0]))


def named(made_ms: int, payload: bytes = b"x") -> Body:
    return Body(Header("q", window_ms=WINDOW_MS), payload=payload, made_ms=made_ms, unique="n")


FIRST, SECOND, NEXT = named(5_100), named(5_200, b"y"), named(6_100)


def asked(story: Story, body: Body, answer: m.Message = NEW, at_ms: int = 1, task: bytes = TASK,
          w: int = 0) -> Story:
    return story.enqueue(answer, body.rest, task=task, header=body.header.encode(), at_ms=at_ms, w=w)


def kept(body: Body, story: Story, names: tuple[str, ...] = NODES) -> Story:
    return story.store("body", tables.prefix_of(0) + TASK, body.encode(), names)


CASES: Cases = {
    keys.names_are_unique: (
        {
            "two tasks in a window": (lambda: asked(asked(Story(), FIRST), SECOND, at_ms=5, task=STRAY),
                                      "has 2 tasks"),
            "one task for two windows": (lambda: asked(asked(Story(), FIRST), NEXT, KNOWN, 5), "is of ["),
            "the second stands": (lambda: kept(SECOND, asked(asked(Story(), FIRST), SECOND, KNOWN, 5)),
                                  "was acknowledged"),
            "the second stands on one": (
                lambda: kept(SECOND, kept(FIRST, asked(asked(Story(), FIRST), SECOND, KNOWN, 5)), ("n2",)),
                "n2 has"),
            "it is lost on one": (lambda: kept(FIRST, asked(asked(Story(), FIRST), SECOND, KNOWN, 5), NODES[1:]),
                                  "n1 has None"),
            "the second is not told": (lambda: kept(FIRST, asked(asked(Story(), FIRST), SECOND, NEW, 5)),
                                       "not told of"),
            "a later call by a clock that was behind stands": (
                lambda: kept(FIRST, asked(asked(Story(), SECOND), FIRST, KNOWN, 5)), "asked for after"),
            "it stands on one": (
                lambda: kept(FIRST, kept(SECOND, asked(asked(Story(), SECOND), FIRST, KNOWN, 5)), ("n2",)),
                "asked for after"),
            "it is told of nobody": (
                lambda: kept(SECOND, asked(asked(Story(), SECOND), FIRST, NEW, 5)), "not told of"),
            "the first is told of nobody": (lambda: kept(FIRST, asked(Story(), FIRST, KNOWN)), "there was none"),
            "told of itself": (lambda: kept(FIRST, asked(asked(Story(), FIRST), FIRST, KNOWN, 5)),
                               "there was none"),
        },
        lambda: kept(SECOND, asked(asked(asked(Story(), FIRST, KNOWN, 5), SECOND), SECOND, NEW, 9))),
}
"""Who asks again for the very same is told what the first one was told."""
