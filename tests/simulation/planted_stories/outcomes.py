"""Stories that break C16, and one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import KEY, NODES, TASK, Story
from skuld_py.model.body import Header, Retry, encode_body
from skuld_py.model.history import (
    FAILED,
    HISTORY_HEAD,
    RELEASED,
    REVIVED,
    SNOOZED,
    encode_claim,
    encode_mark,
    token_of,
)
from skuld_py.simulation.checkers import outcomes

ONCE = encode_body(Header("q", retry=Retry(max_attempts=1)).encode(), b"payload")
TWICE = encode_body(Header("q", retry=Retry(max_attempts=2)).encode(), b"payload")
TOKENS = [token_of(1, number) for number in range(1, 5)]


def tried(body: bytes, *kinds: int, base: int = 0, names: tuple[str, ...] = NODES) -> Story:
    """The task was claimed so often, and each claim ended so; revived after the token ``base``, if that is one."""
    story = Story()
    for index, token in enumerate(TOKENS[: len(kinds)]):
        story.claim(token, 10 + 10 * index, body=body)
    rows = b"".join(encode_claim(token, 10, 19, b"w", kind) for token, kind in zip(TOKENS, kinds, strict=False))
    head = encode_mark(REVIVED, 1, base) if base else HISTORY_HEAD.pack(0, 0, 0)
    return story.store("history", KEY, head + rows, names)


CASES: Cases = {
    outcomes.attempts_are_bounded: (
        {
            "failed once too often": (lambda: tried(ONCE, FAILED, FAILED), f"{TASK.hex()} was tried 2 times"),
            "lapsed once too often": (lambda: tried(TWICE, 0, 0, 0), "was tried 3 times, 2 are allowed"),
            "both": (lambda: tried(TWICE, FAILED, SNOOZED, 0, FAILED), "was tried 3 times"),
            "in its second round": (lambda: tried(ONCE, FAILED, FAILED, 0, base=TOKENS[0]), "was tried 2 times"),
            "known to one alone": (
                lambda: tried(ONCE, FAILED, FAILED, names=("n3",))
                .store("history", KEY, HISTORY_HEAD.pack(0, 0, 0), ("n1", "n2")), "was tried 2 times"),
        },
        lambda: tried(TWICE, FAILED, 0, RELEASED, SNOOZED)),
}
