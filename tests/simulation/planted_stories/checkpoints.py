"""Stories that break D13 and C23, and for each one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import NEWER, REFUSED, TOKEN, UNSURE, Story, record_of, slot
from skuld_py.simulation.checkers import checkpoints

ONE = record_of(TOKEN, 1)


def held(record: bytes = ONE, *names: str) -> Story:
    """A task with a checkpoint on all nodes, or on some."""
    return Story().store("log", slot(), record, names or ("n1", "n2", "n3"))


CASES: Cases = {
    checkpoints.acked_checkpoints_stay: (
        {
            "one owner lacks it": (lambda: held(ONE, "n1", "n2").mark(1), "n3 has None"),
            "one has an older one": (lambda: held().mark(1).mark(2, at_ms=12), "n1 has"),
            "one has that of an earlier claim": (lambda: held().mark(1).mark(0, token=NEWER, at_ms=12), "n2 has"),
            "nobody said it": (held, "nobody sent"),
            "nobody said this": (lambda: held(record_of(TOKEN, 1, b"other")).mark(1), "nobody sent"),
            "nobody said what is read": (
                lambda: held().mark(1).read(20, entries=((0, 0, record_of(TOKEN, 7)),)), "c2#2"),
            "two words of one number": (lambda: held().mark(1).mark(1, b"other", at_ms=12), "are one number's"),
        },
        lambda: held(record_of(NEWER, 0)).mark(1).mark(2, b"lost", UNSURE, at_ms=11).mark(0, token=NEWER, at_ms=30)
        .read(40, entries=((0, 0, record_of(NEWER, 0)),))),
    checkpoints.claims_that_are_over_set_no_checkpoint: (
        {
            "overtaken by another": (lambda: Story().claim(NEWER, 10).mark(1, at_ms=20), "is over"),
            "given back": (lambda: Story().conclude(TOKEN, 5, 10).mark(1, at_ms=20), "is over"),
            "its task is done": (lambda: Story().complete(10).mark(1, at_ms=20), "is over"),
            "said again with other content": (
                lambda: Story().mark(1, at_ms=5).complete(10).mark(1, b"other", at_ms=20), "is over"),
        },
        lambda: Story().mark(1, at_ms=5).mark(3, at_ms=6).claim(NEWER, 10).mark(1, at_ms=20).mark(2, at_ms=21)
        .mark(4, answer=REFUSED, at_ms=22).mark(4, answer=UNSURE, at_ms=23).mark(0, token=NEWER, at_ms=24)),
}
