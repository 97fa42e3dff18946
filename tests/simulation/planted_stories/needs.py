"""Stories that break C13, C17 or D12, and for each one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import NODES, OTHER, REFUSED, TASK, THIRD, TOKEN, Story, completed, record
from skuld_py.model import messages as m
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_INSTEAD,
    ON_FAILURE_WAIT,
    Body,
    Header,
    split_body,
)
from skuld_py.model.columns import pack
from skuld_py.model.history import DEP_FAILED, DIED, encode_mark
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import needs

NEWER = TOKEN + 1
PREFIX = tables.prefix_of(0)
OTHERS_KEY = PREFIX + OTHER
WAIT_MS = 100
DONE = record(TOKEN, done=TOKEN)
ROW = PREFIX + b"\0" + OTHER + TASK


def body_of(policy: int, *deps: bytes) -> bytes:
    return Body(Header("q", policy=policy, dep_wait_ms=WAIT_MS), payload=b"payload", deps=deps).encode()


def enqueued(story: Story, policy: int = ON_FAILURE_WAIT, *deps: bytes) -> Story:
    """The task is enqueued, and needs these; by default the other one."""
    header, rest = split_body(body_of(policy, *(deps or (OTHER,))))
    return story.tell(lambda request: m.Enqueue(request, 0, (m.TaskBatch(header, TASK, pack([rest])),)),
                      m.Acked(0, 2), 1)


def needing(policy: int = ON_FAILURE_WAIT, *deps: bytes) -> Story:
    """The task needs the other one, which is completed on all nodes."""
    return enqueued(completed().store("history", OTHERS_KEY, DONE), policy, *deps)


def blocked(names: tuple[str, ...] = NODES) -> Story:
    """The task waits for the other one, when all faults are over and all is well."""
    return (enqueued(Story()).store("dep", ROW, b"\0\0", names)
            .know(calm_ms=100, equal_ms=200, end_ms=300, bound_ms=1_000))


def collected(at_ms: int, dependency_ms: int, ended_ms: int = 20) -> Story:
    """The task, enqueued at 10 ms, is collected then (0: not yet), and the other one, which it needs."""
    going = {TASK: at_ms, OTHER: dependency_ms} if at_ms else {OTHER: dependency_ms}
    return enqueued(Story()).complete(ended_ms, task=OTHER).know(keep_ms=100, going=going)


CASES: Cases = {
    needs.dependencies_are_done: (
        {
            "never completed": (lambda: needing().claim(), OTHER.hex()),
            "completed later": (lambda: needing().claim().complete(11, task=OTHER), OTHER.hex()),
            "completed in vain": (lambda: needing().complete(5, task=OTHER, answer=REFUSED).claim(), OTHER.hex()),
            "one of two": (
                lambda: needing(ON_FAILURE_WAIT, OTHER, THIRD).complete(5, task=OTHER).claim(), THIRD.hex()),
            "not completed in the end": (
                lambda: needing().complete(5, task=OTHER).claim().drop("history", OTHERS_KEY, "n3"), "n3"),
            "claimed in the end": (
                lambda: needing().complete(5, task=OTHER).claim()
                .store("history", OTHERS_KEY, record(TOKEN), ("n2",)), "n2"),
            "cancelled, of one that dies of that": (
                lambda: needing(ON_FAILURE_FAIL).cancel(5, task=OTHER).claim(), "was not completed"),
            "completed, of one that is there instead": (
                lambda: needing(ON_FAILURE_INSTEAD).complete(5, task=OTHER).claim(), "neither cancelled nor dead"),
            "unknown, of one that waits": (
                lambda: needing().claim(at_ms=5_000), "was not completed"),
            "cancelled later": (
                lambda: needing(ON_FAILURE_IGNORE).claim().cancel(12, task=OTHER), "nor been waited for"),
            "unknown, too early": (
                lambda: needing(ON_FAILURE_IGNORE).know(wall_start_ms=1_000, skew_ms=5).claim(at_ms=90),
                "nor been waited for"),
        },
        lambda: needing().complete(5, task=OTHER).claim().claim(NEWER, task=OTHER)),
    needs.nobody_waits_in_vain: (
        {
            "on all": (lambda: blocked().store("history", OTHERS_KEY, DONE), OTHER.hex()),
            "on one": (lambda: blocked(("n2",)).store("history", OTHERS_KEY, DONE), "n2: "),
            "known to another one": (lambda: blocked().store("history", OTHERS_KEY, DONE, ("n3",)), "n1: "),
            "never well": (
                lambda: blocked().store("history", OTHERS_KEY, DONE).know(equal_ms=None, end_ms=1_100), "n1: "),
        },
        lambda: blocked().store("history", OTHERS_KEY, record(TOKEN))
        .store("dep", PREFIX + b"\1" + TASK, b"\0\1")),
    needs.what_is_needed_is_kept: (
        {
            "before its dependent": (lambda: collected(300, 200), OTHER.hex()),
            "and its dependent stays": (
                lambda: collected(0, 200).store("body", PREFIX + TASK, body_of(ON_FAILURE_WAIT, OTHER), ("n2",)),
                OTHER.hex()),
            "of one that came when it had just ended": (lambda: collected(300, 200, ended_ms=2), OTHER.hex()),
            "cancelled, not completed": (
                lambda: enqueued(Story()).cancel(20, task=OTHER)
                .know(keep_ms=100, going={TASK: 300, OTHER: 200}), OTHER.hex()),
        },
        lambda: collected(200, 200)),
}

IGNORED = (
    lambda: needing(ON_FAILURE_IGNORE).complete(5, task=OTHER).claim(),
    lambda: needing(ON_FAILURE_IGNORE).cancel(5, task=OTHER).claim(),
    lambda: needing(ON_FAILURE_IGNORE).store("history", OTHERS_KEY, encode_mark(DIED, 1, DEP_FAILED)).claim(),
    lambda: needing(ON_FAILURE_IGNORE).know(wall_start_ms=1_000, skew_ms=5).claim(at_ms=95),
    lambda: needing(ON_FAILURE_IGNORE, OTHER).claim(at_ms=1_200).drop("history", OTHERS_KEY, "n1"),
    lambda: needing(ON_FAILURE_IGNORE).know(wall_start_ms=1_000, keep_ms=50).claim(at_ms=60),
    lambda: needing(ON_FAILURE_INSTEAD).cancel(5, task=OTHER).claim(),
    lambda: needing(ON_FAILURE_INSTEAD).cancel(5, task=OTHER).complete(8, task=OTHER).claim(),
    lambda: needing(ON_FAILURE_INSTEAD).store("history", OTHERS_KEY, encode_mark(DIED, 1, DEP_FAILED)).claim(),
)
"""Sound lives of a task that takes what fails for done, or is done instead of it."""
UNDECIDED = (
    lambda: blocked().store("history", OTHERS_KEY, DONE).know(calm_ms=None),
    lambda: blocked().store("history", OTHERS_KEY, DONE).know(equal_ms=None, end_ms=1_099),
)
"""Nobody can say yet that a task waits in vain."""
